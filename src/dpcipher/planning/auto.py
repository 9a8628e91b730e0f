"""The plan of a release whose tables will be selected: candidates, shares, the noise of every step, and whether to select at all."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcipher.curator.request import Terms, check_sets
from dpcipher.curator.select import check_auto
from dpcipher.planning import page
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit
from dpcipher.schema.schema import Schema
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.rounds import (
    MAX_TVD,
    ONE_WAY,
    Round,
    allows_triples,
    n_cells,
    pair_round,
    worthwhile_distance,
)
from dpcipher.selection.target import Auto


@dataclass(frozen=True)
class Step:
    """One step: its share of the budget, how many tables out of how many it is about, and the standard deviation of its noise in rows."""

    name: str
    share: Fraction
    tables: int
    of: int
    sd: float


@dataclass(frozen=True)
class AutoPlan:
    """What is known before tables are selected; nothing in it comes from data.

    `clear_rows` is the number of rows from which the distances of all candidate pairs are read; with fewer, those of a shortlist.
    `second_tvd` is the mean TVD of the pairs from independence at which the second round is held; None where it never is, or no number of
    rows was given. `all_pairs_tvd` is the mean TVD from noise alone if all candidate pairs were measured with equal shares.
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
    n_rows_told: bool  # as in Plan

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return page.auto_dict(self)

    def __str__(self) -> str:
        return page.auto_text(self)


def plan_auto(
    schema: Schema,
    auto: Auto,
    *,
    budget: Budget,
    unit: Unit,
    sets: int,
    n_rows: int | None,
    n_rows_told: bool,
) -> AutoPlan:
    """Plan a release whose tables are selected; the same requests are refused as by `measure`.

    Where no number of rows is given, it is taken to be large: all distances are read.
    """
    check_sets(sets)
    check_auto(auto, schema, Terms(budget, unit), sets)
    target, columns = auto.on(schema), len(schema.attrs)
    sizes = n_cells(schema.shape, list(target.tables(2)))
    noise = NoiseModel(budget.composable(), unit, sets)
    pairs = pair_round(noise, sizes, columns, n_rows or math.inf)
    # A triple is made of three pairs that were measured.
    possible = pairs.n_read >= 3 and allows_triples(target, sets=sets, zeros=bool(schema.zeros))
    triples = target.count_triples() if possible else 0
    tvd = noise.mean_tvd(sizes, n_rows) if n_rows and sizes else None
    second = None
    if triples and n_rows:
        share = float(1 - ONE_WAY - pairs.share) / pairs.n_read
        second = worthwhile_distance(noise, schema.shape, share) / n_rows
    return AutoPlan(
        budget=budget,
        unit=unit,
        sets=sets,
        n_rows=n_rows,
        n_columns=columns,
        max_cells=auto.max_cells,
        pairs=len(sizes),
        triples=triples,
        steps=_steps(noise, pairs, columns),
        clear_rows=_clear_rows(noise, sizes, columns),
        second_tvd=second,
        all_pairs_tvd=tvd,
        advice=_advice(noise, columns, sizes, tvd),
        n_rows_told=n_rows_told,
    )


def _steps(noise: NoiseModel, pairs: Round, columns: int) -> tuple[Step, ...]:
    """The steps in order; of the tables worth measuring, the noise if all whose distances are read got equal shares."""
    first = Step("one-way tables", ONE_WAY, columns, columns, noise.cell(ONE_WAY / columns))
    rest, n_read, candidates = 1 - ONE_WAY, pairs.n_read, pairs.candidates
    if not candidates:
        return first, Step("one-way tables again", rest, columns, columns, noise.cell(rest / columns))
    steps = [first]
    if pairs.list_share:
        sd = noise.choice(n_read, float(pairs.list_share))
        steps.append(Step("shortlist of pairs", pairs.list_share, n_read, candidates, sd))
    sd = noise.distance(n_read, float(pairs.distance_share))
    steps.append(Step("distances of pairs", pairs.distance_share, n_read, candidates, sd))
    rest -= pairs.share
    return *steps, Step("tables worth measuring", rest, n_read, candidates, noise.cell(rest / n_read))


def _clear_rows(noise: NoiseModel, sizes: list[int], columns: int) -> int:
    """The least number of rows with which all distances are read."""
    if not sizes:
        return 0
    rows = range(_noisy_rows(noise, sizes) + 1)
    return bisect_left(rows, len(sizes), lo=1, key=lambda n: pair_round(noise, sizes, columns, n).n_read)


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
        return f"choose: measured alike, all pairs would be mostly noise, an expected TVD of {min(tvd, 1.0):.2g} each"
    instead = "workload=2" if len(sizes) == math.comb(columns, 2) else "list the pairs"
    return (
        f"either will do: all pairs ({instead}) would have noise of an expected TVD of {tvd:.2g} each; choosing costs a tenth of the "
        "budget, and pays where few pairs matter or a second round is held"
    )
