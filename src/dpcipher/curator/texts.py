"""The private dictionary of a column whose levels are to be found: a number for every text in its cells, until levels are found among them.

Stability. Whether a cell is a declared level, missing, a text that may be found, or none of these follows from that cell and the schema alone. The
number of a text depends on the order in which texts came, and nothing else does: counts are asked by text, and which of a person's rows
count is decided by a hash of the texts themselves. Nothing here is ever printed, written or quoted.
"""

import hashlib
import threading
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpcipher.errors import DataError
from dpcipher.schema.cells import as_text, by_type
from dpcipher.schema.columns import Column
from dpcipher.schema.open_levels import MOST_CODES, OpenLevels
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes, Counts


class PrivateTexts:
    """Codes for the cells of one column: those of its declared levels first, then one for each text that may be found."""

    def __init__(self, column: OpenLevels) -> None:
        self._open, self._declared = column, column.closed()
        self._codes: dict[str, int] = {}
        self._lock = threading.Lock()  # batches are read by several threads

    def __repr__(self) -> str:
        return "PrivateTexts(…)"

    @property
    def size(self) -> int:
        """How many codes there are. Private."""
        return self._declared.size + len(self._codes)

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The code of each cell; what is missing is refused here, if the column refuses it."""
        absent, unlisted, codes = self._declared.judged(cells)
        if absent.any():
            codes[absent] = self._declared.missing_code
        if unlisted.any():
            texts = by_type(cells, as_text).filter(pa.array(unlisted))
            codes[unlisted] = self._text_codes(
                texts, np.int32(self._declared.encode(pa.array([self._open.other]))[0])
            )
        return pa.array(codes)

    def _text_codes(self, texts: pa.Array, other: np.int32) -> Codes:
        """Known texts by their code, new ones by the next; `other` for those that may not be found."""
        coded = texts.dictionary_encode()
        entries = coded.dictionary
        good = self._open.fits(entries)
        numbers = np.full(len(entries), other, dtype=np.int32)
        with self._lock:
            for place in np.flatnonzero(good):
                numbers[place] = self._number(entries[int(place)].as_py())
        places = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        return np.where(places < 0, other, numbers[places] if len(numbers) else other).astype(np.int32)

    def _number(self, text: str) -> int:
        number = self._codes.setdefault(text, self.size)
        if number >= MOST_CODES:
            raise DataError(
                f"column {self._open.name!r}: it has too many different texts; narrow its pattern"
            )
        return number

    def counted(self, counts: Counts) -> dict[str, int]:
        """The number of rows of each text that is in the rows that count. Private: only for a session to add noise to.

        A text that only rows beyond a person's `max_rows` have is in none that count, and must not be asked about.
        """
        return {text: int(counts[code]) for text, code in self._codes.items() if counts[code] > 0}

    def hashes(self) -> NDArray[np.uint64]:
        """A fixed number for each code, from its declared level or its text alone."""
        names = [f"level {code}" for code in range(self._declared.size)] + [
            f"text {text}" for text in self._codes
        ]
        digests = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
        return np.frombuffer(b"".join(digests), dtype=np.uint64)

    def recoding(self, column: Column) -> Codes:
        """The code of each of ours in the column with found levels: a public look-up of every cell's own text."""
        n_listed, found = self._declared.domain.size, column
        declared = [found.find(label) for label in self._declared.domain.labels]
        missing = found.domain.size + np.arange(self._declared.size - n_listed)
        texts = found.encode(pa.array(list(self._codes), pa.string()))
        return np.concatenate([np.array(declared), missing, texts]).astype(np.int32)


Dictionaries = Mapping[str, PrivateTexts]  # by the name of the column
NO_TEXTS: Dictionaries = MappingProxyType({})


def numbered(batch: pa.RecordBatch, texts: Dictionaries) -> pa.RecordBatch:
    """The batch with the codes of such columns in their place; one that lacks a column, or has it twice, is left for its schema to refuse."""
    names = batch.schema.names
    for name, dictionary in texts.items():
        if names.count(name) == 1:
            place = names.index(name)
            batch = batch.set_column(
                place, pa.field(name, pa.int32()), dictionary.encode(batch.column(place))
            )
    return batch


def private_texts(schema: Schema) -> dict[str, PrivateTexts]:
    """A dictionary for every column of a schema whose levels are to be found."""
    return {column.name: PrivateTexts(column) for column in schema.columns if isinstance(column, OpenLevels)}
