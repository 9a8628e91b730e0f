"""The code of each cell as an expression of its engine: what `Column.encode` does, said in SQL.

The order of precedence is that of `dpcipher.schema.column`: a code for a kind of missing, nothing at all, a level, an empty text, and then whatever is not declared.
"""

from collections.abc import Sequence

from dpcipher.curator.warehouse.cells import Cells, Needs, Read
from dpcipher.curator.warehouse.expressions import Expr, double, first_of, ibis, number_looked_up
from dpcipher.errors import SizeError
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.listed import Listed
from dpcipher.schema.narrow import ABSENT
from dpcipher.schema.points import EXACT

UNLISTED = -1
MOST_LEVELS = 2**16  # that are listed in a query
MOST_COMPARED = 2**9  # that are compared one after the other, where cells have no text to look up


def check_size(column: Column, cells: Cells) -> None:
    """Refuse a column whose levels would make a query of millions of characters."""
    domain = column.domain
    listed = domain.size if isinstance(domain, Listed) or not isinstance(domain.edges, range) else 0
    by_text = isinstance(domain, Listed) and bool(domain.spellings)
    most = MOST_COMPARED if by_text and not cells.has_text else MOST_LEVELS
    if listed > most:
        raise SizeError(
            f"column {column.name!r}: {listed:,} levels or bins must be at most {most:,} where the data live; "
            "use fewer, or write the table to Parquet and measure that"
        )


def refusals(column: Column) -> tuple[int, int]:
    """What becomes of a cell that holds nothing, and of one that is not declared: a code, or a mark below 0 where it is refused."""
    goes = column.missing == "level" or column.missing_codes.of_null is not None
    absent = column.missing_code if goes else ABSENT
    unlisted = UNLISTED if column.other in ("refuse", "nearest") else column.other_code
    return absent, unlisted


def mark(column: Column, cells: Cells, read: Read) -> Expr:
    """The code of a cell, or a mark below 0."""
    absent, unlisted = refusals(column)
    blank = cells.blank(read)
    parts = [
        _missing_kind(column, cells, read),
        ibis.cases((cells.absent(read), absent), else_=None),
        _level(column, cells, read),
        None if blank is None else ibis.cases((blank, absent), else_=None),
        ibis.literal(unlisted),
    ]
    code = first_of(*parts)
    assert code is not None
    return code.cast("int32")


def _missing_kind(column: Column, cells: Cells, read: Read) -> Expr | None:
    """The code of a kind of missing."""
    kinds, size = column.missing_codes, column.domain.size
    if kinds.listed is None:
        return None
    spellings = {text: size + code for text, code in kinds.spellings.items()}
    numbers = {number: size + code for number, code in kinds.listed.numbers.items()}
    days = {day: size + code for day, code in kinds.days.items()} if column.kind == "date" else {}
    return first_of(
        cells.text_code(read, spellings),
        number_looked_up(cells.number(read), numbers),
        number_looked_up(cells.day(read), days) if days else None,
    )


def _level(column: Column, cells: Cells, read: Read) -> Expr | None:
    """The code of a declared level; null where there is none."""
    kind, domain = Needs.of(column).kind, column.domain
    if isinstance(domain, Listed):
        if kind == "text":
            looked = "k" in read and cells.has_text
            by_text = read["k"] if looked else cells.text_code(read, domain.spellings)
            by_number = read["j"] if "j" in read else number_looked_up(cells.number(read), domain.numbers)
            return first_of(by_text, by_number)
        return read["j"] if "j" in read else number_looked_up(getattr(cells, kind)(read), domain.numbers)
    number = getattr(cells, kind)(read)
    return (
        None
        if number is None
        else _bin(domain, number, found=read.get("b"), nearest=column.other == "nearest")
    )


def _bin(domain: Binned, number: Expr, *, found: Expr | None, nearest: bool) -> Expr:
    """The bin of a number, a special value before any bin; `found` is the bin of a number in the range, where it was looked up."""
    special = {value: code for code, value in enumerate(domain.special, start=domain.n_bins)}
    number = number if domain.whole else number.cast("float64")
    low, high = (_point(domain, edge) for edge in (domain.edges[0], domain.edges[-1]))
    below, above = number < low, number >= high if domain.whole else number > high
    inside = _place(domain, number) if found is None else found
    whole = _is_whole(number) if domain.whole else ibis.literal(True)
    bins = ibis.cases(
        (number.isnull(), None),
        (below, ibis.cases((whole, 0), else_=None) if nearest else None),
        (above, ibis.cases((whole, domain.n_bins - 1), else_=None) if nearest else None),
        else_=ibis.cases((whole, inside), else_=None),
    )
    code = first_of(number_looked_up(number, special), bins)
    assert code is not None
    return code


def _is_whole(number: Expr) -> Expr:
    """Whether a number is whole. Beyond 2**53 all floats are, and an engine's floor might not fit its integers."""
    if number.type().is_integer():
        return ibis.literal(True)
    return ibis.cases((number.between(double(-EXACT), double(EXACT)), number.floor() == number), else_=True)


def _place(domain: Binned, number: Expr) -> Expr:
    """The bin of a number that is in the range: by subtraction, or by halving the list of edges."""
    if isinstance(domain.edges, range):
        return (number - domain.edges[0]).cast("int32")
    return _halved(domain, number, domain.edges[1:-1], 0)


def _halved(domain: Binned, number: Expr, edges: Sequence[float], first: int) -> Expr:
    if not edges:
        return ibis.literal(first)
    middle = len(edges) // 2
    return ibis.cases(
        (number < _point(domain, edges[middle]), _halved(domain, number, edges[:middle], first)),
        else_=_halved(domain, number, edges[middle + 1 :], first + middle + 1),
    )


def _point(domain: Binned, edge: float) -> Expr:
    return ibis.literal(int(edge)) if domain.whole else double(edge)
