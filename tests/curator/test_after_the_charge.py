"""After the charge nothing goes back to the data, and whatever fails leaves the charge standing and no half of a release."""

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcipher
from dpcipher.curator.measure import measure
from dpcipher.errors import LedgerError
from dpcipher.methods import METHODS
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.records import Charge
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

PACKAGE = Path(dpcipher.__file__).parent
SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 2})
LARGE = Schema.from_domain(
    {"a": 2, "b": 3, "c": 2, "d": 600, "e": 600}
)  # its full table is not held: coded rows are
PUBLIC = ("Bins.n_bins",)  # a fact of the schema that denoising asks for
READERS = ("dpcipher/io/source", "dpcipher/io/objects", "dpcipher/io/files", "dpcipher/io/text",
           "dpcipher/io/databases", "dpcipher/io/excel",
           "dpcipher/schema/cells", "dpcipher/schema/rows", "dpcipher/schema/levels", "dpcipher/schema/bins",
           "dpcipher/curator/spark")  # fmt: skip


def rows(schema: Schema = SCHEMA, n_rows: int = 60) -> pd.DataFrame:
    """Coded rows."""
    return pd.DataFrame(
        np.random.default_rng(2).integers(0, schema.shape, (n_rows, len(schema.shape))), columns=schema.attrs
    )


class Once:
    """A stream that gives its rows to the first who asks, and breaks for anybody after."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.table: pa.Table | None = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self.table is None:
            raise RuntimeError("read twice")
        table, self.table = self.table, None
        return table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with more than any one release here costs."""
    return Ledger.create(tmp_path / "people.ledger", epsilon=4, unit="add-remove")


RUNS: dict[str, Callable[[Any, Schema, Ledger], object]] = {
    "given tables": lambda data, schema, ledger: measure(data, schema, workload=1, epsilon=2, unit="add-remove", ledger=ledger),
    "chosen tables": lambda data, schema, ledger: measure(data, schema, workload="auto", epsilon=2, unit="add-remove", ledger=ledger),
} | {
    one.__name__: lambda data, schema, ledger, one=one: one(2.0, unit="add-remove", ledger=ledger).fit(data, schema)
    for one in METHODS.values()
    if one.__name__ != "Uniform"  # reads nothing and spends nothing
}  # fmt: skip
DENSE = {"FullHistogram", "MWEM", "Fourier", "MultinomialDirichlet", "Modips"}  # refuse the large schema


class After:
    """Watches every call of ours that follows a charge, and can make one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail: CodeType | None = None) -> None:
        self.seen: dict[CodeType, None] = {}
        self.charged, self.fail = False, fail
        charge = Ledger.charge

        def noted(*given: Any, **options: Any) -> Charge:
            granted = charge(*given, **options)
            self.charged = True
            return granted

        monkeypatch.setattr(Ledger, "charge", noted)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """What Python calls at every call."""
        if event == "call" and self.charged and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            self.seen[frame.f_code] = None
            if frame.f_code is self.fail:
                self.fail = None
                raise Planted

    def run(self, call: Callable[[], object]) -> object:
        """Make the call while watching."""
        sys.setprofile(self)
        try:
            return call()
        finally:
            sys.setprofile(None)


class Planted(Exception):
    """The failure that was planted."""


@pytest.mark.parametrize(
    ("schema", "memory"), [(SCHEMA, 2**28), (LARGE, 2**28), (LARGE, 0)], ids=["small", "large", "in a file"]
)
@pytest.mark.parametrize("name", RUNS)
def test_no_step_after_the_charge_reads_the_data(
    name: str, schema: Schema, memory: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that can be read once is enough, and none of the code that reads rows is entered again."""
    monkeypatch.setattr("dpcipher.curator.held.MEMORY_BYTES", memory)
    if name in DENSE and schema is LARGE:
        pytest.skip(f"{name} refuses a full table of that size")
    watch = After(monkeypatch)
    watch.run(lambda: RUNS[name](Once(rows(schema)), schema, ledger))
    assert ledger.spent.epsilon == Fraction(2)
    assert watch.seen
    assert [
        code.co_qualname
        for code in watch.seen
        if any(reader in code.co_filename for reader in READERS) and code.co_qualname not in PUBLIC
    ] == []


def test_the_readers_are_where_the_test_looks_for_them() -> None:
    """A module that moved would not be noticed above."""
    for reader in READERS:
        assert list(PACKAGE.parent.glob(f"{reader}*.py")), reader


def test_a_release_is_returned_where_the_ledger_cannot_record_that_it_is_finished(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is paid for, and without a file an error would lose it: a warning says what was not recorded."""

    def full(*given: Any, **options: Any) -> None:
        raise LedgerError("ledger (people.ledger) cannot be written: No space left on device")

    monkeypatch.setattr(Ledger, "mark_released", full)
    with pytest.warns(UserWarning, match="The release is paid for, and can be used") as warned:
        release = measure(rows(), SCHEMA, workload=1, epsilon=2, unit="add-remove", ledger=ledger)
    assert "No space left" in str(warned[0].message)
    assert len(release.measurements) == 3
    assert ledger.spent.epsilon == Fraction(2)


def steps(
    data: Any, path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp: Path
) -> Iterator[CodeType]:
    """Every function of ours that runs between the charge and the end of a release."""
    book = Ledger.create(tmp / "rehearsal.ledger", epsilon=4, unit="add-remove")
    with monkeypatch.context() as patch:
        watch = After(patch)
        watch.run(lambda: measure(data, SCHEMA, ledger=book, save=path, **options))
    yield from watch.seen


@pytest.mark.parametrize("workload", [1, "auto"], ids=["given tables", "chosen tables"])
def test_whatever_fails_after_the_charge_leaves_the_charge_and_no_half_of_a_release(
    workload: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step in turn is made to fail: the caller is told, the ledger counts the charge, the file is absent or complete."""
    options = {"workload": workload, "epsilon": 2, "unit": "add-remove"}
    found = list(steps(rows(), tmp_path / "rehearsal.parquet", options, monkeypatch, tmp_path))
    rooms = {Path(code.co_filename).relative_to(PACKAGE).parts[0] for code in found}
    fired = 0
    for number, code in enumerate(found):
        folder = tmp_path / str(number)
        folder.mkdir()
        book = Ledger.create(folder / "people.ledger", epsilon=4, unit="add-remove")
        with monkeypatch.context() as patch:
            watch = After(patch, code)
            told = False
            try:
                watch.run(lambda: measure(rows(), SCHEMA, ledger=book, save=folder / "r.parquet", **options))  # noqa: B023
            except Exception:
                told = True
        assert told or watch.fail is not None, (
            code.co_qualname
        )  # a step that is not reached this time cannot fail
        fired += told
        assert book.spent.epsilon == Fraction(2), code.co_qualname
        left = {path.name for path in folder.iterdir() if not path.name.startswith("people.ledger")}
        assert left <= {"r.parquet"}, (code.co_qualname, left)
        assert not left or Release.load(folder / "r.parquet").measurements
    assert fired > 50
    # What can fail: the sampler, the arithmetic on what it drew, the disk. Nothing that reads rows.
    assert rooms <= {
        "curator",
        "engines",
        "errors.py",
        "files",
        "joint",
        "privacy",
        "release",
        "request",
        "schema",
        "selection",
        "tables",
    }
