"""The rules behind the verdicts: their words, their three answers, and the numbers that flip them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from invented_run import install, invented_rows

from dpcipher.errors import ParameterError
from experiments.paper import bankruptcy, judge, quantities, simulated
from experiments.paper.judge import (
    CONDITIONAL,
    CONFIRMED,
    FAILS,
    HOLDS,
    OPEN,
    REFUTED,
    UNDECIDABLE,
    Claim,
    Finding,
    Rule,
    Verdict,
    counts,
    load_claims,
    marks,
)
from experiments.paper.page import verdict_table
from experiments.paper.quantities import Condition, Results, Settled
from experiments.paper.results import (
    exactly,
    replicated_mean,
    standard_error,
    summarise_bankruptcy,
    summarise_simulated,
)
from experiments.paper.stacks import LITERAL, SWEPT, chosen

pytest.importorskip("sklearn")
CLAIMS = [claim for part in load_claims().values() for claim in part]


def answer(monkeypatch: pytest.MonkeyPatch, needs: str, values: np.ndarray | Exception) -> tuple[str, str]:
    """The outcome and the numbers of a rule about a quantity with given replicated values."""

    def given(results: Results) -> np.ndarray:
        if isinstance(values, Exception):
            raise values
        return values

    monkeypatch.setattr(quantities, "coverage", given)
    finding = Claim("k", "tables", "s", "w", (Rule(f"coverage: {needs}"),)).judge(Results(Condition()))
    return finding.outcome, finding.found


def measured(means: Sequence[float], repeats: int = 200) -> np.ndarray:
    """Replicated values with some Monte Carlo error."""
    rng = np.random.default_rng(2)
    return replicated_mean(np.array(means) + 0.1 * rng.standard_normal((repeats, len(means))))


def test_every_sentence_has_a_key_a_rule_and_a_place() -> None:
    """Keys are unique; what depends on a choice says so by its name; every quantity has a name for the page, and is asked for."""
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS) == 75
    assert all(claim.says and claim.where and (claim.rules or claim.argument) for claim in CLAIMS)
    assert {name for claim in CLAIMS for name in claim.over} == {"reading", "mwem", "sets", "costs"}
    asked = {rule.quantity for claim in CLAIMS for rule in claim.rules}
    assert all((quantity.__doc__ or "").endswith(".") for quantity in asked)
    public = [
        f for name, f in vars(quantities).items() if callable(f) and f.__module__ == quantities.__name__
    ]
    takes_results = {
        f for f in public if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("r",)
    }
    assert {f for f in takes_results if not f.__name__.startswith("_")} == asked


def test_a_rule_says_what_it_needs() -> None:
    """The words on the page are those that are judged; a slip in them is refused."""
    rule = Rule("linf_over_fdh: at most 1.1 everywhere at ε > 1")
    assert rule.words == "l∞ × cost of CIPHER 2-way over FDH's: at most 1.1 everywhere at ε > 1"
    for slip in (
        "linf: at most 1 everywhere",
        "tvd_lead: over 0 everywhere",
        "tvd_lead: above 0 everywhere at noon",
    ):
        with pytest.raises(ParameterError, match="must name a quantity"):
            Rule(slip)


def test_rules_have_three_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Surely, surely not, and too close; one sure failure refutes a claim about all, one success proves a claim about some."""
    mixed, sides = measured([1.0, -1.0, 0.0]), measured([1.0, 0.0])
    assert marks(mixed).tolist() == [1, -1, 0]
    assert answer(monkeypatch, "above 0 everywhere", mixed)[0] == FAILS
    assert answer(monkeypatch, "above 0 somewhere", mixed)[0] == HOLDS
    assert answer(monkeypatch, "below 0 somewhere", mixed)[0] == HOLDS
    assert answer(monkeypatch, "above 0 everywhere", sides)[0] == OPEN
    assert answer(monkeypatch, "above 0 in more than half", mixed)[0] == OPEN
    assert answer(monkeypatch, "above 0 in more than nine tenths", mixed)[0] == FAILS
    assert answer(monkeypatch, "above 0 in more than half", measured([1, 1, -1]))[0] == HOLDS
    assert answer(monkeypatch, "above 0 everywhere", mixed)[1].endswith("in 1 of 3 (1 too close to tell)")


def test_levels_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per cents, distances from a level, factors of logarithms, and signs at two n."""
    assert (
        answer(monkeypatch, "at most 40 % everywhere", measured([0.2, 0.3]))
        == (
            HOLDS,
            "20 %–30 %; in 2 of 2",
        )
        or answer(monkeypatch, "at most 40 % everywhere", measured([0.2, 0.3]))[0] == HOLDS
    )
    assert answer(monkeypatch, "within 20 % of 50 % everywhere", measured([0.4, 0.6]))[0] == HOLDS
    assert answer(monkeypatch, "within 20 % of 50 % everywhere", measured([0.4, 0.8]))[0] == FAILS
    assert answer(monkeypatch, "within a factor of 3 everywhere", measured([1.0, -1.0]))[0] == HOLDS
    assert answer(monkeypatch, "within a factor of 2 everywhere", measured([1.0, -1.0]))[0] == FAILS
    same, other = ([1.0] * 19 + [-1.0], [1.0] * 20)
    at_both_n = np.stack([measured(same), measured(other)], axis=1)
    assert answer(monkeypatch, "the same sign at both n in nine tenths", at_both_n)[0] == HOLDS
    at_both_n = np.stack([measured([-1.0] * 3 + [1.0] * 17), measured(other)], axis=1)
    assert answer(monkeypatch, "the same sign at both n in nine tenths", at_both_n)[0] == FAILS


def test_a_rule_looks_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """By n and epsilon; the numbers are the worst at each epsilon."""
    values = exactly(np.arange(10.0).reshape(2, 5))
    assert answer(monkeypatch, "at least 3 everywhere at ε > 1", values) == (HOLDS, "3 / 4; in 4 of 4")
    assert answer(monkeypatch, "at least 8 everywhere at n = 500 and ε > 1", values)[0] == HOLDS
    assert answer(monkeypatch, "at least 5 everywhere at ε ≤ e⁻¹", values) == (FAILS, "0 / 1; in 2 of 4")
    assert answer(monkeypatch, "at least 9 somewhere", values) == (HOLDS, "5 / 6 / 7 / 8 / 9; in 1 of 10")


def test_exact_values_have_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A margin of 0 without any error holds."""
    assert answer(monkeypatch, "at least 0 everywhere", exactly(np.array([0.0, 1.0])))[0] == HOLDS
    assert answer(monkeypatch, "at least 0 everywhere", exactly(np.array([-0.1])))[0] == FAILS


def test_what_a_run_cannot_settle_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the readings it needs a sentence is not decidable; what holds by design holds."""
    assert answer(monkeypatch, "at least 0 everywhere", Settled("needs more")) == (UNDECIDABLE, "needs more")
    assert answer(monkeypatch, "at least 0 everywhere", Settled("by design", holds=True))[0] == HOLDS


def test_many_comparisons_at_once_rarely_refute_what_is_true() -> None:
    """A claim about 300 points that all hold by two standard errors on average is not refuted by chance (uncorrected: nearly always)."""
    rng = np.random.default_rng(3)
    refuted = [np.any(marks(replicated_mean(0.02 + rng.standard_normal((200, 300)))) < 0) for _ in range(40)]
    assert np.mean(refuted) < 0.2


def test_chance_alone_is_rarely_called_a_difference() -> None:
    """Where nothing differs, one comparison is called sure as often as two standard errors say, and so are thirty together."""
    rng = np.random.default_rng(0)
    for points in (1, 30):
        called = [np.any(marks(replicated_mean(rng.normal(size=(200, points))))) for _ in range(600)]
        assert 0.015 < np.mean(called) < 0.08


def test_the_jackknife_equals_leaving_groups_out_by_hand() -> None:
    """The error of a ratio of means, group by group; of a mean it is the usual one."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(3, 1, 120), rng.normal(2, 1, 120)
    ratio = replicated_mean(a) / replicated_mean(b)
    left = [np.delete(a, np.s_[g::50]).mean() / np.delete(b, np.s_[g::50]).mean() for g in range(50)]
    by_hand = np.sqrt(49 / 50 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert ratio[0] == pytest.approx(a.mean() / b.mean())
    assert float(standard_error(ratio)) == pytest.approx(by_hand)
    many = rng.normal(size=4000)
    assert float(standard_error(replicated_mean(many))) == pytest.approx(many.std() / 4000**0.5, rel=0.4)


def judged(keys: Sequence[str], folder: Path, reading: str = LITERAL) -> list[Verdict]:
    """The verdicts on some claims from both experiments, without page and figures."""
    readings = chosen(reading)
    quiet = {"workers": 1, "say": lambda text: None}
    simulated.blocks(folder).run(simulated.tasks(20, readings), **quiet)
    bankruptcy.blocks(folder, invented_rows()).run(bankruptcy.tasks(20, readings), **quiet)
    first = summarise_simulated(folder, 20, readings)
    second = summarise_bankruptcy(folder, 20, readings, None)
    asked = [claim for claim in CLAIMS if claim.key in keys]
    return [judge.judge(claim, lambda where: Results(where, first, second), readings) for claim in asked]


def outcomes(verdict: Verdict, reading: str = LITERAL) -> set[str]:
    """What was found under one reading, in all columns."""
    return {finding.outcome for where, finding in verdict.findings.items() if where.reading == reading}


def test_planted_numbers_flip_the_verdicts_they_are_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CIPHER 2-way with a hundredth of its TVD wins everywhere, with a hundred times nowhere; so with its accuracy; a reading that differs is named."""
    keys = ("best-tvd", "best-tvd-small", "mwem-tvd", "fdh-tvd", "tvd-large", "svm-cipher")
    found = {}
    for name, tvd, accuracy in (("good", 0.01, 3.0), ("bad", 100.0, 0.1)):
        install(monkeypatch, {"CIPHER 2-way/tvd": tvd, "CIPHER/accuracy": accuracy})
        found[name] = judged(keys, tmp_path / name, "clipped")
    assert all(outcomes(verdict) == {HOLDS} for verdict in found["good"])
    assert all(outcomes(verdict) == {FAILS} for verdict in found["bad"])
    flipped = [verdict for verdict in found["good"] if outcomes(verdict, "clipped") != {HOLDS}]
    assert flipped
    assert all(verdict.flips == ["clipped"] and verdict.status == CONDITIONAL for verdict in flipped)


def test_results_and_arithmetic_are_counted_apart() -> None:
    """A slip in a count of cells is no failed result."""
    verdicts = judge.judge_all(storage=True, first=None, second=None)
    every = [verdict for part in verdicts.values() for verdict in part]
    results, arithmetic = counts(every), counts(every, arithmetic=True)
    assert (sum(results.values()), sum(arithmetic.values())) == (2, 7)
    assert (results[REFUTED], arithmetic[REFUTED], arithmetic[CONFIRMED]) == (2, 5, 2)


def test_what_is_said_in_general_needs_more_than_half_of_the_points() -> None:
    """Sentences that name no point do not fail at a single one."""
    general = ("storage", "mwem-tvd", "rounds-matter", "rounds-hard", "rounds-ends", "mwem-all", "best-tvd")
    rules = [rule.text for claim in CLAIMS if claim.key in general for rule in claim.rules]
    assert len(rules) > len(general)
    assert all(text.endswith(" in more than half") for text in rules)


def fixed(outcomes: dict[tuple[str, str], str]) -> Verdict:
    """A verdict with a given outcome for each reading and form of MWEM."""
    claim = Claim("k", "tables", "s", "w", (Rule("tvd_lead: above 0 everywhere"),), ("reading", "mwem"))
    found = {
        Condition(r, (("mwem", form),)): Finding(outcome, "1") for (r, form), outcome in outcomes.items()
    }
    return Verdict(claim, found, {})


@pytest.mark.parametrize(
    ("changed", "status", "flips"),
    [
        ({}, CONFIRMED, []),
        ({("clipped", "cells"): FAILS}, CONDITIONAL, ["clipped"]),
        ({(LITERAL, "tables"): FAILS}, CONDITIONAL, ["clipped"]),
        ({(LITERAL, "tables"): FAILS, ("clipped", "tables"): FAILS}, CONDITIONAL, []),
        ({(LITERAL, "tables"): OPEN, (LITERAL, "cells"): OPEN}, OPEN, ["clipped"]),
    ],
)
def test_a_confirmation_is_unconditional_only_under_every_condition(
    changed: dict[tuple[str, str], str], status: str, flips: list[str]
) -> None:
    """Readings that flip a verdict are named; a column that differs makes it conditional."""
    names = [(reading, form) for reading in (LITERAL, "clipped") for form in ("cells", "tables")]
    verdict = fixed(dict.fromkeys(names, HOLDS) | changed)
    assert (verdict.status, verdict.flips) == (status, flips)
    assert sum(counts([verdict]).values()) == 1
    assert fixed(dict.fromkeys(names, FAILS)).status == REFUTED
    assert fixed(dict.fromkeys(names, OPEN)).status == OPEN


def test_conditions_are_every_reading_and_choice_the_literal_first() -> None:
    """And our engine stands in the place of CIPHER, where CIPHER takes part."""
    claim = fixed({}).claim
    assert claim.conditions([LITERAL, "clipped"])[0] == Condition(LITERAL, (("mwem", "cells"),))
    assert len(claim.conditions([LITERAL, "clipped"])) == 4


def test_readings_are_counted_column_by_column() -> None:
    """A sentence that holds for one form of MWEM under another reading says so there, and nothing of the other form."""
    other = "guarded, clipped inputs"
    verdict = fixed(
        {
            (LITERAL, "cells"): FAILS,
            (LITERAL, "tables"): FAILS,
            (other, "cells"): HOLDS,
            (other, "tables"): FAILS,
        }
    )
    told = verdict_table([verdict])
    assert "**confirmed only under other readings**" in told
    assert f"*MWEM by cells* holds in 1 of 2; other than literal: `{other}`" in told
    assert "*MWEM by tables* holds in 0 of 2; none differs" in told


def test_readings_are_chosen_by_name() -> None:
    """The literal one is always there, and first."""
    assert chosen("literal") == ("literal",)
    assert chosen("all") == tuple(SWEPT)
    assert chosen(["clipped", "guarded"]) == ("literal", "guarded", "clipped")
    assert next(iter(SWEPT)) == LITERAL
    with pytest.raises(ParameterError, match="did you mean"):
        chosen("cliped")
