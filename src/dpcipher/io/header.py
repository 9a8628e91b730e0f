"""Names of columns, sheets and tables: are the wanted ones there, and what else is. Names that the schema does not have are counted, never quoted.

A file without a header line has the cells of a person in its place.
"""

from collections.abc import Sequence

from dpcipher.errors import TableFileError


def check_names(
    names: Sequence[str], columns: Sequence[str], where: str = "the table", *, is_text: bool = False
) -> None:
    """Check that every wanted column is there, once; `is_text` says that the names stand in the header line of a text file."""
    for column in columns:
        if column not in names:
            hint = spelling_hint(names, columns, column) or _absent_hint(names, columns, is_text)
            raise TableFileError(f"{where} has no column {column!r}{hint}")
        if names.count(column) > 1:
            raise TableFileError(f"{where} has more than one column {column!r}; rename or drop one")


def check_part(name: str, names: Sequence[str], where: object, noun: str) -> None:
    """Check that a file has the sheet or table of this name."""
    if name not in names:
        hint = _spelt_alike(name, names) or ", check the name"
        raise TableFileError(f"{where}: has no {noun} {name!r:.100}; it has {len(names)} {noun}s{hint}")


def spelling_hint(names: Sequence[str], columns: Sequence[str], column: str) -> str:
    """A name that may be meant where a column is not there.

    It is quoted only where it differs from the wanted one in case or in space around it: then it says nothing that the schema does not.

    >>> spelling_hint(["AGE", "sex"], ["age", "sex"], "age")
    "; did you mean 'AGE'? Names must be spelt alike: rename the column in the schema or in the table"
    """
    hint = _spelt_alike(column, [name for name in names if name not in columns])
    return hint and f"{hint} Names must be spelt alike: rename the column in the schema or in the table"


def describe_ignored(names: Sequence[str], columns: Sequence[str], before: str = "") -> str:
    """How many columns are not wanted, as words; nothing where there are none.

    >>> describe_ignored(["a", "b", "c"], ["a"])
    '2 columns of the table are not in the schema and are ignored'
    """
    extra = sum(name not in columns for name in names)
    if not extra:
        return ""
    verb, plural = ("is", "") if extra == 1 else ("are", "s")
    return f"{before}{extra} column{plural} of the table {verb} not in the schema and {verb} ignored"


def _spelt_alike(word: str, names: Sequence[str]) -> str:
    """The name that differs from a word in case or in space around it alone, as a question; nothing where none does."""
    close = next((name for name in names if name.strip().casefold() == word.strip().casefold()), None)
    return "" if close is None else f"; did you mean {close!r}?"


def _absent_hint(names: Sequence[str], columns: Sequence[str], is_text: bool) -> str:
    """What may be wrong where a column is not there under any spelling."""
    if is_text and len(names) == 1 and len(columns) > 1:
        return (
            "; its header line (CSV files need one) holds one name alone, so cells may be separated otherwise: say it in the schema, "
            'such as format: {separator: ";"} (`dpcipher schema check --data` proposes one)'
        )
    needed = " (CSV files need a header line)" if is_text else ""
    return f"; check its column names{needed}{describe_ignored(names, columns, '; ')}"
