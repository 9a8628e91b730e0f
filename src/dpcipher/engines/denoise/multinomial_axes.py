"""The principal axes of diag(p) − ppᵀ, the covariance of a multinomial, in time that grows with the square of the levels.

It is a diagonal matrix less one of rank one. With levels of equal probability put together, its eigenvalues lie between neighbouring probabilities
q₁ < q₂ < …, where the secular function Σ m·q / (q − λ) is zero (m levels have probability q), and the eigenvector of λ is proportional to
q / (q − λ) (Golub 1973, Some modified matrix eigenvalue problems, section 5). Two things keep the vectors orthogonal to the last digits: differences
q − λ are taken from the nearer pole, never between rounded numbers, and the rank-one part is replaced by the one that has exactly the eigenvalues that
were found (Gu and Eisenstat 1994, A stable and efficient algorithm for the rank-one modification of the symmetric eigenproblem, section 3).
"""

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Floats

TIES = 1e-12  # probabilities that differ by less, relative to the larger, are taken as equal
LEAST = 1e-100  # stands for a probability of zero
STEPS = 50  # at most; five are usual
BLOCK = 64  # gaps at a time, so that all numbers at work stay in the cache
EPSILON = float(np.finfo(float).eps)


def multinomial_axes(probability: Floats) -> tuple[Floats, Floats]:
    """The eigenvalues of diag(p) − ppᵀ, without the zero that belongs to the constant vector, and an orthonormal basis of contrasts."""
    p = np.maximum(probability / probability.sum(), LEAST)
    order = np.argsort(p)
    ranked = p[order]
    new = np.r_[True, np.diff(ranked) > TIES * ranked[1:]]
    group = np.empty(len(p), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    values, many = ranked[new], np.bincount(group)
    tied, contrasts = _within_groups(group, many)
    eigenvalues, vectors = _between_groups(values, many.astype(float))
    spread = vectors[group] / np.sqrt(many)[group, None]
    return np.concatenate([values[tied], eigenvalues]), np.concatenate([contrasts, spread], axis=1)


def _within_groups(group: NDArray[np.intp], many: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
    """Contrasts of levels of equal probability: the group of each, and the columns of a reflection that turns the constant vector into an axis."""
    tied = np.repeat(np.arange(len(many)), many - 1)
    contrasts = np.zeros((len(group), len(tied)))
    start = 0
    for number in np.flatnonzero(many > 1):
        levels, size = np.flatnonzero(group == number), many[number]
        normal = np.full(size, size**-0.5)
        normal[0] += 1.0
        reflection = np.eye(size)[:, 1:] - np.outer(normal, normal[1:] / normal[0])
        contrasts[levels, start : start + size - 1] = reflection
        start += size - 1
    return tied, contrasts


def _between_groups(values: Floats, many: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues between distinct probabilities, and their vectors over the groups."""
    gap = np.diff(values)
    eigenvalues, distance = np.empty(len(gap)), np.empty((len(values), len(gap)))
    for start in range(0, len(gap), BLOCK):
        block = slice(start, start + BLOCK)
        nearer, shift = _roots(values, many * values, gap[block], start)
        eigenvalues[block] = values[nearer] + shift
        distance[:, block] = (values[:, None] - values[nearer]) - shift
    vectors = _rank_one_part(values, distance)[:, None] / distance
    return eigenvalues, vectors / np.sqrt(np.einsum("ij,ij->j", vectors, vectors))


def _roots(values: Floats, weight: Floats, gap: Floats, start: int) -> tuple[NDArray[np.intp], Floats]:
    """The zeros in the gaps after `values[start:]`: the nearer end of each gap, and how far from it the zero is.

    Bunch, Nielsen and Sorensen's iteration (1978): the sums over the poles on either side are each replaced by one pole at that end of the gap and
    a constant, which agree with them and their slopes at the last point. It converges quadratically.
    """
    left = np.arange(start, start + len(gap))
    rising = (
        weight @ (1.0 / ((values[:, None] - values[left]) - gap / 2)) < 0
    )  # the zero is in the right half
    nearer, side = left + rising, np.where(rising, -1.0, 1.0)
    poles = values[:, None] - values[nearer]
    ends = np.where(rising, -gap, 0.0), np.where(rising, 0.0, gap)
    shift = side * gap / 2
    for _ in range(STEPS):
        inverse = 1.0 / (poles - shift)
        below, above = np.minimum(inverse, 0.0), np.maximum(inverse, 0.0)
        slopes = [
            (weight @ part**2) * (end - shift) ** 2 for part, end in zip((below, above), ends, strict=True)
        ]
        constant = weight @ inverse - slopes[0] / (ends[0] - shift) - slopes[1] / (ends[1] - shift)
        linear = side * constant * gap + slopes[0] + slopes[1]
        free = np.where(rising, slopes[1], slopes[0]) * gap
        root = np.sqrt(np.maximum(linear**2 - 4 * side * constant * free, 0.0))
        last, shift = shift, side * np.minimum(2 * free / (linear + root), gap)
        if (np.abs(shift - last) <= 4 * EPSILON * np.abs(shift)).all():
            break
    return nearer, shift


def _rank_one_part(values: Floats, distance: Floats) -> Floats:
    """The vector b for which diag(q) − bbᵀ has exactly the eigenvalues found, and zero."""
    logarithm = np.log(values)
    for place, value in enumerate(values):
        apart = np.abs(value - values)
        apart[place] = 1.0
        logarithm[place] += np.log(np.abs(distance[place])).sum() - np.log(apart).sum()
    return np.exp(logarithm / 2)
