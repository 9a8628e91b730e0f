"""Rows that break no rule: what tables could not hold is enforced when rows are drawn, and what that costs is counted.

An engine that holds the structural zeros breaks none of them. Left are rules over too many cells, comparisons inside bins, and the zeros that a network does not
hold. A drawn row that breaks one goes through these steps, and stays with the first that helps:

1. its values are drawn again inside their bins, as long as its levels allow the rule to be kept; then two values change places, or one is copied;
2. a row is taken in its place from a fresh draw (rejection), one with the same levels in the columns that the rule's condition reads: so the
   rule does not thin out the rows that it is about;
3. the columns that the rule claims something about are drawn again, each from its distribution given all others, among the levels that break the fewest rules;
4. any row of the fresh draw takes its place, or the columns that rules touch are set to levels that keep them all.

Every step is bounded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, SolveError
from dpcipher.joint.donors import matched_rows
from dpcipher.joint.inside_cells import arranged
from dpcipher.joint.tally import Tally
from dpcipher.schema.rules.logic import DrawnCodes
from dpcipher.schema.rules.rule import BoundRule
from dpcipher.schema.rules.zeros import Contradiction, find_row
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Codes

if TYPE_CHECKING:
    from dpcipher.joint.joint import Core

VALUE_TRIES = 8
POOLS = 6  # fresh draws for the rows of one chunk
_SMALLEST_POOL, _LARGEST_POOL = 1024, 65_536
SWEEPS = 3
_CANDIDATES = 2**18  # rows times levels that are weighed at once
_MOST_LEVELS = 256  # of a column, that are weighed for a row

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Constraint:
    """What no row may be: which coded rows are, the attributes that it claims something about, and the others it reads."""

    broken: Callable[[Codes], Bools]
    claimed: Axes
    given: Axes


@dataclass(frozen=True, eq=False)
class Enforcer:
    """Turns drawn codes into rows that keep the rules of a schema. `decode` draws values, `allowed` are the levels that a condition leaves."""

    schema: Schema
    core: "Core"
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
                else arranged(compiled, few, last, self.fixed)
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
        codes, todo = codes.copy(), np.flatnonzero(~kept)
        pool, pool_table = self._pool(codes, todo)
        todo, chosen, donors = self._donors(codes, todo, pool)
        table = _put(table, chosen, pool_table.take(donors))
        codes[chosen] = pool[donors]
        if len(todo):
            fixed = self._repaired(codes[todo])
            fixed_table, good = self._valued(fixed)
            codes[todo[good]] = fixed[good]
            table = _put(table, todo[good], fixed_table.filter(pa.array(good)))
            todo = todo[~good]
        return self._last_resort(codes, table, todo, pool, pool_table)

    def _pool(self, codes: Codes, todo: Places) -> tuple[Codes, pa.Table]:
        """Fresh rows that keep all rules, drawn until there are enough or too many were in vain."""
        pools, tables, good = [], [], 0
        size = int(np.clip(2 * len(todo), _SMALLEST_POOL, _LARGEST_POOL))
        for _ in range(POOLS):
            drawn = np.concatenate(
                list(self.core.sample(size, self.rng, independent=self.independent, allowed=self.allowed))
            )
            table, kept = self._valued(drawn)
            pools.append(drawn[kept])
            tables.append(table.filter(pa.array(kept)))
            good += int(kept.sum())
            if good >= 2 * len(todo):
                break
        return np.concatenate(pools), pa.concat_tables(tables)

    def _donors(self, codes: Codes, todo: Places, pool: Codes) -> tuple[Places, Places, Places]:
        """For each broken row a row of the pool with the same levels where the first rule it breaks has its condition.

        Those left without one, those that have one, and which: as few rows of the pool as possible twice.
        """
        waiting, rows, donors = todo, [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
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
        return np.setdiff1d(todo, found), found, np.concatenate(donors)

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
        return Constraint(broken, claimed, given or claimed[:-1])

    @cached_property
    def _watched_axes(self) -> Axes:
        names = dict.fromkeys(name for rule in self.schema.compiled.watched for name in rule.columns)
        return self.schema.axes(tuple(names))

    def _repaired(self, codes: Codes) -> Codes:
        """Columns that broken rules claim something about, drawn again given all others: a few sweeps over the rules."""
        codes = codes.copy()
        for _ in range(SWEEPS):
            for constraint in self.constraints:
                rows = np.flatnonzero(constraint.broken(codes))
                for axis in constraint.claimed if len(rows) else ():
                    codes[rows, axis] = self._redrawn(codes[rows], axis)
            if not self.broken(codes).any():
                break
        return codes

    def _redrawn(self, codes: Codes, axis: int) -> Codes:
        """A level for each row, from its distribution given the others, among those that break the fewest rules."""
        levels = self._levels(axis)
        step = max(1, _CANDIDATES // len(levels))
        parts = [self._weighed(codes[at : at + step], axis, levels) for at in range(0, len(codes), step)]
        return np.concatenate(parts)

    def _levels(self, axis: int) -> Codes:
        levels = np.arange(self.schema.shape[axis], dtype=np.int32)
        if self.allowed and axis in self.allowed:
            levels = levels[self.allowed[axis]]
        return self.rng.choice(levels, _MOST_LEVELS, replace=False) if len(levels) > _MOST_LEVELS else levels

    def _weighed(self, codes: Codes, axis: int, levels: Codes) -> Codes:
        tried = np.repeat(codes, len(levels), axis=0)
        tried[:, axis] = np.tile(levels, len(codes))
        touching = [one for one in self.constraints if axis in one.claimed or axis in one.given]
        broken = np.sum([one.broken(tried) for one in touching], axis=0).reshape(len(codes), len(levels))
        logs = self.core.log_prob(tried).reshape(len(codes), len(levels))
        logs = np.where(broken == broken.min(axis=1, keepdims=True), np.maximum(logs, -1e6), -np.inf)
        noise = -np.log(self.rng.exponential(size=logs.shape))  # Gumbel: the largest is a draw in proportion
        return np.asarray(levels[(logs + noise).argmax(axis=1)])

    def _last_resort(
        self, codes: Codes, table: pa.Table, todo: Places, pool: Codes, pool_table: pa.Table
    ) -> tuple[Codes, pa.Table]:
        """Any row of the pool for the rows that nothing helped; where there is none, levels that keep every rule."""
        if not len(todo):
            return codes, table
        if len(pool):
            chosen = self.rng.integers(len(pool), size=len(todo))
            codes[todo] = pool[chosen]
            return codes, _put(table, todo, pool_table.take(chosen))
        for axis, level in self._witness().items():
            codes[todo, axis] = level
        last, good = self._valued(codes[todo])
        if not good.all():
            raise SolveError(
                "no row could be drawn that keeps all rules of the schema: they contradict one another inside bins; change the rules, or "
                "use narrower bins"
            )
        return codes, _put(table, todo, last)

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
