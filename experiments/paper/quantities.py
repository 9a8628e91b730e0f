"""What the rules of `claims.toml` measure: short functions from results to a number, whose docstring is its name on the page.

All are replicated. In both experiments the axes after the first are the scenario (n; one m) and epsilon, and then whatever else there are points of.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import prod

import numpy as np

from dpcipher.engines.paper import Paper, solve_paper
from dpcipher.inference.sss import CATEGORIES
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, simulated
from experiments.paper.blocks import ORIGINAL
from experiments.paper.population import POPULATION, SHAPE
from experiments.paper.results import THINNED, Scores, exactly
from experiments.paper.simulated import FDH, LIMITS, METHODS, RIVAL_NAMES, TIMED
from experiments.paper.stacks import LITERAL, RIDGES, ROUNDS, margins, read, tvd
from experiments.paper.storage import (
    BANKRUPTCY,
    LARGEST,
    ORDERS,
    PANELS,
    SIMULATED,
    TEN,
    share_of_parameters,
    share_stored,
    stored_cells,
)

OURS = "ours"
SMALL, MIDDLE, LARGE = slice(0, 2), slice(1, 4), slice(3, 5)
# Table 2 of the paper: per cent of 50 test cases, by power of e and method.
PRINTED = {
    "CIPHER": (67.8, 64.7, 68.5, 77.8, 90.3),
    "MWEM": (50.0, 51.3, 51.0, 47.2, 47.3),
    "FDH": (41.1, 55.5, 63.8, 85.7, 98.8),
}


class Settled(Exception):
    """The question is answered, or cannot be, without this run: the text says why."""

    def __init__(self, text: str, *, holds: bool = False) -> None:
        super().__init__(text)
        self.holds = holds


@dataclass(frozen=True)
class Condition:
    """A value for everything that the paper leaves open: the reading of its algorithm (or our engine), and each other choice that matters."""

    reading: str = LITERAL
    choices: tuple[tuple[str, str], ...] = ()

    def choice(self, name: str, default: str) -> str:
        """The value of a choice, or what is taken where it does not matter."""
        return dict(self.choices).get(name, default)


def cost(method: str, costs: str = "as meant") -> float:
    """The paper's cost of a method as a share of the full table: parameters over cells. The text exchanges those of pairs and triples."""
    order = METHODS[method].order
    return share_of_parameters(SHAPE, {2: 3, 3: 2}.get(order, order) if costs == "as printed" else order)


@dataclass(frozen=True)
class Results:
    """The scores of a run, as one condition sees them: which reading CIPHER has, which form MWEM, which m, which costs."""

    condition: Condition
    first: Scores | None = None
    second: Scores | None = None

    def score(self, method: str, metric: str) -> Floats:
        """A metric of the first experiment."""
        if self.first is None:
            raise Settled("needs the first experiment")
        return self.first.means[method, metric]

    def cipher(self, order: int) -> str:
        """CIPHER under this reading, or our engine in its place."""
        if self.condition.reading == OURS:
            return simulated.OURS[order]
        return read(simulated.CIPHER[order], self.condition.reading)

    def mwem(self, order: int) -> str:
        """MWEM in this form."""
        return simulated.MWEM[self.form][order]

    @property
    def form(self) -> str:
        """Which form of MWEM."""
        return self.condition.choice("mwem", "cells")

    @property
    def trio(self) -> tuple[str, ...]:
        """CIPHER 2-way and 3-way, and FDH."""
        return (self.cipher(2), self.cipher(3), FDH)

    @property
    def papers(self) -> tuple[str, ...]:
        """The methods that the paper compares: FDH, CIPHER and MWEM of two orders."""
        return (FDH, self.cipher(2), self.cipher(3), self.mwem(2), self.mwem(3))

    def cost(self, method: str) -> float:
        """The cost under this condition."""
        return cost(method, self.condition.choice("costs", "as meant"))

    def tvd(self, method: str) -> Floats:
        """The mean TVD × cost, last axis the order (1, 2, 3)."""
        return self.score(method, "tvd") * self.cost(method)

    def linf(self, method: str) -> Floats:
        """The largest error of a cell × cost, last axis the order (2, 3)."""
        return self.score(method, "linf") * self.cost(method)

    def size(self, method: str, metric: str) -> Floats:
        """The mean size of a metric over the ten parameters × cost."""
        return np.asarray(np.abs(self.score(method, metric)).mean(axis=-1) * self.cost(method))

    def share(self, method: str, category: str) -> Floats:
        """The share of an SSS category."""
        return self.score(method, category)[..., 0]

    def odds(self, method: str, *, normal: bool = True) -> Floats:
        """The log-odds of Best; more is better, so that the cost divides the odds."""
        best = np.clip(self.share(method, "Best"), 1e-4, 1 - 1e-4)
        return np.asarray(np.log(best / (1 - best)) - np.log(self.cost(method) if normal else 1.0))

    def after(self, metric: str, order: int) -> Floats:
        """A distance of MWEM's own tables after each number of rounds: the first axis after the replicates."""
        place = order - {"tvd": 1, "linf": 2}[metric]
        names = [simulated.after(self.mwem(order), rounds) for rounds in ROUNDS]
        return np.stack([self.score(name, metric)[..., place] for name in names], axis=1)

    @property
    def cipher2(self) -> str:
        """CIPHER of the second experiment, or our engine in its place."""
        reading = self.condition.reading
        return bankruptcy.OURS if reading == OURS else read(bankruptcy.CIPHER, reading)

    @property
    def mwem2(self) -> str:
        """MWEM of the second experiment."""
        return bankruptcy.MWEM[self.form]

    def score2(self, method: str, metric: str) -> Floats:
        """A metric of the second experiment: replicates, one m, epsilon."""
        if self.second is None:
            raise Settled("needs the second experiment")
        place = bankruptcy.SETS.index(int(self.condition.choice("sets", "1")))
        return self.second.means[method, metric][:, place : place + 1, :, 0]


def over_orders(values: Callable[[int], Floats]) -> Floats:
    """What belongs to MWEM of 2-way and of 3-way tables, along the last axis."""
    return np.stack([values(order) for order in (2, 3)], axis=-1)


def share_of_full_table(r: Results) -> Floats:
    """Cells of all tables of one order over those of the full table, at every point of figure 1."""
    return exactly(
        [
            share_stored(levels[:p], order)
            for levels in PANELS.values()
            for order in ORDERS
            for p in range(order + 1, LARGEST + 1)
        ]
    )


def largest_table_held(r: Results) -> Floats:
    """Cells of the largest table that Algorithm 1 holds, over those of the full table."""
    return exactly(1.0)


def four_way_cells(r: Results) -> Floats:
    """Cells of the 210 four-way tables of ten attributes with 5 levels."""
    return exactly(stored_cells(TEN, 4))


def two_way_cells(r: Results) -> Floats:
    """Cells of the 45 two-way tables of ten attributes with 5 levels."""
    return exactly(stored_cells(TEN, 2))


def simulated_cells(r: Results) -> Floats:
    """Cells of all pairs, and of all triples, of 2×2×3×3."""
    return exactly([stored_cells(SIMULATED, 2), stored_cells(SIMULATED, 3)])


def bankruptcy_share(r: Results) -> Floats:
    """Cells of the ten pairs of 6×9×3×3×3 over the 1,458 of the full table."""
    return exactly(share_stored(BANKRUPTCY, 2))


def bankruptcy_folds(r: Results) -> Floats:
    """The 1,458 cells of the full table over those of the ten pairs of 6×9×3×3×3."""
    return exactly(prod(BANKRUPTCY) / stored_cells(BANKRUPTCY, 2))


def _best_other_tvd(r: Results) -> Floats:
    return np.asarray(np.min([r.tvd(method) for method in r.papers if method != r.cipher(2)], axis=0))


def tvd_lead(r: Results) -> Floats:
    """TVD × cost of the best other of FDH, CIPHER and MWEM less that of CIPHER 2-way."""
    return _best_other_tvd(r) - r.tvd(r.cipher(2))


def tvd_over_best(r: Results) -> Floats:
    """TVD × cost of CIPHER 2-way over the best other's, each the mean over orders."""
    return np.asarray(r.tvd(r.cipher(2)).mean(axis=-1) / _best_other_tvd(r).mean(axis=-1))


def tvd_over_fdh(r: Results) -> Floats:
    """TVD × cost of CIPHER 2-way over FDH's."""
    return r.tvd(r.cipher(2)) / r.tvd(FDH)


def linf_over_fdh(r: Results) -> Floats:
    """l∞ × cost of CIPHER 2-way over FDH's."""
    return r.linf(r.cipher(2)) / r.linf(FDH)


def rmse_over_fdh(r: Results) -> Floats:
    """RMSE × cost of CIPHER 2-way over FDH's."""
    return r.size(r.cipher(2), "rmse") / r.size(FDH, "rmse")


def ratios_to_fdh(r: Results) -> list[Floats]:
    """TVD, l∞ and RMSE × cost of CIPHER 2-way over FDH's."""
    return [tvd_over_fdh(r), linf_over_fdh(r), rmse_over_fdh(r)]


def change_with_epsilon(r: Results) -> Floats:
    """Mean logarithm of TVD, l∞ and RMSE × cost of CIPHER 2-way over FDH's at ε > 1 less that at ε < 1."""
    gaps = []
    for ratio in ratios_to_fdh(r):
        by_epsilon = np.log(ratio).reshape(*ratio.shape[:3], -1).mean(axis=(1, 3))
        gaps.append(by_epsilon[:, LARGE].mean(axis=1) - by_epsilon[:, SMALL].mean(axis=1))
    return np.stack(gaps, axis=1)


def three_way_tvd(r: Results) -> Floats:
    """TVD × cost of CIPHER 3-way over CIPHER 2-way's."""
    return r.tvd(r.cipher(3)) / r.tvd(r.cipher(2))


def mwem_fall(r: Results) -> Floats:
    """TVD of MWEM at e⁻² over that at e², 2- and 3-way."""
    tables = [r.tvd(r.mwem(order)) for order in (2, 3)]
    falls = np.stack([table[:, :, 0] / table[:, :, -1] for table in tables], axis=1)
    return falls.reshape(len(falls), -1)


def tvd_over_mwem(r: Results) -> Floats:
    """TVD × cost of CIPHER 2-way over MWEM 2-way's."""
    return r.tvd(r.cipher(2)) / r.tvd(r.mwem(2))


def three_way_linf(r: Results) -> Floats:
    """l∞ × cost of CIPHER 3-way over the worse of CIPHER 2-way's and FDH's."""
    return r.linf(r.cipher(3)) / np.maximum(r.linf(r.cipher(2)), r.linf(FDH))


def _best_other_linf(r: Results) -> Floats:
    return np.asarray(np.min([r.score(method, "linf") for method in r.trio], axis=0))


def mwem_linf_over_best(r: Results) -> Floats:
    """l∞ of MWEM on the tables it was given over the best of FDH's and CIPHER's, un-normalised."""
    own = over_orders(lambda order: r.score(r.mwem(order), "linf")[..., order - 2])
    return own / _best_other_linf(r)


def best_rounds_linf_over_best(r: Results) -> Floats:
    """l∞ of MWEM with the best T in hindsight over the best of FDH's and CIPHER's, un-normalised."""
    return over_orders(lambda order: r.after("linf", order).min(axis=1)) / _best_other_linf(r)


def gaps_to_others(r: Results) -> Floats:
    """TVD and l∞ × cost of CIPHER 2-way less those of FDH, CIPHER 3-way and MWEM 2-way."""
    gaps = [
        score(r.cipher(2)) - score(other)
        for other in (FDH, r.cipher(3), r.mwem(2))
        for score in (r.tvd, r.linf)
    ]
    return np.concatenate([gap.reshape(*gap.shape[:2], -1) for gap in gaps], axis=2)


def bias_spread(r: Results) -> Floats:
    """Mean absolute bias × cost of CIPHER 2-way, CIPHER 3-way and FDH, largest over smallest."""
    bias = [r.size(method, "bias") for method in r.trio]
    return np.asarray(np.max(bias, axis=0) / np.min(bias, axis=0))


def coverage_spread(r: Results) -> Floats:
    """Mean coverage of CIPHER 2-way, CIPHER 3-way and FDH, largest less smallest."""
    coverage = [r.score(method, "coverage").mean(axis=-1) for method in r.trio]
    return np.asarray(np.max(coverage, axis=0) - np.min(coverage, axis=0))


def rmse_over_three_way(r: Results) -> Floats:
    """RMSE × cost of CIPHER 2-way over CIPHER 3-way's."""
    return r.size(r.cipher(2), "rmse") / r.size(r.cipher(3), "rmse")


def coverage(r: Results) -> Floats:
    """Coverage of each of ten parameters, CIPHER 2-way, CIPHER 3-way and FDH."""
    return np.stack([r.score(method, "coverage") for method in r.trio], axis=-1)


def mwem_coverage(r: Results) -> Floats:
    """Coverage of each of ten parameters, MWEM 2- and 3-way."""
    return over_orders(lambda order: r.score(r.mwem(order), "coverage"))


def mwem_shortfall_change(r: Results) -> Floats:
    """Mean shortfall of MWEM's coverage from 95 % at ε < 1 less that at ε > 1."""
    short = np.maximum(0.95 - mwem_coverage(r), 0.0).mean(axis=(3, 4))
    return np.asarray(short[:, :, SMALL].mean(axis=2) - short[:, :, LARGE].mean(axis=2))


def mwem_rmse_over_best(r: Results) -> Floats:
    """RMSE × cost of the better of MWEM 2- and 3-way over the best of FDH's and CIPHER's."""
    own = over_orders(lambda order: r.size(r.mwem(order), "rmse")).min(axis=-1)
    return np.asarray(own / np.min([r.size(method, "rmse") for method in r.trio], axis=0))


def rmse_over_original(r: Results) -> Floats:
    """RMSE of CIPHER 2-way, CIPHER 3-way and FDH over the original's, un-normalised."""
    original = exactly(r.score(ORIGINAL, "rmse")[0, :, :1].mean(axis=-1))
    return np.stack([r.score(method, "rmse").mean(axis=-1) / original for method in r.trio], axis=-1)


def rmse_steps(r: Results) -> Floats:
    """Change of that from one ε to the next."""
    return np.diff(rmse_over_original(r), axis=2)


def between(r: Results) -> Floats:
    """Bias, RMSE and mean coverage at e⁻¹ and e, n = 200: how far they are inside their neighbours', and a tenth (coverage: two points)."""
    gaps = []
    for method in r.trio:
        for metric in ("bias", "rmse", "coverage"):
            values = np.abs(r.score(method, metric)).mean(axis=-1)[:, 0]
            slack = 0.02 if metric == "coverage" else 0.1 * values[:, 1::2]
            before, here, after = values[:, 0:3:2], values[:, 1::2], values[:, 2::2]
            low, high = np.minimum(before, after), np.maximum(before, after)
            gaps.append(np.minimum(here - low, high - here) + slack)
    return np.concatenate(gaps, axis=1)


def rarest_lead(r: Results) -> Floats:
    """Share of the rarest other SSS category less that of the more frequent of Worst and I−, five methods."""
    others = [name for name in CATEGORIES if name not in ("Worst", "I-")]
    return np.stack(
        [
            np.min([r.share(method, name) for name in others], axis=0)
            - np.maximum(r.share(method, "Worst"), r.share(method, "I-"))
            for method in r.papers
        ],
        axis=-1,
    )


def gain_lead(r: Results) -> Floats:
    """Gain in Best from e⁻² to e², the least of FDH's and CIPHER's less twice the larger of MWEM's."""

    def gain(method: str) -> Floats:
        best = r.share(method, "Best")
        return np.asarray(best[:, :, -1] - best[:, :, 0])

    slow = np.maximum(gain(r.mwem(2)), gain(r.mwem(3)))
    return np.asarray(np.min([gain(method) for method in r.trio], axis=0) - 2 * slow)


def best_lead(r: Results) -> Floats:
    """Share of Best of FDH less the best other's."""
    others = [r.share(method, "Best") for method in r.papers[1:]]
    return np.asarray(r.share(FDH, "Best") - np.max(others, axis=0))


def best_over_cipher(r: Results) -> Floats:
    """Share of Best of FDH less CIPHER 2-way's."""
    return r.share(FDH, "Best") - r.share(r.cipher(2), "Best")


def middle_lead(r: Results) -> Floats:
    """That lead, mean over e⁻¹, 1 and e, less the larger of those at e⁻² and e²."""
    lead = best_over_cipher(r)
    return np.asarray(lead[:, :, MIDDLE].mean(axis=2) - np.maximum(lead[:, :, 0], lead[:, :, -1]))


def lost_power(r: Results) -> Floats:
    """Share of II+, FDH and CIPHER."""
    return np.stack([r.share(method, "II+") for method in r.trio], axis=-1)


def lost_sign(r: Results) -> Floats:
    """Share of II−, FDH and CIPHER."""
    return np.stack([r.share(method, "II-") for method in r.trio], axis=-1)


def odds_spread(r: Results) -> Floats:
    """Odds of Best / cost of CIPHER 2-way, CIPHER 3-way and FDH, largest over smallest."""
    odds = [r.odds(method) for method in r.trio]
    return np.asarray(np.max(odds, axis=0) - np.min(odds, axis=0))


def three_way_odds_lead(r: Results) -> Floats:
    """Log-odds of Best / cost of CIPHER 3-way less the larger of CIPHER 2-way's and FDH's."""
    return r.odds(r.cipher(3)) - np.maximum(r.odds(r.cipher(2)), r.odds(FDH))


def mwem_odds_gap(r: Results) -> Floats:
    """Odds of Best / cost of MWEM, 2- and 3-way the further, against the nearest of FDH's and CIPHER's."""
    gaps = [
        np.min([np.abs(r.odds(r.mwem(order)) - r.odds(method)) for method in r.trio], axis=0)
        for order in (2, 3)
    ]
    return np.asarray(np.max(gaps, axis=0))


def mwem_odds_rise(r: Results) -> Floats:
    """Log-odds of Best of MWEM at e² less those at e⁻², 2- and 3-way."""
    odds = [r.odds(r.mwem(order), normal=False) for order in (2, 3)]
    return np.concatenate([each[:, :, -1] - each[:, :, 0] for each in odds], axis=1)


def averaging_ratio(r: Results) -> Floats:
    """Distance (TVD) of the result's one-way margins from the average of the noisy tables' own, over those of the tables' own."""
    if r.condition.reading == OURS:
        raise Settled("reconciled by inverse variance before anything else", holds=True)
    gaps = r.score(r.cipher(2), "averaging")
    return gaps[..., 0] / gaps[..., 1]


def rmse_of_sets(r: Results) -> Floats:
    """RMSE of CIPHER 2-way (literal) with the best of m = 2, 3, 5 over that with m = 1, same budget."""

    def rmse(sets: int) -> Floats:
        return np.asarray(r.score(simulated.fewer(simulated.CIPHER[2], sets), "rmse").mean(axis=-1))

    more = [rmse(sets) for sets in (*simulated.FEWER_SETS[1:], simulated.SETS)]
    return np.asarray(np.min(more, axis=0) / rmse(1))


def ridge_spread(r: Results) -> Floats:
    """TVD × cost of pairs under λ = 10⁻⁴, 10⁻³ and 10⁻², largest over smallest."""
    if r.first is None or not set(RIDGES) <= set(r.first.readings):
        raise Settled("needs the readings with other λ: --reading all")
    lines = [r.tvd(read(simulated.CIPHER[2], name))[..., 1] for name in RIDGES[:3]]
    return np.asarray(np.max(lines, axis=0) / np.min(lines, axis=0))


def _seconds(r: Results, name: str) -> Floats:
    """By experiment."""
    means = [r.score(name, "seconds")[..., 0].mean(axis=(1, 2))]
    if r.second is not None:
        means.append(r.score2(name, "seconds").mean(axis=(1, 2)))
    return np.stack(means, axis=1)


def seconds(r: Results) -> Floats:
    """Mean processor seconds of a fit of CIPHER in both experiments."""
    return _seconds(r, TIMED)


def fourier_seconds_lead(r: Results) -> Floats:
    """Mean processor seconds of a fit of Fourier 2-way less those of CIPHER, this package's implementations, both experiments."""
    return _seconds(r, "Fourier 2-way") - _seconds(r, TIMED)


def junction_tree_seconds_lead(r: Results) -> Floats:
    """Mean processor seconds of a fit of the junction tree less those of CIPHER, this package's implementations, both experiments."""
    return _seconds(r, "junction tree") - _seconds(r, TIMED)


def dirichlet_tvd(r: Results) -> Floats:
    """TVD of Multinomial–Dirichlet over the worse of FDH's and modips's."""
    worse = np.maximum(r.score(FDH, THINNED), r.score("modips", "tvd"))
    return np.asarray(r.score("Multinomial–Dirichlet", "tvd") / worse)


def best_other_over_fdh(r: Results) -> Floats:
    """TVD of the best of CIPHER, MWEM, PrivBayes, Fourier and junction tree over FDH's, un-normalised."""
    rivals = [name for name in RIVAL_NAMES if name not in ("modips", "Multinomial–Dirichlet")]
    least = np.min([r.score(name, "tvd") for name in (*r.papers[1:], *rivals)], axis=0)
    return np.asarray(least / r.score(FDH, "tvd"))


def leads_over_mwem(r: Results) -> list[Floats]:
    """CIPHER 2-way against MWEM 2-way: TVD, l∞ and RMSE × cost, bias and coverage of each parameter, share of Best; in experiment 2 Best and accuracy."""
    cipher, mwem = r.cipher(2), r.mwem(2)
    errors: list[Callable[[str], Floats]] = [
        r.tvd,
        r.linf,
        lambda method: r.size(method, "rmse"),
        lambda method: np.abs(r.score(method, "bias")),
        lambda method: np.abs(r.score(method, "coverage") - 0.95),
        lambda method: -r.share(method, "Best"),
    ]
    leads = [error(mwem) - error(cipher) for error in errors]
    if r.second is not None and (r.cipher2, "Best") in r.second.means:
        leads += [r.score2(r.cipher2, key) - r.score2(r.mwem2, key) for key in ("Best", "accuracy")]
    return leads


@cache
def _noiseless_tvd(lam: float) -> float:
    """The TVD of pairs when CIPHER solves the exact pairs of the population."""
    pairs = combinations(range(len(SHAPE)), 2)
    tables = [(axes, margins(POPULATION.joint[None], axes)[0], 0.0) for axes in pairs]
    joint = solve_paper(SHAPE, tables, Paper(lam=lam, target="last"))[0]
    return float(tvd(POPULATION.joint[None], joint[None], [2])[0, 0])


def shrinkage_steps(r: Results) -> Floats:
    """Change of the TVD of the population's exact pairs, without any noise, as λ goes from 10⁻⁴ to 10⁻¹."""
    return exactly(np.diff([_noiseless_tvd(lam) for lam in (1e-4, 1e-3, 1e-2, 1e-1)]))


def _rounds_tvd(r: Results) -> Floats:
    """Replicates, rounds, n, epsilon, order."""
    return over_orders(lambda order: r.after("tvd", order))


def worst_rounds(r: Results) -> Floats:
    """TVD of MWEM's own tables with the worst of T = 1…32 over that with the best."""
    lines = _rounds_tvd(r)
    return np.asarray(lines.max(axis=1) / lines.min(axis=1))


def tuned_rounds(r: Results) -> Floats:
    """TVD of MWEM's own tables with the T tuned on independent data over that with the best."""
    lines = _rounds_tvd(r)
    tuned = over_orders(lambda order: r.score(r.mwem(order), "rounds")[0, ..., 0])
    place = np.searchsorted(ROUNDS, np.rint(tuned).astype(int))
    picked = np.take_along_axis(lines, np.broadcast_to(place, (len(lines), 1, *place.shape)), axis=1)[:, 0]
    return np.asarray(picked / lines.min(axis=1))


def first_rounds(r: Results) -> Floats:
    """TVD of MWEM's own tables with T = 1 over that with the best T."""
    lines = _rounds_tvd(r)
    return np.asarray(lines[:, 0] / lines.min(axis=1))


def last_rounds(r: Results) -> Floats:
    """TVD of MWEM's own tables with T = 32 over that with the best T."""
    lines = _rounds_tvd(r)
    return np.asarray(lines[:, -1] / lines.min(axis=1))


@cache
def _noiseless_mwem(form: str, rounds: int) -> float:
    counts = np.rint(1e6 * POPULATION.joint).astype(np.int64)[None]
    method, seed = METHODS[simulated.MWEM[form][2]], np.random.SeedSequence(1)
    # Discrete noise of scale .02 is none: it differs from 0 with probability e⁻⁵⁰.
    drawn = method.draw(counts, epsilon=100 * rounds, seed=seed, rounds=rounds)
    return float(tvd(counts, drawn.chances, [2])[0, 0])


def noiseless_mwem(r: Results) -> Floats:
    """TVD of MWEM's pairs without any noise, T = 1, 2, 4, 8, 16, 32."""
    return exactly([_noiseless_mwem(r.form, rounds) for rounds in ROUNDS])


def limit_gap(r: Results) -> Floats:
    """Largest difference of a cell between CIPHER with the full table as its only query and FDH, same noise."""
    noisy = np.random.default_rng(1).laplace(POPULATION.joint * 200, 5.0)
    joint = solve_paper(SHAPE, [(tuple(range(4)), noisy, 50.0)], Paper())[0]
    clipped = np.maximum(noisy, 0)
    return exactly(np.abs(joint - clipped / clipped.sum()).max())


def mwem_limit(r: Results) -> Floats:
    """TVD of MWEM with the full table as its only query, T = 1, over FDH's."""
    return np.asarray(np.log(r.score(LIMITS[r.form], "tvd") / r.score(FDH, "tvd")))


def _three(r: Results) -> tuple[str, ...]:
    return (FDH, r.cipher2, r.mwem2)


def bad_share(r: Results) -> Floats:
    """Share of Worst, II− and I− together, FDH, CIPHER and MWEM."""
    bad = [sum(r.score2(method, name) for name in ("Worst", "II-", "I-")) for method in _three(r)]
    return np.stack(bad, axis=-1)


def good_share(r: Results) -> Floats:
    """Share of Best and Neutral together, FDH, CIPHER and MWEM."""
    good = [r.score2(method, "Best") + r.score2(method, "Neutral") for method in _three(r)]
    return np.stack(good, axis=-1)


def _lead2(r: Results, method: str, metric: str) -> Floats:
    others = [r.score2(other, metric) for other in _three(r) if other != method]
    return np.asarray(r.score2(method, metric) - np.max(others, axis=0))


def fdh_best_lead(r: Results) -> Floats:
    """Share of Best of FDH less the larger of CIPHER's and MWEM's."""
    return _lead2(r, FDH, "Best")


def mwem_best_over_others(r: Results) -> Floats:
    """Share of Best of MWEM less the larger of FDH's and CIPHER's."""
    return _lead2(r, r.mwem2, "Best")


def mwem_best(r: Results) -> Floats:
    """Share of Best of MWEM."""
    return r.score2(r.mwem2, "Best")


def mwem_best_rise(r: Results) -> Floats:
    """Share of Best of MWEM at e² less that at e⁻²."""
    return mwem_best(r)[..., -1] - mwem_best(r)[..., 0]


def cipher_accuracy_lead(r: Results) -> Floats:
    """Accuracy of CIPHER less the larger of FDH's and MWEM's."""
    return _lead2(r, r.cipher2, "accuracy")


def cipher_accuracy_range(r: Results) -> Floats:
    """Largest less smallest accuracy of CIPHER at the three ε ≤ 1."""
    accuracy = r.score2(r.cipher2, "accuracy")[..., :3]
    return np.asarray(accuracy.max(axis=-1) - accuracy.min(axis=-1))


def fdh_accuracy_lead(r: Results) -> Floats:
    """Accuracy of FDH less CIPHER's."""
    return r.score2(FDH, "accuracy") - r.score2(r.cipher2, "accuracy")


def mwem_accuracy(r: Results) -> Floats:
    """Accuracy of MWEM."""
    return r.score2(r.mwem2, "accuracy")


def printed_accuracies(r: Results) -> Floats:
    """Distance from the printed accuracies, which come without m, the split, the SVM, the number of runs and the spread."""
    assert r.second is not None  # its part of the page is judged only then
    ours = 100 * r.second.means[FDH, "accuracy"][0, ..., 0]
    gaps = [f"{gap:.0f}" for gap in np.abs(ours - PRINTED["FDH"]).max(axis=1)]
    raise Settled(f"our FDH is at most {gaps[0]} (m = 1) or {gaps[1]} points (m = 5) from the printed one")
