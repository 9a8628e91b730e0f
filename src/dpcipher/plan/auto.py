"""What can be foreseen where tables will be chosen: the candidates, the shares, the noise of every step, and whether choosing pays."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dpcipher.plan import auto_page
from dpcipher.plan.error import expected_absolute
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.choose import choice_scale
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.unit import Unit
from dpcipher.private.door import Door
from dpcipher.private.sanitize import check_sets
from dpcipher.private.select import (
    BLURRED,
    CHOICE,
    CLEAR,
    FEW,
    ONE_WAY,
    WORTHWHILE,
    check_auto,
)
from dpcipher.private.truth import TableTruth
from dpcipher.schema.schema import Schema
from dpcipher.select.aim import Aim, Auto
from dpcipher.select.risk import MEAN_SIZE

GUMBEL = math.pi / math.sqrt(6)  # the deviation of a standard Gumbel variable, the noise of a choice
# Where noise alone moves pairs by so much, choosing was as good or better on each of eight tables, at three budgets, pure and not.
MOSTLY_NOISE = 0.3


@dataclass(frozen=True)
class Step:
    """One step: its share of the budget, how many tables out of how many it is about, and the deviation of its noise in rows."""

    name: str
    share: Fraction
    tables: int
    of: int
    sd: float


@dataclass(frozen=True)
class AutoPlan:
    """The foreseeable where tables will be chosen; nothing in it comes from data.

    `clear_rows` is the number of rows from which every candidate pair is looked at; with fewer, a shortlist is. `second_tvd` is how far
    the pairs must be from independence, as a mean TVD, for the second round to be held; None where it never is, or no number of
    rows was given. `all_pairs_tvd` is what noise alone would do to the candidate pairs if all were measured alike.
    """

    budget: Budget
    unit: Unit
    sets: int
    n_rows: int | None
    n_columns: int
    max_cells: int
    pairs: int
    triples: int
    steps: tuple[Step, ...]
    clear_rows: int
    second_tvd: float | None
    all_pairs_tvd: float | None
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return auto_page.to_dict(self)

    def __str__(self) -> str:
        return auto_page.to_text(self)


def plan_auto(
    schema: Schema, auto: Auto, *, budget: Budget, unit: Unit, sets: int, n_rows: int | None
) -> AutoPlan:
    """Foresee a release whose tables are chosen; the same requests are refused as by `measure`."""
    check_sets(sets)
    check_auto(auto, schema)
    aim = auto.on(schema)
    prices = _Prices(_door_to_nobody(schema, budget, unit), sets)
    sizes = [math.prod(schema.shape[axis] for axis in axes) for axes in aim.tables(2)]
    looked = prices.looked(len(sizes), len(schema.attrs), n_rows)
    # Triples are made of measured pairs, in one set, and not where zeros are declared.
    triples = 0 if looked < 3 or sets > 1 or schema.zeros else count_triples(aim)
    tvd = None if n_rows is None or not sizes else prices.noise_tvd(sizes, n_rows)
    return AutoPlan(
        budget=budget,
        unit=unit,
        sets=sets,
        n_rows=n_rows,
        n_columns=len(schema.attrs),
        max_cells=auto.max_cells,
        pairs=len(sizes),
        triples=triples,
        steps=prices.steps(len(schema.attrs), len(sizes), looked),
        clear_rows=prices.clear_rows(len(sizes), len(schema.attrs)),
        second_tvd=prices.second_tvd(schema.shape, looked, n_rows) if triples and n_rows else None,
        all_pairs_tvd=tvd,
        advice=_advice(prices, schema, sizes, looked, tvd),
    )


class _Prices:
    """What shares of the budget buy. The formulas are those of `private.select`, which asks them of the door while it runs."""

    def __init__(self, door: Door, sets: int) -> None:
        self.door, self.sets = door, sets

    def cell(self, share: Fraction) -> float:
        """The deviation of the noise on a cell of a table."""
        return math.sqrt(self.door.mechanism(share / self.sets).variance)

    def distance(self, tables: int, share: Fraction) -> float:
        """The deviation of the noise on each of so many distances; one person moves every one of them by `unit.l1`."""
        part, moved = self.door.part(share), self.door.unit.l1
        if part.rho is not None:
            return moved * math.sqrt(tables / (2 * part.rho))
        assert part.epsilon is not None  # parts are rho or pure epsilon
        return math.sqrt(2) * tables * moved / float(part.epsilon)

    def choice(self, tables: int, share: Fraction) -> float:
        """The deviation of the noise on a score when so many tables are chosen."""
        return choice_scale(self.door.part(share / tables), self.door.unit.l1) * GUMBEL

    def looked(self, pairs: int, columns: int, n_rows: int | None) -> int:
        """How many pairs will be looked at: all, where their distances are clear; else as many as a shortlist can have."""
        if n_rows is None or not pairs or self.distance(pairs, CHOICE) <= CLEAR * n_rows:
            return pairs
        one = self.choice(1, CHOICE / 2)
        ratios = [level * n_rows / one for level in (CLEAR, BLURRED)]
        clear, blurred = (int(ratio**2 if self.door.is_zcdp else ratio) for ratio in ratios)
        return min(pairs, max(clear, min(FEW * columns, blurred), 1))

    def clear_rows(self, pairs: int, columns: int) -> int:
        """From so many rows on, every pair is looked at."""
        if not pairs:
            return 0
        enough = math.ceil(self.distance(pairs, CHOICE) / CLEAR)
        return bisect_left(range(enough + 1), pairs, lo=1, key=lambda rows: self.looked(pairs, columns, rows))

    def steps(self, columns: int, pairs: int, looked: int) -> tuple[Step, ...]:
        """The steps in order; of a table, the noise when all that were looked at get the same."""
        one_way = Step("one-way tables", ONE_WAY, columns, columns, self.cell(ONE_WAY / columns))
        rest = 1 - ONE_WAY - CHOICE
        if not pairs:
            left = Step(
                "one-way tables again", 1 - ONE_WAY, columns, columns, self.cell((1 - ONE_WAY) / columns)
            )
            return one_way, left
        tables = Step("tables worth measuring", rest, looked, pairs, self.cell(rest / looked))
        if looked == pairs:
            return (
                one_way,
                Step("distances of pairs", CHOICE, pairs, pairs, self.distance(pairs, CHOICE)),
                tables,
            )
        half = CHOICE / 2
        return (
            one_way,
            Step("shortlist of pairs", half, looked, pairs, self.choice(looked, half)),
            Step("distances of pairs", half, looked, pairs, self.distance(looked, half)),
            tables,
        )

    def second_tvd(self, shape: tuple[int, ...], looked: int, n_rows: int) -> float:
        """The mean TVD from independence at which the noise of a triple of usual size is worth its budget."""
        levels = float(np.median([size for size in shape if size > 1]))
        noise = (
            MEAN_SIZE / 2 * math.pow(levels * (levels - 1), 1.5) * self.cell((1 - ONE_WAY - CHOICE) / looked)
        )
        return noise / (WORTHWHILE * n_rows)

    def noise_tvd(self, sizes: list[int], n_rows: int) -> float:
        """The mean TVD from noise alone, if all pairs were measured alike with the whole budget; above 1 where noise outweighs rows."""
        mechanism = self.door.mechanism(Fraction(1, len(sizes) * self.sets))
        return expected_absolute(mechanism) * sum(sizes) / len(sizes) / (2 * n_rows)


def count_triples(aim: Aim) -> int:
    """How many triples are small enough and count for the target, without listing them where there are many."""
    if aim.max_order < 3:
        return 0
    if aim.listed:
        found = {axes for table in aim.listed for axes in combinations(table, 3)}
        return sum(
            min(aim.shape[axis] for axis in axes) > 1 and aim.fits(axes) and aim.importance(axes) > 0
            for axes in found
        )
    sizes = sorted(
        size for size, weight in zip(aim.shape, aim.weights, strict=True) if size > 1 and weight > 0
    )
    # Sorted by size, the third column of a triple is one of those after the second that are small enough.
    return sum(
        max(0, bisect_right(sizes, aim.max_cells // (a * b)) - second - 1)
        for (_, a), (second, b) in combinations(enumerate(sizes), 2)
    )


def _advice(prices: _Prices, schema: Schema, sizes: list[int], looked: int, tvd: float | None) -> str:
    """Whether to let the tables be chosen, or to measure all candidate pairs alike."""
    if not sizes:
        return "there is no pair to choose: workload=1 measures the same"
    if tvd is None:
        rows = math.ceil(prices.noise_tvd(sizes, 1) / MOSTLY_NOISE)
        return f"with fewer than about {rows:,} rows, all pairs would be mostly noise and choosing pays; say n_rows to learn more"
    if tvd >= MOSTLY_NOISE:
        return f"choose: measured alike, all pairs would be mostly noise, an expected TVD of {min(tvd, 1.0):.2g} each"
    instead = "workload=2" if len(sizes) == math.comb(len(schema.attrs), 2) else "list the pairs"
    if looked < len(sizes):
        return (
            f"all pairs may be better ({instead}): their noise alone is an expected TVD of {tvd:.2g} each, and the choice "
            f"could look at {looked:,} of {len(sizes):,} only"
        )
    return (
        f"either will do: all pairs ({instead}) would have noise of an expected TVD of {tvd:.2g} each; choosing costs a tenth of the "
        "budget, and pays where few pairs matter or a second round is held"
    )


def _door_to_nobody(schema: Schema, budget: Budget, unit: Unit) -> Door:
    """A door without rows behind it: it says what shares of a budget buy, and no question is ever asked."""
    return Door(TableTruth(np.zeros(1, np.int64)), schema, budget=budget, unit=unit, draws=Draws.seeded(0))
