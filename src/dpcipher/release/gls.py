"""Least squares over overlapping tables when some cells are known to be empty.

Structural zeros break the orthogonality that `components` lives on, but not the shape of the problem: tables meet only in the
margins they share. Let t be all shared margins (last levels left out, so that none is implied by another), and B the 0/1
matrix that reads table q's part of t off its possible cells. Each table contributes s = By with covariance Σ = vBBᵀ, so

    t̂ = (Σ_q Ω_q)⁻¹ Σ_q Ω_q s_q,   Ω = Σ⁻¹,      μ_q = y_q + vBᵀΩ(t̂_q − s_q),
    Var(wᵀμ_q) = v|w|² − aᵀΩa + (Ωa)ᵀ Cov(t̂_q) (Ωa),   a = vBw,

which is exactly generalised least squares, but for what zeros tie together beyond shared columns: where "work = no" stands exactly with "job = none", (sex, work) and
(sex, job) count the same people by different columns, and each keeps its own estimate, unbiased and with its own variance, larger than it could be. Exact tables and a public total fix entries of t; zeros can make rows of B dependent,
and a null vector n of BBᵀ then fixes nᵀt = 0. Those equations Kt = k are met exactly: t is sought in t₀ + null(K). Coarse counts (`coarse`) are sums
of entries of t, once the one-way table of their attribute is among them, and so one more source of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.coarse import Coarse
from dpcipher.release.components import ROUNDING, Noisy, cells, freedom, inside, shared_sets
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, dropped, zero_cells
from dpcipher.tables.table import broadcast_over, margin

MOST_SHARED = 5_000
MOST_TRIED = 100  # pairs of levels of an axis, when two are looked for that zeros leave alone


def _possible_pairs(possible: Bools) -> list[tuple[int, int]] | None:
    """Two levels of every axis between which all cells are possible, among the levels with the most of them; None where none are found."""
    if not possible.ndim:
        return [] if possible else None
    rank = np.argsort(-possible.reshape(len(possible), -1).sum(axis=1), kind="stable")
    for first, second in islice(combinations(rank.tolist(), 2), MOST_TRIED):
        others = _possible_pairs(np.asarray(possible[first] & possible[second]))
        if others is not None:
            return [(first, second), *others]
    return None


@dataclass(frozen=True)
class Block:
    """One table as the shared margins see it: its entries of t, B over its possible cells, Ω and the null vectors of BBᵀ."""

    index: NDArray[np.int64]
    matrix: sparse.csr_matrix
    precision: Floats
    null: Floats
    possible: Bools


@dataclass(frozen=True)
class WithZeros:
    """A least-squares fit over tables with structural zeros."""

    shape: Shape
    tables: Mapping[Axes, Noisy]
    blocks: Mapping[Axes, Block]
    shared: Floats
    covariance: Floats
    constraints: int

    @classmethod
    def fit(
        cls,
        shape: Shape,
        tables: Mapping[Axes, Noisy],
        total: float | None,
        zeros: Iterable[tuple[Axes, Bools]],
        coarse: Sequence[Coarse] = (),
    ) -> "WithZeros":
        """Estimate the shared margins t and their covariance."""
        zeros = tuple(zeros)
        where = shared_positions(shape, tables, [(one.axis,) for one in coarse])
        blocks = {
            axes: _block(table, shape, where, zero_cells(axes, shape, zeros))
            for axes, table in tables.items()
        }
        size = sum(freedom(sub, shape) for sub in where)
        sums = [(_run_sums(one, shape, where, size), one) for one in coarse]
        return cls(shape, tables, blocks, *_solve(tables, blocks, _known(tables, blocks, size, total), sums))

    def table(self, cover: Axes, axes: Axes) -> Floats:
        """The estimate of the margin of table `cover` on `axes`."""
        table, block = self.tables[cover], self.blocks[cover]
        full = np.zeros(table.counts.shape)
        full[block.possible] = table.counts[block.possible]
        gap = self.shared[block.index] - block.matrix @ full[block.possible]
        full[block.possible] += table.variance * (block.matrix.T @ (block.precision @ gap))
        return margin(full, cover, axes)

    def variance(self, cover: Axes, axes: Axes) -> Floats:
        """The variance of every cell of `table(cover, axes)`."""
        return self._variances(cover, self._sums(cover, axes)).reshape([self.shape[axis] for axis in axes])

    def _sums(self, cover: Axes, axes: Axes) -> sparse.csr_matrix:
        """The 0/1 rows that sum the possible cells of `cover` into the cells of its margin on `axes`."""
        levels = [self.shape[axis] for axis in axes]
        numbers = np.arange(cells(axes, self.shape), dtype=np.int64)
        label = np.broadcast_to(
            broadcast_over(numbers.reshape(levels), axes, cover), self.tables[cover].counts.shape
        )
        label = label[self.blocks[cover].possible]
        return sparse.csr_matrix(
            (np.ones(len(label)), (label, np.arange(len(label)))), shape=(len(numbers), len(label))
        )

    def mean_variance(self, cover: Axes, axes: Axes) -> float:
        """The mean variance of the cells of `table(cover, axes)`: traces of small matrices, whatever the number of cells."""
        table, block = self.tables[cover], self.blocks[cover]
        sums = self._sums(cover, axes)
        seen = table.variance * (sums @ block.matrix.T)
        gram = np.asarray((seen.T @ seen).todense())
        known = self.covariance[np.ix_(block.index, block.index)]
        change = block.precision @ known @ block.precision - block.precision
        total: float = table.variance * int(sums.nnz) + float((change * gram).sum())
        return max(total, 0.0) / int(sums.shape[0])

    def linear_variance(self, cover: Axes, axes: Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table)`."""
        block, levels = self.blocks[cover], self.tables[cover].counts.shape
        spread = np.broadcast_to(broadcast_over(weights, axes, cover), levels)[block.possible]
        return float(self._variances(cover, sparse.csr_matrix(spread[None, :]))[0])

    def interaction_variance(self, cover: Axes, axes: Axes) -> float:
        """The noise variance of a unit contrast of two levels of every axis, between which all cells are possible; 0 where an axis has one possible level.

        Where zeros leave no such levels, the mean variance of a cell stands for it: a noisy table must not pass for an exact one.
        """
        possible = np.asarray(self.blocks[cover].possible.any(axis=dropped(cover, axes)))
        if any(np.count_nonzero(margin(possible, axes, (axis,))) < 2 for axis in axes):
            return 0.0
        levels = _possible_pairs(possible)
        if levels is None:
            return self.mean_variance(cover, axes)
        contrast = np.ones(())
        for axis, (first, second) in zip(axes, levels, strict=True):
            step = np.zeros(self.shape[axis])
            step[first], step[second] = 0.5**0.5, -(0.5**0.5)
            contrast = np.multiply.outer(contrast, step)
        return self.linear_variance(cover, axes, contrast)

    def _variances(self, cover: Axes, weights: sparse.csr_matrix) -> Floats:
        """Var(wᵀμ) for every row w of `weights` (over the possible cells of `cover`)."""
        table, block = self.tables[cover], self.blocks[cover]
        seen = table.variance * np.asarray((weights @ block.matrix.T).todense())
        lever = seen @ block.precision
        known = self.covariance[np.ix_(block.index, block.index)]
        own = table.variance * np.asarray(weights.multiply(weights).sum(axis=1)).ravel()
        value = own - (lever * seen).sum(axis=1) + ((lever @ known) * lever).sum(axis=1)
        return np.asarray(np.where(value > ROUNDING * own, value, 0.0))

    def misfit(self, table: Noisy) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else (repeats of itself included)."""
        block, merged = self.blocks[table.axes], self.tables[table.axes]
        if table.variance == 0:
            return 0.0, 0
        unit = _gram(block.matrix)
        gap = block.matrix @ table.counts[block.possible] - self.shared[block.index]
        chi2, dof = _quadratic(gap, table.variance * unit - self.covariance[np.ix_(block.index, block.index)])
        if table.variance > merged.variance * (1 + 1e-12):
            rest = (table.counts - merged.counts)[block.possible]
            inside, rank = _quadratic(block.matrix @ rest, unit)
            chi2 += max(float(rest @ rest) - inside, 0.0) / (table.variance - merged.variance)
            dof += len(rest) - rank
        return chi2, dof

    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together."""
        noisy = [block for axes, block in self.blocks.items() if self.tables[axes].variance > 0]
        own = sum(block.matrix.shape[1] - (len(block.index) - len(block.null)) for block in noisy)
        return int(own) + len(self.shared) - self.constraints


def shared_positions(shape: Shape, tables: Iterable[Axes], beside: Iterable[Axes] = ()) -> dict[Axes, int]:
    """Where the entries of each shared set start in t; the empty set, the total, always has one, and so have those `beside`.

    Too many of them are a `SizeError`, which can be told before anything is measured.
    """
    found = {(), *shared_sets(tables, shape)}
    entries = sum(freedom(sub, shape) for sub in found)
    shared = sorted(found.union(beside), key=lambda sub: (len(sub), sub))
    sizes = [freedom(sub, shape) for sub in shared]
    if entries > MOST_SHARED:
        raise SizeError(
            f"tables with structural zeros share {entries} margin cells, at most {MOST_SHARED} are possible; "
            "measure tables of lower order, or with fewer levels"
        )
    return dict(zip(shared, np.cumsum([0, *sizes])[:-1].tolist(), strict=True))


def _block(table: Noisy, shape: Shape, where: Mapping[Axes, int], empty: Bools) -> Block:
    subs = sorted(inside(table.axes, where), key=lambda sub: (len(sub), sub))
    index = np.concatenate([where[sub] + np.arange(freedom(sub, shape)) for sub in subs])
    possible = ~empty
    matrix = sparse.vstack([_reader(sub, table.axes, shape, possible) for sub in subs], format="csr")
    if table.variance == 0:
        _check_empty(table, empty)
    inverse, null = _inverse(_gram(matrix), whole=bool(possible.all()))
    precision = inverse / table.variance if table.variance > 0 else np.zeros_like(inverse)
    return Block(index, matrix, precision, null, possible)


def _inverse(gram: Floats, *, whole: bool) -> tuple[Floats, Floats]:
    """The inverse of BBᵀ, on the directions that have one, and the others; only zeros can make rows of B dependent."""
    if whole:
        return np.asarray(np.linalg.inv(gram), dtype=np.float64), np.zeros((0, len(gram)))
    values, vectors = np.linalg.eigh(gram)
    real = values > 1e-9 * values.max(initial=1.0)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, vectors[:, ~real].T


def _gram(matrix: sparse.csr_matrix) -> Floats:
    return np.asarray((matrix @ matrix.T).todense(), dtype=float)


def _reader(sub: Axes, axes: Axes, shape: Shape, possible: Bools) -> sparse.csr_matrix:
    """The 0/1 rows that sum the possible cells of a table into its margin on `sub`, last levels left out."""
    grid = np.indices(possible.shape)[:, possible]
    code = np.zeros(grid.shape[1], dtype=np.int64)
    keep = np.ones(grid.shape[1], dtype=bool)
    for axis in sub:
        level = grid[axes.index(axis)]
        code = code * (shape[axis] - 1) + level
        keep &= level < shape[axis] - 1
    column = np.nonzero(keep)[0]
    return sparse.csr_matrix(
        (np.ones(len(column)), (code[keep], column)), shape=(freedom(sub, shape), grid.shape[1])
    )


def _check_empty(table: Noisy, empty: Bools) -> None:
    if np.any(table.counts[empty] != 0):
        raise ReleaseError(
            f"the exact table on axes {table.axes} has rows where the schema's structural zeros allow none; correct one of them"
        )


def _known(
    tables: Mapping[Axes, Noisy], blocks: Mapping[Axes, Block], size: int, total: float | None
) -> tuple[Floats, Floats]:
    """The equations Kt = k that hold exactly."""
    rows, right = ([], []) if total is None else ([np.eye(1, size)], [np.array([total])])
    for axes, block in blocks.items():
        exact = tables[axes].variance == 0
        local = np.eye(len(block.index)) if exact else block.null
        rows.append(np.zeros((len(local), size)))
        rows[-1][:, block.index] = local
        right.append(local @ (block.matrix @ tables[axes].counts[block.possible]))
        if exact:
            _check_known(axes, np.vstack(rows), np.concatenate(right))
    return np.vstack(rows), np.concatenate(right)


def _check_known(axes: Axes, rows: Floats, right: Floats) -> None:
    gap = rows @ np.linalg.lstsq(rows, right, rcond=None)[0] - right
    if np.abs(gap).max(initial=0.0) > 1e-6 * (1 + np.abs(right).max(initial=0.0)):
        raise ReleaseError(
            f"the exact table on axes {axes} contradicts another exact table, the public total or the structural zeros; "
            "correct one of them, or declare its noise with a scale above 0"
        )


def _run_sums(one: Coarse, shape: Shape, where: Mapping[Axes, int], size: int) -> Floats:
    """The rows that sum entries of t to the coarse counts; the last level, which t leaves out, is the total less the others."""
    runs, start = one.runs(shape[one.axis]), where[(one.axis,)]
    rows = np.zeros((len(runs), size))
    rows[:, where[()]] = runs[:, -1]
    rows[:, start : start + shape[one.axis] - 1] = runs[:, :-1] - runs[:, -1:]
    return rows


def _solve(
    tables: Mapping[Axes, Noisy],
    blocks: Mapping[Axes, Block],
    known: tuple[Floats, Floats],
    sums: Sequence[tuple[Floats, Coarse]],
) -> tuple[Floats, Floats, int]:
    """The estimate of t, its covariance, and how many of its directions are known."""
    rows, right = known
    size = rows.shape[1]
    normal, pull = np.zeros((size, size)), np.zeros(size)
    for axes, block in blocks.items():
        normal[np.ix_(block.index, block.index)] += block.precision
        pull[block.index] += block.precision @ (block.matrix @ tables[axes].counts[block.possible])
    for runs, one in sums:
        normal += runs.T @ runs / one.variance
        pull += runs.T @ one.counts / one.variance
    start = np.linalg.pinv(rows, rcond=1e-10) @ right if len(rows) else np.zeros(size)
    free = _null_space(rows)
    inverse = np.linalg.inv(free.T @ normal @ free)
    t = start + free @ (inverse @ (free.T @ (pull - normal @ start)))
    return t, np.asarray(free @ inverse @ free.T), size - free.shape[1]


def _null_space(rows: Floats) -> Floats:
    if not len(rows):
        return np.eye(rows.shape[1])
    _, values, vectors = np.linalg.svd(rows, full_matrices=True)
    return np.asarray(vectors[int((values > 1e-10).sum()) :].T)


def _quadratic(gap: Floats, covariance: Floats) -> tuple[float, int]:
    """gapᵀ covariance⁺ gap, and the rank of the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    real = values > 1e-8 * max(float(values.max(initial=0.0)), 1e-300)
    seen = vectors[:, real].T @ gap
    return float((seen**2 / values[real]).sum()), int(real.sum())
