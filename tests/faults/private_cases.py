"""Private tables that no message may quote: cells of every kind among which canaries sit, in files, frames and Arrow tables."""

import gzip
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from mutations import bend

from dpcipher.curator.counts import open_counts, receive
from dpcipher.curator.measure import measure
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.schema import Schema

WORD, NUMBER = "qzjx", 8675309
CANARIES = (WORD, str(NUMBER))
COLUMNS = ("sex", "age", "pay", "born", "ill")
Case = Callable[[], object]

GOOD: dict[str, Sequence[str]] = {
    "sex": ("F", "M"),
    "age": ("0", "17", "99"),
    "pay": ("1.5", "9", "3e0"),
    "born": ("1999-12-31", "2024-02-29"),
    "ill": ("true", "false", ""),
}
SECRET = (
    WORD, f"{WORD} Doe", f'"{WORD}', f'{WORD}"', f"{WORD},{WORD}", f"{WORD}\n{WORD}", WORD * 500, f"{WORD}\0", f"={WORD}", str(NUMBER), f"-{NUMBER}",
    f"{NUMBER}.5", f"{NUMBER}e400", f"0x{NUMBER}", f"{NUMBER}-01-01", f"2024-01-{NUMBER}", f"\ufeff{WORD}", f"١{WORD}", f"{WORD}\u202e",
)  # fmt: skip
ODD = (
    "",
    " ",
    "NA",
    "nan",
    "inf",
    "1e999",
    "-0",
    "1_0",
    "TRUE",
    "2024-02-30",
    "9" * 400,
    "1" * 5_000,
    "\t",
    "F ",
    "٣",
)


def schema(rng: random.Random) -> Schema:
    """A schema that refuses, or that takes everything."""
    if rng.random() < 0.5:
        missing, other, rest = "level", "missing", "missing"
    else:
        missing, other, rest = rng.choice(("refuse", "level")), rng.choice(("refuse", "nearest")), "refuse"
    columns: list[dict[str, Any]] = [
        {"name": "sex", "kind": "categorical", "levels": ["F", "M"], "other": rest},
        {"name": "age", "kind": "integer", "min": 0, "max": 99, "bins": 4, "other": other},
        {"name": "pay", "kind": "number", "min": 0, "max": 10, "bins": 2, "other": other},
        {"name": "born", "kind": "date", "min": "1900-01-01", "max": "2030-01-01", "bins": 3, "other": other},
        {"name": "ill", "kind": "boolean", "other": rest},
    ]
    return Schema.from_dict({"version": 1, "columns": [{"missing": missing, **column} for column in columns]})


def cell(column: str, rng: random.Random) -> str:
    """Mostly a good one, sometimes one that must not be told."""
    return rng.choice(rng.choices((GOOD[column], SECRET, ODD), (6, 3, 1))[0])


def reading(data: Any, rng: random.Random) -> Case:
    """Count a private table, now and then under the name of persons, or measure it."""
    declared, person = (
        schema(rng),
        rng.choice(
            (
                None,
                None,
                Privacy.parse(epsilon=1, unit="add-remove", max_rows=2, person="sex"),
                Privacy.parse(epsilon=1, unit="add-remove", max_rows=1, person="who", missing_person="drop"),
            )
        ),
    )
    if rng.random() < 0.05:
        return lambda: measure(data, declared, workload=1, epsilon=1.0, unit="replace")
    return lambda: open_counts(receive(data, declared, person), declared, [(0, 1), (4,)])


def csv(rng: random.Random, folder: Path) -> Case:
    """A CSV file, gzipped or not, of cells that are typed, or with its bytes bent."""
    rows = [[cell(column, rng) for column in COLUMNS] for _ in range(rng.randrange(1, 12))]
    head = list(COLUMNS)
    if rng.random() < 0.2:
        head[rng.randrange(5)] = rng.choice(SECRET)
    if rng.random() < 0.2:
        rows[0].append(rng.choice(SECRET))
    quote = rng.choice(('"', "", '"'))
    lines = [
        [f"{quote}{text.replace(quote, quote * 2) if quote else text}{quote}" for text in row]
        for row in [head, *rows]
    ]
    data = rng.choice(("\n", "\r\n")).join(map(",".join, lines)).encode("utf-8", "surrogatepass")
    zipped = rng.random() < 0.2
    if zipped and rng.random() < 0.5:
        data = bend(data, rng)
    packed = gzip.compress(data, 1) if zipped else data
    path = folder / ("rows.csv.gz" if zipped else "rows.csv")
    path.write_bytes(bend(packed, rng) if rng.random() < 0.4 else packed)
    return reading(rng.choice((path, str(path))), rng)


VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "text": (pa.string(), (*GOOD["sex"], *SECRET)),
    "large text": (pa.large_string(), (*GOOD["born"], *SECRET)),
    "bytes": (pa.binary(), (b"F", WORD.encode(), b"\xff" + WORD.encode())),
    "int64": (pa.int64(), (0, 5, NUMBER, -NUMBER, 2**63 - 1)),
    "uint64": (pa.uint64(), (0, NUMBER, 2**64 - 1)),
    "int8": (pa.int8(), (0, 99, -1)),
    "float": (pa.float64(), (1.5, float(NUMBER), float("nan"), float("inf"), -0.0, 1e308)),
    "half": (pa.float32(), (1.5, float("nan"))),
    "decimal": (pa.decimal128(30, 5), (Decimal(NUMBER), Decimal("1.50000"))),
    "wide decimal": (pa.decimal256(60, 5), (Decimal(NUMBER) * 10**30, Decimal(1))),
    "truth": (pa.bool_(), (True, False)),
    "day": (pa.date32(), (date(1999, 1, 1), date(1986, 7, 5))),
    "moment": (pa.timestamp("us"), (datetime(1999, 1, 1), datetime(1986, 7, 5, 3, 9))),
    "zoned": (pa.timestamp("ns", "Asia/Tokyo"), (datetime(1999, 1, 1, tzinfo=timezone(timedelta(hours=5))),)),
    "time": (pa.time64("us"), (time(8, 6, 7),)),
    "duration": (pa.duration("s"), (timedelta(seconds=NUMBER),)),
    "list": (pa.list_(pa.string()), ([WORD], [])),
    "struct": (pa.struct({"a": pa.int64()}), ({"a": NUMBER},)),
    "map": (pa.map_(pa.string(), pa.int64()), ([(WORD, NUMBER)],)),
    "nothing": (pa.null(), (None,)),
}  # fmt: skip


def array(rng: random.Random, length: int) -> pa.Array:
    """A column of any type, with canaries where the type can hold them, coded as a dictionary now and then."""
    kind, values = VALUES[rng.choice(list(VALUES))]
    cells = pa.array([None if rng.random() < 0.2 else rng.choice(values) for _ in range(length)], kind)
    plain = not pa.types.is_nested(kind) and not pa.types.is_null(kind)
    return cells.dictionary_encode() if plain and rng.random() < 0.2 else cells


def table(rng: random.Random) -> pa.Table:
    """An Arrow table whose columns may be anything, or texts."""
    length = rng.randrange(12)
    columns = [
        array(rng, length) if rng.random() < 0.5 else pa.array([cell(name, rng) for _ in range(length)])
        for name in COLUMNS
    ]
    names = list(COLUMNS)
    if rng.random() < 0.1:
        names[rng.randrange(5)] = rng.choice((WORD, "sex"))
    return pa.Table.from_arrays(columns, names=names)


def arrow(rng: random.Random, folder: Path) -> Case:
    """An Arrow table or a stream of it."""
    made = table(rng)
    return reading(made if rng.random() < 0.7 else made.to_reader(), rng)


def parquet(rng: random.Random, folder: Path) -> Case:
    """A Parquet file of any types, whole or with its bytes bent."""
    made, path = table(rng), folder / "rows.parquet"
    pq.write_table(
        made, path, compression=rng.choice(("zstd", "none", "snappy")), use_dictionary=rng.random() < 0.5
    )
    if rng.random() < 0.6:
        path.write_bytes(bend(path.read_bytes(), rng))
    return reading(path, rng)


class Stubborn:
    """A cell that cannot be written."""

    def __str__(self) -> str:
        raise ValueError(f"{WORD} {NUMBER}")

    __repr__ = __str__


OBJECTS: tuple[Any, ...] = (
    None, "F", "M", 5, 5.0, float("nan"), True, NUMBER, -NUMBER, NUMBER * 10**400, float(NUMBER), Decimal(NUMBER), Decimal("NaN"), Decimal("1e9999"),
    date(1999, 1, 1), datetime(1999, 1, 1), pd.Timestamp("1999-01-01", tz="UTC"), pd.NaT, pd.NA, pd.Timedelta(1), WORD, WORD.encode(), b"\xff", [WORD],
    {WORD: 1}, (WORD,), {WORD}, "\ud800" + WORD, 1j * NUMBER, Stubborn(), Stubborn, object(),
)  # fmt: skip


def frame(rng: random.Random, folder: Path) -> Case:
    """A pandas frame of objects of every type."""
    length = rng.randrange(8)
    pools = [OBJECTS if rng.random() < 0.6 else GOOD[name] for name in COLUMNS]
    data = {
        name: pd.Series([rng.choice(pool) for _ in range(length)], dtype=object)
        for name, pool in zip(COLUMNS, pools, strict=True)
    }
    made = pd.DataFrame(data)
    if rng.random() < 0.2:
        made["sex"] = pd.Categorical([rng.choice(("F", "M", WORD, NUMBER)) for _ in range(length)])
    return reading(made, rng)


PRIVATE = {"CSV": csv, "Parquet": parquet, "Arrow": arrow, "pandas": frame}
