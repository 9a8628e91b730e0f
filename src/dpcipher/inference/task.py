"""One model to be fitted to draws of a joint distribution, and the sentences about how that went."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcipher.inference.cells import Cells
from dpcipher.inference.drawn import Drawn
from dpcipher.inference.family import Family
from dpcipher.inference.formula import ParsedFormula
from dpcipher.inference.notes import Note, Rank, listed
from dpcipher.inference.regressions import Regression
from dpcipher.posteriors.posterior import Posterior
from dpcipher.tables.domain import Axes, Bools, Floats

# A posterior more than half as wide as the prior is mostly the prior's.
PRIOR_DOMINATED = 0.5
ALIKE = 0.02  # in parts of a width, and in standard errors: no difference that a reader needs to know of
MOVED, NARROWED = 0.25, 0.8  # what a reader needs to know of at once


@dataclass(frozen=True)
class Task:
    """A regression over the cells of a formula's columns, and the columns that each of its parameters is about."""

    formula: ParsedFormula
    family: Family
    cells: Cells
    regression: Regression
    about: tuple[tuple[str, ...], ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.regression.terms

    def fit(self, joints: Floats) -> tuple[Floats, Bools]:
        """The coefficients of every joint distribution of the formula's columns, and which fits converged."""
        return self.regression.fit(self.weights(joints))

    def weights(self, joints: Floats) -> Floats:
        """The probability of every cell that the model uses, by draw."""
        return joints.reshape(len(joints), -1)[:, self.cells.keep]

    def sets(self) -> list[Axes]:
        """The outcome's columns and those of each parameter, by their place among the formula's columns."""
        outcome, columns = self.formula.outcome, self.formula.columns
        return [tuple(sorted({columns.index(name) for name in (*outcome, *about)})) for about in self.about]

    def columns(self, axes: Axes) -> str:
        """The names of the columns of a set."""
        return " × ".join(self.formula.columns[axis] for axis in axes)

    def named(self, which: Bools) -> str:
        """The parameters that are marked, by name; the first few of many."""
        return listed(self.marked(which), 6)

    def marked(self, which: Bools) -> list[str]:
        """The names of the parameters that are marked."""
        return [term for term, marked in zip(self.terms, which, strict=True) if marked]


def assumption_notes(
    task: Task, measured: Bools, drawn: Drawn, closed: Drawn | None, unmeasured: Sequence[Axes]
) -> list[Note]:
    """Which parameters rest on what the release cannot show, and what assuming it away would change."""
    notes = []
    if not measured.all():
        text = (
            f"{task.named(~measured)}: no measured table holds {' and '.join(task.formula.outcome)} together with the columns of these terms, or of an interaction that they "
            "are part of, so the release shows them only as far as the other tables leave no room; the rest is the prior's. Leave the interaction out, or measure such a table"
        )
        short = f"no table shows {(~measured).sum()} of the {measured.size} terms: they rest on a weak prior"
        notes.append(Note(text, short, Rank.UNMEASURED))
    if drawn.zero.any():
        notes.append(Note(f"{task.named(drawn.zero)}: 0 in every draw, by the model and not by the data"))
    if unmeasured:
        sets = [task.columns(axes) for axes in unmeasured]
        named = "; ".join(sets[:4]) + (f"; and {len(sets) - 4} more" if len(sets) > 4 else "")
        start = f"no table shows the interaction of {named}: it is "
        if closed is None:
            text = f"{start}taken for none, which the release cannot check"
            short = "interactions that no table shows are taken for none"
            notes.append(Note(text, short, Rank.SENSITIVE))
        else:
            what, short = _closed_note(task, drawn, closed)
            text = f"{start}left open, as far as a weak prior lets it go. {what}"
            notes.append(Note(text, short, Rank.SENSITIVE))
    return notes


def _closed_note(task: Task, drawn: Drawn, closed: Drawn) -> tuple[str, str]:
    """What taking the unmeasured interactions for none would change the most."""
    (low, high), (inner_low, inner_high) = drawn.interval(), closed.interval()
    with np.errstate(divide="ignore", invalid="ignore"):
        narrower = np.where(drawn.zero, np.nan, (inner_high - inner_low) / (high - low))
        moved = np.where(drawn.zero, np.nan, (closed.estimate - drawn.estimate) / drawn.std_error)
    start = "Taken for none, which the release cannot check, it gives the intervals closed_low to closed_high"
    if np.isnan(narrower).all():
        return start, ""
    least, far = int(np.nanargmin(narrower)), int(np.nanargmax(np.abs(moved)))
    if narrower[least] >= 1 - ALIKE and abs(moved[far]) <= ALIKE:
        return f"{start}, which are much the same here", ""
    short = "what no table shows, taken for none, "
    if abs(moved[far]) >= MOVED:
        short += f"moves estimates by up to {abs(moved[far]):.1f} s.e."
    elif narrower[least] <= NARROWED:
        short += f"narrows intervals to {narrower[least]:.2f} of their width"
    else:
        short = ""
    text = (
        f"{start}: at least {narrower[least]:.2f} times as wide ({task.terms[least]}), "
        f"estimates moved by at most {abs(moved[far]):.1f} standard errors ({task.terms[far]})"
    )
    return text, short


def missing_notes(task: Task, joint: Posterior) -> list[Note]:
    """What was left out for a missing value."""
    if not task.cells.dropped:
        return []
    share = float(np.median(task.weights(joint.draws).sum(axis=1)))
    text = (
        f"rows in which {', '.join(task.cells.dropped)} is missing are left out (missing='drop'): the coefficients are about the "
        f"{100 * share:.1f} % of the rows in which all columns of the model are known"
    )
    short = f"about {100 * share:.1f} % of the rows: in the others {listed(task.cells.dropped)} is missing"
    return [Note(text, short, Rank.ABOUT)]


def prior_notes(task: Task, dominated: Bools, measured: Bools, noise_share: Floats) -> list[Note]:
    """The parameters about which even measured tables say little beside the prior, for their noise or for few rows."""
    marked = dominated & measured
    few = marked & (noise_share < 0.5)
    reasons = (
        ("the noise leaves the release little to say about these", marked & ~few),
        ("the rows are too few to say much about these", few),
    )
    return [
        Note(
            f"{task.named(which)}: {reason}; their intervals are more than half as wide as before any data, "
            "and the weak prior (log odds ratios within about ±4) shapes them"
        )
        for reason, which in reasons
        if which.any()
    ]


def fit_notes(task: Task, drawn: Drawn, converged: Bools) -> list[Note]:
    """Parameters that are not identified, fits that did not converge, and the Monte Carlo error."""
    notes, unknown = [], np.asarray(np.isnan(drawn.draws).any(axis=0))
    if unknown.any():
        text = (
            f"not identified: {task.named(unknown)}; these follow from other terms, or structural zeros "
            "leave their levels no rows, or no choice of the outcome; of a reference level, the option levels makes another one the reference"
        )
        notes.append(Note(text, f"not identified: {listed(task.marked(unknown), 2)}", Rank.UNKNOWN))
    if not converged.all():
        failed = f"{(~converged).sum():,} of {len(converged):,} draws"
        text = (
            f"in {failed} the fit did not settle: some level (nearly) determines the outcome there, and "
            "intervals that reach far out are to be read as open"
        )
        short = f"the fit did not settle in {failed}: read far ends of intervals as open"
        notes.append(Note(text, short, Rank.UNSETTLED))
    text = (
        f"{len(drawn.draws):,} draws: an end of a 95 % interval is known to about ±{drawn.monte_carlo_error():.2f} standard errors, "
        f"and p to no less than {2 / (len(drawn.draws) + 1):.2g}"
    )
    notes.append(Note(text))
    return notes
