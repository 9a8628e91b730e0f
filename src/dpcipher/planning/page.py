"""Plans on one page: a table for people, plain values for programs."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dpcipher.drawing.card import counted
from dpcipher.planning.tables import TablePlan
from dpcipher.privacy.budget import percent
from dpcipher.schema.grouped import plain_table, said
from dpcipher.selection.rounds import SECOND

if TYPE_CHECKING:
    from dpcipher.planning.auto import AutoPlan, Step
    from dpcipher.planning.bins import BinPlan
    from dpcipher.planning.plan import Plan

SHOWN = 12
NOT_PREDICTED = "not predicted"
_HEADS = (
    "table",
    "cells",
    "rows/cell",
    "noise sd",
    "reconciled sd",
    "TVD",
    "reconciled TVD",
    "solved TVD",
    "weight",
)
_STEP_HEADS = ("step", "share", "tables", "noise sd")


def to_text(plan: "Plan") -> str:
    """The plan for people: facts, the tables with the largest errors, cost, warnings."""
    shown = sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)[:SHOWN]
    hidden = len(plan.tables) - len(shown)
    lines = [
        f"Plan     {counted(len(plan.tables), 'table')} over {counted(plan.n_columns, 'column')}, {plan.n_cells:,} cells{_rows(plan)}",
        f"Budget   {plan.privacy.budget.describe()}{_sets(plan)}",
        f"Unit     {plan.privacy.protection}",
        "",
        *grid([_HEADS, *(_line(table) for table in shown)]),
        *([f"… and {hidden} smaller tables"] if hidden else []),
        *_headings(plan, shown),
        "",
        "noise sd: standard deviation of a cell, in rows; TVD: expected total variation distance from the noise alone, as measured and reconciled.",
        *_solved(plan),
        f"weight: shares of the budget that would lower the total error by {plan.gain:.0%}: measure(weights=plan.weights).",
        *_bins(plan.bins),
        *(plan.levels.lines() if plan.levels else []),
        *plan.cost.lines(),
        *_held(plan),
        *(f"Warning  {text}" for text in plan.warnings),
    ]
    return "\n".join(lines)


def to_dict(plan: "Plan") -> dict[str, Any]:
    """The plan as plain values."""
    return {
        "budget": plan.privacy.budget.as_dict(),
        "unit": plan.privacy.unit.as_dict(),
        "sets": plan.sets,
        "n_rows": plan.n_rows,
        "n_cells": plan.n_cells,
        "gain": plan.gain,
        "tables": [_table(table) for table in plan.tables],
        "cost": plan.cost.to_dict(),
        "held": None if plan.held is None else plan.held.to_dict(),
        "warnings": list(plan.warnings),
        **_bin_facts(plan.bins),
        **({"levels": plan.levels.to_dict()} if plan.levels else {}),
    }


def _table(table: TablePlan) -> dict[str, Any]:
    names = (
        "n_cells",
        "sd",
        "absolute",
        "reconciled_sd",
        "count",
        "tvd",
        "reconciled_tvd",
        "solved_tvd",
        "weight",
    )
    facts = {**plain_table(table.attrs), "mechanism": table.mechanism.kind, "scale": table.mechanism.scale}
    return facts | {name: getattr(table, name) for name in names}


def _headings(plan: "Plan", shown: Sequence[TablePlan]) -> list[str]:
    """What the columns of the tables shown are, where the schema says more than their names."""
    names = dict.fromkeys(attr for table in shown for attr in table.attrs)
    told = [plan.headings[name] for name in names if plan.headings.get(name, name) != name]
    return ["", *told] if told else []


def _rows(plan: "Plan") -> str:
    return "" if plan.n_rows is None else f"; about {plan.n_rows:,} rows"


def _sets(plan: "Plan") -> str:
    return "" if plan.sets == 1 else f", split over {plan.sets} sets"


def _line(table: TablePlan) -> tuple[str, ...]:
    return (
        said(table.attrs),
        f"{table.n_cells:,}",
        _number(table.count),
        _number(table.sd),
        _number(table.reconciled_sd),
        _share(table.tvd),
        _share(table.reconciled_tvd),
        _share(table.solved_tvd),
        f"{table.weight:.3f}",
    )


def _solved(plan: "Plan") -> list[str]:
    """The error that counts in the end, on average."""
    distances = [table.solved_tvd for table in plan.tables if table.solved_tvd is not None]
    if not distances:
        return []
    return [
        f"solved TVD: expected of solved tables and synthetic rows, in which noise is shrunk; {fmean(distances):.3f} on average. Rough: for columns of typical dependence."
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else "≥ 1" if value >= 1 else f"{value:.3f}"


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns aligned: the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]


def auto_text(plan: "AutoPlan") -> str:
    """The plan for people: facts, the steps, what depends on the data, advice."""
    rows = "" if plan.n_rows is None else f"; about {plan.n_rows:,} rows"
    sets = "" if plan.sets == 1 else f"; tables split over {plan.sets} sets"
    lines = [
        f"Plan     tables chosen out of {_candidates(plan)} over {plan.n_columns} columns{rows}",
        f"Budget   {plan.privacy.budget.describe()}{sets}",
        f"Unit     {plan.privacy.protection}",
        "",
        *grid([_STEP_HEADS, *(_step_line(step) for step in plan.steps)]),
        "",
        "noise sd: standard deviation in rows, of a cell, a distance or a choice.",
        *_measured(plan),
        *_bins(plan.bins),
        *(plan.levels.lines() if plan.levels else []),
        *_shortlist(plan),
        *_second(plan),
        *_held(plan),
        *_expected_error(plan),
        f"Advice   {plan.advice}.",
    ]
    return "\n".join(lines)


def auto_dict(plan: "AutoPlan") -> dict[str, Any]:
    """The plan as plain values."""
    return {
        "budget": plan.privacy.budget.as_dict(),
        "unit": plan.privacy.unit.as_dict(),
        "sets": plan.sets,
        "n_rows": plan.n_rows,
        "candidates": {
            "pairs": plan.pairs,
            "triples": plan.triples,
            "larger": plan.larger,
            "max_cells": plan.max_cells,
        },
        "design": plan.design,
        "measured": "as the steps say" if plan.predicted else NOT_PREDICTED,
        "steps": [vars(step) | {"share": str(step.share)} for step in plan.steps],
        "clear_rows": plan.clear_rows,
        "second_tvd": plan.second_tvd,
        "all_pairs_tvd": plan.all_pairs_tvd,
        "solved_tvd": plan.solved_tvd,
        "held": None if plan.held is None else plan.held.to_dict(),
        "advice": plan.advice,
        **_bin_facts(plan.bins),
        **({"levels": plan.levels.to_dict()} if plan.levels else {}),
    }


def _bins(bins: "Sequence[BinPlan]") -> list[str]:
    """What may be found, and what it costs; the shares of the other steps are of what is left."""
    if not bins:
        return []
    spent, coarse = (float(sum(parts)) for parts in zip(*((b.share, b.coarse) for b in bins), strict=True))
    most = "cells and noise above are those of the most bins, with what is left then; say n_rows for those expected"
    said = (
        "cells and noise above are those of the bins expected, with what is left then"
        if bins[0].expected
        else most
    )
    return [
        "",
        f"Bins     found privately with up to {percent(spent)} of the budget, and counted coarsely with {percent(coarse)}; {said}.",
        *(f"         {line}" for line in grid([_bin_heads(bins[0]), *map(_bin_line, bins)])),
        *_rehearsed(bins[0]),
        *_ranges(bins),
        "",
    ]


def _bin_heads(found: "BinPlan") -> list[str]:
    return ["column", "at most", "expected", *found.found, "cut from", "noise sd", "share"]


def _bin_line(found: "BinPlan") -> list[str]:
    expected, cut = ("-" if value is None else f"{value:,}" for value in (found.expected, found.rows_to_cut))
    shapes = (f"{bins}" for bins in found.found.values())
    return [
        found.column,
        f"{found.most}",
        expected,
        *shapes,
        cut,
        f"{found.sd:,.1f}",
        percent(found.share),
    ]


def _rehearsed(found: "BinPlan") -> list[str]:
    """Where the expected numbers come from."""
    if not found.found:
        return []
    return [
        f"         expected: the mean of rehearsals with made-up rows that are {_listed(list(found.found))}; an interval is cut "
        "from so many rows on."
    ]


def _ranges(bins: "Sequence[BinPlan]") -> list[str]:
    """How many rows a range needs that is to be found."""
    sought = {found.column: found.rows_to_find for found in bins if found.rows_to_find is not None}
    if not sought:
        return []
    return [
        f"         range of {', '.join(sought)}: stands out of the noise from about {max(sought.values()):,} rows on. With fewer it may be a guess; and fewer, far from the others, may lie "
        "beyond it unseen, and go to its end bins."
    ]


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _bin_facts(bins: "Sequence[BinPlan]") -> dict[str, Any]:
    return {"bins": [found.to_dict() for found in bins]} if bins else {}


def _held(plan: "Plan | AutoPlan") -> list[str]:
    return [] if plan.held is None else [f"{plan.held.line()}."]


def _expected_error(plan: "AutoPlan") -> list[str]:
    """What synthetic rows will be like, as far as that can be foreseen."""
    if plan.solved_tvd is None:
        return [] if plan.predicted else [f"Error    {NOT_PREDICTED}."]
    return [
        f"Error    pairs of synthetic rows: an expected TVD of {plan.solved_tvd:.2g} on average. Rough: for columns of typical dependence, all pairs measured alike."
    ]


def _candidates(plan: "AutoPlan") -> str:
    counts = {"pairs": plan.pairs, "triples": plan.triples, "larger tables": plan.larger}
    said = [f"{count:,} {name}" for name, count in counts.items() if count or name == "pairs"]
    return f"{' and '.join(', '.join(said).rsplit(', ', 1))} of at most {plan.max_cells:,} cells"


def _step_line(step: "Step") -> tuple[str, ...]:
    sd = NOT_PREDICTED if step.sd is None else f"{step.sd:,.1f}"
    return step.name, percent(step.share), step_tables(step), sd


def step_tables(step: "Step") -> str:
    """How many tables a step is about, out of how many."""
    if step.tables is None:
        return NOT_PREDICTED
    return f"{step.tables:,}" if step.tables == step.of else f"{step.tables:,} of {step.of:,}"


def _measured(plan: "AutoPlan") -> list[str]:
    """What the rows alone decide."""
    told = [] if plan.n_rows else ["Steps    of a table with very many rows; say n_rows for those of yours."]
    if plan.predicted:
        return told
    return [
        *told,
        "Tables   not predicted: the rows decide which pairs and larger tables are measured, and with how much noise. It may be "
        "none: then single columns get all that is left.",
    ]


def _shortlist(plan: "AutoPlan") -> list[str]:
    if not plan.pairs or plan.design:
        return []
    return [f"Pairs    all are looked at from {plan.clear_rows:,} rows on; with fewer, a shortlist or none."]


def _second(plan: "AutoPlan") -> list[str]:
    """When triples will be measured too."""
    if not plan.triples or not any(step.name == "distances of pairs" for step in plan.steps):
        return []
    kept = f"{percent(SECOND)} of the budget is kept for a second round, with triples"
    if plan.second_tvd is None:
        return [f"Triples  {kept}, where they can be measured well."]
    if plan.second_tvd == 0:
        return [f"Triples  {kept}."]
    if plan.second_tvd >= 1:
        listed = any(step.name == "distances of triples" for step in plan.steps)
        none = "no second round: its" if listed else "none: their"
        return [
            f"Triples  {'only those looked at above; ' if listed else ''}{none} noise would be too large for any data."
        ]
    return [
        f"Triples  {kept}, if the pairs looked at are a mean TVD of {plan.second_tvd:.3f} from independence."
    ]
