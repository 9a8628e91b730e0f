"""Plans as people first see them: a card, and the expected error of every table, or the share of every step, as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcipher.drawing.card import Card
from dpcipher.drawing.dots import MARKS, Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.html import rows
from dpcipher.drawing.plot import Plot, no_columns
from dpcipher.drawing.svg import element
from dpcipher.errors import ParameterError
from dpcipher.planning.page import NOT_PREDICTED, step_tables
from dpcipher.planning.tables import TablePlan
from dpcipher.schema.grouped import said

if TYPE_CHECKING:
    from dpcipher.planning.auto import AutoPlan, Step
    from dpcipher.planning.plan import Plan

MOST_DRAWN = 24
SOLVED = MARKS[1]


def card(plan: "Plan") -> Card:
    """Tables, budget, and the tables with the largest errors."""
    lines = [
        (
            said(table.attrs),
            f"{table.n_cells:,}",
            _rows(table.sd),
            _rows(table.reconciled_sd),
            _share(_tvd(table)),
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


def auto_card(plan: "AutoPlan") -> Card:
    """What will be chosen from, the steps, and advice."""
    lines = [(step.name, f"{float(step.share):.1%}", step_tables(step), _noise(step)) for step in plan.steps]
    return Card(
        "Plan of a selection",
        {
            "Candidates": f"{plan.pairs + plan.triples + plan.larger:,} tables",
            "Columns": f"{plan.n_columns:,}",
            "Rows": "" if plan.n_rows is None else f"about {plan.n_rows:,}",
            "Budget": plan.privacy.budget.describe(),
        },
        ("step", "share of the budget", "tables", "noise sd (rows)"),
        lines,
        notes=[f"Advice: {plan.advice}.", "Nothing was read or spent. print(plan) says all of it."],
    )


def draw(plan: "Plan", columns: tuple[str, ...] | None) -> Plot:
    """The expected error of every table from the noise alone, before and after the tables are reconciled, and of the solved table; `columns` keeps the tables that hold them all."""
    kept = [table for table in _worst(plan) if set(columns or ()) <= set(table.attrs)]
    if not kept:
        raise ParameterError(
            f"columns ({', '.join(columns or ())}) must be in one planned table; no table holds them all"
        )
    shown = kept[:MOST_DRAWN]
    by_share = plan.n_rows is not None
    axis = "expected total variation distance" if by_share else "standard deviation of a cell, in rows"
    lines = [_line(table, by_share) for table in shown]
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


def auto_draw(plan: "AutoPlan", columns: tuple[str, ...] | None) -> Plot:
    """The share of the budget that every step takes."""
    no_columns(columns, "the plan of a selection")
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
    return Plot(title, {title: svg}, note=f"{plan.privacy.budget.describe()}. Advice: {plan.advice}.")


def _noise(step: "Step") -> str:
    return NOT_PREDICTED if step.sd is None else f"±{rows(step.sd)}"


def _worst(plan: "Plan") -> Sequence[TablePlan]:
    return sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)


def _line(table: TablePlan, by_share: bool) -> Line:
    name = said(table.attrs)
    before, after = (table.tvd, table.reconciled_tvd) if by_share else (table.sd, table.reconciled_sd)
    show = _share if by_share else _rows
    dots = [Dot(before or 0.0, f"{name}: {show(before)} as measured", "hatch")]
    if after is not None:
        dots.append(Dot(after, f"{name}: {show(after)} after reconciling"))
    if by_share and table.solved_tvd is not None:
        dots.append(Dot(table.solved_tvd, f"{name}: {show(table.solved_tvd)} solved", shape=SOLVED))
        return Line(name, tuple(dots), show(table.solved_tvd))
    return Line(name, tuple(dots), show(after if after is not None else before))


def _tvd(table: TablePlan) -> float | None:
    return table.tvd if table.solved_tvd is None else table.solved_tvd


def _rows(value: float | None) -> str:
    return "–" if value is None else rows(value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
