"""What the columns and structural zeros of a schema must be to one another."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpcipher.errors import SchemaError

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


def check_names(schema: "Schema") -> None:
    """Refuse a schema without columns, or with two of one name."""
    if not schema.columns:
        raise SchemaError("columns ([]) must hold at least one column")
    name, times = Counter(schema.names).most_common(1)[0]
    if times > 1:
        raise SchemaError(f"column {name!r} must be declared once; remove the repeat")


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
