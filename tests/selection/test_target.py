"""The target: importance against an enumeration of all target tables, candidates, and every refusal."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema
from dpcipher.selection.target import SelectionTarget

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4, "d": 1, "e": 5})
WEIGHTS = (0.0, 0.1, 0.3, 0.7, 1.0, 2.0, 10.0)


def counted(axes: tuple[int, ...], targets: list[tuple[int, ...]], weights: tuple[float, ...]) -> float:
    """The definition: every target that holds the axes counts by the product of its weights, half unless it is the axes themselves."""
    return math.fsum(
        math.prod(weights[axis] for axis in target) * (1.0 if target == axes else 0.5)
        for target in targets
        if set(axes) <= set(target)
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_importance_of_an_order_is_that_of_all_its_targets(order: int) -> None:
    """Random weights, zeros among them: equal to the enumeration, and exactly zero where that is."""
    rng = np.random.default_rng(order)
    for p in (order, order + 1, 6, 8):
        weights = tuple(float(weight) for weight in rng.choice(WEIGHTS, p))
        target = SelectionTarget((2,) * p, weights, 3, 100, order)
        targets = list(combinations(range(p), order))
        for axes in (axes for k in range(1, min(4, p) + 1) for axes in combinations(range(p), k)):
            expected = counted(axes, targets, weights)
            assert target.importance(axes) == pytest.approx(expected, rel=1e-12, abs=0)
            assert (target.importance(axes) > 0) == (expected > 0)


def test_weights_that_leave_no_completion_leave_no_importance() -> None:
    """Four columns of which one weighs nothing: no target of four counts, so no pair does, not even by a rounding error."""
    target = SelectionTarget((2,) * 4, (0.0, 0.7, 2.0, 10.0), 3, 100, 4)
    assert [target.importance(axes) for axes in combinations(range(4), 2)] == [0.0] * 6
    assert list(target.tables(2)) == []


def test_importance_of_listed_targets_is_that_of_all_of_them() -> None:
    """Targets of different orders that overlap, some inside others, with weights."""
    rng = np.random.default_rng(9)
    every = [axes for k in range(1, 5) for axes in combinations(range(6), k)]
    for _ in range(20):
        targets = [every[place] for place in rng.choice(len(every), 7, replace=False)]
        weights = tuple(float(weight) for weight in rng.choice(WEIGHTS, 6))
        target = SelectionTarget((2,) * 6, weights, 3, 100, 0, tuple(targets))
        for axes in every:
            assert target.importance(axes) == pytest.approx(counted(axes, targets, weights), rel=1e-12, abs=0)


def test_names_become_numbers() -> None:
    """Columns by name, targets in any order of names, weights of 1 unless given; the order is that of the schema."""
    auto = Auto(
        target=[("e", "a"), ("c", "b", "a")], column_weights={"e": 3, "b": np.float32(0.5)}, max_order=2
    )
    target = SelectionTarget.of(auto, SCHEMA)
    assert target.listed == ((0, 4), (0, 1, 2))
    assert target.weights == (1.0, 0.5, 1.0, 1.0, 3.0)
    assert target.shape == SCHEMA.shape
    assert list(target.tables(2)) == [(0, 1), (0, 2), (0, 4), (1, 2)]


@pytest.mark.parametrize(
    ("auto", "order", "largest"),
    [
        (Auto(), 3, 4),
        (Auto(max_order=3), 3, 3),
        (Auto(max_order=9), 3, 5),
        (Auto(max_order=2), 2, 2),
        (Auto(target=2), 2, 2),
        (Auto(target=np.int64(4)), 4, 4),
        (Auto(target=3, max_order=4), 3, 3),
        (Auto(target=4, max_order=1), 4, 1),
    ],
)
def test_the_target_is_an_order_and_bounds_what_is_measured(auto: Auto, order: int, largest: int) -> None:
    """By default all tables of the largest order; a table that no target holds is no candidate."""
    target = SelectionTarget.of(auto, SCHEMA)
    assert (target.order, target.max_order) == (order, largest)
    assert [bool(list(target.tables(k))) for k in (1, 2, 3, 4)] == [k <= largest for k in (1, 2, 3, 4)]


def test_two_columns_have_no_triples_in_the_target() -> None:
    """The order is never beyond the number of columns."""
    target = SelectionTarget.of(Auto(), Schema.from_domain({"a": 2, "b": 3}))
    assert (target.order, target.max_order) == (2, 2)
    assert SelectionTarget.of(Auto(target=[("a", "b")]), SCHEMA).max_order == 2


def test_candidates_are_small_enough_and_vary_and_count() -> None:
    """No table beyond max_cells, none of a column with one level, none of a column that weighs nothing."""
    rng = np.random.default_rng(3)
    for max_cells, order in product((6, 12, 60, 10_000), (1, 2, 3)):
        weights = tuple(float(weight) for weight in rng.choice([0.0, 1.0, 2.5], 5, p=[0.2, 0.4, 0.4]))
        target = SelectionTarget(SCHEMA.shape, weights, 3, max_cells, 3)
        targets = list(combinations(range(5), 3))
        expected = [
            axes
            for axes in combinations(range(5), order)
            if 3 not in axes
            and math.prod(SCHEMA.shape[axis] for axis in axes) <= max_cells
            and counted(axes, targets, weights) > 0
        ]
        assert list(target.tables(order)) == expected


def test_importance_is_the_same_for_all_pairs_of_columns_that_weigh_the_same() -> None:
    """Forty-five thousand pairs, each in as many targets of three as there are other columns."""
    target = SelectionTarget.of(Auto(), Schema.from_domain({f"c{place}": 2 for place in range(300)}))
    found = {target.importance(axes) for axes in target.tables(2)}
    assert found == {0.5 * 298}


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_order": 0}, ParameterError, "max_order (0) must be a whole number of at least 1; try max_order=3"),
        ({"max_order": True}, ParameterError, "max_order (True) must be a whole number"),
        ({"max_order": 2.0}, ParameterError, "max_order (2.0) must be a whole number"),
        ({"max_order": "3"}, ParameterError, "max_order ('3') must be a whole number"),
        ({"max_cells": 3}, ParameterError, "max_cells (3) must be a whole number of at least 4; try max_cells=10000"),
        ({"max_cells": 1e4}, ParameterError, "max_cells (10000.0) must be a whole number"),
        ({"max_cells": 2**28}, ParameterError, "max_cells (268435456) must be at most 134217728; try"),
        ({"column_weights": {"a": -1}}, ParameterError, "column_weights['a'] (-1) must be a number from 0 to 1e6; try"),
        ({"column_weights": {"a": math.nan}}, ParameterError, "column_weights['a'] (nan) must be a number"),
        ({"column_weights": {"a": math.inf}}, ParameterError, "column_weights['a'] (inf) must be a number"),
        ({"column_weights": {"a": 1e200}}, ParameterError, "column_weights['a'] (1e+200) must be a number"),
        ({"column_weights": {"a": "2"}}, ParameterError, "column_weights['a'] ('2') must be a number"),
        ({"column_weights": {"a": True}}, ParameterError, "column_weights['a'] (True) must be a number"),
        ({"column_weights": [("a", 2)]}, ParameterError, "column_weights ([('a', 2)]) must give numbers by column; try"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_at_birth(
    options: dict[str, object], error: type[Exception], says: str
) -> None:
    """Name, value, rule and fix; each is a ValueError too."""
    with pytest.raises(error) as refusal:
        Auto(**options)
    assert says in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"target": 0}, WorkloadError, "target (0) must be an order from 1 to 5, the number of attributes; try target=2"),
        ({"target": 6}, WorkloadError, "target (6) must be an order from 1 to 5"),
        ({"target": True}, WorkloadError, "target (True) must be an order such as 2, or a list of tables"),
        ({"target": 1.5}, WorkloadError, "target (1.5) must be an order such as 2"),
        ({"target": "ab"}, WorkloadError, "target ('ab') must be an order such as 2"),
        ({"target": []}, WorkloadError, "target ([]) must be an order such as 2"),
        ({"target": [()]}, WorkloadError, "target ([()]) must be an order such as 2"),
        ({"target": ["ab"]}, WorkloadError, "target (['ab']) must be an order such as 2"),
        ({"target": [3]}, WorkloadError, "target ([3]) must be an order such as 2"),
        ({"target": [(["a"],)]}, WorkloadError, "target ([(['a'],)]) must be an order such as 2"),
        ({"target": [("a", "a")]}, WorkloadError, "must name each column once; remove the repeats"),
        ({"target": [("a", "b"), ("b", "a")]}, WorkloadError, "names the table ('a', 'b') twice; remove one"),
        ({"target": [("a", "zz")]}, WorkloadError, "column 'zz' is not in the schema"),
        ({"column_weights": {"zz": 1}}, WorkloadError, "column 'zz' is not in the schema"),
        ({"column_weights": dict.fromkeys("abcde", 0)}, ParameterError, "at least one column with a weight above 0; leave"),
        ({"column_weights": dict.fromkeys("abc", 0)}, ParameterError, "no target table with a weight above 0; name a target"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema_is_refused(
    options: dict[str, object], error: type[Exception], says: str
) -> None:
    """Targets and columns that are not there, or that nothing is left of."""
    with pytest.raises(error) as refusal:
        SelectionTarget.of(Auto(**options), SCHEMA)
    assert says in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("weights", [(1.0,) * 5, (1.0, 2.0, 0.5, 3.0, 1.0)])
def test_importance_for_a_prediction_is_that_of_all_triples_with_the_column(
    weights: tuple[float, ...],
) -> None:
    """Every triple that holds the column counts; larger tables that hold it are targets of their own."""
    target = SelectionTarget((2,) * 5, weights, 4, 100, 3, beyond=True, predict=2)
    targets = [axes for axes in combinations(range(5), 3) if 2 in axes]
    for axes in (axes for k in (1, 2, 3) for axes in combinations(range(5), k)):
        assert target.importance(axes) == pytest.approx(counted(axes, targets, weights), rel=1e-12, abs=0)
    for axes in combinations(range(5), 4):
        assert target.importance(axes) == pytest.approx(
            math.prod(weights[a] for a in axes) if 2 in axes else 0.0
        )
    assert list(target.tables(3)) == targets


@pytest.mark.parametrize("wrong", [3, ("a",), ["a"], b"a"])
def test_what_is_to_be_predicted_is_one_column(wrong: object) -> None:
    """A name, and nothing else that says which tables count."""
    with pytest.raises(ParameterError, match="must be the name of a column; try predict='income'"):
        Auto(predict=wrong)
    with pytest.raises(ParameterError, match="must stand alone"):
        Auto(predict="a", target=2)
    with pytest.raises(WorkloadError, match="column 'zz' is not in the schema"):
        SelectionTarget.of(Auto(predict="zz"), SCHEMA)
