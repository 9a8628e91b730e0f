"""A plan as people see it: a text, a card and a picture; and as plain values for programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.dots import MARKS, Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.plot import Plot, no_columns
from dpcipher.drawing.svg import element
from dpcipher.errors import ParameterError
from dpcipher.planning.forecast import TablePlan
from dpcipher.privacy.budget import percent, show
from dpcipher.schema.grouped import plain_table, said
from dpcipher.selection.rounds import SECOND

if TYPE_CHECKING:
    from dpcipher.planning.plan import Plan, SelectionPlan, Step
    from dpcipher.planning.simulate import BinPlan, LevelPlan

SHOWN = 12
MOST_DRAWN = 24
SOLVED = MARKS[1]
NOT_PREDICTED = "not predicted"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else "≥ 1" if value >= 1 else f"{value:.3f}"


def _whole(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _noise(step: "Step") -> str:
    return NOT_PREDICTED if step.sd is None else f"{step.sd:,.1f}"


def _tables(step: "Step") -> str:
    """How many tables a step is about, out of how many."""
    if step.tables is None:
        return NOT_PREDICTED
    return f"{step.tables:,}" if step.tables == step.of else f"{step.tables:,} of {step.of:,}"


# What is shown of each table, step and column, in this order, by its head.
TABLE: Mapping[str, Callable[[TablePlan], str]] = {
    "table": lambda table: said(table.attrs),
    "cells": lambda table: f"{table.n_cells:,}",
    "rows/cell": lambda table: _number(table.count),
    "noise sd": lambda table: _number(table.sd),
    "reconciled sd": lambda table: _number(table.reconciled_sd),
    "TVD": lambda table: _share(table.tvd),
    "reconciled TVD": lambda table: _share(table.reconciled_tvd),
    "solved TVD": lambda table: _share(table.solved_tvd),
    "weight": lambda table: f"{table.weight:.3f}",
}
STEP: Mapping[str, Callable[["Step"], str]] = {
    "step": lambda step: step.name,
    "share": lambda step: percent(step.share),
    "tables": _tables,
    "noise sd": _noise,
}


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns aligned: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def to_text(plan: "Plan") -> str:
    """The plan for people: facts, the steps of a selection or the tables with the largest errors, what is found, cost, warnings."""
    chosen, columns = plan.selection, counted(plan.n_columns, "column")
    subject = f"{counted(len(plan.tables), 'table')} over {columns}, {plan.n_cells:,} cells"
    if chosen is not None:
        subject = f"tables chosen out of {_candidates(chosen)} over {columns}"
    rows = "" if plan.n_rows is None else f"; about {plan.n_rows:,} rows"
    sets = "" if plan.sets == 1 else f", split over {plan.sets} sets"
    lines = [
        f"Plan     {subject}{rows}",
        f"Budget   {plan.privacy.budget.describe()}{sets}",
        f"Unit     {plan.privacy.protection}",
        "",
        *(_given(plan) if chosen is None else _steps(plan)),
        *_bins(plan.bins),
        *([] if plan.levels is None else [_levels(plan.levels)]),
        *([] if plan.cost is None else plan.cost.lines()),
        *([] if chosen is None else _rounds(plan, chosen)),
        *([] if plan.held is None else [f"{plan.held.line()}."]),
        *([] if chosen is None else _expected_error(plan, chosen)),
        *(f"Warning  {text}" for text in plan.warnings),
    ]
    return "\n".join(lines)


def to_dict(plan: "Plan") -> dict[str, Any]:
    """The plan as plain values."""
    facts = {
        name: getattr(plan, name)
        for name in (
            "sets", "n_rows", "steps", "n_cells", "gain", "selection", "cost", "held", "warnings", "bins", "levels"
        )
    }  # fmt: skip
    facts |= {
        "budget": plan.privacy.budget.as_dict(),
        "unit": plan.privacy.unit.as_dict(),
        "measured": "as the steps say" if plan.predicted else NOT_PREDICTED,
        "tables": [_table(table) for table in plan.tables],
    }
    if plan.selection is not None:
        facts["n_cells"] = None
    plain: dict[str, Any] = _plain(facts)
    return plain


def _table(table: TablePlan) -> dict[str, Any]:
    noise = {"mechanism": table.noise.kind, "scale": table.noise.scale}
    facts = {name: value for name, value in vars(table).items() if name not in ("attrs", "noise")}
    return {**plain_table(table.attrs), **noise, **facts}


def _plain(value: Any) -> Any:
    """Values that JSON can hold: fractions as text, classes as mappings."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        value = vars(value)
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, Mapping) else value


def _given(plan: "Plan") -> list[str]:
    """The tables with the largest errors, and what their columns are, where the schema says more than their names."""
    shown = _worst(plan)[:SHOWN]
    hidden = len(plan.tables) - len(shown)
    names = dict.fromkeys(attr for table in shown for attr in table.attrs)
    headings = [plan.headings[name] for name in names if plan.headings.get(name, name) != name]
    solved = [table.solved_tvd for table in plan.tables if table.solved_tvd is not None]
    return [
        *grid([list(TABLE), *([show(table) for show in TABLE.values()] for table in shown)]),
        *([f"… and {hidden} smaller tables"] if hidden else []),
        *(["", *headings] if headings else []),
        "",
        "noise sd: standard deviation of a cell, in rows; TVD: expected total variation distance from the noise alone, as measured and reconciled.",
        *(
            [
                f"solved TVD: expected of solved tables and synthetic rows, in which noise is shrunk; {fmean(solved):.3f} on average. Rough: for columns of typical dependence."
            ]
            if solved
            else []
        ),
        f"weight: shares of the budget that would lower the total error by {plan.gain:.0%}: measure(weights=plan.weights).",
    ]


def _steps(plan: "Plan") -> list[str]:
    """The steps of a selection, and what the rows alone decide."""
    lines = [
        *grid([list(STEP), *([show(step) for show in STEP.values()] for step in plan.steps)]),
        "",
        "noise sd: standard deviation in rows, of a cell, a distance or a choice.",
    ]
    if not plan.n_rows:
        lines.append("Steps    of a table with very many rows; say n_rows for those of yours.")
    if not plan.predicted:
        lines.append(
            "Tables   not predicted: the rows decide which pairs and larger tables are measured, and with how much noise. It may be "
            "none: then single columns get all that is left."
        )
    return lines


def _bins(bins: "Sequence[BinPlan]") -> list[str]:
    """What may be found, and what it costs; the shares of the other steps are of what is left."""
    if not bins:
        return []
    spent, coarse = sum(bin.share for bin in bins), sum(bin.coarse for bin in bins)
    shapes = list(bins[0].found)
    above = "those of the most bins, with what is left then; say n_rows for those expected"
    if bins[0].expected:
        above = "those of the bins expected, with what is left then"
    heads = ["column", "at most", "expected", *shapes, "cut from", "noise sd", "share"]
    lines = [
        [bin.column, f"{bin.most}", _whole(bin.expected), *map(str, bin.found.values()), _whole(bin.rows_to_cut), f"{bin.sd:,.1f}", percent(bin.share)]
        for bin in bins
    ]  # fmt: skip
    notes = []
    if shapes:
        notes.append(
            f"expected: the mean of rehearsals with made-up rows that are {', '.join(shapes[:-1])} or {shapes[-1]}; an interval is cut "
            "from so many rows on."
        )
    sought = {bin.column: bin.rows_to_find for bin in bins if bin.rows_to_find is not None}
    if sought:
        notes.append(
            f"range of {', '.join(sought)}: stands out of the noise from about {max(sought.values()):,} rows on. With fewer it may be a guess; and fewer, far from the others, may lie "
            "beyond it unseen, and go to its end bins."
        )
    return [
        "",
        f"Bins     found privately with up to {percent(spent)} of the budget, and counted coarsely with {percent(coarse)}; cells and noise above are {above}.",
        *(f"         {line}" for line in (*grid([heads, *lines]), *notes)),
        "",
    ]


def _levels(levels: "LevelPlan") -> str:
    """How frequent a text must be to be found."""
    found = f"a text of {levels.half:,} rows is found every other time, of {levels.usually:,} rows 19 times out of 20"
    if levels.expected is not None:
        found += f"; about {levels.expected:,} in a column where the k-th text is 1/k as frequent as the first, never more than {levels.most:,}"
    cost = f"{percent(levels.share)} of the budget, and delta = {show(levels.delta)} that a lone text shows"
    return f"Levels   {', '.join(levels.columns)}: {found}; {cost}. Rarer texts become other."


def _expected_error(plan: "Plan", chosen: "SelectionPlan") -> list[str]:
    """What synthetic rows will be like, as far as that can be foreseen; and advice."""
    lines = [] if plan.predicted else [f"Error    {NOT_PREDICTED}."]
    if chosen.solved_tvd is not None:
        lines = [
            f"Error    pairs of synthetic rows: an expected TVD of {chosen.solved_tvd:.2g} on average. Rough: for columns of typical dependence, all pairs measured alike."
        ]
    return [*lines, f"Advice   {chosen.advice}."]


def _candidates(plan: "SelectionPlan") -> str:
    counts = {"pairs": plan.pairs, "triples": plan.triples, "larger tables": plan.larger}
    listed = [f"{count:,} {name}" for name, count in counts.items() if count or name == "pairs"]
    return f"{' and '.join(', '.join(listed).rsplit(', ', 1))} of at most {plan.max_cells:,} cells"


def _rounds(plan: "Plan", chosen: "SelectionPlan") -> list[str]:
    """When all pairs are scored, and when triples will be measured too."""
    lines, names = [], [step.name for step in plan.steps]
    if chosen.pairs and not chosen.design:
        lines.append(
            f"Pairs    all are scored when there are at least {chosen.clear_rows:,} rows; otherwise a shortlist, or none."
        )
    if not chosen.triples or "distances of pairs" not in names:
        return lines
    triples = f"{percent(SECOND)} of the budget is kept for a second round, with triples"
    if chosen.second_tvd is None:
        triples += ", where they can be measured well"
    elif chosen.second_tvd >= 1 and "distances of triples" in names:
        triples = "only those looked at above; no second round: its noise would be too large for any data"
    elif chosen.second_tvd >= 1:
        triples = "none: their noise would be too large for any data"
    elif chosen.second_tvd:
        triples += f", if the pairs looked at are a mean TVD of {chosen.second_tvd:.3f} from independence"
    return [*lines, f"Triples  {triples}."]


def card(plan: "Plan") -> Card:
    """Tables, budget, and the tables with the largest errors; of a selection its steps, and advice."""
    chosen = plan.selection
    facts = {
        "Columns": f"{plan.n_columns:,}",
        "Rows": "" if plan.n_rows is None else f"about {plan.n_rows:,}",
        "Budget": plan.privacy.budget.describe(),
    }
    if chosen is not None:
        return Card(
            "Plan of a selection",
            {"Candidates": f"{chosen.pairs + chosen.triples + chosen.larger:,} tables", **facts},
            list(STEP),
            [[show(step) for show in STEP.values()] for step in plan.steps],
            notes=[f"Advice: {chosen.advice}.", "Nothing was read or spent. print(plan) says all of it."],
        )
    heads = ("table", "cells", "noise sd", "reconciled sd", "TVD", "solved TVD")
    return Card(
        "Plan",
        {"Tables": f"{len(plan.tables):,}", "Cells": f"{plan.n_cells:,}", **facts, "Sets": f"{plan.sets}" if plan.sets > 1 else ""},
        heads,
        [[TABLE[head](table) for head in heads] for table in _worst(plan)],
        notes=[*plan.warnings, "Nothing was read or spent. print(plan) says all of it; dc.plot(plan) draws it."],
    )  # fmt: skip


def draw(plan: "Plan", columns: tuple[str, ...] | None) -> Plot:
    """The expected error of every table from the noise alone, before and after the tables are reconciled, and of the solved table; `columns` keeps the tables that hold them all.

    Of a selection the share of the budget that every step takes.
    """
    if plan.selection is not None:
        no_columns(columns, "the plan of a selection")
        note = f"{plan.privacy.budget.describe()}. Advice: {plan.selection.advice}."
        lines = [_dot(step) for step in plan.steps]
        return _plot("Where the budget of a selection goes", "share of the budget", lines, note)
    kept = [table for table in _worst(plan) if set(columns or ()) <= set(table.attrs)]
    if not kept:
        raise ParameterError(
            f"columns ({', '.join(columns or ())}) must be in one planned table; no table holds them all"
        )
    shown, by_share = kept[:MOST_DRAWN], plan.n_rows is not None
    hidden = len(kept) - len(shown)
    more = f" {hidden:,} tables with smaller errors are not drawn." if hidden else ""
    key = {
        "as measured": element("circle", cx=11, cy=7, r=5, class_="f-hatch"),
        "after reconciling": element("circle", cx=11, cy=7, r=5, class_="f-bar"),
    }
    if by_share:
        key["solved"] = element("path", d=SOLVED, transform="translate(11 7)", class_="f-bar")
    return _plot(
        "What the noise will do to every table",
        "expected total variation distance" if by_share else "standard deviation of a cell, in rows",
        [_dots(table, by_share) for table in shown],
        f"{plan.privacy.budget.describe()}; {plan.privacy.unit.relation}.{more}",
        key if shown[0].reconciled_sd is not None else {},
    )


def _plot(title: str, axis: str, lines: list[Line], note: str, key: Mapping[str, str] | None = None) -> Plot:
    scale = fit_scale([dot.value for line in lines for dot in line.dots])
    words = "; ".join(f"{line.name} {line.numbers}" for line in lines[:8])
    svg = dot_plot(lines, title=title, description=f"{axis}: {words}.", axis=axis, scale=scale)
    return Plot(title, {title: svg}, dict(key or {}), note)


def _dot(step: "Step") -> Line:
    share = percent(step.share)
    says = f"{step.name}: {share} of the budget, noise in rows: {_noise(step)}"
    return Line(step.name, (Dot(float(step.share), says),), f"{share}, noise {_noise(step)}")


def _worst(plan: "Plan") -> Sequence[TablePlan]:
    return sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)


def _dots(table: TablePlan, by_share: bool) -> Line:
    name, shown = said(table.attrs), _share if by_share else _number
    before, after = (table.tvd, table.reconciled_tvd) if by_share else (table.sd, table.reconciled_sd)
    dots = [Dot(before or 0.0, f"{name}: {shown(before)} as measured", "hatch")]
    last = before if after is None else after
    if after is not None:
        dots.append(Dot(after, f"{name}: {shown(after)} after reconciling"))
    if by_share and table.solved_tvd is not None:
        last = table.solved_tvd
        dots.append(Dot(last, f"{name}: {shown(last)} solved", shape=SOLVED))
    return Line(name, tuple(dots), shown(last))
