"""Dictionaries of several tables: which one is meant."""

from collections.abc import Mapping
from typing import Any

from dpcipher.errors import SchemaError, did_you_mean


def choose_table(tables: Mapping[str, Any], table: str | None) -> Any:
    """The table asked for; the only one where none was."""
    names = [str(name) for name in tables]
    if table is None and len(names) == 1:
        return next(iter(tables.values()))
    if table is None:
        raise SchemaError(
            f"the dictionary has {len(names)} tables ({', '.join(names):.200}); say which with table (--table)"
        )
    if table not in tables:
        raise SchemaError(f"table ({table!r:.60}) is not in the dictionary{did_you_mean(table, names)}")
    return tables[table]
