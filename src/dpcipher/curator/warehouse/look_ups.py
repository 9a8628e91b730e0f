"""Long lists of levels and of edges, in SQL of ours: a text or a number is looked up in a list, and a bin found by halving.

A list is public, and has every text and every number once: a row finds one code or none, by its own cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.listed import Listed

SHORT = 16  # levels or bins that are compared one after the other


def is_long(column: Column) -> bool:
    """Whether a column has so many levels or bins that they are looked up; ranges of whole numbers are found by subtraction."""
    domain = column.domain
    return domain.size > SHORT and (isinstance(domain, Listed) or not isinstance(domain.edges, range))


@dataclass(frozen=True)
class LookUp:
    """How one long column is looked up: `s` is its text, `v` its number, `k` and `j` the codes that they have, `b` the bin."""

    place: int
    column: Column
    kind: str

    @property
    def found(self) -> tuple[str, ...]:
        """The names of what is found."""
        if isinstance(self.column.domain, Binned):
            return (f"b{self.place}",)
        return (f"k{self.place}", f"j{self.place}")

    def lists(self) -> Iterator[tuple[str, str]]:
        """The lists, by name."""
        domain = self.column.domain
        if isinstance(domain, Listed):
            texts = {_text(text): code for text, code in domain.spellings.items()}
            numbers = {_number(number): code for number, code in domain.numbers.items()}
            yield f"texts{self.place}", _list(texts, "CAST(NULL AS VARCHAR)")
            yield f"numbers{self.place}", _list(numbers, "CAST(NULL AS DOUBLE PRECISION)")

    def columns(self) -> str:
        """What the row finds."""
        place, domain = self.place, self.column.domain
        if isinstance(domain, Binned):
            return f"{_halved(f'v{place}', list(domain.edges[1:-1]), 0)} AS b{place}"
        return f"texts{place}.k AS k{place}, numbers{place}.k AS j{place}"

    def joins(self) -> str:
        """Where it finds it."""
        place = self.place
        if isinstance(self.column.domain, Binned):
            return ""
        return (
            f"LEFT JOIN texts{place} ON s{place} = texts{place}.v\n"
            f"LEFT JOIN numbers{place} ON v{place} = numbers{place}.v\n"
        )


def found_query(rows: str, looks: Sequence[LookUp]) -> str:
    """The rows of a step with what they find."""
    columns = ", ".join(look.columns() for look in looks)
    return f"SELECT {rows}.*, {columns} FROM {rows}\n" + "".join(look.joins() for look in looks)


def _list(codes: Mapping[str, int], nothing: str) -> str:
    pairs = [f"({value}, {code})" for value, code in codes.items()]
    return f"SELECT * FROM (VALUES {', '.join(pairs or [f'({nothing}, 0)'])}) AS listed (v, k)"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(number: float) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE PRECISION)"


def _halved(value: str, edges: Sequence[float], first: int) -> str:
    """The bin of a number that is in the range."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below, above = (
        _halved(value, edges[:middle], first),
        _halved(value, edges[middle + 1 :], first + middle + 1),
    )
    return f"CASE WHEN {value} < {_number(edges[middle])} THEN {below} ELSE {above} END"
