"""CIPHER with tables it chooses: the same answers lead to the same tables, whatever the rows; and what a fit leaves behind."""

import numpy as np
import pytest
from replaying import check_neighbours, neighbours, run

from dpcipher.errors import ParameterError, SchemaError, WorkloadError
from dpcipher.methods import Cipher
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Ledger
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema

SHAPE = (2, 3, 2, 2, 3)
SCHEMA = Schema.from_domain(dict(zip("abcde", SHAPE, strict=True)))


def counts(seed: int, n_rows: int = 2000) -> np.ndarray:
    """The full table of rows whose columns depend on one another."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_rows, rng.dirichlet(np.full(np.prod(SHAPE), 0.3))).reshape(SHAPE)


def asked(events: list[dict[str, object]]) -> list[tuple[object, object]]:
    """What was asked, with which share."""
    return [(event["what"], event["share"]) for event in events]


@pytest.mark.parametrize(
    ("unit", "epsilon", "delta"),
    [
        ("add-remove", 1.0, None),
        ("replace", 40.0, None),
        ("replace", 1.0, 1e-6),
        ("add-remove", 30.0, 1e-6),
    ],
)
def test_given_the_same_answers_the_rows_do_not_matter(
    unit: str, epsilon: float, delta: float | None
) -> None:
    """Recorded answers given to other rows altogether: the same questions with the same shares, to the last."""
    methods = [Cipher(epsilon, unit=unit, delta=delta, workload="auto") for _ in range(2)]
    tape, events = run(methods[0], counts(1), SCHEMA, seed=5)
    again, other_events = run(methods[1], counts(2), SCHEMA, answers=tape.answers)
    assert asked(events) == asked(other_events)
    assert len(again.asked) == len(tape.asked)
    releases = [tape.fitted.release, again.fitted.release]
    assert releases[0].statement.certificate == releases[1].statement.certificate
    for one, other in zip(releases[0].measurements, releases[1].measurements, strict=True):
        assert (one.query, one.noise, one.set) == (other.query, other.noise, other.set)
        np.testing.assert_array_equal(one.values, other.values)
    whole = tuple(range(len(SHAPE)))
    np.testing.assert_array_equal(*(one.fitted.joint.core.project(whole) for one in (tape, again)))


@pytest.mark.parametrize("unit", ["add-remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(40.0, None), (30.0, 1e-6)])
def test_neighbours_are_told_apart_by_no_more_than_is_paid(
    unit: str, epsilon: float, delta: float | None
) -> None:
    """Replayed on neighbours, in two rounds: every answer costs what its event says, and all of them the budget."""
    rng = np.random.default_rng(6)
    method = Cipher(epsilon, unit=unit, delta=delta, max_rows=2, workload=Auto(column_weights={"a": 3.0}))
    limit = method.budget.composable()
    other = neighbours(counts(1), unit, 2, rng)
    assert check_neighbours(method, counts(1), other, SCHEMA, 7) <= float(limit.rho or limit.epsilon) * (
        1 + 1e-9
    )
    tape, _ = run(method, counts(1), SCHEMA, seed=7)
    assert {len(attrs) for attrs in tape.fitted.release.workload} == {1, 2, 3}


def test_the_release_behind_the_joint_says_how_its_tables_were_chosen() -> None:
    """The share of the choice, and how many were looked at; each set has its tables and its joint."""
    method = Cipher(1.0, unit="add-remove", delta=1e-6, workload="auto", sets=3)
    fitted = method.fit_counts(counts(1), SCHEMA, draws=Draws.seeded(0))
    note = fitted.release.statement.certificate["selection"]
    assert note["share"] == "1/50"
    assert note["candidates"] == 31
    assert fitted.release.sets == len(fitted.joint) == len(fitted.sample(5, seed=1)) == 3
    tables = [joint.core.project((0, 1)) for joint in fitted.joint]
    assert not np.allclose(tables[0], tables[1])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"workload": "all"}, ParameterError, "workload ('all') must be 'auto', an order such as 2"),
        ({"workload": "auto", "weights": {("a",): 1.0}}, ParameterError, "weights are for tables that are given"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_at_birth(
    options: dict[str, object], error: type[Exception], says: str
) -> None:
    """Options of a choice where tables are given, and the other way round."""
    with pytest.raises(error) as refusal:
        Cipher(1.0, unit="add-remove", **options)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    "options", [{"target": 9}, {"target": [("a", "zz")]}, {"column_weights": {"zz": 1.0}}], ids=str
)
def test_what_does_not_fit_the_schema_costs_nothing(options: dict[str, object], tmp_path) -> None:
    """Refused before anything is read, let alone charged."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    method = Cipher(1.0, unit="add-remove", workload=Auto(**options), ledger=ledger)
    with pytest.raises((WorkloadError, SchemaError)):
        method.fit(None, SCHEMA)
    assert ledger.entries == ()
