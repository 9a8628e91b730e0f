"""Rows that break no rule: what tables could not hold is enforced when rows are drawn, and what that costs is counted.

An engine that holds the structural zeros breaks none of them. Left are rules over too many cells, comparisons inside bins, and the zeros that a network does not
hold. A drawn row that breaks one goes through these steps, and stays with the first that helps:

1. its values are drawn again inside their bins, as long as its levels allow the rule to be kept; then two values change places, or one is copied;
2. a row is taken in its place from a fresh draw (rejection), one with the same levels in the columns that the rule's condition reads: so the
   rule does not thin out the rows that it is about;
3. any row of the fresh draw takes its place, or the columns that rules touch are set to levels that keep them all.

Every step is bounded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, SolveError
from dpcipher.joint.core import Core
from dpcipher.joint.report import RuleCost
from dpcipher.schema.rules.compiled import Rules
from dpcipher.schema.rules.logic import DrawnCodes, Pair, literals
from dpcipher.schema.rules.rule import BoundRule
from dpcipher.schema.rules.zeros import Contradiction, find_row
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Codes, Counts, Shape
from dpcipher.tables.table import cell_numbers


@dataclass
class Tally:
    """Counts while rows are drawn."""

    attrs: tuple[str, ...]
    shape: Shape
    n_rows: int = 0
    redrawn: int = 0
    values: int = 0
    _moved: dict[int, Counts] = field(default_factory=dict)

    def add(self, first: Codes, final: Codes) -> None:
        """Compare a chunk as it was drawn with what is handed out."""
        self.n_rows += len(first)
        if final is first:
            return
        self.redrawn += int((first != final).any(axis=1).sum())
        for axis, size in enumerate(self.shape):
            change = np.bincount(final[:, axis], minlength=size) - np.bincount(first[:, axis], minlength=size)
            self._moved[axis] = self._moved[axis] + change if axis in self._moved else change

    def merge(self, other: "Tally") -> None:
        """Add what was counted elsewhere."""
        self.n_rows += other.n_rows
        self.redrawn += other.redrawn
        self.values += other.values
        for axis, change in other._moved.items():
            self._moved[axis] = self._moved[axis] + change if axis in self._moved else change

    @property
    def cost(self) -> RuleCost:
        """The shares so far."""
        rows = max(self.n_rows, 1)
        moved = {
            attr: float(np.abs(self._moved[axis]).sum()) / 2 / rows if axis in self._moved else 0.0
            for axis, attr in enumerate(self.attrs)
        }
        return RuleCost(self.n_rows, self.redrawn / rows, self.values / rows, moved)


VALUE_TRIES = 8
POOLS = 6  # fresh draws for the rows of one chunk
_SMALLEST_POOL, _LARGEST_POOL = 1024, 65_536

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Constraint:
    """What no row may be: which coded rows are, and the attributes that it reads but claims nothing about."""

    broken: Callable[[Codes], Bools]
    given: Axes


@dataclass(frozen=True, eq=False)
class Enforcer:
    """Turns drawn codes into rows that keep the rules of a schema. `decode` draws values, `allowed` are the levels that a condition leaves."""

    schema: Schema
    core: Core
    decode: Callable[[Codes], pa.Table]
    rng: np.random.Generator
    independent: bool = False
    allowed: Mapping[int, Bools] | None = None
    fixed: tuple[str, ...] = ()  # columns whose values were asked for

    def rows(self, codes: Codes, tally: Tally) -> tuple[Codes, pa.Table]:
        """Rows in the place of `codes`, of which none breaks a rule."""
        table, kept = self._valued(codes, tally)
        final = codes
        if not kept.all():
            final, table = self._replaced(codes, table, kept)
        tally.add(codes, final)
        return final, table

    def _valued(self, codes: Codes, tally: Tally | None = None) -> tuple[pa.Table, Bools]:
        """Rows with values, and which of them keep all rules."""
        table, kept = self.decode(codes), ~self.broken(codes)
        compiled = self.schema.compiled
        if not compiled.watched:
            return table, kept
        apart = self.schema.by_column(codes)
        bad = kept & compiled.broken_rows(apart, table)
        if tally is not None:
            tally.values += int(bad.sum())
        parts, place = [table], np.arange(table.num_rows)
        rows = np.flatnonzero(bad)
        last = table.take(pa.array(rows))
        for attempt in range(VALUE_TRIES + 1):
            if not len(rows):
                break
            few = {name: column[rows] for name, column in apart.items()}
            last = (
                self.decode(codes[rows])
                if attempt < VALUE_TRIES
                else reorder_within_bins(compiled, few, last, self.fixed)
            )
            place[rows] = sum(part.num_rows for part in parts) + np.arange(len(rows))
            parts.append(last)
            still = compiled.broken_rows(few, last)
            rows, last = rows[still], last.filter(pa.array(still))
        bad[:] = False
        bad[rows] = True
        whole = table if len(parts) == 1 else pa.concat_tables(parts).take(pa.array(place))
        return whole, kept & ~bad

    def broken(self, codes: Codes) -> Bools:
        """Which coded rows break a rule or lie in a structural zero, whatever their values."""
        broken = np.zeros(len(codes), dtype=np.bool_)
        for axes, mask in self.schema.zero_masks:
            broken |= _inside(axes, mask, codes)
        if self.schema.compiled.watched:
            broken |= self.schema.compiled.broken_cells(self.schema.by_column(codes))
        return broken

    def _replaced(self, codes: Codes, table: pa.Table, kept: Bools) -> tuple[Codes, pa.Table]:
        """The rows with others in the place of those that are not kept."""
        codes, waiting_rows = codes.copy(), np.flatnonzero(~kept)
        pool, pool_table = self._pool(codes, waiting_rows)
        waiting_rows, chosen, donors = self._donors(codes, waiting_rows, pool)
        table = _put(table, chosen, pool_table.take(donors))
        codes[chosen] = pool[donors]
        return self._replace_remaining(codes, table, waiting_rows, pool, pool_table)

    def _pool(self, codes: Codes, waiting_rows: Places) -> tuple[Codes, pa.Table]:
        """Fresh rows that keep all rules, drawn until there are enough or too many were in vain."""
        pools, tables, good = [], [], 0
        size = int(np.clip(2 * len(waiting_rows), _SMALLEST_POOL, _LARGEST_POOL))
        for _ in range(POOLS):
            drawn = np.concatenate(
                list(self.core.sample(size, self.rng, independent=self.independent, allowed=self.allowed))
            )
            table, kept = self._valued(drawn)
            pools.append(drawn[kept])
            tables.append(table.filter(pa.array(kept)))
            good += int(kept.sum())
            if good >= 2 * len(waiting_rows):
                break
        return np.concatenate(pools), pa.concat_tables(tables)

    def _donors(self, codes: Codes, waiting_rows: Places, pool: Codes) -> tuple[Places, Places, Places]:
        """For each broken row a row of the pool with the same levels where the first rule it breaks has its condition.

        Those left without one, those that have one, and which: as few rows of the pool as possible twice.
        """
        waiting, rows, donors = waiting_rows, [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for constraint in self.constraints:
            hit = constraint.broken(codes[waiting])
            mine, waiting = waiting[hit], waiting[~hit]
            if len(mine) and len(pool):
                matched, chosen = matched_rows(
                    codes[mine], pool, constraint.given, self.schema.shape, self.rng
                )
                rows.append(mine[matched])
                donors.append(chosen)
        if len(waiting) and len(
            pool
        ):  # broken by values alone: a row with the same levels in all that is watched
            matched, chosen = matched_rows(
                codes[waiting], pool, self._watched_axes, self.schema.shape, self.rng
            )
            rows.append(waiting[matched])
            donors.append(chosen)
        found = np.concatenate(rows)
        return np.setdiff1d(waiting_rows, found), found, np.concatenate(donors)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """Every rule and every structural zero."""
        compiled = self.schema.compiled
        return tuple(map(self._of_rule, (*compiled.rules, *compiled.zeros)))

    def _of_rule(self, rule: BoundRule) -> Constraint:
        schema = self.schema

        def broken(codes: Codes) -> Bools:
            view = DrawnCodes(schema.compiled.columns, schema.by_column(codes))
            return np.broadcast_to(rule.broken(view), len(codes))

        axes = schema.axes(rule.columns)
        claimed = schema.axes(rule.claimed) or axes[-1:]
        given = tuple(axis for axis in axes if axis not in claimed)
        return Constraint(broken, given or claimed[:-1])

    @cached_property
    def _watched_axes(self) -> Axes:
        names = dict.fromkeys(name for rule in self.schema.compiled.watched for name in rule.columns)
        return self.schema.axes(tuple(names))

    def _replace_remaining(
        self, codes: Codes, table: pa.Table, waiting_rows: Places, pool: Codes, pool_table: pa.Table
    ) -> tuple[Codes, pa.Table]:
        """Any row of the pool for the rows that nothing helped; where there is none, levels that keep every rule."""
        if not len(waiting_rows):
            return codes, table
        if len(pool):
            chosen = self.rng.integers(len(pool), size=len(waiting_rows))
            codes[waiting_rows] = pool[chosen]
            return codes, _put(table, waiting_rows, pool_table.take(chosen))
        for axis, level in self._witness().items():
            codes[waiting_rows, axis] = level
        last, good = self._valued(codes[waiting_rows])
        if not good.all():
            raise SolveError(
                "no row could be drawn that keeps all rules of the schema: they contradict one another inside bins; change the rules, or "
                "use narrower bins"
            )
        return codes, _put(table, waiting_rows, last)

    def _witness(self) -> dict[int, int]:
        """Levels of the attributes that rules touch, such that none is broken."""
        try:
            levels = find_row(self.schema.shape, self.schema.zero_masks, self.allowed)
        except Contradiction:
            raise ConditionError(
                "given leaves no row that keeps the rules of the schema; allow more levels"
            ) from None
        if levels is None:
            raise SolveError(
                "no row could be found that keeps all rules of the schema; use fewer or simpler rules"
            )
        return levels


def _inside(axes: Axes, mask: Bools, codes: Codes) -> Bools:
    """Which coded rows lie in a structural zero."""
    return np.asarray(mask[tuple(codes[:, axis] for axis in axes)])


def _put(table: pa.Table, rows: NDArray[np.integer], fresh: pa.Table) -> pa.Table:
    """The table with some rows replaced."""
    if not len(rows):
        return table
    place = np.arange(table.num_rows)
    place[rows] = table.num_rows + np.arange(len(rows))
    return pa.concat_tables([table, fresh]).take(pa.array(place))


def matched_rows(
    codes: Codes, pool: Codes, axes: Axes, shape: Shape, rng: np.random.Generator
) -> tuple[Bools, NDArray[np.intp]]:
    """Which rows have a counterpart in the pool on `axes`, and a counterpart for each of them, as few of them twice as can be."""
    order = rng.permutation(len(pool))
    keys = cell_numbers(pool[order], axes, shape)
    by_key = np.argsort(keys, kind="stable")
    keys, wanted = keys[by_key], cell_numbers(codes, axes, shape)
    first, last = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
    matched = last > first
    place = first[matched] + _rank_within(wanted[matched]) % (last - first)[matched]
    return matched, order[by_key[place]]


def _rank_within(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of entries with the same key before each entry."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    start = np.searchsorted(ordered, ordered)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - start
    return ranks


def reorder_within_bins(
    compiled: Rules, codes: dict[str, Codes], table: pa.Table, fixed: tuple[str, ...] = ()
) -> pa.Table:
    """Rows whose compared values have changed places, or of which one is a copy of the other, where both stay in their bins."""
    for rule in compiled.watched:
        for literal in literals(rule.formula):
            pair = literal.atom
            if isinstance(pair, Pair) and not pair.ranks and set(fixed).isdisjoint(pair.columns):
                equal = pair.sign == ("!=" if literal.negated else "==")
                table = _reorder(compiled, codes, table, pair, equal)
    return table


def _reorder(compiled: Rules, codes: dict[str, Codes], table: pa.Table, pair: Pair, equal: bool) -> pa.Table:
    broken = compiled.broken_rows(codes, table)
    left, right = (table.column(name).combine_chunks() for name in pair.columns)
    try:
        ways = [(left, left), (right, right)] if equal else [(right, left)]
        for first, second in ways:
            fits = np.ones(table.num_rows, dtype=np.bool_)
            columns = {}
            for name, own, other in zip(pair.columns, (left, right), (first, second), strict=True):
                cast = pc.cast(other, own.type, safe=False)
                fits &= compiled.columns[name].codes_of_declared(cast) == codes[name]
                columns[name] = (own, cast)
            change = pa.array(broken & fits)
            for name, (own, cast) in columns.items():
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, pc.if_else(change, cast, own))
            broken = compiled.broken_rows(codes, table)
            left, right = (table.column(name).combine_chunks() for name in pair.columns)
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    ):  # columns of types that do not turn into each other
        return table
    return table
