"""Shrink interactions by empirical Bayes: how much of them is signal is learnt from all tables of one order together.

Let D be what a table on S shows beyond its prediction from lower-order tables: centred along every axis, with white noise of
known variance W on that space. Two shapes of signal are considered, each with a size g (its mean square contingency φ²):

    even           Var D = g·N²/d · ⊗ (I − 11ᵀ/K)/K               the same in all cells
    proportional   Var D = g·N²/d · ⊗ (diag(p) − ppᵀ)             like a product of multinomials: where the rows are

with p the one-way probabilities and d = ∏(K − 1). Each is diagonal in a product of orthonormal bases of the axes, in which the
noise is white, so a coefficient z with prior variance A shrinks to z·A/(A + W), exactly, at the cost of one small matrix product
per axis; D stays centred, so margins do not move. The weights of a grid of (shape, g) are estimated from all tables of the
order by EM on their marginal likelihoods, with one pseudo-table spread over the grid; each table then gets its own posterior
mean, less of it the clearer the table is (`CLEAR`). With W = 0 nothing is shrunk.

The grid of g runs from what N rows drawn from the prediction would show by chance, d/N, to `LARGEST`. (A point mass at g = 0 would
be wrong, since the tables to estimate are counts of a sample, and costs up to 5 % at moderate noise.) One-way tables are hardly
ever as close to uniform as chance, so theirs starts at `LEAST_ONE_WAY`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from dpcipher.solve.targets import Axes, Floats

LEAST_ONE_WAY = 0.03
LARGEST_ONE_WAY = 3.0
LARGEST = 30.0
GRID = 12
PRIOR_TABLES = 1.0
STEPS = 50
CHUNK = 50_000
# A table that would keep the share CLEAR of its freedom or more is left alone, one that would keep NOISY or less is shrunk in full: in
# a clear table the gain in squared error is small, and cells that are truly empty would be moved off zero, which costs more.
CLEAR, NOISY = 0.75, 0.35


@dataclass(frozen=True)
class Deviation:
    """What one table shows beyond its prediction: centred counts, and the noise variance of each of its directions."""

    counts: Floats
    variance: float


@lru_cache(maxsize=256)
def sizes(order: int, free: int, total: float) -> Floats:
    """The grid of φ² for tables of one order with `free` free numbers."""
    if order == 1:
        return np.geomspace(LEAST_ONE_WAY, LARGEST_ONE_WAY, GRID)
    return np.geomspace(min(free / total, LARGEST / 10), LARGEST, GRID)


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis of the contrasts of one attribute, and the prior variance of each for the two shapes."""

    vectors: Floats
    spread: Floats


@lru_cache(maxsize=256)
def even_basis(levels: int) -> Basis:
    """Any basis of the contrasts, each of variance 1/levels."""
    square = np.linalg.qr(np.column_stack([np.ones(levels), np.eye(levels)[:, : levels - 1]]))[0]
    return Basis(square[:, 1:], np.full(levels - 1, 1 / levels))


def proportional_basis(probability: Floats) -> Basis:
    """The principal axes of diag(p) − ppᵀ among the contrasts."""
    contrasts = even_basis(len(probability)).vectors
    inner = contrasts.T @ (probability[:, None] * contrasts) - np.outer(
        contrasts.T @ probability, contrasts.T @ probability
    )
    spread, turn = np.linalg.eigh(inner)
    return Basis(contrasts @ turn, np.maximum(spread, 0.0))


def shrink(
    deviations: Mapping[Axes, Deviation], one_way: Mapping[int, Floats], total: float
) -> dict[Axes, Floats]:
    """The posterior mean of every deviation; `one_way` holds the probabilities of each attribute."""
    done = {axes: one.counts for axes, one in deviations.items() if one.variance == 0 or one.counts.size == 0}
    noisy = {axes: one for axes, one in deviations.items() if axes not in done}
    if not noisy:
        return done
    groups = [_Group(axes, noisy, one_way, total) for axes in _alike(noisy)]
    weights = _mix(np.concatenate([group.evidence for group in groups]))
    for group in groups:
        done.update(group.means(weights))
    return done


def _alike(deviations: Mapping[Axes, Deviation]) -> list[list[Axes]]:
    """Tables of the same shape, together, in chunks that fit in memory."""
    found: dict[tuple[int, ...], list[Axes]] = defaultdict(list)
    for axes, one in deviations.items():
        found[one.counts.shape].append(axes)
    chunks = []
    for levels, group in found.items():
        size = max(1, CHUNK // prod(levels))
        chunks += [group[i : i + size] for i in range(0, len(group), size)]
    return chunks


class _Group:
    """Tables of one shape, stacked: coefficients in both bases and the evidence for every size."""

    def __init__(
        self,
        members: list[Axes],
        deviations: Mapping[Axes, Deviation],
        one_way: Mapping[int, Floats],
        total: float,
    ) -> None:
        self.members = members
        self.noise = np.array([deviations[axes].variance for axes in members])
        self.counts = stack = np.stack([deviations[axes].counts for axes in members])
        self.bases = [_stack_even(stack.shape[1:]), _stack_proportional(members, one_way)]
        free = prod(k - 1 for k in stack.shape[1:])
        self.scale = total**2 / free
        self.sizes = sizes(len(members[0]), free, total)
        self.coefficients = [
            _turn(stack, [basis.vectors for basis in bases]).reshape(len(stack), -1) for bases in self.bases
        ]
        self.spreads = [_outer([basis.spread for basis in bases]) for bases in self.bases]
        self.evidence = self._evidence()

    def _evidence(self) -> Floats:
        """Log marginal likelihood of every table for every size of either shape."""
        columns = []
        for z, prior in zip(self.coefficients, self._priors(), strict=True):
            variance = prior + self.noise[:, None]
            columns.append(-0.5 * (np.log(variance) + z**2 / variance + np.zeros_like(z)).sum(axis=-1))
        return np.concatenate(columns).T

    def _priors(self) -> Iterator[Floats]:
        """The prior variance of every coefficient, for every size of either shape."""
        for spread in self.spreads:
            yield self.scale * np.asarray(self.sizes)[:, None, None] * spread

    def means(self, weights: Floats) -> dict[Axes, Floats]:
        """The posterior mean of each table."""
        likelihood = weights * np.exp(self.evidence - self.evidence.max(axis=1, keepdims=True))
        belief = (likelihood / likelihood.sum(axis=1, keepdims=True)).T
        result, freedom = np.zeros_like(self.counts), np.zeros(len(self.members))
        for shape, prior in enumerate(self._priors()):
            mine = belief[shape * GRID : (shape + 1) * GRID, :, None]
            kept = (mine * (prior / (prior + self.noise[:, None]))).sum(axis=0)
            z = (kept * self.coefficients[shape]).reshape(self._reduced())
            result += _turn(z, [np.swapaxes(basis.vectors, -1, -2) for basis in self.bases[shape]])
            freedom += kept.mean(axis=1)
        clear = CLEAR if result.ndim > 2 else np.inf
        trust = np.clip((clear - freedom) / (CLEAR - NOISY), 0.0, 1.0).reshape(-1, *[1] * (result.ndim - 1))
        return dict(zip(self.members, trust * result + (1 - trust) * self.counts, strict=True))

    def _reduced(self) -> list[int]:
        return [len(self.members), *(basis.vectors.shape[-1] for basis in self.bases[0])]


def _stack_even(levels: Sequence[int]) -> list[Basis]:
    bases = [even_basis(k) for k in levels]
    return [Basis(basis.vectors[None], basis.spread[None]) for basis in bases]


def _stack_proportional(members: Sequence[Axes], one_way: Mapping[int, Floats]) -> list[Basis]:
    known = {axis: proportional_basis(one_way[axis]) for axis in {axis for axes in members for axis in axes}}
    return [
        Basis(
            np.stack([known[axes[i]].vectors for axes in members]),
            np.stack([known[axes[i]].spread for axes in members]),
        )
        for i in range(len(members[0]))
    ]


def _turn(stack: Floats, vectors: Sequence[Floats]) -> Floats:
    """Multiply axis i+1 of the stack by vectors[i] (one matrix per member, or one for all)."""
    for i, matrix in enumerate(vectors):
        moved = np.moveaxis(stack, i + 1, -1)
        lead = matrix.reshape(matrix.shape[0], *(1,) * (moved.ndim - 3), *matrix.shape[1:])
        stack = np.moveaxis(moved @ lead if moved.ndim > 2 else (moved[:, None, :] @ lead)[:, 0], -1, i + 1)
    return stack


def _outer(spreads: Sequence[Floats]) -> Floats:
    """The products of one spread per axis, flat, one row per member."""
    result = spreads[0]
    for spread in spreads[1:]:
        result = (result[:, :, None] * spread[:, None, :]).reshape(max(len(result), len(spread)), -1)
    return result


def _mix(evidence: Floats) -> Floats:
    """The weights of the grid, by EM with a few pseudo-tables spread evenly over it."""
    tables, size = evidence.shape
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights = np.full(size, 1 / size)
    for _ in range(STEPS):
        # The mean belief of the tables, as two products: one EM step.
        found = weights * ((1 / (likelihood @ weights)) @ likelihood)
        weights = (found + PRIOR_TABLES / size) / (tables + PRIOR_TABLES)
    return weights
