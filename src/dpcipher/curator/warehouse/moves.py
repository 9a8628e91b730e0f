"""Structural zeros and rules as expressions of codes: where a row goes that lies in a zero or breaks a rule, and which rows are refused.

A row is moved by its own codes, one zero or rule after the other, as `dpcipher.schema.rows` does it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.warehouse.expressions import Expr, among, ibis, looked_up, n_runs
from dpcipher.errors import SizeError
from dpcipher.schema.condition import column_mask
from dpcipher.schema.plain import product_within
from dpcipher.schema.refused import broken_rule, inside_zero
from dpcipher.schema.rows import Zero
from dpcipher.schema.rules.atoms import Coded
from dpcipher.schema.rules.rule import BoundRule
from dpcipher.schema.schema import Schema

MOST_CELLS, MOST_RUNS = 2**20, 2**12  # of the table of a rule's columns, and of broken cells in a row

Row = Mapping[str, Expr]  # the code of each column


@dataclass(frozen=True)
class Refusal:
    """Rows that are refused, and what is said then; never which or how many."""

    rows: Expr
    message: str


def moves(schema: Schema) -> Iterator[Callable[[Row], dict[str, Expr]]]:
    """The steps that move rows: of each, the codes that change, from the codes after the step before."""
    for zero in schema.zeros:
        if zero.becomes:
            yield partial(_out_of_zero, schema, zero)
    for rule in schema.compiled.rules:
        if rule.moves or rule.map is not None:
            yield partial(_mended, schema, rule)


def _out_of_zero(schema: Schema, zero: Zero, row: Row) -> dict[str, Expr]:
    return _set(row, _inside(schema, zero, row), zero.moves(schema))


def _mended(schema: Schema, rule: BoundRule, row: Row) -> dict[str, Expr]:
    if rule.map is None:
        return _set(row, _broken(schema, rule, row), rule.moves)
    return {rule.map.right: _followed(schema, rule, row)}


def refused_rows(schema: Schema, row: Row) -> Iterator[Refusal]:
    """What is refused after all moves, in the order in which files refuse it."""
    for zero in schema.zeros:
        yield Refusal(_inside(schema, zero, row), inside_zero(zero.impossible))
    for rule in schema.compiled.rules:
        yield Refusal(_broken(schema, rule, row), broken_rule(rule.number, rule.name, rule.columns))


def _set(row: Row, hit: Expr, codes: Mapping[str, int]) -> dict[str, Expr]:
    return {name: ibis.cases((hit, code), else_=row[name]).cast("int32") for name, code in codes.items()}


def _inside(schema: Schema, zero: Zero, row: Row) -> Expr:
    masks = {name: column_mask(schema.column(name), wanted) for name, wanted in zero.impossible.items()}
    return ibis.and_(*(among(row[name], mask) for name, mask in masks.items()))


def _broken(schema: Schema, rule: BoundRule, row: Row) -> Expr:
    """By the number of the row's cell in the table of the rule's columns."""
    sizes = [schema.column(name).size for name in rule.columns]
    broken = _broken_cells(schema, rule)
    cell = ibis.literal(0).cast("int64")
    for name, size in zip(rule.columns, sizes, strict=True):
        cell = cell * size + row[name]
    known = ibis.and_(*(row[name] >= 0 for name in rule.columns))  # what is refused already has no code
    return known & among(cell, broken)


def _broken_cells(schema: Schema, rule: BoundRule) -> NDArray[np.bool_]:
    columns = {name: schema.column(name) for name in rule.columns}
    sizes = [column.size for column in columns.values()]
    if product_within(sizes, MOST_CELLS) is None:
        raise _too_large(rule)
    places = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    codes = {name: place.astype(np.int32) for name, place in zip(columns, places, strict=True)}
    broken = np.broadcast_to(rule.formula.truth(Coded(columns, codes)).broken, math.prod(sizes))
    if n_runs(broken) > MOST_RUNS:
        raise _too_large(rule)
    return np.asarray(broken)


def _too_large(rule: BoundRule) -> SizeError:
    return SizeError(
        f"rule {rule.number} ({rule.name!r:.60}) is too large to be checked where the data live; "
        "use fewer levels, or write the table to Parquet and measure that"
    )


def _followed(schema: Schema, rule: BoundRule, row: Row) -> Expr:
    """The one level that a map leaves."""
    assert rule.map is not None
    left, right = np.divmod(rule.map.pairs, rule.map.width)
    if len(left) > MOST_RUNS:
        raise _too_large(rule)
    home = looked_up(row[rule.map.left], dict(zip(left.tolist(), right.tolist(), strict=True)))
    broken = _broken(schema, rule, row)
    return ibis.cases((broken, home), else_=row[rule.map.right]).cast("int32")
