"""A ledger as people first see it: what was spent, what is left, and the charges."""

from collections.abc import Callable
from pathlib import Path

from dpcipher.drawing.card import Card
from dpcipher.drawing.dots import Dot, Line, Scale, dot_plot
from dpcipher.drawing.plot import Plot, no_columns
from dpcipher.errors import DpcipherError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.composition import NOTHING
from dpcipher.privacy.records import Entry, LedgerState

MOST_DRAWN = 30


def card(path: Path, read: Callable[[], LedgerState]) -> Card:
    """Spent, left and the last charges; a file that cannot be read says so, and does not fail where it is only looked at."""
    try:
        state = read()
    except (DpcipherError, OSError) as error:
        return Card("Ledger", {"File": path.name, "State": "cannot be read"}, notes=[str(error)])
    lines = [(entry.time[:10], entry.asked, _what(entry), _state(entry)) for entry in reversed(state.entries)]
    return Card(
        f"Ledger of {state.name}",
        {
            "Spent": state.spent.describe(),
            "Left": state.describe_left(),
            "Would fit": state.describe_more(),
            "Limit": state.limit.describe(),
            "Unit": state.unit.relation,
            "Charges": f"{len(state.entries):,}",
        },
        ("charged on", "budget", "for", "state"),
        lines,
        notes=[sums] if (sums := how_charges_add(state)) else [],
    )


def how_charges_add(state: LedgerState) -> str:
    """Why epsilons cannot be added up here, in a sentence; empty where they can."""
    if state.limit.kind == "pure":
        return ""
    return (
        "Charges add up as rho, and the epsilon of all together grows more slowly than a sum of theirs (three of epsilon = 3 cost less than "
        "epsilon = 9), so that what is left is not the limit less what was asked for."
    )


def draw(state: LedgerState, columns: tuple[str, ...] | None) -> Plot:
    """What was spent after every charge, up to the limit."""
    no_columns(columns, "a ledger")
    name, limit = _limit(state.limit)
    lines, before = [], 0.0
    for number, spent in enumerate(_running(state, name), 1):
        entry = state.entries[number - 1]
        says = f"charge {number}: {entry.cost.describe()}, {spent:.4g} spent after it"
        lines.append(
            Line(
                f"{entry.time[:10]}  {_what(entry)}",
                (Dot(spent, says, low=before, high=spent),),
                f"{spent:.4g}",
            )
        )
        before = spent
    title = f"Ledger of {state.name}: spent of {state.limit.describe()}"
    left = f"Left: {state.describe_left()}. The red line is the limit."
    hidden = len(lines) - MOST_DRAWN
    more = f" {hidden:,} earlier charges are not drawn." if hidden > 0 else ""
    shown = lines[-MOST_DRAWN:] or [Line("nothing was charged yet", (Dot(0.0),), "0")]
    told = f"{len(state.entries)} charges, {before:.4g} of {limit:.4g} spent."
    svg = dot_plot(
        shown, title=title, description=told, axis=name, scale=Scale(0.0, limit * 1.2), limit=limit
    )
    return Plot(title, {title: svg}, note=left + more)


def _limit(limit: Budget) -> tuple[str, float]:
    return ("rho", float(limit.rho)) if limit.rho is not None else ("epsilon", float(limit.epsilon or 0))


def _running(state: LedgerState, name: str) -> list[float]:
    """What was spent after each charge, in the terms of the limit."""
    sums, total = [], NOTHING
    for entry in state.entries:
        total = total.plus(entry.cost)
        sums.append(float(getattr(total.spent(state.limit), name) or 0))
    return sums


def _what(entry: Entry) -> str:
    """What a charge was for, shortly: hashes are for programs."""
    told = {
        key: value
        for key, value in entry.what.items()
        if isinstance(value, str | int) and key not in ("schema", "asked")
    }
    return ", ".join(f"{key} {value}" for key, value in told.items())[:60] or "not said"


def _state(entry: Entry) -> str:
    if not entry.checksum:
        return "no release recorded"
    return f"released as {entry.file}" if entry.file else "released"
