"""The plan of a release whose tables will be selected: candidates, shares, the noise of every step, and whether to select at all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean
from typing import Any

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import UNSIGNED
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.planning import page, shown
from dpcipher.planning.bins import BinPlan, plan_bins
from dpcipher.planning.expected import with_expected_bins, with_expected_levels
from dpcipher.planning.held import Held
from dpcipher.planning.levels import LevelPlan, level_plan
from dpcipher.planning.solved import solved_tvds
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import Request, most_pairs
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import planned_tables
from dpcipher.selection.design import design_tables, is_small, unlooked
from dpcipher.selection.limits import fitting_orders
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.rounds import (
    GOOD_NOISE,
    MAX_TVD,
    READING,
    ROWS,
    TOTAL,
    Round,
    centres,
    column_share,
    n_cells,
    pair_round,
    screens,
    worthwhile_distance,
)
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Attrs, Axes

WORTH = "tables worth measuring"
MANY_ROWS = 1e9  # stands for a number of rows that was not given


@dataclass(frozen=True)
class Step:
    """One step: its share of the budget, how many tables out of how many it is about, and the standard deviation of its noise in rows.

    `tables` and `sd` are None where the rows decide which tables are measured.
    """

    name: str
    share: Fraction
    tables: int | None
    of: int
    sd: float | None


@dataclass(frozen=True, repr=False)
class AutoPlan(Shown, Drawable):
    """What is known before tables are selected; nothing in it comes from data.

    `design` says that the tables follow from the number of rows alone, as for every small table: nothing is looked at before. Otherwise
    `clear_rows` is the number of rows from which the distances of all candidate pairs are read; with fewer, those of a shortlist.
    `second_tvd` is the mean TVD of the pairs from independence at which the second round is held; None where it never is, or no number of
    rows was given. `all_pairs_tvd` is the mean TVD from noise alone if all candidate pairs were measured with equal shares, and `solved_tvd` what is expected of pairs in
    a solved release (`planning.solved`); None unless it is known that all of them will be measured.
    """

    privacy: Privacy
    sets: int
    n_rows: int | None
    n_columns: int
    max_cells: int
    pairs: int
    triples: int
    larger: int
    design: bool
    steps: tuple[Step, ...]
    clear_rows: int
    second_tvd: float | None
    all_pairs_tvd: float | None
    solved_tvd: float | None
    advice: str
    bins: tuple[BinPlan, ...] = ()  # as in Plan
    held: Held | None = None  # as in Plan
    levels: LevelPlan | None = None  # as in Plan
    stamp: str = UNSIGNED  # as in Plan

    @property
    def predicted(self) -> bool:
        """Whether it is known which tables will be measured; else the rows decide, and it may be none but single columns."""
        return all(step.tables is not None for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return self._stamped(page.auto_dict(self))

    def _text(self) -> str:
        return page.auto_text(self)

    def _card(self) -> Card:
        return shown.auto_card(self)

    def _draw(self, columns: Attrs | None) -> Plot:
        return shown.auto_draw(self, columns)


def plan_auto(request: Request, n_rows: int | None) -> AutoPlan:
    """Plan a release whose tables are selected. Where no number of rows is given, it is taken to be large: all distances are read."""
    auto, privacy, sets = request.auto, request.privacy, request.sets
    assert auto is not None
    levels = level_plan(request.schema, privacy, n_rows)
    schema = with_expected_levels(request.schema, levels)
    bins = plan_bins(schema, privacy, planned_tables(request), n_rows)
    schema = with_expected_bins(schema, bins)  # tables are chosen once bins are found
    target, columns = SelectionTarget.of(auto, schema), len(schema.attrs)
    noise = NoiseModel(request.on(schema).left.composable(), privacy.unit, sets)
    rows = float(n_rows or MANY_ROWS)
    sizes = n_cells(schema.shape, list(target.tables(2)))
    design = _design(target, noise, rows, schema) if is_small(target) else None
    alone = design is None and bool(sizes) and centres(noise, zeros=bool(schema.zero_masks))
    needs_rows = is_small(target) or bool(sizes and not noise.is_zcdp)
    asked = [] if privacy.tells_n_rows else _total_steps(noise, {TOTAL: needs_rows, ROWS: alone})
    rest = 1 - sum((step.share for step in asked), Fraction(0))
    pairs = pair_round(noise, sizes, columns, rows, most_pairs(schema, sets))
    tvd = noise.mean_tvd(sizes, n_rows) if n_rows and sizes else None
    counts = {order: target.count_tables(order) for order in range(3, target.max_order + 1)}
    steps = (
        _steps(noise, pairs, target, rows, rest, centred=alone)
        if design is None
        else _designed(noise, design, rest)
    )
    return AutoPlan(
        privacy=privacy,
        sets=sets,
        n_rows=n_rows,
        n_columns=columns,
        max_cells=auto.max_cells,
        pairs=len(sizes),
        triples=counts.get(3, 0),
        larger=sum(count for order, count in counts.items() if order > 3),
        design=design is not None,
        steps=(*asked, *steps),
        clear_rows=0 if design is not None else _clear_rows(noise, sizes),
        second_tvd=_second_tvd(noise, target, pairs, rest, n_rows) if design is None else None,
        all_pairs_tvd=tvd,
        solved_tvd=_solved_tvd(target, steps, n_rows),
        advice=_designed_advice(design) if design is not None else _advice(noise, columns, sizes, tvd),
        bins=bins,
        levels=levels,
    )


def _design(
    target: SelectionTarget, noise: NoiseModel, rows: float, schema: Schema
) -> dict[Axes, float] | None:
    orders = fitting_orders(target, schema.domain)
    return design_tables(target, noise, rows, orders, mixed=not schema.zero_masks)


def _second_tvd(
    noise: NoiseModel, target: SelectionTarget, pairs: Round, rest: Fraction, n_rows: int | None
) -> float | None:
    """The mean TVD of pairs at which the second round is held; a triple is made of three pairs that were measured."""
    if pairs.n_read < 3 or target.max_order < 3 or not n_rows:
        return None
    share = rest - column_share(noise, target.shape, float(n_rows), pairs) - pairs.share
    return worthwhile_distance(noise, target, float(share) / pairs.n_read) / n_rows


def _solved_tvd(target: SelectionTarget, steps: Sequence[Step], n_rows: int | None) -> float | None:
    """The mean TVD that is expected of solved pairs, where it is known that all of them are measured alike."""
    pairs, columns = list(target.tables(2)), [(axis,) for axis in range(len(target.shape))]
    each = [step.sd for step in steps if step.name.startswith(_tables_of(2)) and step.tables == len(pairs)]
    if not n_rows or not pairs or not each or each[-1] is None:
        return None
    alone = next((step.sd for step in steps if step.name == _tables_of(1)), None)
    variances = [*[each[-1] ** 2] * len(pairs), *[math.inf if alone is None else alone**2] * len(columns)]
    return fmean(solved_tvds(target.shape, [*pairs, *columns], variances, n_rows)[: len(pairs)])


def _total_steps(noise: NoiseModel, wanted: Mapping[Fraction, bool]) -> list[Step]:
    """The number of rows, at each share at which it is wanted."""
    return [
        Step("number of rows", share, 1, 1, noise.cell(share))
        for share, is_wanted in wanted.items()
        if is_wanted
    ]


def _designed(noise: NoiseModel, design: dict[Axes, float], rest: Fraction) -> list[Step]:
    """One step for each order of a design."""
    steps = []
    for order, share, tables in _by_order(design):
        budget = rest * Fraction(share).limit_denominator(8)
        steps.append(Step(_tables_of(order), budget, tables, tables, noise.cell(budget / tables)))
    return steps


def _by_order(design: dict[Axes, float]) -> list[tuple[int, float, int]]:
    """Each order of a design with its share and the number of its tables; columns of one level are not counted."""
    found: dict[float, list[Axes]] = {}
    for axes, share in design.items():
        found.setdefault(round(share, 12), []).append(axes)
    return [(min(map(len, tables)), share * len(tables), len(tables)) for share, tables in found.items()]


def _tables_of(order: int) -> str:
    return {1: "one-way tables", 2: "pairs", 3: "triples"}.get(order, f"tables of {order} columns")


def _steps(
    noise: NoiseModel,
    pairs: Round,
    target: SelectionTarget,
    rows: float,
    rest: Fraction,
    *,
    centred: bool,
) -> list[Step]:
    """The steps in order. The noise of centred tables is a mean over them."""
    columns, n_read, candidates = len(target.shape), pairs.n_read, pairs.candidates
    whole = None if not candidates else unlooked(target, noise, rows, pairs)
    if not candidates or (whole is not None and not noise.is_zcdp):
        whole = whole or {(axis,): 1 / columns for axis in range(columns)}
        return _designed(noise, whole, rest)
    first = column_share(noise, target.shape, rows, pairs)
    less = math.sqrt(fmean(1 - 1 / size for size in target.shape)) if centred else 1.0
    steps, rest = (
        [Step("one-way tables", first, columns, columns, noise.cell(first / columns) * less)],
        rest - first,
    )
    if whole is not None:
        return [
            *steps,
            *(replace(step, name=f"{step.name}, the rest") for step in _designed(noise, whole, rest)),
        ]
    looks = [("pairs", pairs)] if n_read else []
    if pairs.takes_all:
        looks += [(_tables_of(len(tables[0])), look) for tables, look in screens(noise, target, rows)]
    for name, look in looks:
        steps += _look(noise, name, look)
        rest -= look.share
    return [*steps, Step(WORTH, rest, None, candidates, None)]


def _look(noise: NoiseModel, name: str, look: Round) -> list[Step]:
    """A shortlist, where it does not hold all, and its distances."""
    n_read, candidates = look.n_read, look.candidates
    sd = noise.distance(n_read, float(look.distance_share))
    read = Step(f"distances of {name}", look.distance_share, n_read, candidates, sd)
    if not look.list_share:
        return [read]
    sd = noise.choice(n_read, float(look.list_share))
    return [Step(f"shortlist of {name}", look.list_share, n_read, candidates, sd), read]


def _designed_advice(design: dict[Axes, float]) -> str:
    orders = sorted({order for order, _, _ in _by_order(design)})
    said = " and ".join(map(_tables_of, orders))
    return f"nothing need be looked at: the table is small, and {said} follow from the noise and the number of rows"


def _clear_rows(noise: NoiseModel, sizes: list[int]) -> int:
    """The least number of rows with which all distances are read."""
    return math.ceil(noise.distance(len(sizes), float(READING)) / GOOD_NOISE) if sizes else 0


def _noisy_rows(noise: NoiseModel, sizes: list[int]) -> int:
    """The number of rows below which all pairs, measured with equal shares, are mostly noise."""
    return math.ceil(noise.mean_tvd(sizes, 1) / MAX_TVD)


def _advice(noise: NoiseModel, columns: int, sizes: list[int], tvd: float | None) -> str:
    """Whether to select tables, or to measure all candidate pairs with equal shares."""
    if not sizes:
        return "there is no pair to choose: workload=1 measures the same"
    if tvd is None:
        rows = _noisy_rows(noise, sizes)
        return f"with fewer than about {rows:,} rows, all pairs would be mostly noise and choosing pays; say n_rows to learn more"
    if tvd >= MAX_TVD:
        return f"choose: measured alike, all pairs would be mostly noise, a TVD of {min(tvd, 1.0):.2g} each before solving"
    instead = "workload=2" if len(sizes) == math.comb(columns, 2) else "list the pairs"
    return (
        f"either will do: all pairs ({instead}) would have noise of an expected TVD of {tvd:.2g} each; choosing costs a twentieth of the "
        "budget, and pays where few pairs matter or a second round is held"
    )
