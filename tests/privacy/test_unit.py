"""The neighbour relation and its sensitivities."""

import itertools

import numpy as np
import pytest

from dpcipher.errors import ParameterError
from dpcipher.privacy.terms import Unit


def worst_distances(relation: str, rows: int, cells: int) -> tuple[int, int]:
    """The largest L1 and squared L2 change of a histogram, over every way to place one person's rows."""
    l1 = l2 = 0
    places = list(itertools.combinations_with_replacement(range(cells), rows))
    for old, new in itertools.product(places, places if relation == "replace" else [()]):
        change = np.bincount(old, minlength=cells) - np.bincount(np.asarray(new, dtype=int), minlength=cells)
        l1, l2 = max(l1, int(np.abs(change).sum())), max(l2, int((change**2).sum()))
    return l1, l2


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sensitivities_are_the_worst_over_all_neighbours(relation: str, rows: int) -> None:
    """Brute force over every placement of one person's rows in four cells gives the same L1 and L2."""
    unit = Unit.parse(relation, rows)
    assert worst_distances(relation, rows, 4) == (unit.l1, unit.l2_squared)


def test_only_replacement_makes_the_number_of_rows_public() -> None:
    """Adding or removing somebody changes the number of rows."""
    assert Unit("replace").n_rows_is_public
    assert not Unit("add-remove").n_rows_is_public


@pytest.mark.parametrize("bad", ["add_remove", "swap", "", None, 1, True, float("nan")])
def test_an_unknown_relation_is_refused(bad: object) -> None:
    """The message names the value and both relations."""
    with pytest.raises(ParameterError, match=r"unit \(.*\) must be 'add-remove' or 'replace'"):
        Unit.parse(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, float("nan"), float("inf"), "1", True, None])
def test_a_wrong_number_of_rows_is_refused(bad: object) -> None:
    """Only whole numbers from one up count rows."""
    with pytest.raises(ParameterError, match="max_rows"):
        Unit.parse("replace", bad)
    with pytest.raises(ParameterError, match="max_rows"):
        Unit("replace", bad)  # type: ignore[arg-type]


def test_parse_keeps_a_unit_and_refuses_a_contradiction() -> None:
    """A Unit already says max_rows; saying another number is an error."""
    unit = Unit("replace", 3)
    assert Unit.parse(unit) == Unit.parse(unit, 3) == Unit.parse("replace", np.int64(3)) == unit
    with pytest.raises(ParameterError, match="agree"):
        Unit.parse(unit, 2)


def test_describe_says_who_is_protected() -> None:
    """The sentence carries the relation and the number of rows."""
    assert "presence of any one row" in Unit("add-remove").describe()
    assert "up to 5" in Unit("replace", 5).describe()
    assert Unit("replace", 5).as_dict() == {"relation": "replace", "max_rows": 5}
