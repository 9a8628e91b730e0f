"""The private rows of a comparison: coded once, counted for the methods, and coded in a closed schema for the scores. Curator only."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcipher.curator.counts import CountSource, RowCounts, TableCounts
from dpcipher.curator.persons import kept_codes
from dpcipher.curator.texts import PrivateTexts, numbered, private_texts
from dpcipher.errors import ParameterError
from dpcipher.io.source import open_declared
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.schema.schema import Schema
from dpcipher.tables.covering import FULL_TABLE_CELLS
from dpcipher.tables.domain import Codes
from dpcipher.tables.table import count_rows


@dataclass(frozen=True)
class PrivateRows:
    """Codes on the grid of a schema, and the private dictionaries of the axes whose levels are to be found. Never leaves the machine."""

    schema: Schema
    codes: Codes
    texts: Mapping[int, PrivateTexts]
    kept: Codes  # of the rows that count, where rows of a person beyond a cap do not

    @property
    def digest(self) -> str:
        """SHA-256 of the rows, with the values in open bins and the texts to be found."""
        whole = hashlib.sha256(np.ascontiguousarray(self.codes).tobytes())
        whole.update(np.ascontiguousarray(self.kept).tobytes())
        for axis, own in sorted(self.texts.items()):
            counts = self.truth().text_counts(axis) if own.size else {}
            whole.update(repr((axis, sorted(counts.items()))).encode())
        return whole.hexdigest()

    def truth(self) -> CountSource:
        """The counts that methods ask for, through a session."""
        sizes = enumerate(self.schema.on_grid().shape)
        shape = tuple(self.texts[axis].size if axis in self.texts else size for axis, size in sizes)
        truth: CountSource = RowCounts(self.kept, shape)
        if math.prod(shape) <= FULL_TABLE_CELLS:
            truth = TableCounts(count_rows(self.kept, tuple(range(len(shape))), shape))
        truth.texts = self.texts
        return truth

    def scored(self) -> tuple[Codes, Schema]:
        """The rows in the schema that scores compare in: bins that stand for those to be found, and the most frequent texts, as many as may be found."""
        truth = self.truth()
        levels = {
            column.name: _most_frequent(truth.text_counts(axis), column.most)
            for axis, column in enumerate(self.schema.columns)
            if isinstance(column, OpenLevels)
        }
        schema = self.schema.closed(levels=levels).stand_in()
        codes = schema.recoded(self.codes, self.schema.on_grid())
        for axis, dictionary in self.texts.items():
            codes[:, axis] = dictionary.recoding(schema.column(schema.attrs[axis]))[codes[:, axis]]
        # Rows of both sides keep rules and zeros already; scores only need their codes.
        return codes, replace(schema, rules=(), zeros=()) if self.schema.is_open else schema


def read_rows(data: Any, schema: Schema, person: str | None = None, max_rows: int = 1) -> PrivateRows:
    """Read and code private rows as `measure` does; with `person`, at most `max_rows` of each count."""
    grid, texts = schema.on_grid(), private_texts(schema)
    source = open_declared(data, schema)
    with closing(source.batches(grid.names)) as batches:
        parts = [grid.encode(numbered(batch, texts)) for batch in batches]
    if not sum(map(len, parts)):
        raise ParameterError("data must hold at least one row; it has none")
    codes = np.concatenate(parts)
    kept = codes if person is None else kept_codes(open_declared(data, schema), grid, person, max_rows, texts)
    return PrivateRows(schema, codes, {schema.attrs.index(name): own for name, own in texts.items()}, kept)


def _most_frequent(counts: Mapping[str, int], most: int) -> list[str]:
    """The texts with the most rows; of equally many, the first in order."""
    return sorted(counts, key=lambda text: (-counts[text], text))[:most]
