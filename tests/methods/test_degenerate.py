"""After the charge nothing fails because of the data: every method on degenerate schemas and tables, through a whole session."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dpcipher.errors import BudgetError, ParameterError, SchemaError, SizeError
from dpcipher.methods import (
    METHODS,
    MWEM,
    Cipher,
    Fourier,
    JunctionTree,
    Modips,
    MultinomialDirichlet,
    PrivBayes,
    Synthesizer,
)
from dpcipher.methods.base import Fitted
from dpcipher.methods.priv_bayes import MAX_TABLE_CELLS
from dpcipher.privacy.draws import Draws
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema

# Every method with its defaults, and with options that take it elsewhere.
MADE: Mapping[str, Callable[..., Synthesizer]] = METHODS | {
    "cipher-auto": partial(Cipher, workload="auto"),
    "cipher-auto-sets": partial(Cipher, workload="auto", sets=2),
    "cipher-paper": partial(Cipher, engine="paper"),
    "cipher-sets": partial(Cipher, workload=3, sets=2),
    "mwem-cells": partial(MWEM, queries="cells", average=True, rounds=3),
    "priv-bayes-F": partial(PrivBayes, score="F", theta=0.01),
    "priv-bayes-I": partial(PrivBayes, score="I", theta=0.01),
    "priv-bayes-R": partial(PrivBayes, score="R", theta=0.01),
    "fourier-four": partial(Fourier, workload=4, rounded=False),
    "modips-sets": partial(Modips, sets=2, alpha=1e-3),
    "one-drawn-row": partial(MultinomialDirichlet, n_rows=1),
    "junction-eager": partial(JunctionTree, theta=0.01),
    "junction-laplace": partial(JunctionTree, selection="laplace", theta=0.01, strength=0.01),
}
REFUSED = (ParameterError, SizeError, BudgetError, SchemaError)
# All schemas of one or two columns of one to three levels, and some of three and four.
SHAPES = [
    *product((1, 2, 3), repeat=1),
    *product((1, 2, 3), repeat=2),
    *[(1, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 3), (1, 3, 2)],
    *[(1, 1, 1, 1), (2, 2, 1, 2), (2, 2, 2, 2), (1, 3, 1, 2), (3, 2, 3, 1), (3, 3, 3, 3)],
]
TABLES = ("empty", "one row", "constant", "random")
BUDGETS = [(1e-6, None), (0.01, 1e-6), (1.0, None), (1.0, 1e-6), (1e5, None), (1e5, 1e-6)]


def rows_of(kind: str, shape: tuple[int, ...], seed: int) -> pd.DataFrame:
    """Coded rows, possibly none."""
    rng = np.random.default_rng(seed)
    n_rows = {"empty": 0, "one row": 1, "constant": 150, "random": 300}[kind]
    first = np.array([rng.integers(size) for size in shape])
    drawn = np.stack([rng.integers(size, size=n_rows) for size in shape], axis=1)
    codes = drawn if kind == "random" else np.tile(first, (n_rows, 1))
    return pd.DataFrame(codes, columns=list("abcd"[: len(shape)])).astype("int64")


def tables_of(result: pd.DataFrame | list[pd.DataFrame]) -> list[pd.DataFrame]:
    """The sampled tables of every set."""
    return result if isinstance(result, list) else [result]


def assert_it_answers(method: Synthesizer, frame: pd.DataFrame, schema: Schema) -> Fitted:
    """A fit, rows on request and by default, and a statement of what was spent."""
    fitted = method.fit(frame, schema)
    assert [len(rows) for rows in tables_of(fitted.sample(5))] == [5] * len(tables_of(fitted.sample(5)))
    joints = fitted.joint if isinstance(fitted.joint, list) else [fitted.joint]
    if all(joint.n_rows < 2000 for joint in joints):  # tiny budgets may make it millions
        assert [len(rows) for rows in tables_of(fitted.sample())] == [joint.n_rows for joint in joints]
    whole = method.budget.composable()
    assert fitted.statement.budget == method.budget.as_dict()
    assert 0 <= fitted.statement.certificate["total"] <= float(whole.rho or whole.epsilon) * (1 + 1e-12)
    return fitted


def made(name: str, number: int, unit: str, schema: Schema) -> Synthesizer | None:
    """The method with the next budget; None where it refuses that, or the schema, before anything is read."""
    epsilon, delta = BUDGETS[number % len(BUDGETS)]
    try:
        method = MADE[name](epsilon, unit=unit, delta=delta, max_rows=1 + 2 * (number % 2))
        method._refuse(schema)
    except REFUSED:
        return None
    return method


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
@pytest.mark.parametrize("name", MADE)
def test_no_method_fails_after_the_charge(name: str, unit: str) -> None:
    """Schemas of sizes 1 to 3, no rows to three hundred, budgets from tiny to huge: only refusals before reading are allowed."""
    asked = 0
    for number, (shape, kind) in enumerate(product(SHAPES, TABLES)):
        schema = Schema.from_domain(dict(zip("abcd", shape, strict=False)))
        method = made(name, number + number // len(BUDGETS), unit, schema)
        if method is not None:
            assert_it_answers(method, rows_of(kind, shape, number), schema)
            asked += 1
    assert asked > 10 or (name, unit) == ("priv-bayes-I", "add-remove")


ZEROS = {
    "a pair": (Zero({"a": 1, "b": 1}),),
    "a level that two zeros forbid": (Zero({"a": 1, "b": 0}), Zero({"a": 1, "b": 1})),
    "all but one cell": (Zero({"a": 1}), Zero({"b": 1}), Zero({"c": 1})),
}


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("zeros", ZEROS.values(), ids=ZEROS)
@pytest.mark.parametrize("name", MADE)
def test_no_method_fails_over_structural_zeros(name: str, zeros: tuple[Zero, ...]) -> None:
    """However little the zeros leave, and whatever the noise put on what they forbid."""
    schema = Schema(Schema.from_domain({"a": 2, "b": 2, "c": 2}).columns, zeros=zeros)
    frames = [pd.DataFrame(np.zeros((n, 3), dtype=np.int64), columns=list("abc")) for n in (0, 60)]
    asked = 0
    for number, (unit, frame) in enumerate(product(("add-remove", "replace"), [*frames, *frames, *frames])):
        method = made(name, number, unit, schema)
        if method is not None:
            fitted = assert_it_answers(method, frame, schema)
            for rows in tables_of(fitted.sample(40)):
                assert not schema_zeros_hit(schema, rows)
            asked += 1
    assert asked > 0


def schema_zeros_hit(schema: Schema, rows: pd.DataFrame) -> bool:
    """Whether a row lies where none can be."""
    codes = {name: rows[name].to_numpy(dtype=np.int32) for name in rows}
    return any(
        mask[tuple(codes[schema.names[axis]] for axis in axes)].any() for axes, mask in schema.zero_masks
    )


@pytest.mark.parametrize("name", METHODS)
def test_zeros_that_leave_no_row_are_refused_before_reading(name: str) -> None:
    """There would be nothing to draw; the data would not even open."""
    schema = Schema.from_domain({"a": 2, "b": 2})
    impossible = Schema(schema.columns, zeros=(Zero({"a": 0}), Zero({"a": 1, "b": [0, 1]})))
    with pytest.raises(SchemaError, match="zeros leave no row possible"):
        METHODS[name](1.0, unit="add-remove").fit("no such file", impossible)


MANY = Schema.from_domain({f"c{number}": 2 for number in range(150)})


@pytest.mark.parametrize(
    ("method", "schema"),
    [
        (partial(Cipher, workload=1, sets=1000), MANY),
        (partial(Cipher, workload="auto"), MANY),
        (partial(JunctionTree, beta=1e-6), MANY),
        (partial(JunctionTree, selection="laplace"), MANY),
        (partial(PrivBayes, beta=1e-6), MANY),
        (partial(MWEM, rounds=10**6), Schema.from_domain({"a": 2, "b": 2})),
        (partial(Modips, sets=10**6), Schema.from_domain({"a": 2, "b": 2})),
    ],
)
def test_a_budget_too_small_for_its_questions_is_refused_before_reading(
    method: Callable[..., Synthesizer], schema: Schema
) -> None:
    """What one question gets must buy noise that can be drawn; the data would not even open. A larger budget is fine."""
    with pytest.raises(BudgetError, match="raise the budget"):
        method(2e-7, unit="replace").fit("no such file", schema)
    method(1.0, unit="replace")._refuse(schema)


def test_a_generous_budget_does_not_ask_for_tables_beyond_memory() -> None:
    """Where noise is next to nothing every table is useful; those that are measured still have a bounded number of cells."""
    schema = Schema.from_domain({f"c{number}": 40 for number in range(8)})
    codes = np.random.default_rng(1).integers(0, 40, (50, 8))
    method = PrivBayes(1e5, unit="replace").fit_counts(codes, schema, draws=Draws.seeded(1), codes=True)
    measured = [
        str(event["what"]) for event in method.statement.certificate["events"] if "×" in str(event["what"])
    ]
    assert max(40 ** len(what.split(" × ")) for what in measured) == 40**3 <= MAX_TABLE_CELLS


def test_pairs_beyond_memory_are_refused_before_reading() -> None:
    """The junction tree counts every pair."""
    schema = Schema.from_domain({"zip": 50_000, "street": 50_000, "sex": 2})
    with pytest.raises(SizeError, match="every pair of columns"):
        JunctionTree(1.0, unit="replace").fit("no such file", schema)


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("method", [PrivBayes, JunctionTree])
def test_the_smallest_usefulness_does_not_divide_by_zero(
    method: type[PrivBayes] | type[JunctionTree],
) -> None:
    """Any number above 0 is allowed."""
    schema = Schema.from_domain({"a": 2, "b": 3})
    frame = rows_of("random", (2, 3), 1)
    assert len(method(1e5, unit="replace", theta=5e-324).fit(frame, schema).sample(5)) == 5
