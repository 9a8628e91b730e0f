"""MWEM of many tables at once.

`mwem_many` takes the steps of `dpcipher.methods.mwem.MWEM` (whole tables, all measurements replayed in every round, last table
returned), and `mwem_cells` those of its `queries="cells"` with a single pass and `average=True`, which is the algorithm as first
published (Hardt, Ligett and McSherry 2012, figure 1). Both work on a stack of tables that share n: one fit at a time, the hundred
thousand fits of the first experiment would take hours. Here n is public, as in the paper, and noise is seeded: NOT PRIVATE.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.domain import Axes, Counts, Floats
from dpcipher.tables.measurement import Noise

PASSES = 20
# One person moves the L1 error of a table by one when a row is added or removed.
_SENSITIVITY = 1.0


@dataclass(frozen=True)
class _Answer:
    """Noisy answers to one table: which members of the stack asked for it, the axes it sums over, and the answers."""

    members: NDArray[np.intp]
    drop: Axes
    noisy: Floats

    def apply(self, stack: Floats, n_rows: int) -> None:
        """A(x) ← A(x)·exp(q(x)·(answer − q(A))/2n), normalised, in place."""
        part = stack[self.members]
        margin = part.sum(axis=self.drop, keepdims=True)
        factor = np.exp((self.noisy - margin) / (2 * n_rows))
        # The new total follows from the margin, so that the tables are passed over once, not twice.
        total = (margin * factor).sum(axis=tuple(range(1, factor.ndim)), keepdims=True)
        factor *= n_rows / total
        part *= factor
        stack[self.members] = part


def mwem_many(
    counts: Counts, tables: Sequence[Axes], *, epsilon: float, rounds: int, seed: np.random.SeedSequence
) -> Floats:
    """The last table of MWEM, in counts, for each true table of a stack (first axis)."""
    shape, n_rows = counts.shape[1:], int(counts[0].sum())
    choices, noise = seed.spawn(2)
    rng, source = np.random.default_rng(choices), SeededNoise(int(noise.generate_state(1, np.uint64)[0]))
    mechanism = Noise("laplace", 2 * rounds / epsilon)
    truths = [_margin(counts, axes) for axes in tables]
    stack = np.full(counts.shape, n_rows / np.prod(shape))
    seen: list[_Answer] = []
    for _ in range(rounds):
        scores = np.stack([_score(truth, stack) for truth in truths], axis=1)
        # The exponential mechanism by Gumbel noise: Pr ∝ exp(epsilon/(2·rounds) · score / (2 · sensitivity)).
        chosen = np.argmax(
            scores * epsilon / (4 * rounds * _SENSITIVITY) + rng.gumbel(size=scores.shape), axis=1
        )
        seen += [
            _measure(np.flatnonzero(chosen == q), truths[q], n_rows, mechanism, source)
            for q in np.unique(chosen)
        ]
        replay_many(stack, seen, n_rows)
    return stack


def mwem_cells(
    counts: Counts, tables: Sequence[Axes], *, epsilon: float, rounds: int, seed: np.random.SeedSequence
) -> Floats:
    """The mean of the tables of all rounds, where a query is one cell of one table and is used once."""
    n_rows = int(counts[0].sum())
    choices, noise = seed.spawn(2)
    rng, source = np.random.default_rng(choices), SeededNoise(int(noise.generate_state(1, np.uint64)[0]))
    mechanism = Noise("laplace", 2 * rounds / epsilon)
    queries = _cells(counts.shape[1:], tables)
    truth = np.rint(counts.reshape(len(counts), -1) @ queries).astype(np.int64)
    stack = np.full((len(counts), len(queries)), n_rows / len(queries))
    mean, members = np.zeros_like(stack), np.arange(len(counts))
    for _ in range(rounds):
        mean += stack / rounds
        answers = stack @ queries
        scores = np.abs(truth - answers) * epsilon / (4 * rounds * _SENSITIVITY)
        chosen = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        noisy = np.clip(source.add(truth[members, chosen], mechanism), -n_rows, 2 * n_rows)
        stack *= np.exp(queries[:, chosen].T * ((noisy - answers[members, chosen]) / (2 * n_rows))[:, None])
        stack *= n_rows / stack.sum(axis=1, keepdims=True)
    return mean.reshape(counts.shape)


def _cells(shape: tuple[int, ...], tables: Sequence[Axes]) -> Floats:
    """Every cell of every table as a column: one where a cell of the full table belongs to it."""
    places = np.indices(shape).reshape(len(shape), -1)
    columns = []
    for axes in tables:
        sizes = [shape[axis] for axis in axes]
        number = np.ravel_multi_index([places[axis] for axis in axes], sizes)
        columns.append(np.eye(int(np.prod(sizes)))[number])
    return np.concatenate(columns, axis=1)


def replay_many(stack: Floats, seen: Sequence[_Answer], n_rows: int) -> None:
    """Several passes over all answers so far, in place."""
    for _ in range(PASSES):
        for answer in seen:
            answer.apply(stack, n_rows)


def _measure(
    members: NDArray[np.intp], truth: Counts, n_rows: int, mechanism: Noise, source: SeededNoise
) -> _Answer:
    noisy = source.add(truth[members], mechanism).astype(float)
    # As in the method: what is far outside [0, n] is noise and must not overflow the table.
    return _Answer(members, _dropped(truth), np.clip(noisy, -n_rows, 2 * n_rows))


def _margin(counts: Counts, axes: Axes) -> Counts:
    """The margin of every member, summed axes kept at length one."""
    drop = tuple(1 + axis for axis in range(counts.ndim - 1) if axis not in axes)
    return np.asarray(counts.sum(axis=drop, keepdims=True))


def _dropped(margin: Counts) -> Axes:
    return tuple(axis for axis in range(1, margin.ndim) if margin.shape[axis] == 1)


def _score(truth: Counts, stack: Floats) -> Floats:
    """L1 error of the table less its number of cells."""
    gap = np.abs(truth - stack.sum(axis=_dropped(truth), keepdims=True))
    return np.asarray(gap.sum(axis=tuple(range(1, truth.ndim))) - truth[0].size)
