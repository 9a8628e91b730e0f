"""Rules compiled: to structural zeros where a table of their columns is small enough, to a check of rows for what is left.

A rule falls apart into clauses over few columns. The cells in which a clause is certainly false are structural zeros, and all zeros over the same
attributes are one mask. What tables cannot hold is watched row by row: clauses over too many cells, and clauses that some values of
a cell break and others do not (`start <= end` where both fall into one bin).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpcipher.errors import DataError, SchemaError, SizeError
from dpcipher.schema.columns import Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.plain import product_within
from dpcipher.schema.refused import broken_rule
from dpcipher.schema.rules.atoms import Coded, Drawn, HasLevel, Valued
from dpcipher.schema.rules.cuts import range_cuts, thresholds_of
from dpcipher.schema.rules.logic import Formula, clauses, columns_of, literals
from dpcipher.schema.rules.rule import MAX_MAPPED, BoundRule, Rule
from dpcipher.schema.rules.witness import Contradiction, find_row
from dpcipher.tables.domain import Axes, Bools, Codes

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

MAX_RULES = 2**12
MAX_TEXTS = 2**18  # characters of all rules together
MAX_LEVELS = 2**24  # that all comparisons of all rules list together
MAX_RULE_CELLS = 2**20  # of one mask: above, rows are checked instead
_MAX_WORK = 2**26  # cells times comparisons, of all masks together

Masks = dict[Axes, Bools]


@dataclass(frozen=True, eq=False)
class Compiled:
    """All rules of a schema, bound to its columns."""

    columns: Mapping[str, Column]
    rules: tuple[BoundRule, ...]
    masks: Masks
    watched: tuple[BoundRule, ...]

    def broken_cells(self, codes: Mapping[str, Codes]) -> Bools:
        """Which drawn rows break a watched rule whatever their values inside the bins will be."""
        return self._broken(Drawn(self.columns, codes), len(next(iter(codes.values()))))

    def broken_rows(self, codes: Mapping[str, Codes], table: pa.Table) -> Bools:
        """Which rows break a watched rule by their values."""
        return self._broken(Valued(self.columns, codes, table), table.num_rows)

    def _broken(self, view: Coded, n_rows: int) -> Bools:
        broken = np.zeros(n_rows, dtype=np.bool_)
        for rule in self.watched:
            broken |= rule.formula.truth(view).broken
        return broken

    def move_broken(self, codes: dict[str, Codes]) -> None:
        """Move rows that break a rule to where it says, in place, one rule after the other, and refuse those that still break one.

        Stability 1: a row is moved by its own codes.
        """
        view = Coded(self.columns, codes)
        for rule in self.rules:
            rows = rule.formula.truth(view).broken if rule.moves or rule.map else None
            if rows is not None and rows.any():
                rule.move(codes, rows)
        for rule in self.rules:
            if rule.formula.truth(view).broken.any():
                raise DataError(broken_rule(rule.number, rule.name, rule.columns))


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


def bind_rules(rules: Iterable[Rule], columns: Mapping[str, Column]) -> tuple[BoundRule, ...]:
    """Every rule with its columns and levels found."""
    bound, listed = [], 0
    for number, rule in enumerate(rules, start=1):
        bound.append(rule.bound(number, columns))
        atoms = (literal.atom for literal in literals(bound[-1].formula))
        listed += sum(len(atom.chosen) for atom in atoms if isinstance(atom, HasLevel))
        if listed > MAX_LEVELS:
            raise SizeError(f"rules must not compare more than {MAX_LEVELS} levels together; use wider bins")
    return tuple(bound)


def compile_rules(schema: "Schema", rules: tuple[BoundRule, ...]) -> Compiled:
    """Masks for what tables can hold, and a watch for the rest; a rule about bins that are still to be found waits for them."""
    columns = {column.name: column for column in schema.columns}
    known = tuple(rule for rule in rules if not any(columns[name].is_open for name in rule.columns))
    masks: Masks = {}
    watched, work = [], 0
    for rule in known:
        held = True
        for clause in clauses(rule.formula):
            cells = product_within((columns[name].size for name in columns_of(clause)), MAX_RULE_CELLS)
            work += (cells or 0) * sum(1 for _ in literals(clause))
            fits = cells is not None and work <= _MAX_WORK
            held = (fits and _add_mask(schema, columns, clause, masks)) and held
        if not held:
            watched.append(rule)
    return Compiled(columns, known, masks, tuple(watched))


def _add_mask(schema: "Schema", columns: Mapping[str, Column], clause: Formula, masks: Masks) -> bool:
    """Add the cells in which a clause is certainly false; whether that is all there is to it."""
    names = columns_of(clause)
    cover = schema.cover(names)
    if product_within((columns[name].size for name in names), MAX_RULE_CELLS) is None:
        return False
    truth = clause.truth(Coded(columns, _mesh([columns[name] for name in names])))
    broken = np.broadcast_to(truth.broken, [columns[name].size for name in names])
    if broken.any():
        mask = cover.spread(broken)
        masks[cover.axes] = masks[cover.axes] | mask if cover.axes in masks else mask
    return not truth.open.any()


def _mesh(columns: list[Column]) -> dict[str, Codes]:
    """The codes of every cell of a table of some columns."""
    return {
        column.name: np.arange(column.size, dtype=np.int32).reshape(
            [-1 if i == j else 1 for j in range(len(columns))]
        )
        for i, column in enumerate(columns)
    }


def check_possible(schema: "Schema") -> None:
    """Refuse rules that together leave no row possible, as far as that is seen with little work."""
    rules = schema.compiled.rules
    if _possible(schema, rules):
        return
    low, high = 0, len(rules)  # the first `high` rules contradict one another, the first `low` do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _possible(schema, rules[:middle]) else (low, middle)
    rule = rules[high - 1]
    raise SchemaError(
        f"rule {rule.number} ({rule.name!r:.60}) leaves no row possible, with the rules and zeros before it; change it"
    )


def _possible(schema: "Schema", rules: tuple[BoundRule, ...]) -> bool:
    whole = rules == schema.compiled.rules
    compiled = schema.compiled if whole else compile_rules(schema, rules)
    masks = [*compiled.masks.items(), *(zero.mask(schema) for zero in schema.zeros)]
    try:
        find_row(schema.shape, masks)
    except Contradiction:
        return False
    return True


def thresholds(schema: "Schema", column: Cut) -> list[float]:
    """The edges that rules and the ranges of zeros need in a cut column, in order."""
    needed = {cut for rule in schema.bound_rules for cut in thresholds_of(literals(rule.formula), column)}
    for zero in schema.zeros:
        needed |= set(range_cuts(column, zero.impossible.get(column.name)))
    return sorted(needed)
