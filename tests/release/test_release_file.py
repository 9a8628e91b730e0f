"""The release file: what is written is read, and what nobody would write is refused with a reason."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import forge
import numpy as np
import pytest
from measured import noisy, reconcile

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release import file
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from effort import at_most


@pytest.mark.parametrize("kind", forge.KINDS)
def test_a_file_written_by_hand_is_read(kind: str, tmp_path: Path) -> None:
    """Written by hand, with its own checksum: statement, tables and counts arrive as they stand."""
    facts, counts = forge.KINDS[kind]()
    release = Release.load(forge.save(tmp_path / "r.parquet", forge.sealed(facts, counts), counts))
    assert release.statement.to_dict() == facts["statement"]
    assert release.schema == Schema.from_dict(forge.SCHEMA)
    tables = [(attrs, entry["counts"]) for entry in facts["measurements"] for attrs in entry["tables"]]
    assert [list(release.schema.attrs_on(one.query.axes)) for one in release.measurements] == [
        attrs for attrs, _ in tables
    ]
    assert [one.values.dtype.kind for one in release.measurements] == [
        {"integer": "i", "real": "f"}[counts] for _, counts in tables
    ]
    assert np.concatenate([one.values.ravel() for one in release.measurements]).tolist() == counts
    assert release.checksum == forge.sealed(facts, counts)["checksum"]
    again = Release.load(release.save(tmp_path / "again.parquet"))
    assert again.checksum == release.checksum


def changed(facts: Mapping[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    """The facts with one value changed, or taken out where it is `...`."""
    copy = deepcopy(dict(facts))
    *before, last = path
    inner: Any = copy
    for key in before:
        inner = inner[key]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return copy


WRONG = [
    (("version",), ..., "states no version"),
    (("version",), True, "states no version"),
    (("version",), "1", "states no version"),
    (("checksum",), 5, r"its metadata.checksum \(5\) must be a text"),
    (("extra",), 5, "its metadata: unknown key 'extra'"),
    (("measurements",), ..., "its metadata must hold measurements"),
    (("measurements",), [], "its measurements must be 1 to 4194304 tables"),
    (("measurements",), {}, r"its metadata.measurements \(\{\}\) must be a list"),
    (("measurements", 0), "age", r"measurements\[0\] \('age'\) must be a mapping"),
    (("measurements", 0, "scale"), ..., r"measurements\[0\] must hold scale"),
    (("measurements", 0, "more"), 1, r"measurements\[0\]: unknown key 'more'"),
    (("measurements", 0, "tables"), "age", r"tables \('age'\) must be a list"),
    (("measurements", 0, "tables"), [], "its measurements must be 1 to"),
    (("measurements", 0, "tables", 0), "age", r"attrs \('age'\) must be a list of the schema's attributes"),
    (("measurements", 0, "tables", 0), ["age", "wo"], "must be a list of the schema's attributes"),
    (("measurements", 0, "tables", 0), ["age", ["who"]], "must be a list of the schema's attributes"),
    (("measurements", 0, "tables", 0), ["who", "age"], "each once, in the schema's order"),
    (("measurements", 0, "tables", 0), ["age", "age"], "each once, in the schema's order"),
    (("measurements", 0, "counts"), "Integer", r"counts \('Integer'\) must be integer or real"),
    (("measurements", 0, "counts"), ["integer"], "must be integer or real"),
    (("measurements", 0, "counts"), "real", "its columns must be .* of their types"),
    (("measurements", 0, "noise"), "cauchy", r"noise \('cauchy'\) must be laplace or gaussian or none"),
    (("measurements", 0, "noise"), ["laplace"], "noise .* must be"),
    (("measurements", 0, "noise"), "none", "must be 0 with mechanism 'none'"),
    (("measurements", 0, "scale"), -1, r"scale \(-1\) must be a number from 0"),
    (("measurements", 0, "scale"), 1e308, r"scale \(1e\+308\) must be a number from 0"),
    (("measurements", 0, "scale"), 10**307, "must be a number from 0"),
    (("measurements", 0, "scale"), "3", r"scale \('3'\) must be a number from 0"),
    (("measurements", 0, "scale"), True, r"scale \(True\) must be a number from 0"),
    (("measurements", 0, "scale"), 0, "must be at least"),
    (("measurements", 0, "set"), 0.0, r"set \(0.0\) must be a whole number"),
    (("measurements", 0, "set"), False, r"set \(False\) must be a whole number"),
    (("measurements", 0, "set"), -1, r"set \(-1\) must be a whole number"),
    (("measurements", 0, "set"), 10**300, "must be a whole number, 0 or above"),
    (("measurements", 0, "set"), 1, "sets .* must be numbered from 0"),
    (("measurements", 0, "centred"), 1, "centred .* must be true or false"),
    (("measurements", 0, "centred"), True, "must have the number of rows beside them"),
    (("measurements", 0, "contrasts"), ["who"], "contrasts .* be among them"),
    (("measurements", 0, "groups"), {"age": {}}, "groups must have starts"),
    (("measurements", 0, "groups"), {"age": {"starts": [0, 9]}}, "must ascend from level 0"),
    (("measurements", 0, "groups"), {"age": {"starts": [0], "of": [0]}}, "groups must have starts"),
    (("measurements", 0, "groups"), {"age": {"of": [0, 2, 1, 0]}}, "in the order of their first levels"),
    (("measurements", 0, "groups"), {"age": {"of": [0, 0]}}, "the group of each of the 4 levels"),
    (("measurements", 0, "groups"), {"age": {"of": [0, "x"]}}, r"of\[1\] \('x'\) must be a whole number"),
    (("measurements", 0, "groups"), {"age": {"starts": [0, 2], "names": ["a"]}}, "names of groups must be 2"),
    (("measurements", 0, "groups"), {"ag": {"starts": [0, 2]}}, "must be a list of the schema's attributes"),
    (("statement",), [], "a statement must be a mapping with a status"),
    (("statement", "status"), ..., "a statement must be a mapping with a status"),
    (("statement", "stats"), 1, "unknown key 'stats'; did you mean 'status'"),
    (("statement", "n_rows"), "5", r"n_rows \('5'\) must be a whole number"),
    (("statement", "budget", "epsilon"), "1e99999999", r"epsilon \('1e99999999'\) must be a text"),
    (("schema",), [], "a schema must be a mapping"),
    (("schema", "columns", 0, "max"), 10**300, "must be a finite number below"),
    (("schema", "columns", 0, "max"), 9, "it has 32 counts for the 80 cells"),
    (("schema", "columns", 1, "levels"), [str(i) for i in range(2**16)], "it has 32 counts for"),
    (("schema", "columns", 0, "max"), 2**30, "touches too many cells"),
]


@pytest.mark.parametrize(("where", "value", "why"), WRONG)
def test_wrong_facts_are_refused_with_a_reason(
    where: Sequence[Any], value: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever computes the checksum too still gets no further; the message names what is wrong, in few words."""
    facts, counts = forge.given()
    monkeypatch.setattr(file, "checksum", lambda *_: "")
    with pytest.raises(ReleaseError, match=why) as caught:
        Release.load(forge.save(tmp_path / "r.parquet", changed(facts, where, value), counts))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested more than"),
        ('{"version": 1, "version": 1}', "a key appears twice"),
        ('{"version": 1, "schema": NaN}', "NaN is not a number"),
        ('{"version": 1, "schema": 1e999}', "too large"),
        ('{"version": ' + "9" * 5_000 + "}", "more than 308 digits"),
        ('{"version": "\\ud800"}', "surrogate"),
        (
            '{"version": 99, "new": 1}',
            "has format version 99; this dpcipher reads version 1. Use the dpcipher that wrote it",
        ),
        ("5", "states no version"),
        ("", "cannot be read"),
    ],
)
def test_metadata_that_is_no_plain_json_is_refused(text: str, why: str, tmp_path: Path) -> None:
    """Depth, long numbers, repeated keys and constants never reach the facts."""
    with pytest.raises(ReleaseError, match=why):
        Release.load(forge.save(tmp_path / "r.parquet", text, [1, 2]))


@pytest.mark.parametrize("many", [1, 9])
def test_sizes_are_judged_on_the_schema(many: int, tmp_path: Path) -> None:
    """A few bytes may declare any number of cells; too many in one table, or in all, are refused before the counts are."""
    facts, counts = forge.given()
    facts["schema"] = {"columns": {"a": {"kind": "integer", "min": 0, "max": (2**28 + 2**22) // many}}}
    facts["measurements"] = [forge.batch(*[("a",)] * many)]
    with pytest.raises(ReleaseError, match="must have at most 134217728 cells each and 272629760 together"):
        Release.load(forge.save(tmp_path / "r.parquet", facts, counts))


def test_metadata_beyond_its_limit_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length is judged first, when it is read and when it is written."""
    facts, counts = forge.given()
    path = forge.save(tmp_path / "r.parquet", forge.sealed(facts, counts), counts)
    release = Release.load(path)
    monkeypatch.setattr(file, "MAX_METADATA", 1000)
    with pytest.raises(ReleaseError, match="must have at most 1000 bytes"):
        Release.load(path)
    with pytest.raises(ReleaseError, match="of at most 1000; measure fewer tables"):
        release.save(tmp_path / "again.parquet")
    assert [found.name for found in tmp_path.iterdir()] == ["r.parquet"]


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf, 2.0**63, 1e300])
@pytest.mark.parametrize("place", [0, -1])
def test_counts_must_be_what_their_table_says(bad: float, place: int, tmp_path: Path) -> None:
    """In a file with a table of reals, whole counts are stored as reals, and must be whole; no count is endless."""
    facts, counts = forge.exact()
    counts[place] = bad
    path = forge.save(tmp_path / "r.parquet", facts, counts)
    why = "its table 0 must hold whole numbers" if bad == 0.5 else r"must be numbers within ±2\*\*62"
    with pytest.raises(ReleaseError, match=why if place == 0 or bad != 0.5 else "checksum"):
        Release.load(path)


@pytest.mark.parametrize("counts", [np.array([1e300, 1]), np.array([2**62 + 1, 1])])
def test_a_release_in_memory_has_the_same_limits(counts: Any) -> None:
    """What could not be loaded is not made."""
    schema = Schema.from_domain({"a": 2})
    with pytest.raises(ReleaseError, match=r"counts within ±2\*\*62"):
        Release.from_tables({("a",): counts}, schema, scale=1.0)


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ((1,), "numbered from 0"),
        ((0, 2), "numbered from 0"),
        ((-1, 0), "numbered from 0"),
        ((0, 0, 1), "same"),
    ],
)
def test_sets_are_numbered_without_a_gap_and_alike(numbers: Sequence[int], why: str) -> None:
    """A release says how many sets it has by their numbers alone."""
    schema = Schema.from_domain({"a": 2})
    tables = tuple(Measurement(Query((0,)), np.array([1, 2]), Noise("laplace", 1.0), n) for n in numbers)
    with pytest.raises(ReleaseError, match=why):
        Release(schema, tables, Statement(status="declared"))


def test_a_table_of_no_attribute_survives(tmp_path: Path) -> None:
    """The total alone, one cell without any level, is a table too."""
    schema = Schema.from_domain({"a": 2})
    laplace = Noise("laplace", 1.0)
    tables = (
        Measurement(Query(()), np.array(7), laplace),
        Measurement(Query((0,)), np.array([3, 5]), laplace),
    )
    release = Release(schema, tables, Statement(status="declared"))
    assert Release.load(release.save(tmp_path / "r.parquet")).checksum == release.checksum


def test_single_levels_do_not_make_endless_work() -> None:
    """Thirty columns of one level in two tables have a billion sets of columns and one cell: no work for least squares, and too much to list."""
    axes = tuple(range(30))
    shape = (1,) * 30 + (2, 2)
    tables = [noisy((*axes, last), np.ones((1,) * 30 + (2,)), 1.0) for last in (30, 31)]
    with at_most(2):
        assert reconcile(shape, tables).total == pytest.approx(2.0)
    with pytest.raises(SizeError, match="sets of columns"):
        reconcile(shape, tables[:1]).closure()


def test_the_writer_keeps_to_the_limits_of_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too large to be read is not written."""
    facts, counts = forge.given()
    release = Release.load(forge.save(tmp_path / "r.parquet", forge.sealed(facts, counts), counts))
    monkeypatch.setattr(file, "MOST_CELLS", 31)
    with pytest.raises(ReleaseError, match="and 31 together"):
        release.save(tmp_path / "again.parquet")
    with pytest.raises(ReleaseError, match="and 31 together"):
        Release.load(tmp_path / "r.parquet")


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_row_groups_hold_their_own_texts(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a group has, what is written is read, by other tools too."""
    facts, counts = forge.exact()
    release = Release.load(forge.save(tmp_path / "r.parquet", forge.sealed(facts, counts), counts))
    whole = forge.pq.read_table(release.save(tmp_path / "whole.parquet"))
    monkeypatch.setattr(file, "ROW_GROUP", rows)
    path = release.save(tmp_path / "parts.parquet")
    assert forge.pq.read_metadata(path).num_row_groups == -(-len(counts) // rows)
    assert forge.pq.read_table(path).to_pylist() == whole.to_pylist()
    assert Release.load(path).checksum == release.checksum


def test_metadata_is_json_that_any_tool_reads(tmp_path: Path) -> None:
    """The writer keeps the form that these tests write by hand."""
    facts, counts = forge.chosen()
    sealed = forge.sealed(facts, counts)
    release = Release.load(forge.save(tmp_path / "r.parquet", sealed, counts))
    path = release.save(tmp_path / "again.parquet")
    assert json.loads(forge.pq.read_metadata(path).metadata[b"dpcipher"]) == sealed
