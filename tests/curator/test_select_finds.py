"""What the choice of tables finds: planted pairs and triples, little where there is nothing, a shortlist where there is too much."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from choosing import columns, run, shares

from dpcipher.methods import Cipher, Independent
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Unit
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema

PAIR = "c3 × c7"


def of_order(found: dict[str, object], order: int) -> set[str]:
    """The tables of so many columns among what was asked."""
    return {what for what in found if what.startswith("c") and what.count("×") == order - 1}


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"epsilon": 0.5, "delta": 1e-9}], ids=str)
def test_a_strong_pair_gets_the_largest_share(budget: dict[str, float]) -> None:
    """Twelve columns of which two are nearly copies: that pair gets as much as any, and the many others little or nothing."""
    codes = columns(12, 10_000, 8, (3, 7))
    for seed in range(3):
        found = shares(run(codes, (8,) * 12, Auto(max_order=2), seed=seed, **budget)[0])
        others = {what: share for what, share in found.items() if what in of_order(found, 2) - {PAIR}}
        assert found[PAIR] >= max(others.values(), default=0)
        assert found[PAIR] > 8 * sum(others.values()) / 65


def test_with_a_huge_budget_every_dependent_pair_is_there() -> None:
    """Five dependent pairs, and those that follow from them."""
    planted = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    session, _ = run(columns(10, 2000, 4, *planted), (4,) * 10, Auto(max_order=2), epsilon=1000.0)
    assert {f"c{a} × c{b}" for a, b in planted} <= of_order(shares(session), 2)


def summed(n_rows: int = 2000) -> np.ndarray:
    """Fourteen columns: the third is the sum of two independent ones, modulo 2; the last four are a chain."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (n_rows, 14))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    for place in (11, 12, 13):
        codes[:, place] = np.where(rng.random(n_rows) < 0.2, codes[:, place], codes[:, place - 1])
    return codes


@pytest.mark.parametrize("budget", [{"epsilon": 15.0}, {"epsilon": 3.0, "delta": 1e-9}], ids=str)
def test_a_triple_that_no_pair_shows_is_found(budget: dict[str, float]) -> None:
    """No triple gets more than the planted one; where only pairs may be measured, nobody looks."""
    for seed in range(2):
        session, chosen = run(summed(), (2,) * 14, seed=seed, **budget)
        found = shares(session)
        assert chosen.note["rounds"] > 1
        assert found["c0 × c1 × c2"] == max(found[what] for what in of_order(found, 3))
        session, chosen = run(summed(), (2,) * 14, Auto(max_order=2), seed=seed, **budget)
        assert chosen.note["rounds"] == 1
        assert of_order(shares(session), 3) == set()


def test_a_triple_is_not_looked_for_where_no_target_holds_one() -> None:
    """The target says pairs: one round, and nothing is kept back for a second."""
    session, chosen = run(summed(), (2,) * 14, Auto(target=2), epsilon=3.0, delta=1e-9)
    assert chosen.note["rounds"] == 1
    assert of_order(shares(session), 3) == set()


def test_columns_that_matter_more_get_more() -> None:
    """The same data, weights on one dependent pair or the other."""
    codes = columns(6, 3000, 5, (0, 1), (2, 3))
    for heavy, pair, other in (("c0", "c0 × c1", "c2 × c3"), ("c2", "c2 × c3", "c0 × c1")):
        auto = Auto(max_order=2, column_weights={heavy: 20.0})
        found = shares(run(codes, (5,) * 6, auto, epsilon=1.0, delta=1e-9)[0])
        assert found[pair] > 2 * found.get(other, 0)


def test_only_targets_are_measured_beyond_one_way_tables() -> None:
    """A listed target: no pair outside it, however strong."""
    auto = Auto(target=[("c0", "c1", "c4")])
    found = shares(run(columns(6, 3000, 3, (0, 1), (2, 3)), (3,) * 6, auto, epsilon=20.0)[0])
    assert "c0 × c1" in found
    assert of_order(found, 2) <= {"c0 × c1", "c0 × c4", "c1 × c4"}
    assert of_order(found, 1) == {f"c{place}" for place in range(6)}


def test_tables_larger_than_asked_for_are_not_measured() -> None:
    """A limit of 20 cells: one-way tables whatever their size, no pair beyond."""
    codes = np.concatenate([columns(4, 3000, 4, (0, 1)), np.arange(3000)[:, None] % 30], axis=1)
    found = shares(run(codes, (4, 4, 4, 4, 30), Auto(max_cells=20), epsilon=50.0)[0])
    assert "c4" in found
    assert "c0 × c1" in found
    assert not any("c4" in what for what in of_order(found, 2) | of_order(found, 3))


def error(method: Cipher | Independent, codes: np.ndarray, levels: int, seed: int) -> float:
    """The mean total variation distance of the pairs, from the fitted joint."""
    p = codes.shape[1]
    schema = Schema.from_domain({f"c{place}": levels for place in range(p)})
    fitted = method.fit_counts(codes, schema, draws=Draws.seeded(seed), codes=True).joint.core
    true = [
        np.histogram2d(codes[:, a], codes[:, b], bins=[range(levels + 1)] * 2)[0] / len(codes)
        for a in range(p)
        for b in range(a + 1, p)
    ]
    found = [fitted.project((a, b)) for a in range(p) for b in range(a + 1, p)]
    return float(np.mean([np.abs(mine - theirs).sum() / 2 for mine, theirs in zip(found, true, strict=True)]))


def test_little_is_lost_where_columns_are_independent() -> None:
    """Against spending everything on one-way tables; and much is gained where they are not."""
    ratios = {}
    for name, planted in (("independent", ()), ("dependent", ((0, 1), (2, 3)))):
        codes = columns(6, 3000, 4, *planted)
        errors = [
            [
                error(method, codes, 4, seed)
                for method in (
                    Cipher(1.0, unit="add-remove", delta=1e-9, workload="auto"),
                    Independent(1.0, unit="add-remove", delta=1e-9),
                )
            ]
            for seed in range(2)
        ]
        auto, alone = np.mean(errors, axis=0)
        ratios[name] = auto / alone
    assert ratios["independent"] < 1.3
    assert ratios["dependent"] < 0.5


# The shortlist: forty columns, 780 pairs


def by_hand(n_rows: int, *, l1: int, epsilon: float = 0.0, rho: float = 0.0) -> int:
    """How many pairs of forty columns are chosen, with three fortieths of the budget: as many as have noise (π/√6 of the scale) of a tenth of the rows, but
    two per column if that has noise of at most four tenths.
    """

    def longest(level: float) -> int:
        if rho:
            scale = l1 / math.sqrt(2 * rho * 3 / 40)
            return math.floor((level * n_rows * math.sqrt(6) / math.pi / scale) ** 2)
        return math.floor(level * n_rows * math.sqrt(6) / math.pi / (2 * l1 / (epsilon * 3 / 40)))

    return max(longest(0.1), min(80, longest(0.4)))


@pytest.mark.parametrize(
    ("n_rows", "unit", "budget"),
    [
        (2000, Unit("add-remove"), {"rho": 0.01}),
        (2000, Unit("replace"), {"rho": 0.04}),
        (20_000, Unit("add-remove", 3), {"epsilon": 0.9}),
        (20_000, Unit("add-remove"), {"epsilon": 0.3}),
    ],
    ids=str,
)
def test_the_length_of_a_shortlist_is_what_can_be_told_apart(
    n_rows: int, unit: Unit, budget: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule by hand, with a public number of rows; three quarters of the choice go to the list, the rest to the distances of those on it."""
    monkeypatch.setattr("dpcipher.selection.rounds.MAX_TVD", 0.0)
    monkeypatch.setattr("dpcipher.selection.rounds.GOOD_NOISE", 0.0)
    session, chosen = run(columns(40, n_rows, 2, (3, 7)), (2,) * 40, Auto(max_order=2), unit=unit, public=True, **budget)  # fmt: skip
    expected = by_hand(n_rows, l1=unit.l1, **budget)
    assert 5 <= chosen.note["shortlist"] == expected < chosen.note["candidates"] == 780
    found = shares(session)
    assert found[f"{expected} of 780 tables to look at"] == 3 * found[f"distances of {expected} tables"]
    assert len(of_order(found, 2)) <= expected


@pytest.mark.parametrize("budget", [{"epsilon": 0.3}, {"rho": 3e-4}, {"rho": 1e-4}], ids=str)
def test_columns_are_measured_well_before_pairs_are_chosen(
    budget: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty binary columns get the twentieths by hand: two errors of √(1/2) of the noise on two cells are at most a twentieth of the rows; or two fifths of all."""
    monkeypatch.setattr("dpcipher.selection.rounds.MAX_TVD", 0.0)
    monkeypatch.setattr("dpcipher.selection.rounds.GOOD_NOISE", 0.0)
    n_rows, needed = 20_000, 0.05 * 20_000 / (math.sqrt(2) * math.sqrt(2 / math.pi) * 2 * math.sqrt(1 / 2))
    share = 40 / (2 * budget["rho"] * needed**2) if "rho" in budget else 40 * math.sqrt(2) / (0.3 * needed)
    session, _ = run(columns(40, n_rows, 2, (3, 7)), (2,) * 40, Auto(max_order=2), public=True, **budget)
    events = session.statement().certificate["events"]
    before = itertools.takewhile(lambda event: "look" not in event["what"], events)
    assert sum(Fraction(event["share"]) for event in before) == min(
        Fraction(math.ceil(20 * share), 20), Fraction(2, 5)
    )


@pytest.mark.parametrize("budget", [{"epsilon": 0.05}, {"rho": 5e-5}], ids=str)
def test_columns_alone_are_measured_where_nothing_can_be_told_apart(budget: dict[str, float]) -> None:
    """Forty columns, 2,000 rows and next to no budget: no pair is looked at, and all of the budget goes to the columns."""
    session, chosen = run(columns(40, 2000, 2, (3, 7)), (2,) * 40, public=True, **budget)
    assert {len(table.query.axes) for table in chosen.tables} == {1}
    assert chosen.note["share"] == "0"
    assert session.left == 0


def test_all_pairs_are_taken_unseen_where_they_can_be_measured_and_not_told_apart() -> None:
    """Measured alike, 780 tables of four cells would be a tenth noise, in total variation distance: a little less, or a little more."""
    codes = columns(40, 2000, 2, (3, 7))
    enough = 780 / 2 * (4 * math.sqrt(2 / math.pi) / (2 * 2000 * 0.1)) ** 2
    for rho, read in ((enough * 0.99, 1), (enough * 1.01, 0), (enough * 1.5, 0)):
        _, chosen = run(codes, (2,) * 40, Auto(max_order=2), public=True, rho=rho)
        assert chosen.note["rounds"] == read
    assert sum(len(table.query.axes) == 2 for table in chosen.tables) == 780


@pytest.mark.parametrize("budget", [{"epsilon": 4.0}, {"epsilon": 0.3, "delta": 1e-9}], ids=str)
def test_the_strongest_pair_is_on_a_shortlist(budget: dict[str, float]) -> None:
    """One pair among 435 of a hundred cells each: on every list, and measured."""
    codes = columns(30, 10_000, 10, (3, 7))
    for seed in range(4):
        session, chosen = run(codes, (10,) * 30, Auto(max_order=2), seed=seed, **budget)
        assert chosen.note["shortlist"] < 435
        assert PAIR in shares(session)


def test_a_second_round_without_triples_goes_to_the_tables_already_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pairs that promised triples may get nothing themselves; what was kept is spent all the same."""
    codes = columns(4, 20_000, 2, (0, 1), (2, 3))
    auto = Auto(max_cells=15, target=3)
    monkeypatch.setattr("dpcipher.selection.rounds.SCREEN", 0)
    assert run(codes, (2,) * 4, auto, epsilon=20.0)[1].note["rounds"] == 2
    answers = iter([[(0, 1, 2)], []])
    monkeypatch.setattr("dpcipher.selection.rounds.candidate_triples", lambda *_: next(answers))
    session, chosen = run(codes, (2,) * 4, auto, epsilon=20.0)
    assert chosen.note["rounds"] == 1
    assert session.left == 0


def interacting(n_rows: int = 20_000) -> np.ndarray:
    """Fourteen columns of four levels; the last is binary and says a little about whether the first two are alike, and about others."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 4, (n_rows, 14))
    odds = 0.35 * np.where(codes[:, 0] == codes[:, 1], 1.5, -0.5) + 0.4 * (codes[:, 2:5] - 1.5).sum(axis=1)
    codes[:, 13] = rng.random(n_rows) < 1 / (1 + np.exp(-odds))
    return codes


def test_a_triple_with_the_column_to_predict_is_looked_for() -> None:
    """Pairs hardly show it, so that without a column to predict nobody looks; the release says what it was chosen for."""
    codes, shape = interacting(), (4,) * 13 + (2,)
    for seed in range(2):
        predicting, chosen = run(codes, shape, Auto(predict="c13"), seed=seed, epsilon=1.0, delta=1e-9)
        assert "c0 × c1 × c13" in shares(predicting)
        assert chosen.note["predict"] == "c13"
        plain, chosen = run(codes, shape, Auto(), seed=seed, epsilon=1.0, delta=1e-9)
        assert "c0 × c1 × c13" not in shares(plain)
        assert "predict" not in chosen.note


def test_the_column_to_predict_is_modelled_given_all_others() -> None:
    """The engine reads it from the release; without one, the order is that of the dependence."""
    codes, last = interacting(), []
    schema = Schema.from_domain({f"c{place}": size for place, size in enumerate((4,) * 13 + (2,))})
    for auto in (Auto(predict="c13"), Auto(predict="c0"), Auto()):
        fitted = Cipher(1.0, delta=1e-9, unit="add-remove", workload=auto).fit_counts(
            codes, schema, draws=Draws.seeded(0), codes=True
        )
        last.append(fitted.joint.core.links[-1].attribute)
    assert last[:2] == [13, 0]
    assert last[2] not in (0, 13)
