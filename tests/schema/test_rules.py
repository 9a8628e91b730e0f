"""Rules: their text, the structural zeros they become, the rows that break them, and what is refused."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_texts import COLUMNS, broken_cells, compiled_cells, holds, pairs_in, plain_row, random_rule

from dpcipher.errors import DataError, SchemaError, SizeError
from dpcipher.schema import Rule, Schema, column
from dpcipher.schema.rules.sentence import MAX_DEPTH, MAX_TEXT
from effort import at_most

BASE = Schema(COLUMNS)


def with_rules(*rules: object) -> Schema:
    """The schema of the tests with some rules."""
    return Schema(COLUMNS, rules=rules)


def possible(*rules: str) -> Schema | None:
    """The same, or None where the rules leave no row."""
    try:
        return with_rules(*rules)
    except SchemaError as refused:
        return None if "leaves no row possible" in str(refused) else pytest.fail(str(refused))


@pytest.mark.parametrize("seed", range(150))
def test_masks_are_what_rows_say_one_by_one(seed: int) -> None:
    """A cell is a structural zero where no row of it keeps the rule, and only there."""
    rule = random_rule(np.random.default_rng(seed))
    schema, wanted = possible(rule.text), broken_cells(rule.tree)
    if schema is None:
        assert wanted.all()
        return
    compiled = compiled_cells(schema)
    assert not (compiled & ~wanted).any()
    if len(pairs_in(rule.tree)) <= 1:
        assert (compiled == wanted).all()


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_judged_as_one_by_one(seed: int) -> None:
    """Drawn rows break the masks or the watch exactly where the evaluator says so."""
    rng = np.random.default_rng(1000 + seed)
    rule = random_rule(rng)
    schema = possible(rule.text)
    if schema is None:
        return
    codes = np.stack([rng.integers(size, size=200) for size in schema.shape], axis=1).astype(np.int32)
    rows = schema.decode(codes, rng)
    by_column = {name: codes[:, axis] for axis, name in enumerate(schema.attrs)}
    broken = compiled_cells(schema)[tuple(codes.T)] | schema.compiled.broken_rows(by_column, rows)
    wanted = [holds(rule.tree, plain_row(row)) is False for row in rows.to_pylist()]
    assert broken.tolist() == wanted


def test_many_rules_share_one_mask_for_each_pair() -> None:
    """What a conjunction says of several columns becomes tables of two."""
    schema = with_rules("age < 3 -> status == N and school == none", "age >= 9 -> status != N")
    assert sorted(axes for axes, _ in schema.zero_masks) == [(0, 2), (0, 3)]
    assert schema.compiled.watched == ()


def test_a_map_of_many_cities_is_one_small_mask() -> None:
    """Five hundred cities and fifty states: one state each, and a city that the map leaves out may be anywhere."""
    cities, states = [f"c{i}" for i in range(500)], [f"s{i}" for i in range(50)]
    columns = (column("city", "categorical", levels=cities), column("state", "categorical", levels=states))
    rule = {"determines": {"city": "state"}, "map": {f"c{i}": f"s{i % 50}" for i in range(499)}}
    schema = Schema(columns, rules=(rule,))
    [(axes, mask)] = schema.zero_masks
    assert axes == (0, 1)
    assert (~mask).sum(axis=1).tolist() == [1] * 499 + [50]
    assert not mask[np.arange(499), np.arange(499) % 50].any()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))).fingerprint() == schema.fingerprint()


REFUSED = [
    ("agee < 3", "at 1: column 'agee' is not in the schema; did you mean 'age'"),
    ("status == singel", "at 11: column 'status' has no level 'singel'; did you mean 'single'"),
    ("age < 4", "at 7: 4 lies inside the bin 3..5 of 'age'; add the edge 4"),
    ("age <= 3", "at 8: 3 lies inside the bin 3..5 of 'age'; add the edge 4"),
    ("age == 3", "add the edge 4"),
    ("day == 4", "at 8: 'day' never is 4; it is from 1 to 3"),
    ("age = 3", "equality is written =="),
    ("age < 3 -> ", "the end: a column must stand here"),
    ("age < 3 -> day == 1 -> end < 2", "and, or, -> or the end must follow"),
    ("0 <= age < 3", "is written 0 <= a and a < 5"),
    ("(age < 3", "closed with"),
    ("status == 'N", "a quote is not closed"),
    ("status < single", "have no order"),
    ("age < status", "cannot be compared"),
    ("age < age", "compared with itself"),
    ("status is missing", "has no missing level"),
    ("status is N", "only missing may follow is"),
    ("status in N", "levels in brackets"),
    ("status in []", "a level must stand here"),
    ("status in [N single]", "separated by commas"),
    ("age < x", "compared with a number, or a column, not 'x'"),
    ("`no` < 3", "column 'no' is not in the schema"),
    ("not " * 40 + "age < 3", "nested at most"),
    ("", "must be a text"),
    ({"rule": "age < 3", "braking": "refuse"}, "a rule must be a text"),
    ({"rule": "age < 3", "breaking": "drop"}, "must be refuse or follow; rows cannot be dropped"),
    ({"rule": "age < 3", "becomes": {"ages": 1}}, "did you mean 'age'"),
    ({"rule": "age < 3 -> status != N", "breaking": "follow"}, "leaves one level"),
    ({"determines": {"status": "day"}, "map": {}}, "a rule must be"),
    ({"determines": {"status": "day"}, "map": {"N": 9}}, "has no level 9"),
    ({"determines": {"status": "status"}, "map": {"N": "N"}}, "cannot determine itself"),
    (7, "a rule must be a text"),
]


@pytest.mark.parametrize(("rule", "why"), REFUSED)
def test_a_wrong_rule_is_refused_with_its_number_and_place(rule: object, why: str) -> None:
    """The message names the rule, the position and what would help, in few words."""
    with pytest.raises(SchemaError, match="rule") as caught:
        with_rules("age < 9", rule)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_word_that_is_a_column_and_a_level_must_be_quoted() -> None:
    """Neither reading is guessed."""
    columns = (column("a", "categorical", levels=["b", "c"]), column("b", "categorical", levels=["b", "c"]))
    with pytest.raises(SchemaError, match="write 'b' for the level or `b` for the column"):
        Schema(columns, rules=("a == b",))
    level, declared = (Schema(columns, rules=(text,)).zero_masks for text in ("a == 'b'", "a == `b`"))
    assert level[0][0] == (0,)
    assert declared[0][1].tolist() == [[False, True], [True, False]]


def test_a_contradiction_names_the_rule_that_completes_it() -> None:
    """Rules that leave no row are found when the schema is made."""
    with pytest.raises(SchemaError, match=r"rule 3 .* leaves no row possible"):
        with_rules(
            "age < 6 -> day == 1", "age >= 6 -> day == 2", "day == 3 and age is not missing", "end < 5"
        )


def test_thresholds_are_the_edges_that_rules_need() -> None:
    """Of rules and of the ranges of zeros, in the column's own units."""
    columns = (
        *COLUMNS,
        column("born", "date", min="2000-01-01", max="2003-12-31"),
        column("income", "number", edges=[0, 10, 99]),
        column("opens", "time", edges=["06:00", "08:30", "12:00"]),
    )
    schema = Schema(
        columns,
        rules=(
            "born >= 2001-01-01 -> age < 9",
            "born <= 2002-06-30 -> income < 10",
            "3 <= age or opens >= 08:30",
        ),
    )
    assert schema.thresholds("born") == ("2001-01-01", "2002-07-01")
    assert schema.thresholds("age") == (3, 9)
    assert schema.thresholds("income") == (10.0,)
    assert schema.thresholds("opens") == ("08:30",)
    assert schema.thresholds("status") == ()


def rows(**values: list) -> pa.Table:
    """A table of three rows."""
    plain = {
        "age": [1, 4, 10],
        "end": [1, 1, 1],
        "status": ["N", "N", "N"],
        "school": ["low"] * 3,
        "day": [1, 2, 3],
    }
    return pa.table({**plain, **values})


def test_private_rows_that_break_a_rule_are_refused_without_a_value() -> None:
    """Before any charge, naming columns and the rule, which is public; one column is one column."""
    broken = r"columns 'age', 'status': rows that break rule 2 \(age < 3 -> status == single\) are refused"
    with pytest.raises(DataError, match=broken) as caught:
        with_rules("day <= 3", "age < 3 -> status == single").encode(rows())
    assert "married" not in str(caught.value)
    with pytest.raises(
        DataError, match=r"^column 'day': rows that break rule 1 .*schema check SCHEMA --data"
    ):
        with_rules("day <= 2").encode(rows())


def test_private_rows_are_moved_where_the_rule_says() -> None:
    """To the level of `becomes`, or to the only one that the claim leaves; the others stay."""
    told = {"rule": "age < 3 -> status == single", "becomes": {"status": "single"}}
    follow = {"rule": "age < 3 -> status == single and day in [2]", "breaking": "follow"}
    mapped = {"determines": {"day": "status"}, "map": {1: "or", 3: "in"}, "breaking": "follow"}
    assert with_rules(told).encode(rows())[:, 2].tolist() == [1, 0, 0]
    assert with_rules(follow).encode(rows())[:, [2, 4]].tolist() == [[1, 1], [0, 1], [0, 2]]
    assert with_rules(mapped).encode(rows())[:, 2].tolist() == [3, 0, 2]
    one_by_one = [with_rules(mapped).encode(rows().slice(i, 1))[0].tolist() for i in range(3)]
    assert one_by_one == with_rules(mapped).encode(rows()).tolist()


def test_rules_are_kept_in_files_and_old_fingerprints_stay() -> None:
    """A schema without rules writes none; one with rules reads back the same."""
    assert "rules" not in BASE.to_dict()
    schema = with_rules("age < 3 -> status == N", {"rule": "day == 1 -> age < 3", "becomes": {"day": 2}})
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.fingerprint() == schema.fingerprint() != BASE.fingerprint()
    assert again.rules[0] == Rule("age < 3 -> status == N")


MANY = {f"c{i}": {"kind": "integer", "min": 0, "max": 10**6} for i in range(40)}
LONG = " or ".join(f"(c{i} < 5 and c{i + 1} < 5)" for i in range(39))
BOMBS = {
    "many rules": ["c0 < 5"] * 5000,
    "long texts": ["c0 < 5" + " " * 16_000] * 20,
    "one long text": ["c0 < 5" + " " * MAX_TEXT],
    "deep": ["(" * (MAX_DEPTH + 1) + "c0 < 5" + ")" * (MAX_DEPTH + 1)],
    "named levels": [f"c{i} == '(missing)' or c{i} in ['5', '6']" for i in range(40)] * 3,
    "normal forms": [LONG] * 100,
    "wide": [" or ".join(f"c{i} < 5" for i in range(40))] * 100,
    "map": [{"determines": {"c0": "c1"}, "map": {str(i): i for i in range(10**5)}}] * 3,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_bytes_of_rules_never_ask_for_much(name: str) -> None:
    """Loaded or refused, rules take little time whatever they say."""
    with at_most(seconds=10):
        try:
            Schema.from_dict({"columns": MANY, "rules": BOMBS[name]})
        except (SizeError, SchemaError):
            assert name not in ("normal forms", "wide")
        else:
            assert name in ("normal forms", "wide")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab<>=!-()[],'\"` \t0123.andotris", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never another error; and what a sentence bars, its opposite allows."""
    columns = tuple(column(name, "integer", min=0, max=3) for name in ("a", "b", "andotris"))
    try:
        schema = Schema(columns, rules=(text,))
    except (SchemaError, SizeError):
        return
    assert schema.compiled.declared[0].columns
    if "->" not in text:
        both = tuple(compiled_cells(Schema(columns, rules=(one,))) for one in (text, f"not not ({text})"))
        assert (both[0] == both[1]).all()
