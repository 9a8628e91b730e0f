"""The audit of found levels: it passes here, and shows a lone text that is named too often."""

from fractions import Fraction

import numpy as np
import pytest

from dpcipher.evaluation.check import Check
from dpcipher.evaluation.levels import drawn_check, level_checks, lone_text_check
from dpcipher.privacy import partitions
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Unit


def test_finding_levels_passes() -> None:
    """No row above its claim, under every unit; one in a million says otherwise."""
    checks = list(level_checks(300, np.random.default_rng(4)))
    assert [check for check in checks if not check.passed] == []
    assert len(checks) == 12


def test_the_claims_are_tight() -> None:
    """The threshold is the lowest: with one less, the exact probability that a lone text is named is above delta."""
    check = lone_text_check(Unit("add-remove"), 1)
    assert 0.1 < check.ratio <= 1


@pytest.mark.parametrize("unit", [Unit("add-remove"), Unit("replace", 3)])
def test_a_threshold_that_is_too_low_by_one_is_caught_both_ways(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the law of the noise on replayed neighbours, and by draws."""
    right = partitions.threshold_for

    def lower(sigma: float, delta: Fraction, who: Unit) -> int:
        return right(sigma, delta, who) - 1

    monkeypatch.setattr(partitions, "threshold_for", lower)
    assert not lone_text_check(unit, 1).passed
    assert not drawn_check(unit, "one text", ["lone"] * unit.max_rows, 500).passed


def test_control_flow_that_depends_on_the_texts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming a text by its true count makes the schema of the release depend on private rows beyond the answers."""
    right = PartitionSelection.named

    def peeking(self: PartitionSelection, counts, noise, most):  # type: ignore[no-untyped-def]
        return (*right(self, counts, noise, most), *(text for text in counts if text == "lone"))

    monkeypatch.setattr(PartitionSelection, "named", peeking)
    check: Check = lone_text_check(Unit("add-remove"), 1)
    assert "depends on private rows" in check.violation
