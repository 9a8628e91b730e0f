"""Parquet files that lie about themselves, and what it costs to refuse each: run as a program, it prints the most memory that each took."""

import io
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import forge
import pyarrow as pa
import pyarrow.parquet as pq
from forge import BINARY, I32, I64, LIST, STRUCT, Chunk, listed, page, steps, struct, written

from dpcipher.release import parquet

TEXTS = pa.schema({"count": pa.int64(), "text": pa.string()})
GOOD = page(steps(100, 0, 1), 100)
LEAF = struct((1, I32, 2), (3, I32, 1), (4, BINARY, b"count"))
ALLOWED = 2**28  # bytes that a process may ask for beside what it has: what is only reserved counts, too
ENDLESS = 2**29
MANY = 400_000


def counts(pages: bytes = GOOD, *, rows: int = 100, **changes: object) -> bytes:
    """A file with a column of counts alone; what the chunk says, and what the file says, is changed."""
    file = {name: changes.pop(name) for name in ("total", "groups", "schema", "metadata") if name in changes}
    packing = int(changes.pop("packing", 0))  # type: ignore[call-overload]
    return written([Chunk("count", pages, packing=packing, said=changes)], rows, **file)


def texts(dictionary: bytes, values: bytes) -> bytes:
    """A file with a column of a hundred texts, packed by zstd, beside a column of counts."""
    return written([Chunk("count", GOOD), Chunk("text", dictionary + values, 6, 6, len(dictionary))], 100)


def packed(data: bytes, values: int, **changes: object) -> bytes:
    """A page that is packed by zstd and says what it unpacks to."""
    return page(bytes(pa.compress(data, codec="zstd")), values, **{"size": len(data), **changes})


WORD = packed(b"\1\0\0\0a", 1, kind=2)
PLACES = packed(forge.present(100) + b"\1" + forge.varint(100 << 1) + b"\0", 100, encoding=8)
EMPTY_CHUNK = struct((2, I64, 0), (3, STRUCT, struct((1, I32, 2), (2, LIST, listed(I32, [])), (3, LIST, listed(BINARY, [])), (4, I32, 0), (5, I64, 0), (6, I64, 0), (7, I64, 0), (9, I64, 4))))  # fmt: skip

LIES: dict[str, Callable[[], bytes]] = {
    "packed counts": lambda: counts(packed(steps(100), 100), packing=6),
    "packed counts that unpack": lambda: counts(packed(bytes(ENDLESS), 100), packing=6),
    "page that says it unpacks": lambda: counts(page(steps(100), 100, size=2**31 - 1)),
    "page of fewer than no bytes": lambda: counts(page(steps(100), 100, size=-1)),
    "page longer than its group": lambda: counts(page(steps(100), 100, packed=2**30)),
    "page of a negative length": lambda: counts(page(steps(100), 100, packed=-5)),
    "page of too many values": lambda: counts(page(steps(101), 101)),
    "page of too few values": lambda: counts(page(steps(99), 99)),
    "page of fewer values than it says": lambda: counts(page(steps(99, rows=100), 100)),
    "page of no values": lambda: counts(page(b"", 0) + GOOD),
    "page of negative values": lambda: counts(page(steps(100), -100)),
    "page of endless steps": lambda: counts(page(steps(2**31 - 1, block=2**30, rows=100), 100)),
    "endless counts in few bytes": lambda: counts(page(steps(2**20, block=2**20), 2**20), rows=2**20),
    "many pages": lambda: counts(page(steps(1), 1) * MANY, rows=MANY),
    "counts in a dictionary": lambda: counts(page(bytes(8), 1, kind=2) + GOOD),
    "dictionary that unpacks": lambda: texts(packed(bytes(ENDLESS), 100, kind=2), PLACES),
    "dictionary of endless values": lambda: texts(packed(bytes(8), 2**31 - 1, kind=2), PLACES),
    "dictionary of negative values": lambda: texts(packed(bytes(8), -1, kind=2), PLACES),
    "dictionary in the middle": lambda: texts(WORD, PLACES + WORD),
    "no dictionary": lambda: written([Chunk("count", GOOD), Chunk("text", PLACES, 6, 6)], 100),
    "places outside the dictionary": lambda: texts(
        WORD, packed(forge.present(100) + b"\1" + forge.varint(100 << 1) + b"\1", 100, encoding=8)
    ),
    "text outside a dictionary": lambda: texts(
        WORD, packed(forge.present(100) + b"\1\0\0\0a" * 100, 100, encoding=0)
    ),
    "texts of endless lengths": lambda: texts(
        WORD, packed(steps(2**31 - 1, block=2**30, rows=100), 100, encoding=6)
    ),
    "texts that repeat each other": lambda: texts(
        WORD, packed(steps(100, 2**20) + steps(100), 100, encoding=7)
    ),
    "places that unpack": lambda: texts(WORD, packed(bytes(ENDLESS), 100, encoding=8)),
    "index page": lambda: counts(page(steps(100), 100, kind=1)),
    "newer page": lambda: counts(page(steps(100), 100, kind=3)),
    "unknown encoding": lambda: counts(page(bytes(800), 100, encoding=9)),
    "group outside the file": lambda: counts(start=2**40),
    "group longer than the file": lambda: counts(size=2**40),
    "group of a negative length": lambda: counts(size=-1),
    "group over the footer": lambda: counts(size=len(GOOD) + 8),
    "group before the file": lambda: counts(start=0),
    "group of no pages": lambda: counts(b""),
    "bytes between the columns": lambda: counts(GOOD + bytes(9), size=len(GOOD)),
    "unknown packing": lambda: counts(packing=3),
    "other rows than the file": lambda: counts(total=2**60),
    "negative rows in the file": lambda: counts(total=-1),
    "other values than rows": lambda: counts(values=5),
    "negative rows": lambda: counts(rows=-100),
    "other column": lambda: counts(path=b"other"),
    "other type": lambda: counts(kind=5),
    "counts in another file": lambda: counts(place=[(1, BINARY, b"other.parquet")]),
    "filter": lambda: counts(more=[(14, I64, 4), (15, I32, 8)]),
    "damaged pages": lambda: counts(page(steps(100)[:-3] + b"\xff\xff\xff", 100)),
    "deep columns": lambda: counts(
        schema=[struct((4, BINARY, b"g"), (5, I32, 1))] * 50_000 + [LEAF], groups=[]
    ),
    "many columns": lambda: counts(
        schema=[struct((4, BINARY, b"s"), (5, I32, MANY)), *[LEAF] * MANY], groups=[]
    ),
    "many chunks": lambda: counts(
        groups=[struct((1, LIST, listed(STRUCT, [EMPTY_CHUNK] * MANY)), (2, I64, 0), (3, I64, 0))]
    ),
    "many groups of many chunks": lambda: counts(
        groups=[struct((1, LIST, listed(STRUCT, [EMPTY_CHUNK] * 1000)), (2, I64, 0), (3, I64, 0))] * 1000
    ),
    "chunks that fill a footer": lambda: counts(
        groups=[struct((1, LIST, listed(STRUCT, [EMPTY_CHUNK] * 1000)), (2, I64, 0), (3, I64, 0))] * 9
    ),
    "names that fill a footer": lambda: counts(
        groups=[
            struct(
                (
                    1,
                    LIST,
                    listed(
                        STRUCT,
                        [
                            struct(
                                (2, I64, 0),
                                (
                                    3,
                                    STRUCT,
                                    struct(
                                        (1, I32, 2),
                                        (2, LIST, listed(I32, [])),
                                        (3, LIST, listed(BINARY, [b""] * 1000)),
                                    ),
                                ),
                            )
                        ]
                        * 250,
                    ),
                ),
                (2, I64, 0),
                (3, I64, 0),
            )
        ]
    ),
    "chunk that says nothing": lambda: counts(
        groups=[struct((1, LIST, listed(STRUCT, [struct((2, I64, 0))])), (2, I64, 0), (3, I64, 100))]
    ),
    "chunk of an unknown type": lambda: counts(kind=77),
    "chunk that is encrypted": lambda: counts(after=[(8, STRUCT, struct((1, STRUCT, struct())))]),
    "chunk whose facts are encrypted": lambda: counts(after=[(9, BINARY, b"x" * 40)]),
    "two columns of counts": lambda: counts(
        schema=[struct((4, BINARY, b"s"), (5, I32, 2)), LEAF, LEAF], groups=[]
    ),
    "no columns": lambda: counts(schema=[]),
    "no groups": lambda: counts(groups=[]),
    "metadata twice": lambda: counts(
        metadata=[struct((1, BINARY, forge.KEY), (2, BINARY, text)) for text in (b"{}", b"[]")]
    ),
    "metadata within another's": lambda: counts(
        metadata=[
            struct((1, BINARY, b"other"), (2, BINARY, struct((1, BINARY, forge.KEY), (2, BINARY, b"{}"))))
        ]
    ),
    "metadata longer than the file": lambda: counts(
        metadata=[struct((1, BINARY, forge.KEY))[:-1] + b"\x18\xff\xff\xff\x0f{}"]
    ),
    "metadata beyond its limit": lambda: written([Chunk("count", GOOD)], 100, bytes(2**20)),
}


def read(data: bytes) -> list[pa.Array]:
    """All columns of a file, each as far as the reader goes."""
    layout = parquet.read_layout(io.BytesIO(data), len(data), forge.KEY, 2**16)
    if layout is None:
        raise ValueError("it has no metadata of ours")
    schema = TEXTS if b"text" in data else TEXTS.remove(1)
    columns = layout.columns(schema, "count")
    return [
        columns.read(group, name, 9 * rows)
        for name in schema.names
        for group, rows in enumerate(columns.rows)
    ]


def unguarded(data: bytes) -> list[pa.Array]:
    """The same by Arrow alone."""
    return pq.read_table(io.BytesIO(data), use_threads=False).columns


def attempt(read: Callable[[bytes], object], data: bytes, answer: int) -> None:
    """Read a file under a limit of memory, and say what came of it."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ALLOWED, size + ALLOWED))
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    try:
        read(data)
        outcome = "read"
    except MemoryError:
        outcome = "out of memory"
    except (ValueError, OSError, pa.ArrowException) as wrong:
        outcome = f"refused: {wrong!s:.80}"
    except BaseException as wrong:
        outcome = f"{type(wrong).__name__}: {wrong!s:.80}"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    os.write(answer, json.dumps([outcome, most / 2**20]).encode())


def main() -> None:
    """For each lie, what came of it and how many MiB it took, in a child of its own."""
    found = {}
    for lie, make in {
        "nothing": counts,
        "text": lambda: texts(WORD, PLACES),
        "unguarded": LIES["places that unpack"],
        **LIES,
    }.items():
        data = make()
        answers, answer = os.pipe()
        child = os.fork()
        if child == 0:
            attempt(unguarded if lie == "unguarded" else read, data, answer)
            os._exit(0)
        os.close(answer)
        with os.fdopen(answers, "rb") as said:
            told = said.read()
        _, status = os.waitpid(child, 0)
        found[lie] = json.loads(told) if told else [f"died of {status}", 0.0]
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
