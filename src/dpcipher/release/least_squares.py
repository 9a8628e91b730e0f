"""Least squares over tables of any columns and resolutions: what they share is estimated once, and every table is corrected by it.

Tables share components (`sharing`). Table q with counts y and noise of variance v reads those that it shares as f = F y, with covariance v G, G = F Fᵀ. So it
adds G⁻¹/v to their precision, and once they are estimated as t, with covariance C, its own counts and any weighted sum of them are

    μ = y + FᵀG⁻¹(t − f),      Var(wᵀμ) = v(|w|² − aᵀG⁻¹a) + (G⁻¹a)ᵀ C (G⁻¹a),   a = F w,

which is exactly generalised least squares. G is a number for each component where nothing is correlated in the cells of a table: the mean is then weighted by
inverse variances (the basis of ResidualPlanner, arXiv 2305.08175; there it plans the noise, here it combines whatever was measured). Uneven groups of levels tie
a column to the total, impossible cells tie all components of their table; those are solved together (`Elimination`). Contrasts and centred tables
add no precision to what they do not see. Exact tables fix components beforehand.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.sharing import Components, IntArray, components_of
from dpcipher.release.structure import SINGULAR, Group, Structure, check_tied, structure_of
from dpcipher.tables.domain import Bools, Domain, Floats
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Combination, Query
from dpcipher.tables.table import PART

_ROUNDING = 1e-14  # estimates that differ from what was measured by less of it are the same
_CONTRADICTS = 1e-6  # exact tables may differ by so much of their size
_FEW = 64  # queries whose components are kept for the next measurements of them
_MULTIPLIERS = -1  # the key of what impossible cells fix
_NOT_TOLD = 1e-11  # directions of a pivot below this part of its largest say nothing


@dataclass(frozen=True, eq=False)
class Grid:
    """A query, and what all measurements of it say together: counts and their variance (0 = exact)."""

    query: Query
    counts: Floats
    variance: float


def merged(domain: Domain, measurements: Iterable[Measurement]) -> list[Grid]:
    """One grid for each query: repeats are averaged with inverse-variance weights, exact ones must agree."""
    repeats: dict[Query, list[tuple[Floats, float]]] = defaultdict(list)
    for one in measurements:
        if isinstance(one.query, Query):
            repeats[one.query].append(one.in_rows())
    return [Grid(query, *_mean(domain, query, group)) for query, group in repeats.items()]


def _mean(domain: Domain, query: Query, group: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    exact = [counts for counts, variance in group if variance == 0]
    for counts in exact[1:]:
        check_same(f"two exact tables of {domain.named(query.axes)}", exact[0], counts)
    if exact or len(group) == 1:
        return (exact[0], 0.0) if exact else group[0]
    precision = np.array([1 / variance for _, variance in group])
    stacked = np.stack([counts for counts, _ in group])
    return np.tensordot(precision, stacked, axes=1) / precision.sum(), 1 / float(precision.sum())


def check_same(what: str, one: Floats, other: Floats) -> None:
    """Refuse exact counts that differ."""
    if np.abs(one - other).max(initial=0.0) > _CONTRADICTS * (1 + np.abs(one).max(initial=0.0)):
        raise ReleaseError(
            f"{what} contradict each other; correct one of them, or declare its noise with a scale above 0"
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A grid with its corrected counts, its structure, and the components that it shares."""

    grid: Grid
    structure: Structure
    components: IntArray
    counts: Floats

    @property
    def freedom(self) -> int:
        """How many numbers it says: one for each possible cell, less what a centred table and contrasts leave out."""
        query, shape = self.grid.query, self.counts.shape
        if self.structure.possible is not None:
            return int(self.structure.possible.sum())
        left = zip(query.axes, shape, strict=True)
        return int(prod(n - (axis in query.contrasts) for axis, n in left) - query.centred)


@dataclass(frozen=True, eq=False)
class Stack:
    """Grids of one form, and the components that they share."""

    structure: Structure
    grids: list[Grid]
    components: IntArray  # grids by components

    @property
    def counts(self) -> Floats:
        """The counts of all of them; none where none can be."""
        counts = np.stack([grid.counts for grid in self.grids])
        return counts if self.structure.possible is None else np.where(self.structure.possible, counts, 0.0)


class LeastSquares:
    """Measurements made to agree: corrected counts of every grid, and the covariance of what they share."""

    def __init__(self, domain: Domain, measurements: Sequence[Measurement]) -> None:
        self.domain = domain
        grids = merged(domain, measurements)
        sums = [(one, one.query.terms) for one in measurements if isinstance(one.query, Combination)]
        pooled = [query for _, terms in sums for query, _ in terms]
        needed = [*(bool(grid.query.contrasts) for grid in grids), *(True for _ in pooled)]
        queries = [*(grid.query for grid in grids), *pooled]
        find = components_of if len(queries) <= _FEW else Components
        self.components = find(domain, tuple(queries), tuple(needed))
        sizes = self.components.sizes
        # Values and right-hand sides of all functions; variances and precision of each function of a component.
        self.values, self.variances = np.zeros(sizes.sum()), np.zeros(len(sizes))
        self._right, self._precision = np.zeros(sizes.sum()), np.zeros(len(sizes))
        self._fixed: dict[int, str] = {}  # components that exact tables fix, and one of these
        self._links: dict[int, dict[int, Floats]] = defaultdict(dict)  # precision beside that
        self._nulls: list[dict[int, Floats]] = []
        stacks = list(self._stacks(grids))
        for stack in stacks:  # exact tables fix components before anything is averaged
            if stack.grids[0].variance == 0:
                self._fix(stack)
        for stack in stacks:
            if stack.grids[0].variance > 0:
                self._add(stack)
        if sums:
            self._add_sums([one for one, _ in sums], len(grids))
        self._solve()
        self.fitted = {one.grid.query: one for stack in stacks for one in self._correct(stack)}

    def _stacks(self, grids: Sequence[Grid]) -> Iterator[Stack]:
        """Grids of one form together, in parts of few numbers: those with impossible cells one by one, exact ones apart."""
        for sharing in self.components.sharings:
            whole = structure_of(sharing.form, sharing.choices)
            plain: dict[bool, list[int]] = defaultdict(list)
            for place, number in enumerate(sharing.numbers.tolist()):
                if number < len(grids):
                    possible = self._possible(grids[number])
                    if possible is None:
                        plain[grids[number].variance == 0].append(place)
                    else:
                        cut = Structure(sharing.form, sharing.choices, possible)
                        yield Stack(cut, [grids[number]], sharing.components[[place]])
            step = max(1, PART // max(1, prod(whole.shape)))
            for places in plain.values():
                for some in (places[start : start + step] for start in range(0, len(places), step)):
                    chosen = [grids[number] for number in sharing.numbers[some].tolist()]
                    yield Stack(whole, chosen, sharing.components[some])

    def _possible(self, grid: Grid) -> Bools | None:
        """The cells of a grid that can hold rows; None where all can."""
        if not self.domain.zeros:
            return None
        possible = self.domain.possible(grid.query.axes)
        if possible.all():
            return None
        if grid.query.centred or grid.query.contrasts:
            raise ReleaseError("centred tables and contrasts cannot be reconciled with structural zeros")
        seen = np.asarray(grid.query.apply(possible.astype(np.int64), grid.query.axes) > 0)
        if grid.variance == 0 and np.any(grid.counts[~seen] != 0):
            raise ReleaseError(
                f"the exact table of {self.domain.named(grid.query.axes)} has rows where the schema's structural zeros allow none; "
                "correct one of them"
            )
        return None if seen.all() else seen

    def _functions(self, components: IntArray) -> IntArray:
        """The numbers of the functions of some components, as many rows as there are of these."""
        sizes = self.components.sizes[components[0]]
        owner, stops = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes)
        offsets = np.arange(stops[-1]) - (stops - sizes)[owner]
        return np.asarray(self.components.starts[components][:, owner] + offsets)

    def _of(self, component: int) -> slice:
        """The functions of a component."""
        start = int(self.components.starts[component])
        return slice(start, start + int(self.components.sizes[component]))

    def _slices(self, components: Sequence[int]) -> list[slice]:
        """Where each of some components stands among the functions of all of them."""
        stops = np.cumsum(self.components.sizes[list(components)]).tolist()
        return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]

    def _fix(self, stack: Stack) -> None:
        """Take what exact tables say of components as known."""
        if any(group.map is not None for group in stack.structure.groups):
            raise SizeError("exact tables of crossing groups cannot be reconciled; declare a small noise")
        seen = stack.structure.read(stack.counts)
        for grid, components, own in zip(stack.grids, stack.components.tolist(), seen, strict=True):
            name = self.domain.named(grid.query.axes)
            for component, part in zip(components, self._slices(components), strict=True):
                functions = self._of(component)
                if component in self._fixed:
                    what = f"the exact tables on {self._fixed[component]} and {name}"
                    check_same(what, self.values[functions], own[part])
                else:
                    self._fixed[component], self.values[functions] = name, own[part]

    def _add(self, stack: Stack) -> None:
        """Add the information of noisy tables of one form to what they share."""
        structure, seen = stack.structure, stack.structure.read(stack.counts)
        weights = np.array([1 / grid.variance for grid in stack.grids])
        seen *= weights[:, None]
        if structure.plain:
            pull = seen * structure.information[structure.owner]
            np.add.at(self._right, self._functions(stack.components).T.ravel(), pull.T.ravel())
            precision = np.outer(structure.information, weights)
            np.add.at(self._precision, stack.components.T.ravel(), precision.ravel())
        for group in structure.groups:
            components = stack.components[:, group.choices]
            pull = group.told(seen[:, group.slots] @ group.information)
            np.add.at(self._right, self._functions(components), pull)
            for own, weight in zip(components.tolist(), weights.tolist(), strict=True):
                self._link(own, weight * group.precision)
            if len(group.nulls):
                own = components[0].tolist()
                self._nulls.append(
                    {c: group.nulls[:, part].T for c, part in zip(own, self._slices(own), strict=True)}
                )

    def _link(self, components: Sequence[int], precision: Floats) -> None:
        """Add to the precision of some components that are correlated."""
        parts = list(zip(components, self._slices(components), strict=True))
        for (one, rows), (other, columns) in product(parts, repeat=2):
            if one == other or np.any(precision[rows, columns]):
                links = self._links[one]
                links[other] = links.get(other, 0.0) + precision[rows, columns]

    def _add_sums(self, measurements: Sequence[Measurement], first: int) -> None:
        """Add what sums of cells of several tables say, y = Σ M x, with the cells x of each table written in all of its components."""
        stands = {
            number: (sharing, components)
            for sharing in self.components.sharings
            for number, components in zip(sharing.numbers.tolist(), sharing.components, strict=True)
        }
        for one in measurements:
            readers, held = [], []
            for _, matrix in one.query.terms if isinstance(one.query, Combination) else ():
                sharing, components = stands[first]
                structure = structure_of(sharing.form, sharing.choices)
                group = structure.whole
                cells = structure.functions(group.slots).reshape(len(group.slots), -1)
                readers.append(group.told(matrix @ cells.T @ group.inverse))
                held.append(components[list(group.choices)])
                first += 1
            (values, variance), reader, own = one.in_rows(), np.hstack(readers), np.concatenate(held)
            np.add.at(self._right, self._functions(own[None])[0], values @ reader / variance)
            self._link(own.tolist(), reader.T @ reader / variance)

    def _solve(self) -> None:
        """Estimate the components, and keep what their covariance follows from."""
        sizes = self.components.sizes
        fixed = np.zeros(len(sizes), dtype=bool)
        fixed[list(self._fixed)] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            estimates = self._right / np.repeat(self._precision, sizes)
            self.variances = np.where(fixed, 0.0, 1 / self._precision)
        self.values = np.where(np.repeat(fixed, sizes), self.values, estimates)
        normal: dict[int, dict[int, Floats]] = {}
        right: dict[int, Floats] = {}
        for one, links in self._links.items():
            if not fixed[one]:
                normal[one] = {other: block for other, block in links.items() if not fixed[other]}
                normal[one][one] = self._precision[one] * np.eye(sizes[one]) + links.get(one, 0.0)
                known = (block @ self.value(other) for other, block in links.items() if fixed[other])
                right[one] = self._right[self._of(one)] - sum(known, np.zeros(sizes[one]))
        check_tied(sum(map(len, right.values())))
        self._constraints = self._add_nulls(normal, right)
        for one in [*np.flatnonzero(np.isinf(self.variances)).tolist(), *right]:
            if one >= 0 and not (one in normal and np.any(np.diag(normal[one][one]))):
                raise ReleaseError(self._nothing_says(one))
        self._tied = Elimination(normal, right)
        for one in self._links.keys() & self._tied.rank.keys():
            self.values[self._of(one)] = self._tied.values[one]
            self.variances[one] = np.nan

    def _nothing_says(self, component: int) -> str:
        if not component:
            return "centred tables and contrasts need the number of rows beside them; measure Query(()) too"
        return f"contrasts of several columns need those of fewer beside them; measure {self.components.named(component)} too"

    def _add_nulls(self, normal: dict[int, dict[int, Floats]], right: dict[int, Floats]) -> int:
        """Add what impossible cells fix exactly, nᵀt = 0 for each null vector n, as multipliers that are eliminated last; how many there are.

        Adding basis basisᵀ to the precision changes no solution, and makes the blocks that come before the multipliers regular.
        """
        if not self._nulls:
            return 0
        tied = sorted({one for null in self._nulls for one in null} & normal.keys())
        sizes = self.components.sizes
        columns, wanted = [], []
        for null in self._nulls:
            n = next(iter(null.values())).shape[1]
            blocks = [null.get(one, np.zeros((sizes[one], n))) for one in tied]
            columns.append(np.vstack([np.zeros((0, n)), *blocks]))
            known = (self.value(one) @ block for one, block in null.items() if one in self._fixed)
            wanted.append(-sum(known, np.zeros(n)))
        basis, lengths, turn = np.linalg.svd(np.hstack(columns), full_matrices=False)
        real = lengths > SINGULAR
        told = turn @ np.concatenate(wanted)
        values = told[real] / lengths[real]
        if np.abs(told[~real]).max(initial=0.0) > _CONTRADICTS * (1 + np.abs(values).max(initial=0.0)):
            raise ReleaseError(
                "exact tables contradict the schema's structural zeros; correct one of them, or declare a noise with a scale above 0"
            )
        if not real.any():
            return 0
        rows = {one: basis[part][:, real] for one, part in zip(tied, self._slices(tied), strict=True)}
        weight = max(float(np.abs(normal[one][one]).max()) for one in tied)
        for one in tied:
            right[one] = right[one] + weight * rows[one] @ values
            for other in tied:
                normal[one][other] = normal[one].get(other, 0.0) + weight * rows[one] @ rows[other].T
            normal[one][_MULTIPLIERS] = rows[one]
        normal[_MULTIPLIERS] = {one: rows[one].T for one in tied}
        normal[_MULTIPLIERS][_MULTIPLIERS] = np.zeros((len(values), len(values)))
        right[_MULTIPLIERS] = values
        return len(values)

    def _correct(self, stack: Stack) -> Iterator[Fitted]:
        """Correct tables of one form by the components that they share."""
        structure, counts = stack.structure, stack.counts
        seen, agreed = structure.read(counts), np.zeros(0)
        if structure.plain:
            agreed = self.values[self._functions(stack.components)]
        else:
            agreed = np.zeros_like(seen)
            for group in structure.groups:
                functions = self._functions(stack.components[:, group.choices])
                agreed[:, group.slots] = group.seen(self.values[functions])
        gap = agreed - seen
        gap[np.abs(gap) < _ROUNDING * np.abs(seen)] = 0.0  # a table that is alone stays as it was measured
        corrected = counts + structure.cells(structure.times_inverse(gap))
        for grid, components, one in zip(stack.grids, stack.components, corrected, strict=True):
            yield Fitted(grid, stack.structure, components, one)

    def value(self, component: int) -> Floats:
        """The estimate of a component."""
        return self.values[self._of(component)]

    def covariance(self, components: Sequence[int]) -> Floats:
        """The covariance of the functions of some components."""
        return np.block([[self._covariance(one, other) for other in components] for one in components])

    def _covariance(self, one: int, other: int) -> Floats:
        sizes = self.components.sizes
        if one in self._tied.rank and other in self._tied.rank:
            block = self._tied.inverse(one, other)
            return np.zeros((sizes[one], sizes[other])) if block is None else block
        return (self.variances[one] if one == other else 0.0) * np.eye(sizes[one], sizes[other])

    def untied(self, home: Fitted) -> Iterator[tuple[int, float, float]]:
        """The components of a table with which nothing is correlated, by place: the variance of their functions, and what knowing them changes in that of what they read."""
        if home.structure.plain:
            variances = self.variances[home.components]
            inverse = home.structure.inverse
            changes = (variances * inverse - home.grid.variance) * inverse
            for place in np.flatnonzero(~np.isnan(variances)).tolist():
                yield place, float(variances[place]), float(changes[place])

    def tied(self, home: Fitted) -> Group | None:
        """All other components of a table as one group; None where there are none."""
        if not home.structure.plain:
            return home.structure.whole
        places = np.flatnonzero(np.isnan(self.variances[home.components])).tolist()
        return home.structure.alone(places) if places else None

    @cached_property
    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together; what exact tables and impossible cells fix is not counted."""
        count = int(self.components.sizes.sum() - self.components.sizes[list(self._fixed)].sum())
        count -= self._constraints + self._tied.unidentified
        noisy = [one for one in self.fitted.values() if one.grid.variance > 0]
        return count + sum(one.freedom - one.structure.rank for one in noisy)


class Elimination:
    """The solution of `normal @ values = right`, symmetric equations between blocks, by Gaussian elimination, and any block of the inverse.

    Negative keys are eliminated last.
    """

    def __init__(self, normal: dict[int, dict[int, Floats]], right: dict[int, Floats]) -> None:
        order = sorted(normal, key=lambda key: (key < 0, len(normal[key]), key))  # few neighbours first
        self.rank: dict[int, int] = {key: rank for rank, key in enumerate(order)}
        self._steps: dict[int, tuple[Floats, dict[int, Floats]]] = {}
        self._inverse: dict[tuple[int, int], Floats | None] = {}
        self.values: dict[int, Floats] = {}
        self.unidentified = 0  # directions of which the equations say nothing
        for key in order:
            row = normal.pop(key)
            pivot, rank = _inverse(row.pop(key))
            self.unidentified += len(pivot) - rank
            links = {other: pivot @ block for other, block in row.items()}
            self._steps[key] = pivot, links
            for other, block in row.items():
                del normal[other][key]
                right[other] = right[other] - block.T @ (pivot @ right[key])
                for third, link in links.items():
                    normal[other][third] = normal[other].get(third, 0.0) - block.T @ link
        for key in reversed(order):
            pivot, links = self._steps[key]
            moved = sum((link @ self.values[other] for other, link in links.items()), np.zeros(len(pivot)))
            self.values[key] = pivot @ right[key] - moved

    def inverse(self, one: int, other: int) -> Floats | None:
        """A block of the inverse, the covariance of two unknowns; None where nothing ties them."""
        wanted = [self._ordered(one, other)]
        while wanted:
            first, second = pair = wanted[-1]
            if pair in self._inverse:
                wanted.pop()
                continue
            pivot, links = self._steps[first]
            needed = {third: self._ordered(third, second) for third in links}
            missing = [known for known in needed.values() if known not in self._inverse]
            if missing:
                wanted += missing
                continue
            block = pivot if first == second else None
            for third, link in links.items():
                known = self._inverse[needed[third]]
                if known is not None:
                    step = link @ (known if needed[third] == (third, second) else known.T)
                    block = -step if block is None else block - step
            self._inverse[pair] = block
            wanted.pop()
        block = self._inverse[self._ordered(one, other)]
        return block if block is None or self._ordered(one, other) == (one, other) else block.T

    def _ordered(self, one: int, other: int) -> tuple[int, int]:
        return (one, other) if self.rank[one] <= self.rank[other] else (other, one)


def _inverse(pivot: Floats) -> tuple[Floats, int]:
    """The inverse of a symmetric block, on the directions that have one, and how many have."""
    values, vectors = np.linalg.eigh((pivot + pivot.T) / 2)
    real = np.abs(values) > _NOT_TOLD * np.abs(values).max(initial=1e-300)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, int(real.sum())
