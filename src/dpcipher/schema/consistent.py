"""What the columns, compounds and structural zeros of a schema must be to one another."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema.plain import product_within

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

MOST_CODES = 2**31 - 1


def check_names(schema: "Schema") -> None:
    """Refuse a schema without columns, or with two of one name."""
    if not schema.columns:
        raise SchemaError("columns ([]) must hold at least one column")
    name, times = Counter(schema.names).most_common(1)[0]
    if times > 1:
        raise SchemaError(f"column {name!r} must be declared once; remove the repeat")


def check_compounds(schema: "Schema") -> None:
    """Refuse compounds of columns that cannot be crossed."""
    names, taken = set(schema.names), set[str]()
    for name, parts in schema.compounds.items():
        if name in names or len(parts) < 2 or len(set(parts)) < len(parts) or taken & set(parts):
            raise SchemaError(
                f"compound {name!r} must cross two or more columns that are in no other compound, under a new name"
            )
        if any(schema.column(part).is_open for part in parts):
            raise SchemaError(
                f"compound {name!r} must cross columns with declared levels, not one with bins: auto or levels: discover"
            )
        if product_within((schema.column(part).size for part in parts), MOST_CODES) is None:
            raise SizeError(f"compound {name!r} must have at most {MOST_CODES} levels: cross fewer columns")
        taken |= set(parts)


def check_zeros(schema: "Schema") -> None:
    """Refuse structural zeros that name what is not there, or not known yet."""
    for zero in schema.zeros:
        zero.check(schema)
        require_levels(schema, "a structural zero", zero.impossible)


def require_levels(schema: "Schema", what: str, names: Iterable[str]) -> None:
    """Refuse a condition on levels that nobody knows yet."""
    for name in names:
        if schema.column(name).discovers:
            raise SchemaError(
                f"{what} must not name {name!r}, whose levels are not known yet (levels: discover); declare them"
            )
