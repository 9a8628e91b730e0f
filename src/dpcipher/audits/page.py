"""The audit as a page: what is claimed against what was found, drawn and in numbers."""

from itertools import groupby

from dpcipher.audits.audit import Audit
from dpcipher.audits.check import Check
from dpcipher.drawing.html import figure, page, paragraphs, table
from dpcipher.drawing.svg import clip, element, image, text

MEANING = {
    "samplers": "The installed noise against its exact law: the test of each scale that came nearest to rejecting it. Claimed is the critical value.",
    "mechanisms": "Installed noise, choices and draws on neighbouring tables: what they prove of epsilon or mu, against what is claimed.",
    "questions": "Every synthesizer recorded on one table and replayed on all its neighbours: the question that one person changes most, against what it declares.",
    "levels": "Levels found in the rows: the lone texts of one person on neighbouring tables, by the law of the noise and by draws, against delta.",
    "methods": "Every synthesizer on its worst neighbour: what fresh answers to all its questions prove, against its whole budget.",
    "independence": "Every synthesizer run often: the largest correlation between the noise of two cells, against its critical value.",
    "runs": "Whole runs with installed noise on both tables, each replayed on the other.",
}
LEFT, WIDTH, STEP, MOST = 360, 420, 18, 1.25


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
    sections = {"Verdict": paragraphs([verdict, about])}
    for part, group in groupby(audit.checks, key=lambda check: check.part):
        checks = list(group)
        drawn = figure(ratio_plot(checks), f"Found over claimed, {part}.")
        sections[part.capitalize()] = paragraphs([MEANING[part]]) + drawn + _table(checks)
    return page("Audit of this installation", "audit", sections)


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
    height = STEP * (len(checks) + 2)
    marks = [_axis(tick, height) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    for row, check in enumerate(checks, 1):
        y, ratio = STEP * row, MOST if check.violation else min(check.ratio, MOST)
        label = clip(f"{check.what} ({check.unit})", 54)
        colour = "#0b5f6b" if check.passed else "#c62828"
        marks.append(text(LEFT - 10, y + 4, label, anchor="end", font_size=11))
        marks.append(
            element("circle", element("title", f"{_ratio(check)}"), cx=_x(ratio), cy=y, r=4.0, fill=colour)
        )
    failed = sum(not check.passed for check in checks)
    description = f"{len(checks)} checks, {failed} beyond the claim."
    return image(
        LEFT + WIDTH + 20, height + 6, "".join(marks), title="Found over claimed", description=description
    )


def _axis(tick: float, height: float) -> str:
    claim = tick == 1.0
    line = element(
        "line",
        x1=_x(tick),
        x2=_x(tick),
        y1=6,
        y2=height - STEP,
        stroke="#c62828" if claim else "#cccccc",
        stroke_width=2 if claim else 1,
    )
    return line + text(_x(tick), height, "claimed" if claim else f"{tick:g}", anchor="middle", font_size=11)


def _x(ratio: float) -> float:
    return LEFT + WIDTH * ratio / MOST
