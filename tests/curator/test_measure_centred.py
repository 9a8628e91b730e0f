"""Centred tables from the rows on: how far one row moves what is measured, what it costs, and what a release of chosen tables says."""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import RowCounts
from dpcipher.evaluation.replay import compare_answers, record
from dpcipher.evaluation.subjects import THREE_ALIKE, Subject
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.rounds import ROWS
from dpcipher.selection.select import _Selection
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

COUNTED = Query((0,), centred=True)
SHAPES = [(2,), (3,), (7,), (2, 2), (3, 4), (2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_row_moves_a_centred_table_as_far_as_it_is_said_to(shape: tuple[int, ...]) -> None:
    """Every cell that a row can be in, replayed: L1 and squared L2 are exactly those that the noise is paid for."""
    rng = np.random.default_rng(1)
    before, query = rng.integers(0, 50, shape), Query(tuple(range(len(shape))), centred=True)
    for cell in product(*map(range, shape)):
        after = before.copy()
        after[cell] += 1
        change = query.contrast(after) - query.contrast(before)
        assert (np.abs(change).sum(), (change**2).sum()) == query.moved(shape, "add-remove")


def test_rows_of_one_person_move_it_no_further_than_as_many_times() -> None:
    """In one cell as far as that, in several less: what the unit multiplies by max_rows squared."""
    l2_squared = COUNTED.moved((6,), "add-remove")[1]
    for cells in product(range(6), repeat=3):
        change = COUNTED.contrast(np.bincount(cells, minlength=6))
        assert (change**2).sum() <= 9 * l2_squared
        if len(set(cells)) == 1:
            assert (change**2).sum() == 9 * l2_squared


def test_centred_counts_are_counts_less_their_mean() -> None:
    """The way back."""
    counts = np.array([[4, 0, 9], [1, 1, 3]])
    measured = Measurement(Query((0, 1), centred=True), 6 * counts - counts.sum() + 5, Noise("gaussian", 3.0))
    rows, variance = measured.in_rows()
    np.testing.assert_allclose(rows, counts - counts.mean())  # noise on the sum says nothing
    assert variance == 9 / 36


def session(rho: float = 0.5, relation: str = "add-remove", *, n_rows_public: bool = False) -> Session:
    """A session over a few rows, with seeded noise."""
    schema = Schema.from_domain({"a": 2, "b": 3})
    codes = np.random.default_rng(2).integers(0, (2, 3), (40, 2))
    terms = Privacy(Budget(rho=Fraction(rho)), Unit(relation), n_rows_public=n_rows_public)
    return Session(schema, terms, PrivateRows(RowCounts(codes, schema.shape), Draws.seeded(1)))


def count_rows(opened: Session) -> None:
    """As a selection does before it centres tables."""
    _Selection(opened, SelectionTarget.of(dc.Auto(), opened.schema), 1, lambda _: None)._count_rows()


def test_a_share_buys_the_noise_that_the_formula_says() -> None:
    """Variance (1 - 1/K)/(2ρ) in rows, where counts would have 1/(2ρ); the certificate lists what was asked, and no more than the share is spent."""
    opened = session()
    count_rows(opened)
    for axes, cells in (((0,), 2), ((1,), 3), ((0, 1), 6)):
        noise = opened.measure(Query(axes, centred=True), Fraction(1, 5)).noise
        assert noise.variance / cells**2 == pytest.approx((1 - 1 / cells) / (2 * 0.5 / 5), rel=1e-3)
    events = opened.statement().certificate["events"]
    assert [(event["type"], event["what"]) for event in events] == [
        ("tables", "number of rows"),
        ("centred", "a"),
        ("centred", "b"),
        ("centred", "a × b"),
    ]
    assert [event["l2_squared"] for event in events[1:]] == ["2", "6", "30"]
    assert events[0]["share"] == str(ROWS)
    assert all(event["cost"] <= float(Fraction(event["share"])) * 0.5 * (1 + 1e-9) for event in events)


def test_a_public_number_of_rows_costs_nothing() -> None:
    """It is in the release as it is."""
    opened = session(n_rows_public=True)
    count_rows(opened)
    assert [int(one.values) for one in opened.kept] == [40]
    assert opened.left == 1


def test_replaced_rows_are_paid_for_as_far_as_they_move_a_centred_table() -> None:
    """By K in one cell and in another, which is 2K² in squares: nothing is gained, and nothing goes unpaid."""
    noise = session(relation="replace").measure(Query((1,), centred=True), Fraction(1, 5)).noise
    assert noise.variance == pytest.approx(2 * 3**2 / (2 * 0.5 / 5), rel=1e-3)


def people(n: int = 4_000) -> tuple[pd.DataFrame, Schema]:
    """Sixteen columns, the second and the third like the first."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, n)
    columns = {"c0": first, "c1": (first + (rng.random(n) < 0.1)) % 3, "c2": (first > 0).astype(int)}
    columns |= {f"c{i}": rng.integers(0, 2 + i % 3, n) for i in range(3, 16)}
    frame = pd.DataFrame(columns)
    return frame, Schema.from_domain({name: int(frame[name].max()) + 1 for name in frame})


def test_a_release_of_chosen_tables_is_centred_and_says_counts(tmp_path) -> None:
    """From the frame to the file: tables agree with the rows within their own standard errors, and so does their number."""
    frame, schema = people()
    release = dc.measure(
        frame,
        schema,
        epsilon=3.0,
        delta=1e-9,
        unit="add-remove",
        workload="auto",
        save=tmp_path / "r.parquet",
    )
    again = dc.Release.load(tmp_path / "r.parquet")
    assert sum(not one.query.axes for one in again.measurements) == 1
    assert abs(again.reconciled.total - len(frame)) < 5 * again.reconciled.total_variance**0.5
    for name in schema.attrs:
        truth = np.bincount(frame[name], minlength=schema.column(name).size)
        sigmas = (again.project(name).values - truth) / again.std_error(name).values
        assert np.abs(sigmas).max() < 5
    assert release.checksum == again.checksum
    rows = dc.solve(again).sample(4_000, seed=1)
    assert (rows["c1"] == rows["c0"]).mean() == pytest.approx((frame["c1"] == frame["c0"]).mean(), abs=0.05)


@pytest.mark.parametrize(
    "options", [{"epsilon": 3.0}, {"epsilon": 3.0, "delta": 1e-9, "unit": "replace"}], ids=["pure", "replace"]
)
def test_other_budgets_and_units_count_whole_tables(options: dict) -> None:
    """Files that they make are what they were."""
    frame, schema = people(500)
    release = dc.measure(frame, schema, workload="auto", **({"unit": "add-remove"} | options))
    assert not release.centred


def test_several_sets_have_a_total_each() -> None:
    """Each is reconciled by itself."""
    frame, schema = people()
    release = dc.measure(frame, schema, epsilon=3.0, delta=1e-9, unit="add-remove", workload="auto", sets=2)
    assert [one.set for one in release.measurements if not one.query.axes] == [0, 1]
    assert all(abs(release.reconcile(number).total - len(frame)) < 500 for number in (0, 1))


@pytest.mark.parametrize("max_rows", [1, 2])
def test_no_question_tells_neighbours_apart_by_more_than_it_declares(max_rows: int) -> None:
    """From the frame on: every answer of a run is given to its neighbours again, and each centred table costs exactly what it moves by."""
    unit = Unit("add-remove", max_rows)
    subject = Subject("chosen", partial(dc.Cipher, workload=dc.Auto(max_cells=9)), THREE_ALIKE)
    method = subject.method(unit, (1.0, 1e-6))
    here = record(method, subject.rows, subject.schema, seed=1)
    kinds = {event["type"] for event in here.events}
    assert "centred" in kinds
    costs = []
    for rows in subject.neighbours(unit):
        found = compare_answers(method, here, record(method, rows, subject.schema, replay=here, seed=1))
        costs += [cost / declared for what, cost, declared in found if "×" in what or what.startswith("c")]
    assert max(costs) == pytest.approx(1, rel=1e-6)
