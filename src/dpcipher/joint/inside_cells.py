"""Two values of a row that a rule compares, put in order or made equal without leaving their bins."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.schema.rules.compiled import Rules
from dpcipher.schema.rules.logic import Pair, literals
from dpcipher.tables.domain import Codes


def arranged(
    compiled: Rules, codes: dict[str, Codes], table: pa.Table, fixed: tuple[str, ...] = ()
) -> pa.Table:
    """Rows whose compared values have changed places, or of which one is a copy of the other, where both stay in their bins."""
    for rule in compiled.watched:
        for literal in literals(rule.formula):
            pair = literal.atom
            if isinstance(pair, Pair) and not pair.ranks and set(fixed).isdisjoint(pair.columns):
                equal = pair.sign == ("!=" if literal.negated else "==")
                table = _arrange(compiled, codes, table, pair, equal)
    return table


def _arrange(compiled: Rules, codes: dict[str, Codes], table: pa.Table, pair: Pair, equal: bool) -> pa.Table:
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
