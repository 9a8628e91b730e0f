"""The paper engine: Algorithm 1 of Eugenio & Liu (arXiv 1812.05671), to be faithful rather than good.

For j = 2…p and every set S of j attributes that no measured table covers: pick a target x₁ in S, stack the equations

    sum over x_k of P(x_k | S∖x₁,x_k) z(x₁ | S∖x₁) = P(x₁ | S∖x₁,x_k)            k = 2…j

over one shared z for all levels of x₁ but the last, solve (AᵀA + λI) z = Aᵀb, and multiply by P(S∖x₁). Clip and normalise once, at
the end. The printed algorithm has slips; where we read it differently:

* the loop runs from j = 2 over the sets outside closure(Q), not from the lowest order in Q, and k to j, not j − 1;
* the A_k are stacked over one z, as in the supplement, not put side by side;
* coefficients come from the one table P(S∖x₁); a right-hand side is divided by the sums of its own table P(S∖x_k);
* a noisy table is divided by its own sum (at least 1); several tables that cover S are averaged by inverse variance.

What it leaves open are the fields of `Paper`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite, prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.engine import Problem, groups_note
from dpcipher.engines.ridge import DENSE_SIZE, Family, solve_ridge
from dpcipher.engines.targets import Fit
from dpcipher.errors import ParameterError, SizeError, SolveError, WorkloadError, did_you_mean
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Floats, Zero, zero_cells
from dpcipher.tables.table import margin

# The cells of all 2^p - 1 subset tables together; ten attributes of five levels have 60 million.
MAX_CELLS = 2**27

# A sum below this share of the absolute values in it is what opposite signs left over: "probabilities" beyond ten would follow.
_CANCELLED = 0.1
# A sum below this share is zero but for rounding.
_NOTHING = 1e-6

Measured = tuple[Axes, Floats, float]

GUARDS = ("none", "rows", "steps")
TARGETS = ("random", "largest", "last", "average")


@dataclass(frozen=True, kw_only=True)
class Paper:
    """Algorithm 1 of the paper as it is printed, or by one way to read it where it is silent.

    `guard`: `"none"` divides by whatever comes, but zero, as printed; `"rows"` leaves out equations whose denominator is below half a count, or
    a tenth of the absolute values it sums; `"steps"` clips and normalises every table, measured or built, before it is used. `target` is the
    attribute x₁ whose conditional is solved for: `"random"` for every set of attributes as printed, `"largest"` (most levels), `"last"`, or the
    `"average"` over all. `lam` is the ridge. `clip` sets negative counts of the noisy tables to zero first.

    >>> Paper.read_as("averaged")
    Paper(guard='steps', target='average', lam=0.01, clip=False)
    """

    guard: str = "none"
    target: str = "random"
    lam: float = 0.01
    clip: bool = False
    name: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        _check_word("guard", self.guard, GUARDS)
        _check_word("target", self.target, TARGETS)
        real = isinstance(self.lam, int | float) and not isinstance(self.lam, bool)
        if not (real and isfinite(self.lam) and self.lam > 0):
            raise ParameterError(f"lam ({self.lam!r:.60}) must be a finite number above 0; try lam=0.01")
        if not isinstance(self.clip, bool):
            raise ParameterError(f"clip ({self.clip!r}) must be True or False")

    @classmethod
    def read_as(cls, reading: str) -> "Paper":
        """A reading by its name."""
        _check_word("reading", reading, tuple(READINGS))
        return READINGS[reading]

    def __str__(self) -> str:
        clipped = ", noisy tables clipped" if self.clip else ""
        return f"guard {self.guard}, {self.target} target, λ = {self.lam:g}{clipped}"

    def check(self, schema: Schema) -> None:
        """Refuse nothing: whether the tables fit is known with the release, where one may hold all columns."""

    def solve(self, problem: Problem) -> tuple[Core, Fit]:
        """From the noisy tables straight to the joint; only repeats of one table become one, and tables in groups of levels are refined."""
        reconciled = problem.reconciled
        known = [table for table in reconciled.in_counts() if not table.query.groups]
        tables = [(table.query.axes, table.counts, table.variance) for table in known]
        notes: tuple[str, ...] = (f"reading: {self}",)
        if reconciled.merged:
            targets = problem.denoised()
            notes += groups_note(problem.schema, targets)
            tables += [
                (axes, targets.tables[axes] * targets.total, (targets.sigma[axes] * targets.total) ** 2)
                for axes in targets.refined
            ]
        rng = np.random.default_rng([problem.seed, *problem.key])
        probabilities, fit = solve_paper(reconciled.shape, tables, self, rng=rng)
        skipped = f"{fit.skipped} equations had no usable denominator and were left out"
        notes += (skipped,) if fit.skipped else ()
        zeros = reconciled.domain.zeros
        core = DenseTable(_cleared(probabilities, zeros) if zeros else probabilities)
        return core, Fit(fit.converged, notes=notes, negative_mass=fit.negative_mass)


def _check_word(name: str, word: object, known: tuple[str, ...]) -> None:
    if word not in known:
        hint = did_you_mean(str(word), known)
        raise ParameterError(f"{name} ({word!r}) must be one of {', '.join(known)}{hint}")


READINGS = {
    "literal": Paper(),
    "clipped inputs": Paper(clip=True),
    "guarded": Paper(guard="rows"),
    "guarded, clipped inputs": Paper(guard="rows", clip=True),
    "clipped": Paper(guard="steps"),
    "literal, average": Paper(target="average"),
    "averaged": Paper(guard="steps", target="average"),
}


def _cleared(probabilities: Floats, zeros: Sequence[Zero]) -> Floats:
    """Without the structural zeros, which the literal algorithm does not know."""
    shape = probabilities.shape
    kept = np.where(zero_cells(tuple(range(len(shape))), shape, zeros), 0.0, probabilities)
    if not kept.sum() > 0:
        raise SolveError(
            "the tables leave no cell with probability but structural zeros; engine='table' keeps to the zeros"
        )
    return np.asarray(kept / kept.sum())


@dataclass(frozen=True)
class PaperFit:
    """How a paper solve ended.

    `negative_mass` is the share of the table's absolute mass that the one clip at the end removed; `built` maps every set of attributes that had to be
    built to its target (the last of them, for an average); `skipped` counts the equations left out by the guard.
    """

    negative_mass: float
    built: dict[Axes, int] = field(default_factory=dict)
    skipped: int = 0
    converged: bool = True


def solve_paper(
    shape: tuple[int, ...],
    tables: Sequence[Measured],
    reading: Paper = Paper(),  # noqa: B008 - a frozen value
    *,
    rng: np.random.Generator | None = None,
) -> tuple[Floats, PaperFit]:
    """The paper's joint distribution, dense, from noisy counts `(axes, counts, variance of a cell)`; `rng` draws random targets."""
    known = _Known(shape, tables, clip=reading.clip)
    everything = tuple(range(len(shape)))
    if known.covers(everything):
        return _corrected(known.counts(everything), {}, 0, True)
    check_size(shape)
    run = _Run(shape, known, reading, rng or np.random.default_rng())
    for order in range(2, len(shape) + 1):
        run.climb(order)
    return _corrected(run.latest[everything], run.built, run.skipped, run.converged)


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse what would not fit, before any work."""
    cells = prod(size + 1 for size in shape) - 1
    if cells > MAX_CELLS:
        raise SizeError(
            f"the tables of all {2 ** len(shape) - 1:,} sets of attributes ({cells:,} cells) must have at most {MAX_CELLS:,} "
            "for engine='paper'; use engine='table' (the full table only) or engine='rows' (any size)"
        )


def _corrected(
    table: Floats, built: dict[Axes, int], skipped: int, converged: bool
) -> tuple[Floats, PaperFit]:
    """Clip and normalise, once; a table with nothing left becomes uniform."""
    positive = float(table.sum(where=table > 0))
    removed = positive - float(table.sum())
    negative = removed / (positive + removed) if removed > 0 else 0.0
    return _distribution(table), PaperFit(negative, built, skipped, converged)


def _distribution(table: Floats) -> Floats:
    clipped = np.maximum(table, 0)
    total = clipped.sum()
    return np.asarray(clipped / total if total > 0 else np.full_like(table, 1 / table.size))


class _Known:
    """The measured tables, and every table in their closure."""

    def __init__(self, shape: tuple[int, ...], tables: Sequence[Measured], *, clip: bool) -> None:
        for axes, counts, variance in tables:
            if counts.shape != tuple(shape[axis] for axis in axes) or variance < 0:
                raise WorkloadError(
                    f"table {axes} (shape {counts.shape}) must fit the attributes' levels; a variance is at least 0"
                )
        missing = sorted(set(range(len(shape))).difference(*(axes for axes, _, _ in tables)))
        if missing:
            raise WorkloadError(
                f"tables ({len(tables)}) must hold every attribute; none holds number {missing[0]}"
            )
        self.tables = [
            (axes, np.maximum(counts, 0) if clip else counts, variance) for axes, counts, variance in tables
        ]
        self.total = float(np.mean([max(counts.sum(), 1.0) for _, counts, _ in self.tables]))

    def covers(self, axes: Axes) -> bool:
        """Whether some measured table holds all of `axes`."""
        return any(set(axes) <= set(table) for table, _, _ in self.tables)

    def counts(self, axes: Axes) -> Floats:
        """A covered table in counts; only where two tables cover it is the average made, in probabilities."""
        covering = [table for table in self.tables if set(axes) <= set(table[0])]
        return margin(covering[0][1], covering[0][0], axes) if len(covering) == 1 else self.table(axes)

    def table(self, axes: Axes) -> Floats:
        """A covered table in probabilities, averaged by inverse variance over the tables that cover it."""
        parts, variances = [], []
        for table, counts, variance in self.tables:
            if set(axes) <= set(table):
                part = margin(counts, table, axes)
                total = max(float(counts.sum()), 1.0)
                parts.append(part / total)
                variances.append(variance * counts.size / part.size / total**2)
        weights = _weights(np.array(variances))
        return np.asarray(sum(weight * part for weight, part in zip(weights, parts, strict=True)))


def _weights(variances: Floats) -> Floats:
    """Inverse variances that sum to one; exact tables alone count where there are any."""
    exact = variances == 0
    inverse = exact.astype(float) if exact.any() else 1 / variances
    return np.asarray(inverse / inverse.sum())


class _Run:
    """One pass of Algorithm 1, one order after the other; only the tables of the last order are kept."""

    def __init__(
        self, shape: tuple[int, ...], known: _Known, reading: Paper, rng: np.random.Generator
    ) -> None:
        self.shape, self.known, self.reading, self.rng = shape, known, reading, rng
        self.latest: dict[Axes, Floats] = {}
        self.built: dict[Axes, int] = {}
        self.skipped, self.converged = 0, True

    def climb(self, order: int) -> None:
        """Build every table of one order that no measured table covers, from those of one order less."""
        sets = [axes for axes in combinations(range(len(self.shape)), order) if not self.known.covers(axes)]
        built = {axes: self._build(axes) for axes in sets}
        self.latest = {axes: self._step(table) for axes, table in built.items()}

    def _build(self, axes: Axes) -> Floats:
        chosen = self._targets(axes)
        self.built[axes] = chosen[-1]
        total = self._solve(axes, chosen[0])
        for target in chosen[1:]:
            total += self._solve(axes, target)
        return total / len(chosen) if len(chosen) > 1 else total

    def _targets(self, axes: Axes) -> Axes:
        rule = self.reading.target
        if rule == "random":
            return (axes[int(self.rng.integers(len(axes)))],)
        if rule == "largest":
            return (max(axes, key=lambda axis: (self.shape[axis], -axis)),)
        return axes if rule == "average" else (axes[-1],)

    def _table(self, axes: Axes) -> Floats:
        return self._step(self.known.table(axes)) if self.known.covers(axes) else self.latest[axes]

    def _step(self, table: Floats) -> Floats:
        """A table as the next step uses it: a distribution, where the reading makes it one."""
        return _distribution(table) if self.reading.guard == "steps" else table

    def _solve(self, axes: Axes, target: int) -> Floats:
        """The joint of `axes` from the equations of one target."""
        others = tuple(axis for axis in axes if axis != target)
        rest = self._table(others)
        families = [self._family(rest, axes, target, k) for k in others]
        z, met = solve_ridge(rest, families, self.reading.lam)
        self.converged &= met
        joint = np.empty((len(z) + 1, *rest.shape))
        np.multiply(z, rest, out=joint[:-1])
        np.subtract(rest, joint[:-1].sum(axis=0), out=joint[-1])  # the last level is what remains
        return np.ascontiguousarray(np.moveaxis(joint, 0, axes.index(target)))

    def _family(self, rest: Floats, axes: Axes, target: int, k: int) -> Family:
        """The equations that sum over k, bad denominators left out."""
        others = tuple(axis for axis in axes if axis != target)
        place = others.index(k)
        own = np.moveaxis(self._table(tuple(axis for axis in axes if axis != k)), _place(axes, target, k), 0)
        sums, own_sums = rest.sum(axis=place), own.sum(axis=0)
        good = self._good(sums, rest, place) & self._good(own_sums, own, 0)
        self.skipped += int(good.size - np.count_nonzero(good))
        inverse = np.divide(1.0, sums, out=np.zeros_like(sums), where=good)
        right = np.divide(own[:-1], own_sums, out=np.zeros_like(own[:-1]), where=good)
        return Family(place, np.expand_dims(inverse, place), right)

    def _good(self, sums: Floats, table: Floats, axis: int) -> NDArray[np.bool_]:
        """Which denominators may be divided by."""
        inside = np.abs(table).sum(axis=axis)
        if self.reading.guard != "rows":
            return np.asarray(np.abs(sums) > _NOTHING * inside)
        return np.asarray(sums >= np.maximum(0.5 / self.known.total, _CANCELLED * inside))


def _place(axes: Axes, target: int, k: int) -> int:
    """Where the target is in the table that lacks k."""
    return axes.index(target) - (1 if k < target else 0)


def work(shape: tuple[int, ...]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes: conjugate gradients over the tables of all sets of attributes."""
    cells = prod(size + 1 for size in shape)
    dense = min(prod(shape) // max(shape), DENSE_SIZE)
    return 2_000.0 * cells, 10 * cells + 8 * dense**2
