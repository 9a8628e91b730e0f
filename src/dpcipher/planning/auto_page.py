"""A plan of chosen tables on one page: a table for people, plain values for programs."""

from typing import TYPE_CHECKING, Any

from dpcipher.planning.page import grid
from dpcipher.selection.noise_model import SECOND

if TYPE_CHECKING:
    from dpcipher.planning.auto import AutoPlan, Step

_HEADS = ("step", "share", "tables", "noise sd")


def to_text(plan: "AutoPlan") -> str:
    """The plan for people: facts, the steps, what depends on the data, advice."""
    rows = "" if plan.n_rows is None else f"; about {plan.n_rows:,} rows"
    sets = "" if plan.sets == 1 else f"; tables split over {plan.sets} sets"
    lines = [
        f"Plan     tables chosen out of {_candidates(plan)} over {plan.n_columns} columns{rows}",
        f"Budget   {plan.budget.describe()}{sets}",
        f"Unit     {plan.unit.describe()}",
        "",
        *grid([_HEADS, *(_line(step) for step in plan.steps)]),
        "",
        "noise sd: standard deviation in rows, of a cell, a distance or a choice; of tables worth measuring, if all got the same.",
        *_shortlist(plan),
        *_second(plan),
        f"Advice   {plan.advice}.",
    ]
    return "\n".join(lines)


def to_dict(plan: "AutoPlan") -> dict[str, Any]:
    """The plan as plain values."""
    return {
        "budget": plan.budget.as_dict(),
        "unit": plan.unit.as_dict(),
        "sets": plan.sets,
        "n_rows": plan.n_rows,
        "candidates": {"pairs": plan.pairs, "triples": plan.triples, "max_cells": plan.max_cells},
        "steps": [
            {"name": step.name, "share": str(step.share), "tables": step.tables, "of": step.of, "sd": step.sd}
            for step in plan.steps
        ],
        "clear_rows": plan.clear_rows,
        "second_tvd": plan.second_tvd,
        "all_pairs_tvd": plan.all_pairs_tvd,
        "advice": plan.advice,
    }


def _candidates(plan: "AutoPlan") -> str:
    triples = f" and {plan.triples:,} triples" if plan.triples else ""
    return f"{plan.pairs:,} pairs{triples} of at most {plan.max_cells:,} cells"


def _line(step: "Step") -> tuple[str, ...]:
    tables = f"{step.tables:,}" if step.tables == step.of else f"{step.tables:,} of {step.of:,}"
    return step.name, str(step.share), tables, f"{step.sd:,.1f}"


def _shortlist(plan: "AutoPlan") -> list[str]:
    if not plan.pairs:
        return []
    return [f"Pairs    all are looked at from {plan.clear_rows:,} rows on; with fewer, a shortlist."]


def _second(plan: "AutoPlan") -> list[str]:
    """When triples will be measured too."""
    if not plan.triples or not plan.pairs:
        return []
    kept = f"{SECOND} of the budget is kept for a second round, with triples"
    if plan.second_tvd is None:
        return [f"Triples  {kept}, where they can be measured well."]
    if plan.second_tvd >= 1:
        return ["Triples  none: their noise would be too large for any data."]
    return [
        f"Triples  {kept}, if the pairs looked at are a mean TVD of {plan.second_tvd:.3f} from independence."
    ]
