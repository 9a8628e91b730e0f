"""The whole audit on few draws, and planted violations that its rows must show."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from dpcipher.cli import main
from dpcipher.errors import ParameterError
from dpcipher.evaluation import audit as front
from dpcipher.evaluation.audit import Audit, Effort, audit
from dpcipher.evaluation.check import EACH, N_CHECKS, Check
from dpcipher.evaluation.mechanisms import (
    MECHANISMS,
    chi_square,
    choice_check,
    noise_check,
    sampler_statistics,
    urn_check,
)
from dpcipher.evaluation.methods import independence_checks, question_checks, run_checks
from dpcipher.evaluation.pages import audit_page
from dpcipher.evaluation.subjects import SUBJECTS
from dpcipher.methods import METHODS
from dpcipher.privacy import budget
from dpcipher.privacy.budget import noise_for
from dpcipher.privacy.draws import NoiseSource, OpenDPChooser, OpenDPNoise, SeededNoise
from dpcipher.privacy.terms import Unit
from dpcipher.tables.measurement import Noise

FEW = Effort(sampler=4_000, mechanism=3_000, choice=2_000, method=4_000, independence=12, levels=200)


@pytest.fixture(scope="module")
def small() -> Audit:
    """An audit of few draws."""
    patch = pytest.MonkeyPatch()
    patch.setattr(front, "QUICK", FEW)
    result = audit()
    patch.undo()
    return result


def test_this_installation_passes(small: Audit) -> None:
    """No row above its claim; a chance of one in a million says otherwise."""
    assert [check for check in small.checks if not check.passed] == []
    assert small.passed
    assert "all passed" in str(small)


def test_every_method_is_a_subject(small: Audit) -> None:
    """Whatever a user can fit is recorded and replayed; the draw of the multinomial-Dirichlet has a row of its own."""
    audited = {type(subject.method(Unit("add-remove"))) for subject in SUBJECTS}
    assert set(METHODS.values()) == audited
    assert any("multinomial-Dirichlet" in check.what for check in small.checks)
    assert len(small.checks) <= N_CHECKS


def test_claims_are_tight_in_every_method(small: Audit) -> None:
    """Some question of every method is changed by all that it declares, on some neighbour."""
    nothing_asked = {"uniform", "multinomial-Dirichlet"}
    ratios = {
        (check.what.partition(",")[0], check.unit): 0.0 for check in small.checks if check.part == "questions"
    }
    for check in small.checks:
        if check.part == "questions":
            key = (check.what.partition(",")[0], check.unit)
            ratios[key] = max(ratios[key], check.ratio)
    assert all(ratio > 0.99 for (name, unit), ratio in ratios.items() if name not in nothing_asked)


def test_a_part_that_does_not_exist_is_refused() -> None:
    """With the parts that do, and the one that was meant."""
    with pytest.raises(ParameterError, match=r"'question'.*questions.*did you mean"):
        audit(only="question")


def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that draws at half the scale shows more than it claims, of every mechanism."""
    right = OpenDPNoise._noisy

    def halved(self, counts, mechanism):
        return right(self, counts, Noise(mechanism.kind, mechanism.scale / 2))

    monkeypatch.setattr(OpenDPNoise, "_noisy", halved)
    for mechanism in (Noise("laplace", 3.0), Noise("gaussian", 3.0)):
        assert not noise_check(mechanism, Unit("add-remove", 3), 20_000).passed


def test_a_choice_that_is_too_sure_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponential mechanism at a third of its scale."""
    right = OpenDPChooser._choose
    monkeypatch.setattr(
        OpenDPChooser, "_choose", lambda self, scores, scale, k: right(self, scores, scale / 3, k)
    )
    assert not choice_check(12_000).passed


def test_an_urn_with_a_weak_prior_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prior of a tenth of what epsilon needs."""
    from dpcipher.evaluation import mechanisms

    right = mechanisms.least_prior
    monkeypatch.setattr(mechanisms, "least_prior", lambda *given: right(*given) / 30)
    assert not urn_check(20_000).passed


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_noise_that_is_used_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every noise is handed out to two answers in a row: each table alone looks right."""
    right, kept = OpenDPNoise._noisy, list[np.ndarray]()

    def reused(self, counts, mechanism):
        if not kept:
            kept.append(right(self, np.zeros_like(counts), mechanism))
            return counts + kept[0]
        return counts + kept.pop()

    monkeypatch.setattr(OpenDPNoise, "_noisy", reused)
    monkeypatch.setattr(
        "dpcipher.evaluation.methods.SUBJECTS", [s for s in SUBJECTS if s.name == "modips, two sets"]
    )
    (check,) = independence_checks(30)
    assert not check.passed
    assert check.estimate == pytest.approx(1)


def test_a_sensitivity_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that forgets that a replaced row leaves one cell and enters another."""
    monkeypatch.setattr(Unit, "l1", property(lambda self: self.max_rows))
    monkeypatch.setattr("dpcipher.evaluation.methods.SUBJECTS", SUBJECTS[2:3])
    remembered = (noise_for, budget.cost)
    for function in remembered:
        function.cache_clear()
    failed = [check for check in question_checks(np.random.default_rng(0)) if not check.passed]
    for function in remembered:
        function.cache_clear()
    assert failed
    assert all("replace" in check.unit and "declared" in check.violation for check in failed)


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_whole_runs_prove_less_than_they_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with installed noise, replayed on the other table: of a tight method, a good part of its budget."""
    monkeypatch.setattr("dpcipher.evaluation.methods.SUBJECTS", SUBJECTS[2:3])
    pure, concentrated = run_checks(300, np.random.default_rng(0))
    assert 0.3 < pure.ratio <= 1
    assert concentrated.ratio <= 1


@pytest.mark.parametrize(
    "mechanism", MECHANISMS, ids=lambda mechanism: f"{mechanism.kind}-{mechanism.scale:g}"
)
def test_a_scale_ten_per_cent_off_is_rejected(mechanism: Noise) -> None:
    """At 100,000 draws, more and less, with the audit's own confidence; the right one passes."""
    blank = np.zeros(100_000, dtype=np.int64)
    for factor, rejected in ((1.0, False), (1.1, True), (1 / 1.1, True)):
        draws = SeededNoise(9).add(blank, Noise(mechanism.kind, mechanism.scale * factor))
        statistic = chi_square(draws, mechanism, EACH)
        assert (statistic.value > statistic.critical) == rejected


class Repeating(NoiseSource):
    """The right law, drawn once and handed out again and again."""

    is_private = False

    def _noisy(self, counts, mechanism):
        return counts + SeededNoise(2).add(np.zeros_like(counts), mechanism)

    def certificate(self, mechanism, unit):
        """Whatever the law would cost."""
        return SeededNoise(2).certificate(mechanism, unit)


def test_noise_that_repeats_itself_is_rejected() -> None:
    """One table against the next sees it; the law and the lags of each table are right."""
    tests = sampler_statistics(Repeating(), Noise("laplace", 10.0), 5_000, EACH)
    assert [test.name for test in tests if test.value > test.critical] == ["next table"]


def test_the_page_shows_what_failed(small: Audit) -> None:
    """A violated row stands on the page in words, and every part has its picture."""
    wrong = Check("runs", "planted", "replace", 1.0, math.inf, 7, "it depends on private rows")
    text = audit_page(Audit((*small.checks, wrong), 1.0))
    assert "do not release" in text
    assert "it depends on private rows" in text
    assert text.count("<svg") == len({check.part for check in small.checks}) + 1
    assert "Every check passed" in audit_page(small)


def test_the_page_says_what_a_pass_covers_and_what_not(small: Audit) -> None:
    """Also where everything passed, so that nobody takes it for a proof."""
    text = audit_page(small)
    assert "What a pass covers" in text
    assert "on the tables, budgets and units that were tried here" in text
    assert "It does not say" in text


def test_the_command_writes_a_page_and_fails_where_a_check_fails(monkeypatch, tmp_path) -> None:
    """Rows as JSON with the promised names; exit code 1 if anything is beyond its claim."""
    good = Check("mechanisms", "noise", "add-remove", 1.0, 0.9, 100)
    bad = Check("mechanisms", "noise", "replace", 1.0, 1.2, 100)
    path = tmp_path / "audit.html"
    for checks, code in (((good,), 0), ((good, bad), 1)):
        monkeypatch.setattr("dpcipher.audit", lambda checks=checks, **_: Audit(checks, 2.0))
        ran = CliRunner().invoke(main, ["audit", "--json", "--force", "--report", str(path)])
        assert ran.exit_code == code
        said = json.loads(ran.stdout)
        assert said["passed"] == (code == 0)
        assert {"what", "unit", "claimed", "estimate", "ratio", "trials"} <= set(said["rows"][0])
        assert path.read_text().startswith("<!DOCTYPE html>")
