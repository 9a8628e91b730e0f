"""A plan as people see it: a text, a card and a picture; and as plain values for programs."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.dots import MARKS, Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.html import rows
from dpcipher.drawing.plot import Plot, no_columns
from dpcipher.drawing.svg import element
from dpcipher.errors import ParameterError
from dpcipher.planning.forecast import TablePlan
from dpcipher.privacy.budget import percent
from dpcipher.schema.grouped import plain_table, said
from dpcipher.selection.rounds import SECOND

if TYPE_CHECKING:
    from dpcipher.planning.plan import BinPlan, Plan, SelectionPlan, Step

SHOWN = 12
MOST_DRAWN = 24
SOLVED = MARKS[1]
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
    """The plan for people: facts, the steps of a selection or the tables with the largest errors, what is found, cost, warnings."""
    lines = [
        f"Plan     {_subject(plan)}{_rows(plan)}",
        f"Budget   {plan.privacy.budget.describe()}{_sets(plan)}",
        f"Unit     {plan.privacy.protection}",
        "",
        *(_given(plan) if plan.selection is None else _selected(plan)),
        *_bins(plan.bins),
        *(plan.levels.lines() if plan.levels else []),
        *([] if plan.cost is None else plan.cost.lines()),
        *([] if plan.selection is None else _rounds(plan, plan.selection)),
        *([] if plan.held is None else [f"{plan.held.line()}."]),
        *([] if plan.selection is None else _expected_error(plan, plan.selection)),
        *(f"Warning  {text}" for text in plan.warnings),
    ]
    return "\n".join(lines)


def _subject(plan: "Plan") -> str:
    columns = counted(plan.n_columns, "column")
    if plan.selection is not None:
        return f"tables chosen out of {_candidates(plan.selection)} over {columns}"
    return f"{counted(len(plan.tables), 'table')} over {columns}, {plan.n_cells:,} cells"


def _given(plan: "Plan") -> list[str]:
    """The tables with the largest errors."""
    shown = sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)[:SHOWN]
    hidden = len(plan.tables) - len(shown)
    return [
        *grid([_HEADS, *(_line(table) for table in shown)]),
        *([f"… and {hidden} smaller tables"] if hidden else []),
        *_headings(plan, shown),
        "",
        "noise sd: standard deviation of a cell, in rows; TVD: expected total variation distance from the noise alone, as measured and reconciled.",
        *_solved(plan),
        f"weight: shares of the budget that would lower the total error by {plan.gain:.0%}: measure(weights=plan.weights).",
    ]


def _selected(plan: "Plan") -> list[str]:
    """The steps, and what the rows alone decide."""
    return [
        *grid([_STEP_HEADS, *(_step_line(step) for step in plan.steps)]),
        "",
        "noise sd: standard deviation in rows, of a cell, a distance or a choice.",
        *_measured(plan),
    ]


def to_dict(plan: "Plan") -> dict[str, Any]:
    """The plan as plain values."""
    chosen = plan.selection
    return {
        "budget": plan.privacy.budget.as_dict(),
        "unit": plan.privacy.unit.as_dict(),
        "sets": plan.sets,
        "n_rows": plan.n_rows,
        "steps": [vars(step) | {"share": str(step.share)} for step in plan.steps],
        "measured": "as the steps say" if plan.predicted else NOT_PREDICTED,
        "n_cells": plan.n_cells if chosen is None else None,
        "gain": plan.gain,
        "tables": [_table(table) for table in plan.tables],
        "selection": None if chosen is None else vars(chosen),
        "cost": None if plan.cost is None else plan.cost.to_dict(),
        "held": None if plan.held is None else plan.held.to_dict(),
        "warnings": list(plan.warnings),
        "bins": [found.to_dict() for found in plan.bins],
        "levels": None if plan.levels is None else plan.levels.to_dict(),
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


def _expected_error(plan: "Plan", chosen: "SelectionPlan") -> list[str]:
    """What synthetic rows will be like, as far as that can be foreseen; and advice."""
    said = [] if plan.predicted else [f"Error    {NOT_PREDICTED}."]
    if chosen.solved_tvd is not None:
        said = [
            f"Error    pairs of synthetic rows: an expected TVD of {chosen.solved_tvd:.2g} on average. Rough: for columns of typical dependence, all pairs measured alike."
        ]
    return [*said, f"Advice   {chosen.advice}."]


def _candidates(plan: "SelectionPlan") -> str:
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


def _measured(plan: "Plan") -> list[str]:
    """What the rows alone decide."""
    told = [] if plan.n_rows else ["Steps    of a table with very many rows; say n_rows for those of yours."]
    if plan.predicted:
        return told
    return [
        *told,
        "Tables   not predicted: the rows decide which pairs and larger tables are measured, and with how much noise. It may be "
        "none: then single columns get all that is left.",
    ]


def _rounds(plan: "Plan", chosen: "SelectionPlan") -> list[str]:
    """When all pairs are scored, and when triples will be measured too."""
    said = []
    if chosen.pairs and not chosen.design:
        said = [
            f"Pairs    all are scored when there are at least {chosen.clear_rows:,} rows; otherwise a shortlist, or none."
        ]
    if not chosen.triples or not any(step.name == "distances of pairs" for step in plan.steps):
        return said
    kept = f"{percent(SECOND)} of the budget is kept for a second round, with triples"
    if chosen.second_tvd is None:
        return [*said, f"Triples  {kept}, where they can be measured well."]
    if chosen.second_tvd == 0:
        return [*said, f"Triples  {kept}."]
    if chosen.second_tvd >= 1:
        listed = any(step.name == "distances of triples" for step in plan.steps)
        none = "no second round: its" if listed else "none: their"
        only = "only those looked at above; " if listed else ""
        return [*said, f"Triples  {only}{none} noise would be too large for any data."]
    return [
        *said,
        f"Triples  {kept}, if the pairs looked at are a mean TVD of {chosen.second_tvd:.3f} from independence.",
    ]


def card(plan: "Plan") -> Card:
    """Tables, budget, and the tables with the largest errors; of a selection its steps, and advice."""
    if plan.selection is not None:
        return _selection_card(plan, plan.selection)
    lines = [
        (
            said(table.attrs),
            f"{table.n_cells:,}",
            _count(table.sd),
            _count(table.reconciled_sd),
            _percent(_tvd(table)),
        )
        for table in _worst(plan)
    ]
    return Card(
        "Plan",
        {
            "Tables": f"{len(plan.tables):,}",
            "Columns": f"{plan.n_columns:,}",
            "Cells": f"{plan.n_cells:,}",
            "Rows": "" if plan.n_rows is None else f"about {plan.n_rows:,}",
            "Budget": plan.privacy.budget.describe(),
            "Sets": f"{plan.sets}" if plan.sets > 1 else "",
        },
        (
            "table, the largest error first",
            "cells",
            "noise sd (rows)",
            "reconciled sd",
            "expected TVD, solved",
        ),
        lines,
        notes=[
            *plan.warnings,
            "Nothing was read or spent. print(plan) says all of it; dc.plot(plan) draws it.",
        ],
    )


def _selection_card(plan: "Plan", chosen: "SelectionPlan") -> Card:
    lines = [(step.name, f"{float(step.share):.1%}", step_tables(step), _noise(step)) for step in plan.steps]
    return Card(
        "Plan of a selection",
        {
            "Candidates": f"{chosen.pairs + chosen.triples + chosen.larger:,} tables",
            "Columns": f"{plan.n_columns:,}",
            "Rows": "" if plan.n_rows is None else f"about {plan.n_rows:,}",
            "Budget": plan.privacy.budget.describe(),
        },
        ("step", "share of the budget", "tables", "noise sd (rows)"),
        lines,
        notes=[f"Advice: {chosen.advice}.", "Nothing was read or spent. print(plan) says all of it."],
    )


def draw(plan: "Plan", columns: tuple[str, ...] | None) -> Plot:
    """The expected error of every table from the noise alone, before and after the tables are reconciled, and of the solved table; `columns` keeps the tables that hold them all.

    Of a selection the share of the budget that every step takes.
    """
    if plan.selection is not None:
        no_columns(columns, "the plan of a selection")
        return _draw_steps(plan, plan.selection)
    kept = [table for table in _worst(plan) if set(columns or ()) <= set(table.attrs)]
    if not kept:
        raise ParameterError(
            f"columns ({', '.join(columns or ())}) must be in one planned table; no table holds them all"
        )
    shown = kept[:MOST_DRAWN]
    by_share = plan.n_rows is not None
    axis = "expected total variation distance" if by_share else "standard deviation of a cell, in rows"
    lines = [_dots(table, by_share) for table in shown]
    scale = fit_scale([dot.value for line in lines for dot in line.dots])
    title = "What the noise will do to every table"
    told = "; ".join(f"{line.name} {line.numbers}" for line in lines[:8])
    svg = dot_plot(lines, title=title, description=f"{axis}: {told}.", axis=axis, scale=scale)
    hidden = len(kept) - len(shown)
    more = f" {hidden:,} tables with smaller errors are not drawn." if hidden else ""
    key = {
        "as measured": element("circle", cx=11, cy=7, r=5, class_="f-hatch"),
        "after reconciling": element("circle", cx=11, cy=7, r=5, class_="f-bar"),
    }
    if by_share:
        key["solved"] = element("path", d=SOLVED, transform="translate(11 7)", class_="f-bar")
    note = f"{plan.privacy.budget.describe()}; {plan.privacy.unit.relation}.{more}"
    return Plot(title, {title: svg}, key if shown[0].reconciled_sd is not None else {}, note)


def _draw_steps(plan: "Plan", chosen: "SelectionPlan") -> Plot:
    lines = [
        Line(
            step.name,
            (
                Dot(
                    float(step.share),
                    f"{step.name}: {float(step.share):.1%} of the budget, noise in rows: {_noise(step)}",
                ),
            ),
            f"{float(step.share):.0%}, noise {_noise(step)}",
        )
        for step in plan.steps
    ]
    title = "Where the budget of a selection goes"
    told = "; ".join(f"{line.name} {line.numbers}" for line in lines)
    scale = fit_scale([dot.value for line in lines for dot in line.dots])
    svg = dot_plot(lines, title=title, description=told, axis="share of the budget", scale=scale)
    return Plot(title, {title: svg}, note=f"{plan.privacy.budget.describe()}. Advice: {chosen.advice}.")


def _noise(step: "Step") -> str:
    return NOT_PREDICTED if step.sd is None else f"±{rows(step.sd)}"


def _worst(plan: "Plan") -> Sequence[TablePlan]:
    return sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)


def _dots(table: TablePlan, by_share: bool) -> Line:
    name = said(table.attrs)
    before, after = (table.tvd, table.reconciled_tvd) if by_share else (table.sd, table.reconciled_sd)
    show = _percent if by_share else _count
    dots = [Dot(before or 0.0, f"{name}: {show(before)} as measured", "hatch")]
    if after is not None:
        dots.append(Dot(after, f"{name}: {show(after)} after reconciling"))
    if by_share and table.solved_tvd is not None:
        dots.append(Dot(table.solved_tvd, f"{name}: {show(table.solved_tvd)} solved", shape=SOLVED))
        return Line(name, tuple(dots), show(table.solved_tvd))
    return Line(name, tuple(dots), show(after if after is not None else before))


def _tvd(table: TablePlan) -> float | None:
    return table.tvd if table.solved_tvd is None else table.solved_tvd


def _count(value: float | None) -> str:
    return "–" if value is None else rows(value)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
