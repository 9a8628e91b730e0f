"""A plan on one page: a table for people, plain values for programs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcipher.planning.table import TablePlan

if TYPE_CHECKING:
    from dpcipher.planning.plan import Plan

SHOWN = 12
_HEADS = ("table", "cells", "rows/cell", "noise sd", "reconciled", "TVD", "reconciled", "weight")


def to_text(plan: "Plan") -> str:
    """The plan for people: facts, the tables with the largest errors, cost, warnings."""
    shown = sorted(plan.tables, key=lambda table: -table.n_cells * table.sd)[:SHOWN]
    hidden = len(plan.tables) - len(shown)
    lines = [
        f"Plan     {len(plan.tables)} tables over {plan.n_columns} columns, {plan.n_cells:,} cells{_rows(plan)}",
        f"Budget   {plan.budget.describe()}{_sets(plan)}",
        f"Unit     {plan.unit.describe()}",
        "",
        *grid([_HEADS, *(_line(table) for table in shown)]),
        *([f"… and {hidden} smaller tables"] if hidden else []),
        "",
        "noise sd: standard deviation of a cell, in rows; TVD: expected total variation distance from the noise alone.",
        f"weight: shares of the budget that would lower the total error by {plan.gain:.0%}: measure(weights=plan.weights).",
        *plan.cost.lines(),
        *(f"Warning  {text}" for text in plan.warnings),
    ]
    return "\n".join(lines)


def to_dict(plan: "Plan") -> dict[str, Any]:
    """The plan as plain values."""
    return {
        "budget": plan.budget.as_dict(),
        "unit": plan.unit.as_dict(),
        "sets": plan.sets,
        "n_rows": plan.n_rows,
        "n_cells": plan.n_cells,
        "gain": plan.gain,
        "tables": [_table(table) for table in plan.tables],
        "cost": plan.cost.to_dict(),
        "warnings": list(plan.warnings),
    }


def _table(table: TablePlan) -> dict[str, Any]:
    names = ("n_cells", "sd", "absolute", "reconciled_sd", "count", "tvd", "reconciled_tvd", "weight")
    facts = {"attrs": list(table.attrs), "mechanism": table.mechanism.name, "scale": table.mechanism.scale}
    return facts | {name: getattr(table, name) for name in names}


def _rows(plan: "Plan") -> str:
    return "" if plan.n_rows is None else f"; about {plan.n_rows:,} rows"


def _sets(plan: "Plan") -> str:
    return "" if plan.sets == 1 else f", split over {plan.sets} sets"


def _line(table: TablePlan) -> tuple[str, ...]:
    return (
        " × ".join(table.attrs),
        f"{table.n_cells:,}",
        _number(table.count),
        _number(table.sd),
        _number(table.reconciled_sd),
        _share(table.tvd),
        _share(table.reconciled_tvd),
        f"{table.weight:.3f}",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


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
