"""Rows back to the user: as the kind of table that went in, or as a file that is complete or absent."""

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpcipher.errors import MissingExtra, ParameterError, TableFileError, warn
from dpcipher.files import beside, check_output, replacing
from dpcipher.schema.cells import quoted, quoted_text, starts_formula

Formulas = Literal["quote", "keep"]

PANDAS_ATTRS = b"PANDAS_ATTRS"  # where Parquet files and Arrow tables have the `attrs` of a pandas frame
_ENDINGS = (".csv", ".csv.gz", ".parquet")
ROWS_ENDINGS = (*_ENDINGS, ".dta", ".sav")  # of synthetic rows
_GROUP_ROWS, _GROUP_BYTES = 2**20, 2**26  # in a group of rows of a Parquet file, at least one of them


def mirror(kind: str, table: pa.Table) -> object:
    """The table as the library it came from has it; pandas where there was none to mirror."""
    try:
        if kind == "polars":
            import polars

            return polars.from_arrow(table)
        if kind == "duckdb":
            import duckdb

            return duckdb.from_arrow(table)
    except ImportError:
        raise MissingExtra(kind, kind) from None
    return table if kind in ("pyarrow", "arrow") else to_pandas(table)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A frame whose integers and booleans stay such beside missing values, and whose dates are datetimes; with its `attrs`, where the table has them."""
    frame = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        mapper = _nullable if column.null_count else None
        frame[name] = column.to_pandas(date_as_object=False, types_mapper=mapper)
    whole = pd.DataFrame(frame)
    whole.attrs.update(json.loads((table.schema.metadata or {}).get(PANDAS_ATTRS, b"{}")))
    return whole


def _nullable(kind: pa.DataType) -> pd.Int64Dtype | pd.BooleanDtype | None:
    if pa.types.is_integer(kind):
        return pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def write_table(
    path: str | PathLike[str],
    batches: pa.Table | Iterable[pa.RecordBatch | pa.Table],
    *,
    formulas: Formulas = "quote",
    force: bool = False,
    said: Callable[[], Mapping[bytes, bytes]] = dict,
) -> None:
    """Write rows as CSV (also gzipped) or Parquet, by the ending of the path; at least one batch, which may be empty.

    A spreadsheet that opens a CSV file runs texts that begin with = + - @ as formulas. So in CSV they get a quote (') before them, names of columns
    too, with a warning; reading the file back takes it off again. Numbers stay as they are. `formulas="keep"` writes every text as it is.
    `force` replaces a file that is there already. `said` gives metadata for a Parquet file when all rows are written.
    """
    target, quoting = _checked(path), _Quoting()
    if formulas not in get_args(Formulas):
        raise ParameterError(f"formulas ({formulas!r:.40}) must be quote or keep")
    check_output(target, force=force)
    parts = iter([batches] if isinstance(batches, pa.Table) else batches)
    if target.name.endswith(".parquet"):
        parts = _row_groups(parts)
    else:
        parts = map(_without_dictionaries, parts)
        parts = map(quoting, parts) if formulas == "quote" else parts
    first = next(parts, None)
    if first is None:
        raise TableFileError(f"{path}: there is nothing to write, not even column names")
    with (
        _as_table_error(target),
        replacing(target, force=force) as temporary,
        _writer(target, temporary, first.schema, said) as writer,
    ):
        for part in chain([first], parts):
            writer.write(part)
    if quoting.cells:
        warn(
            f"{target}: {quoting.cells:,} texts that a spreadsheet would run as formulas were written with a quote (') before them; "
            'to write them as they are, use --raw-text (formulas="keep")'
        )


def csv_text(frame: pd.DataFrame) -> str:
    """A small frame as the text of a CSV file that no spreadsheet takes for formulas."""
    safe = frame.map(lambda cell: quoted_text(cell) if isinstance(cell, str) else cell)
    return str(safe.rename(columns=quoted_text).to_csv(index=False))


class _Quoting:
    """Batches with a quote before every text that would begin a formula, column names included; counts them."""

    def __init__(self) -> None:
        self.cells = 0
        self._begun = False

    def __call__(self, part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """One batch; names are counted with the first."""
        names = quoted(pa.array(part.schema.names, pa.string())).to_pylist()
        if not self._begun:
            self.cells += sum(name != given for name, given in zip(names, part.schema.names, strict=True))
        self._begun = True
        return type(part).from_arrays([self._column(column) for column in part.columns], names)

    def _column(self, cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
            return cells
        changed = pc.sum(starts_formula(cells)).as_py() or 0
        self.cells += changed
        return quoted(cells) if changed else cells


def check_writable(
    path: str | PathLike[str],
    endings: tuple[str, ...] = _ENDINGS,
    *,
    force: bool = False,
    inputs: Iterable[object] = (),
) -> None:
    """Refuse a path that could not be written, before anything is spent on what would go there."""
    target = check_output(_checked(path, endings), force=force, inputs=inputs)
    with _as_table_error(target), beside(target):
        pass


@contextmanager
def _writer(
    target: Path, temporary: Path, schema: pa.Schema, said: Callable[[], Mapping[bytes, bytes]]
) -> Iterator[pq.ParquetWriter | pacsv.CSVWriter]:
    if target.name.endswith(".parquet"):
        with pq.ParquetWriter(temporary, schema, store_schema=False) as parquet:
            yield parquet
            parquet.add_key_value_metadata(_described(schema, said()))
        return
    compression = "gzip" if target.name.endswith(".gz") else None
    with (
        pa.output_stream(str(temporary), compression=compression) as sink,
        pacsv.CSVWriter(sink, schema) as writer,
    ):
        yield writer


def _row_groups(parts: Iterator[pa.RecordBatch | pa.Table]) -> Iterator[pa.Table]:
    """Neighbouring batches as one table, large enough for a group of rows that readers like, small enough to hold."""
    group: list[pa.Table] = []
    for part in parts:
        group.append(pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part)
        n_rows, n_bytes = (sum(getattr(table, of) for table in group) for of in ("num_rows", "nbytes"))
        if n_rows >= _GROUP_ROWS or n_bytes >= _GROUP_BYTES:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)


def _described(schema: pa.Schema, said: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What a Parquet file says of itself: dictionaries are how texts are stored, and are read back as texts.

    Readers take the Arrow types of columns, and all metadata, from the entry `ARROW:schema`, which the writer would make of the first batch.
    """
    metadata = {**(schema.metadata or {}), **said}
    entry = base64.b64encode(_plain(schema).with_metadata(metadata).serialize().to_pybytes())
    return {**metadata, b"ARROW:schema": entry}


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with the type of its values in the place of every dictionary."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in schema
    ]
    return pa.schema(fields, metadata=schema.metadata)


def _without_dictionaries(part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """A batch with its texts written out."""
    plain = _plain(part.schema)
    return part if plain.equals(part.schema) else part.cast(plain)


def _checked(path: str | PathLike[str], endings: tuple[str, ...] = _ENDINGS) -> Path:
    target = Path(path)
    if not target.name.endswith(endings):
        raise TableFileError(f"{target}: must end in {', '.join(endings)}; rename it")
    if target.exists() and not target.is_file():
        raise TableFileError(f"{target}: is there already and is no regular file; choose another name")
    if not target.parent.is_dir():
        raise TableFileError(f"{target}: the folder {target.parent} does not exist; make it first")
    return target


@contextmanager
def _as_table_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as wrong:
        number = wrong.errno if isinstance(wrong, OSError) else None
        reason = os.strerror(number) if number else "the disk refused"
        raise TableFileError(f"{path}: cannot be written ({reason}); choose another place") from None
