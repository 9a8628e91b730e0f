"""What can be foreseen where tables will be chosen: the candidates, the shares, the noise of every step, and whether choosing pays."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dpcipher.curator.count_source import TableCounts
from dpcipher.curator.request import check_sets
from dpcipher.curator.select import WORTHWHILE, check_auto
from dpcipher.curator.session import Session
from dpcipher.curator.terms import Terms
from dpcipher.planning import auto_page
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.unit import Unit
from dpcipher.schema.schema import Schema
from dpcipher.selection.noise_model import CHOICE, LIST, MOSTLY_NOISE, ONE_WAY, Prices
from dpcipher.selection.target import Aim, Auto


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
    sizes = [math.prod(schema.shape[axis] for axis in axes) for axes in aim.tables(2)]
    foreseen = _Foreseen(schema, budget, unit, sets, sizes)
    looked = foreseen.looked(n_rows)
    # Triples are made of measured pairs, in one set, and not where zeros are declared.
    triples = 0 if looked < 3 or sets > 1 or schema.zeros else count_triples(aim)
    tvd = None if n_rows is None or not sizes else foreseen.prices.noise_tvd(sizes, n_rows)
    return AutoPlan(
        budget=budget,
        unit=unit,
        sets=sets,
        n_rows=n_rows,
        n_columns=len(schema.attrs),
        max_cells=auto.max_cells,
        pairs=len(sizes),
        triples=triples,
        steps=foreseen.steps(looked),
        clear_rows=foreseen.clear_rows(),
        second_tvd=foreseen.second_tvd(schema.shape, looked, n_rows) if triples and n_rows else None,
        all_pairs_tvd=tvd,
        advice=_advice(foreseen.prices, schema, sizes, tvd),
    )


class _Foreseen:
    """What the rules of the choice come to on a schema; the exact noise of tables is asked of a session over an empty table: only public numbers are used."""

    def __init__(self, schema: Schema, budget: Budget, unit: Unit, sets: int, sizes: list[int]) -> None:
        self.prices = Prices(budget.composable(), unit, sets)
        self.sizes, self.columns, self.sets = sizes, len(schema.attrs), sets
        self._session = Session(
            TableCounts(np.zeros(1, np.int64)), schema, Terms(budget, unit), draws=Draws.seeded(0)
        )

    def cell(self, share: Fraction) -> float:
        """The deviation of the noise on a cell of a table."""
        return math.sqrt(self._session.mechanism(share / self.sets).variance)

    def looked(self, n_rows: int | None) -> int:
        """How many pairs will be looked at; all, if the number of rows is not known."""
        return len(self.sizes) if n_rows is None else self.prices.looked(self.sizes, self.columns, n_rows)

    def clear_rows(self) -> int:
        """From so many rows on, every pair is looked at."""
        if not self.sizes:
            return 0
        enough = math.ceil(self.prices.noise_tvd(self.sizes, 1) / MOSTLY_NOISE)
        return bisect_left(range(enough + 1), len(self.sizes), lo=1, key=self.looked)

    def steps(self, looked: int) -> tuple[Step, ...]:
        """The steps in order; of a table, the noise when all that were looked at get the same."""
        pairs, columns = len(self.sizes), self.columns
        first = Step("one-way tables", ONE_WAY, columns, columns, self.cell(ONE_WAY / columns))
        rest = 1 - ONE_WAY
        if not pairs:
            return first, Step("one-way tables again", rest, columns, columns, self.cell(rest / columns))
        rest -= self.choice(looked)
        tables = Step("tables worth measuring", rest, looked, pairs, self.cell(rest / looked))
        if looked == pairs:
            noise = self.prices.distance(pairs, float(CHOICE))
            return first, Step("distances of pairs", CHOICE, pairs, pairs, noise), tables
        listing = LIST * self.choice(looked)
        reading = self.choice(looked) - listing
        choice, noise = (
            self.prices.choice(looked, float(listing)),
            self.prices.distance(looked, float(reading)),
        )
        return (
            first,
            Step("shortlist of pairs", listing, looked, pairs, choice),
            Step("distances of pairs", reading, looked, pairs, noise),
            tables,
        )

    def choice(self, looked: int) -> Fraction:
        """What the choice of pairs costs: twice as much with a shortlist."""
        return CHOICE if looked == len(self.sizes) else 2 * CHOICE

    def second_tvd(self, shape: tuple[int, ...], looked: int, n_rows: int) -> float:
        """The mean TVD from independence at which the noise of a triple of usual size is worth its budget."""
        levels = float(np.median([size for size in shape if size > 1]))
        return self.prices.triple_noise(levels, float(1 - ONE_WAY - self.choice(looked)) / looked) / (
            WORTHWHILE * n_rows
        )


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


def _advice(prices: Prices, schema: Schema, sizes: list[int], tvd: float | None) -> str:
    """Whether to let the tables be chosen, or to measure all candidate pairs alike."""
    if not sizes:
        return "there is no pair to choose: workload=1 measures the same"
    if tvd is None:
        rows = math.ceil(prices.noise_tvd(sizes, 1) / MOSTLY_NOISE)
        return f"with fewer than about {rows:,} rows, all pairs would be mostly noise and choosing pays; say n_rows to learn more"
    if tvd >= MOSTLY_NOISE:
        return f"choose: measured alike, all pairs would be mostly noise, an expected TVD of {min(tvd, 1.0):.2g} each"
    instead = "workload=2" if len(sizes) == math.comb(len(schema.attrs), 2) else "list the pairs"
    return (
        f"either will do: all pairs ({instead}) would have noise of an expected TVD of {tvd:.2g} each; choosing costs a tenth of the "
        "budget, and pays where few pairs matter or a second round is held"
    )
