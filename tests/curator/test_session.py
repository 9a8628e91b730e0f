"""The session for adaptive methods: one charge, exact shares, and no true count outside."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from asking import Asked, Scored
from dpcipher.curator import counts as truth_module
from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import CountSource, RowCounts, TableCounts, open_counts, receive
from dpcipher.curator.measure import open_session
from dpcipher.errors import BudgetError, ParameterError
from dpcipher.methods.mwem import Cell
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.session import Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.tables.query import Query

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 2})
CODES = np.random.default_rng(0).integers(0, SCHEMA.shape, size=(300, 3)).astype(np.int32)
FRAME = pd.DataFrame(CODES, columns=list("abc"))
A, AB = Query((0,)), Query((0, 1))


def session(epsilon: float = 1.0, unit: str = "add-remove", max_rows: int = 1, **budget: float) -> Session:
    """A session to the rows above, with seeded noise."""
    return Session(
        SCHEMA,
        Privacy(Budget.parse(epsilon=epsilon, **budget), Unit(unit, max_rows)),
        PrivateRows(RowCounts(CODES, SCHEMA.shape), Draws.seeded(1)),
    )


def full_table() -> np.ndarray:
    """The true counts, by brute force."""
    table = np.zeros(SCHEMA.shape, dtype=np.int64)
    for row in CODES:
        table[tuple(row)] += 1
    return table


def test_every_source_of_counts_agrees_with_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full table, coded rows, and rows read from a frame, small domain or large."""
    sources: list[CountSource] = [
        TableCounts(full_table()),
        RowCounts(CODES, SCHEMA.shape),
        open_counts(receive(FRAME, SCHEMA), SCHEMA),
    ]
    monkeypatch.setattr(truth_module, "FULL_TABLE_CELLS", 1)
    sources.append(open_counts(receive(FRAME, SCHEMA), SCHEMA))
    assert [type(source).__name__ for source in sources] == [
        "TableCounts",
        "RowCounts",
        "TableCounts",
        "RowCounts",
    ]
    for source in sources:
        assert source.n_rows == 300
        assert source.counts(()) == 300
        np.testing.assert_array_equal(source.counts((0, 2)), full_table().sum(axis=1))
        np.testing.assert_array_equal(source.counts((0, 1, 2)), full_table())


def test_shares_are_exact() -> None:
    """Ten tenths are the whole, which floats would miss; one more is refused and draws nothing."""
    opened = session()
    for _ in range(10):
        opened.measure(A, Fraction(1, 10))
    assert opened.left == 0
    with pytest.raises(BudgetError, match="share"):
        opened.count_rows(Fraction(1, 10**9))
    assert len(opened.statement().certificate["events"]) == 10
    assert opened.statement().certificate["total"] == 1.0


@pytest.mark.parametrize("share", [0.1, Fraction(0), Fraction(-1, 2), Fraction(11, 10), None])
def test_a_share_that_is_none_is_refused(share: object) -> None:
    """Floats, nothing, less than nothing, more than all."""
    with pytest.raises(BudgetError, match="share"):
        session().measure(A, share)


def test_noise_has_the_scale_that_the_share_buys() -> None:
    """Laplace by L1, a single cell by max_rows under either unit, Gaussian by L2."""
    quarter = Fraction(1, 4)
    assert session(2.0).measure(AB, quarter).noise.scale == 2
    assert session(2.0, "replace", 3).measure(AB, quarter).noise.scale == 12
    assert session(2.0, "replace", 3).ask(Cell((0, 1), (0, 0)), quarter)[1].scale == 6
    assert session(2.0, "add-remove", 3).ask(Cell((0, 1), (0, 0)), quarter)[1].scale == 6
    sums = Asked(lambda counts: counts.counts((0,)), 5, 7)
    stretched = session(2.0).ask(sums, quarter)
    assert stretched[1].scale == 10
    gaussian = session(1.0, delta=1e-6)
    rho = gaussian.part(quarter).rho
    assert gaussian.measure(A, quarter).noise.scale == pytest.approx((1 / (2 * rho)) ** 0.5)
    wide = gaussian.ask(sums, quarter)
    assert wide[1].scale == pytest.approx((7 / (2 * rho)) ** 0.5)


def test_answers_are_the_counts_with_noise() -> None:
    """With a large budget the answers are nearly the truth; a huge one still draws some noise and spends less."""
    opened = session(40.0)
    np.testing.assert_allclose(
        opened.measure(Query((0, 2)), Fraction(1, 2)).values, full_table().sum(axis=1), atol=3
    )
    assert abs(opened.count_rows(Fraction(1, 4)).values - 300) <= 3
    generous = session(10**5)
    assert generous.measure(A, Fraction(1)).noise.scale == 1 / 64
    assert generous.statement().certificate["total"] == 64


def test_the_best_candidate_is_chosen_when_the_budget_is_large() -> None:
    """Scores are evaluated inside; the choice comes out."""
    names = ["a", "b", "c"]
    chosen = names[session(1000.0).choose(Scored(levels), 1, Fraction(1))[0]]
    assert (
        chosen
        == names[
            int(
                np.argmax(
                    [
                        full_table().sum(axis=(1, 2)).max(),
                        full_table().sum(axis=(0, 2)).max(),
                        full_table().sum(axis=(0, 1)).max(),
                    ]
                )
            )
        ]
    )


def levels(truth: TrueCounts) -> np.ndarray:
    """A score per column: its most frequent level."""
    return np.array([truth.counts((axis,)).max() for axis in range(3)])


def test_several_candidates_come_out_best_first_as_one_event() -> None:
    """With a large budget the order is that of the scores; the event takes the whole share."""
    opened = session(3000.0)
    chosen = opened.choose(Scored(levels), 3, Fraction(3, 4))
    scores = levels(TableCounts(full_table()))
    assert len(set(scores)) == 3
    assert chosen == np.argsort(-scores).tolist()
    assert opened.statement().certificate["events"] == [
        {
            "type": "choice",
            "what": "made up",
            "candidates": 3,
            "rounds": 3,
            "sensitivity": 1,
            "share": "3/4",
            "cost": pytest.approx(2250.0),
        }
    ]
    assert opened.left == Fraction(1, 4)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("secure", [True, False], ids=["opendp", "seeded"])
def test_several_choices_cost_no_more_than_their_share(secure: bool, delta: float | None) -> None:
    """Two rounds at half the share each: rho adds up, and so does epsilon."""
    opened = Session(
        SCHEMA,
        Privacy(Budget.parse(epsilon=1.0, delta=delta), Unit("add-remove")),
        PrivateRows(RowCounts(CODES, SCHEMA.shape), Draws.secure() if secure else Draws.seeded(2)),
    )
    assert len(opened.choose(Scored(levels), 2, Fraction(1, 3))) == 2
    share = opened.part(Fraction(1, 3))
    cost = opened.statement().certificate["events"][0]["cost"]
    limit = float(share.epsilon if share.rho is None else share.rho)
    assert cost <= np.nextafter(limit, 2)
    assert cost == pytest.approx(limit, rel=1e-9)


def test_a_choice_beyond_what_is_left_never_sees_the_rows() -> None:
    """The share is taken, and refused, before scores are asked for; so is a number of candidates that there are not."""
    opened = session()
    opened.count_rows(Fraction(1, 2))

    def never(truth: TrueCounts) -> np.ndarray:
        raise AssertionError("the rows were asked")

    with pytest.raises(BudgetError, match="share"):
        opened.choose(Scored(never), 2, Fraction(2, 3))
    with pytest.raises(ParameterError, match="number of candidates"):
        opened.choose(Scored(never), 4, Fraction(1, 2))
    assert opened.left == Fraction(1, 2)
    assert len(opened.statement().certificate["events"]) == 1


def test_a_choice_that_fails_is_paid_for() -> None:
    """What was asked of the rows may have been learned, so the share is gone and the event stays."""
    opened = session()

    def broken(truth: TrueCounts) -> np.ndarray:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opened.choose(Scored(broken), 2, Fraction(1, 2))
    assert opened.left == Fraction(1, 2)
    assert [event["what"] for event in opened.statement().certificate["events"]] == ["made up"]


def test_the_number_of_rows_is_public_only_where_someone_says_so() -> None:
    """Under add-remove the session does not tell, unless the curator declared the number public."""
    assert session().n_rows is None
    assert session().statement().n_rows is None
    assert session(unit="replace").n_rows == 300
    said = Privacy(Budget.parse(epsilon=1), Unit("add-remove"), n_rows_public=True)
    declared = [
        open_session(FRAME, SCHEMA, said, purpose={}),
        Session(SCHEMA, said, PrivateRows(TableCounts(full_table()), Draws.seeded(1))),
    ]
    assert [(one.n_rows, one.statement().n_rows) for one in declared] == [(300, 300)] * 2


def test_the_charge_is_durable_before_the_first_answer(tmp_path) -> None:
    """A session that was opened and never asked has spent its whole budget; closing it marks the result."""
    path = tmp_path / "people.ledger"
    opened = open_session(
        FRAME,
        SCHEMA,
        Privacy(Budget.parse(epsilon=1), Unit("add-remove")),
        Account(path, create=True),
        purpose={"method": "test"},
    )
    entry = Ledger.open(path).entries[0]
    assert entry.cost == Budget.parse(epsilon=1)
    assert entry.checksum is None
    assert entry.what.items() >= {"method": "test", "schema": SCHEMA.fingerprint()}.items()
    assert opened.statement().status == "certified"
    assert opened.statement().ledger["charge"] == entry.id
    opened.close("abc")
    assert Ledger.open(path).entries[0].checksum == "abc"
    with pytest.raises(BudgetError, match="share"):
        opened.count_rows(Fraction(1, 2))


def test_max_rows_is_enforced_where_a_column_says_whose_row_it_is() -> None:
    """A person with three hundred rows counts for two."""
    frame = FRAME.assign(who="one")
    opened = open_session(
        frame, SCHEMA, Privacy.parse(epsilon=200, unit="replace", max_rows=2, person="who"), purpose={}
    )
    assert opened.n_rows is None  # the number that is left tells about the ids of those left out
    assert opened.count_rows(Fraction(1)).values == 2


def test_statements_say_who_drew() -> None:
    """Secure draws without a ledger are unrecorded; seeded ones are NOT PRIVATE."""
    opened = open_session(FRAME, SCHEMA, Privacy(Budget.parse(epsilon=1), Unit("add-remove")), purpose={})
    opened.count_rows(Fraction(1))
    assert opened.statement().status == "unrecorded"
    assert opened.statement().certificate["by"] == "privacy map of opendp"
    assert session().statement().status == "NOT PRIVATE"


def test_the_urn_needs_a_pure_budget() -> None:
    """Its cost has no rho."""
    with pytest.raises(BudgetError, match="delta"):
        session(1.0, delta=1e-6).draw_rows(Fraction(5), 10, Fraction(1))
