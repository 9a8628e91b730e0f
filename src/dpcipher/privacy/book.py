"""A ledger's bytes, verified and understood.

Both are functions of the bytes alone, so what was verified once in this process need not be again: bytes that begin with
those of a book that was read before are compared with them, and only the lines that follow are verified.
"""

from dataclasses import dataclass

from dpcipher.privacy.chain import Chain, read_chain
from dpcipher.privacy.entries import Statement, read_statement

_KEPT = 4
_known: list["Book"] = []  # the latest of each ledger


@dataclass(frozen=True)
class Book:
    """Whole lines, their chain, and what they say."""

    data: bytes
    chain: Chain
    statement: Statement


def read_book(data: bytes) -> Book:
    """The book in a file's bytes; a torn last line is left out, any other damage is refused."""
    known = next((book for book in _known if data.startswith(book.data)), None)
    if known is None:
        chain = read_chain(data)
        said = read_statement(chain.records)
    else:
        chain = read_chain(data, after=known.chain)
        said = read_statement(chain.records, after=known.statement)
    book = Book(data[: chain.keep], chain, said)
    if not chain.glue:  # else its last line is not whole
        _remember(book)
    return book


def _remember(book: Book) -> None:
    """Keep the latest book of a few ledgers; one assignment, so that threads need no lock."""
    others = [other for other in _known if other.statement.id != book.statement.id]
    _known[:] = [book, *others][:_KEPT]
