"""The terms of privacy: one value from words, the charge that it makes, and whether the number of rows is told."""

from functools import partial
from itertools import product

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import BudgetError, ParameterError
from dpcipher.methods import METHODS
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Cap, Privacy, Unit

SCHEMA = dc.Schema.from_domain({"a": 2, "b": 3})
COUNTS = np.array([[40, 30, 7], [11, 60, 52]])


def test_words_make_terms() -> None:
    """Budget and unit are exact; a person is a cap."""
    made = Privacy.parse(epsilon=0.1, unit="replace", max_rows=3, person="who", missing_person="drop")
    assert made == Privacy(Budget.parse(epsilon=0.1), Unit("replace", 3), Cap("who", "drop"))
    assert made.stated() == {
        "unit": {"relation": "replace", "max_rows": 3, "cap": "enforced", "missing_person": "drop"},
        "budget": {"epsilon": "1/10"},
    }
    assert Privacy.parse(rho=1, unit="add-remove").stated()["unit"]["cap"] == "stated"
    with pytest.raises(ParameterError, match=r"missing_person \('keep'\) must be 'refuse' or 'drop'"):
        Cap("who", "keep")  # type: ignore[arg-type]


def test_a_charge_has_a_delta_only_where_something_may_fail() -> None:
    """Half of delta is for failures; rho with a delta that buys nothing is refused, and so is failing for pure epsilon."""
    approximate = Privacy.parse(epsilon=1, delta=1e-6, unit="add-remove")
    assert approximate.charge(may_fail=False) == approximate.budget.composable()
    assert approximate.charge(may_fail=True).failure == approximate.budget.delta / 2
    with pytest.raises(BudgetError, match="must not be given with rho"):
        Privacy.parse(rho=1, delta=1e-6, unit="add-remove", may_fail=True).charge(may_fail=False)
    with pytest.raises(BudgetError, match="delta"):
        Privacy.parse(epsilon=1, unit="add-remove").charge(may_fail=True)


@pytest.mark.parametrize(
    ("unit", "person", "public", "blank"),
    list(product(("add-remove", "replace"), (None, "who"), (False, True), (False, True))),
)
def test_the_number_of_rows_is_told_by_the_unit_or_the_curator(
    unit: str, person: str | None, public: bool, blank: bool
) -> None:
    """Never where rows are left out before they are counted; then nobody can declare it either."""
    cap = None if person is None else Cap(person)
    promised = partial(Privacy, Budget.parse(epsilon=1), Unit(unit), cap, public, every_row_counts=not blank)  # type: ignore[arg-type]
    if public and (person or blank):
        with pytest.raises(ParameterError, match="n_rows_public"):
            promised()
        return
    made = promised()
    assert made.tells_n_rows == (public or (unit == "replace" and person is None and not blank))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "multinomial-dirichlet"])
def test_a_method_can_declare_the_number_of_rows_public(name: str) -> None:
    """Its statement tells it, at the price it has; nothing is spent on it, and as many rows are drawn."""
    method = METHODS[name](2.0, unit="add-remove", n_rows_public=True)
    fitted = method.fit_counts(COUNTS, SCHEMA, draws=Draws.seeded(1))
    statement = fitted.statement
    assert statement.n_rows == 200
    assert statement.tells_presence
    assert statement.guarantee == Budget.parse(epsilon=4)
    assert "number of rows" not in [event["what"] for event in statement.certificate["events"]]
    assert fitted.joints[0].n_rows == 200


def test_a_declared_number_of_rows_does_not_bound_mutual_information() -> None:
    """Neighbours under addition differ in it, whoever knows it; and a person column leaves rows out."""
    for words in ({"unit": "add-remove", "n_rows_public": True}, {"unit": "replace", "person": "who"}):
        with pytest.raises(BudgetError, match=r"score \('I'\) has no bounded sensitivity"):
            dc.PrivBayes(1.0, score="I", **words)
    with pytest.raises(ParameterError, match="n_rows_public"):
        dc.PrivBayes(1.0, unit="add-remove", person="who", n_rows_public=True)
