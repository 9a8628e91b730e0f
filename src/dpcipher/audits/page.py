"""The audit as a page: what is claimed against what was found, drawn and in numbers."""

from itertools import groupby

from dpcipher.audits.audit import Audit
from dpcipher.audits.check import Check
from dpcipher.drawing.dots import Dot, Line, Scale, dot_plot
from dpcipher.drawing.html import facts, figure, page, paragraphs, table

MEANING = {
    "samplers": "The installed noise against its exact law: the test of each scale that came nearest to rejecting it. Claimed is the critical value.",
    "mechanisms": "Installed noise, choices and draws on neighbouring tables: what they prove of epsilon or mu, against what is claimed.",
    "questions": "Every synthesizer recorded on one table and replayed on all its neighbours: the question that one person changes most, against what it declares.",
    "releases": "Everything that measure offers, recorded and replayed likewise: tables, sets, chosen tables, found bins and levels, persons.",
    "levels": "Levels found in the rows: the lone texts of one person on neighbouring tables, by the law of the noise and by draws, against delta.",
    "methods": "Every synthesizer on its worst neighbour: what fresh answers to all its questions prove, against its whole budget.",
    "independence": "Every synthesizer run often: the largest correlation between the noise of two cells, against its critical value.",
    "runs": "Whole runs with installed noise on both tables, each replayed on the other.",
}
COVERS = (
    "A pass says: on the tables, budgets and units that were tried here, this installation's noise follows its law, no question of a synthesizer or of measure moved further "
    "with one person than it declares, and what answers, warnings, progress and files tell of a neighbour is within the budget.",
    "It does not say that other tables, options or readers would pass; that no bug is left (of bugs planted in the source the audit finds a part, the tests find all that are known); that "
    "the schema is public, or that unit and max_rows are true of the people in the table; or that the machine is safe, its clock and memory included.",
)
MOST = 1.25  # the end of the axis, past the claim


def audit_page(audit: Audit) -> str:
    """The text of the page."""
    verdict = (
        "Every check passed: nothing was found beyond what is claimed."
        if audit.passed
        else "Some checks FAILED: do not release with this installation."
    )
    about = (
        f"{len(audit.checks)} checks, {audit.seconds:.0f} seconds of processor time. A ratio above 1 is a violation; if everything is right, the "
        "chance of one anywhere on this page is at most one in a million. A ratio near 1 means that the claim is tight: no less noise would do."
    )
    numbers = {
        "Verdict": "passed" if audit.passed else "FAILED",
        "Checks": f"{len(audit.checks):,}",
        "Beyond the claim": f"{sum(not check.passed for check in audit.checks):,}",
        "Processor time": f"{audit.seconds:,.0f} s",
    }
    sections = {
        "Verdict": facts(numbers, style="cards") + paragraphs([about]),
        "What a pass covers": paragraphs(COVERS),
    }
    for part, group in groupby(audit.checks, key=lambda check: check.part):
        checks = list(group)
        drawn = figure(ratio_plot(checks), f"Found over claimed, {part}.")
        sections[part.capitalize()] = paragraphs([MEANING[part]]) + drawn + _table(checks)
    return page("Audit of this installation", "audit", sections, lead=verdict)


def _table(checks: list[Check]) -> str:
    lines = [
        (
            check.what,
            check.unit,
            f"{check.claimed:.4g}",
            f"{check.estimate:.4g}",
            _ratio(check),
            f"{check.trials:,}",
        )
        for check in checks
    ]
    said = paragraphs(
        f"{check.what} ({check.unit}): {check.violation}" for check in checks if check.violation
    )
    return said + table(("What", "Unit", "Claimed", "Found", "Ratio", "Trials"), lines)


def _ratio(check: Check) -> str:
    return "violated" if check.violation else f"{check.ratio:.3f}"


def ratio_plot(checks: list[Check]) -> str:
    """A dot for every check on the axis from nothing to the claim, and beyond."""
    lines = [
        Line(
            f"{check.what} ({check.unit})",
            (
                Dot(
                    MOST if check.violation else min(check.ratio, MOST),
                    f"{check.what} ({check.unit}): {_ratio(check)}",
                    "good" if check.passed else "bad",
                ),
            ),
            _ratio(check),
            strong=not check.passed,
        )
        for check in checks
    ]
    failed = sum(not check.passed for check in checks)
    description = f"{len(checks)} checks, {failed} beyond the claim."
    return dot_plot(
        lines,
        title="Found over claimed",
        description=description,
        axis="found over claimed; the red line is the claim",
        scale=Scale(0.0, MOST),
        limit=1.0,
    )
