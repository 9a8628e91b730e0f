"""Rules compiled: to structural zeros where a table of their columns is small enough, to a check of rows for what is left.

A rule falls apart into clauses over few columns. The cells in which a clause is certainly false are structural zeros, and all of them over the same
columns are one mask; a declared zero has a mask of its own. What tables cannot hold is watched row by row: clauses over too many cells, and clauses
that some values of a cell break and others do not (`start <= end` where both fall into one bin).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa

from dpcipher.errors import DataError, SchemaError, SizeError
from dpcipher.files.json import product_within
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.rules.comparisons import range_cuts, thresholds_of
from dpcipher.schema.rules.logic import (
    DrawnCodes,
    DrawnValues,
    Formula,
    HasLevel,
    Inside,
    PrivateCodes,
    clauses,
    columns_of,
    literals,
)
from dpcipher.schema.rules.rule import MAX_MAPPED, MAX_ZERO_CELLS, BoundRule, Rule, Zero
from dpcipher.schema.rules.zeros import Contradiction, find_row, implied_zeros
from dpcipher.tables.domain import Axes, Bools, CodeColumn, Codes

MAX_RULES = 2**12
MAX_TEXTS = 2**18  # characters of all rules together
MAX_LEVELS = 2**24  # that all comparisons of all rules list together
MAX_ZERO_LEVELS = 2**27  # that all structural zeros list together
MAX_RULE_CELLS = 2**20  # of one mask: above, rows are checked instead
_MAX_WORK = 2**26  # cells times comparisons, of all masks together

Masks = dict[Axes, Bools]
Columns = Mapping[str, Column]  # in the order of the schema


@dataclass(frozen=True, eq=False)
class Rules:
    """All rules of a schema, structural zeros among them, bound to its columns; what names bins that are still to be found waits for them."""

    columns: Columns
    declared: tuple[BoundRule, ...]
    zeros: tuple[BoundRule, ...]

    @cached_property
    def rules(self) -> tuple[BoundRule, ...]:
        """The rules whose columns are all closed; zeros are not among them."""
        return tuple(rule for rule in self.declared if self._is_settled(rule))

    def _is_settled(self, rule: BoundRule) -> bool:
        return not any(self.columns[name].is_open for name in rule.columns)

    @cached_property
    def _compiled(self) -> tuple[Masks, tuple[BoundRule, ...]]:
        return compile_masks(self.columns, self.rules)

    @property
    def masks(self) -> Masks:
        """What tables hold of the rules: axes, and True where no row can be."""
        return self._compiled[0]

    @cached_property
    def watched(self) -> tuple[BoundRule, ...]:
        """The rules, and zeros, that tables do not hold as a whole: drawn rows are checked."""
        large = (zero for zero in self.zeros if self._mask_of(zero) is None)
        return (*self._compiled[1], *large)

    def _mask_of(self, zero: BoundRule) -> tuple[Axes, Bools] | None:
        """The mask of a structural zero; None where it has too many cells."""
        names, chosen = list(self.columns), zero.zero or {}
        if product_within((self.columns[name].size for name in chosen), MAX_ZERO_CELLS) is None:
            return None
        axes = tuple(sorted(names.index(name) for name in chosen))
        return axes, np.asarray(reduce(np.logical_and.outer, [chosen[names[axis]] for axis in axes]))

    @cached_property
    def zero_masks(self) -> tuple[tuple[Axes, Bools], ...]:
        """The structural zeros, what tables hold of the rules, and what follows from both."""
        declared = (*filter(None, map(self._mask_of, self.zeros)), *self.masks.items())
        return (*declared, *implied_zeros(declared, [column.size for column in self.columns.values()]))

    def broken_cells(self, codes: Mapping[str, Codes]) -> Bools:
        """Which drawn rows break a watched rule whatever their values inside the bins will be."""
        return self._broken(DrawnCodes(self.columns, codes), len(next(iter(codes.values()))))

    def broken_rows(self, codes: Mapping[str, Codes], table: pa.Table) -> Bools:
        """Which rows break a watched rule by their values."""
        return self._broken(DrawnValues(self.columns, codes, table), table.num_rows)

    def _broken(self, view: PrivateCodes, n_rows: int) -> Bools:
        broken = np.zeros(n_rows, dtype=np.bool_)
        for rule in self.watched:
            broken |= rule.broken(view)
        return broken

    def move_broken(self, codes: dict[str, CodeColumn]) -> None:
        """Move rows that break a zero or a rule to where it says, in place, one after the other, and refuse those that still break one.

        Stability 1: a row is moved by its own codes.
        """
        view, every = PrivateCodes(self.columns, codes), (*self.zeros, *self.rules)
        for rule in every:
            rows = rule.broken(view) if rule.moves or rule.map else None
            if rows is not None and rows.any():
                rule.move(codes, rows)
        for rule in every:
            if rule.broken(view).any():
                raise DataError(rule.refusal)

    def check_possible(self) -> None:
        """Refuse rules that together leave no row possible, as far as that is seen with little work."""
        if self._possible(self.masks):
            return
        low, high = (
            0,
            len(self.rules),
        )  # the first `high` rules contradict one another, the first `low` do not
        while high - low > 1:
            middle = (low + high) // 2
            masks, _ = compile_masks(self.columns, self.rules[:middle])
            low, high = (middle, high) if self._possible(masks) else (low, middle)
        rule = self.rules[high - 1]
        raise SchemaError(
            f"rule {rule.number} ({rule.name!r:.60}) leaves no row possible, with the rules and zeros before it; change it"
        )

    def _possible(self, masks: Masks) -> bool:
        zeros = filter(None, map(self._mask_of, self.zeros))
        try:
            find_row([column.size for column in self.columns.values()], [*masks.items(), *zeros])
        except Contradiction:
            return False
        return True


def read_rules(plain: Iterable[object]) -> tuple[Rule, ...]:
    """Rules as a schema lists them, within bounds; nothing is looked up yet."""
    listed = tuple(plain)
    if len(listed) > MAX_RULES:
        raise SizeError(
            f"rules ({len(listed)} of them) must be at most {MAX_RULES}; use determines, or in [..]"
        )
    rules = tuple(Rule.from_spec(spec) for spec in listed)
    if sum(len(rule.text) for rule in rules if isinstance(rule.text, str)) > MAX_TEXTS:
        raise SizeError(f"rules must have at most {MAX_TEXTS} characters together; use determines")
    maps = [rule.map for rule in rules if isinstance(rule.map, Mapping)]
    if sum(map(len, maps)) > MAX_MAPPED:
        raise SizeError(f"the maps of all rules must have at most {MAX_MAPPED} levels together")
    return rules


def bind(rules: Sequence[Rule], zeros: Sequence[Zero], columns: Columns) -> Rules:
    """Every rule and structural zero with its columns and levels found."""
    bound_zeros = _bind_each(zeros, columns, MAX_ZERO_LEVELS)
    return Rules(columns, _bind_each(rules, columns, MAX_LEVELS), bound_zeros)


def _bind_each(rules: Sequence[Rule | Zero], columns: Columns, most: int) -> tuple[BoundRule, ...]:
    bound, listed = [], 0
    for number, rule in enumerate(rules, start=1):
        bound.append(rule.bound(number, columns))
        for literal in literals(bound[-1].formula):
            if isinstance(literal.atom, HasLevel):
                listed += len(literal.atom.chosen)
            if isinstance(literal.atom, Inside):
                listed += sum(map(len, literal.atom.chosen.values()))
        if listed > most:
            raise SizeError(f"rules must not compare more than {most} levels together; use wider bins")
    return tuple(bound)


def compile_masks(columns: Columns, rules: Iterable[BoundRule]) -> tuple[Masks, tuple[BoundRule, ...]]:
    """Masks for what tables can hold, and the rules to watch for the rest."""
    masks: Masks = {}
    watched, work = [], 0
    for rule in rules:
        whole = True
        for clause in clauses(rule.formula):
            cells = product_within((columns[name].size for name in columns_of(clause)), MAX_RULE_CELLS)
            work += (cells or 0) * sum(1 for _ in literals(clause))
            fits = cells is not None and work <= _MAX_WORK
            whole = (fits and _add_mask(columns, clause, masks)) and whole
        if not whole:
            watched.append(rule)
    return masks, tuple(watched)


def _add_mask(columns: Columns, clause: Formula, masks: Masks) -> bool:
    """Add the cells in which a clause is certainly false; whether that is all there is to it."""
    every, names = list(columns), sorted(columns_of(clause), key=list(columns).index)
    axes = tuple(map(every.index, names))
    truth = clause.truth(PrivateCodes(columns, _mesh([columns[name] for name in names])))
    broken = np.broadcast_to(truth.broken, [columns[name].size for name in names])
    if broken.any():
        masks[axes] = masks[axes] | broken if axes in masks else broken
    return not truth.depends_on_value.any()


def _mesh(columns: list[Column]) -> dict[str, Codes]:
    """The codes of every cell of a table of some columns."""
    return {
        column.name: np.arange(column.size, dtype=np.int32).reshape(
            [-1 if i == j else 1 for j in range(len(columns))]
        )
        for i, column in enumerate(columns)
    }


def thresholds(rules: Rules, zeros: Iterable[Zero], column: Cut) -> list[float]:
    """The edges that rules and the ranges of zeros need in a cut column, in order."""
    needed = {cut for rule in rules.declared for cut in thresholds_of(literals(rule.formula), column)}
    for zero in zeros:
        needed |= set(range_cuts(column, zero.impossible.get(column.name)))
    return sorted(needed)
