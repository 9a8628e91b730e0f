"""Synthetic rows by the million: batches that can be drawn in any order, by anybody who has the joint and the seed, and written as they come.

Batch k is a function of the joint, the seed and k alone. So it does not matter how many cores or machines draw, nor which of them draws what; and where
rows are even, they are even over all batches together: the batches share out one draw (`in_batches` of a core).
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from dpcipher.errors import ParameterError
from dpcipher.io.statistics import is_labelled, write_labelled
from dpcipher.io.write import Formulas, write_table
from dpcipher.joint.bins import Asked, Values, asked_values, put_middles, put_values
from dpcipher.joint.core import CodeBatches
from dpcipher.joint.imputed import KEY, LABEL, Imputed, wide_bins
from dpcipher.joint.origin import Origin, RowDigest, as_metadata
from dpcipher.joint.rules import Enforcer, Tally
from dpcipher.tables.domain import Bools, Codes

if TYPE_CHECKING:
    from dpcipher.joint.joint import Joint

Made = TypeVar("Made")

_REPORTS = 50  # times that progress is reported, at most twice as often


@dataclass(frozen=True)
class Draw:
    """What is asked of a draw: how many rows, in batches of at most `size`, and how they are drawn (`Joint.sample`)."""

    n_rows: int
    seed: int
    size: int
    given: Mapping[str, object] = field(default_factory=dict, hash=False)
    independent: bool = False
    values: Values = "drawn"


@dataclass(frozen=True, eq=False)
class RowStream:
    """The rows of a draw, in `len(stream)` batches; `stream.batch(k)` is one of them, and iterating gives all.

    `stream.seed` is a whole number, also where none was asked for: with it somebody else draws the same rows. Rows say which release they are from, and
    whether they are an imputation, as `table` and in files.
    """

    joint: "Joint"
    draw: Draw

    def __post_init__(self) -> None:
        _ = self._plan, self._asked  # what cannot be drawn is refused now, not with the first batch

    @property
    def n_rows(self) -> int:
        """How many rows the draw has."""
        return self.draw.n_rows

    @property
    def seed(self) -> int:
        """The seed that gives these rows again."""
        return self.draw.seed

    def __len__(self) -> int:
        return self._plan[0].n_batches

    def __iter__(self) -> Iterator[pa.Table]:
        return (self.batch(number) for number in range(len(self)))

    def batch(self, number: int, *, tally: Tally | None = None, dictionaries: bool = False) -> pa.Table:
        """The rows of one batch; `tally` counts what the rules of the schema cost, `dictionaries` gives texts as dictionary arrays."""
        return self.coded_batch(number, tally=tally, dictionaries=dictionaries)[1]

    def coded_batch(
        self, number: int, *, tally: Tally | None = None, dictionaries: bool = False
    ) -> tuple[Codes, pa.Table]:
        """The codes of one batch, and its rows."""
        codes, rows = self._drawn_batch(number, tally, dictionaries)
        if self.draw.values == "middle":
            rows = put_middles(self.joint.schema, codes, rows, kept=self._asked)
        return codes, rows

    def _drawn_batch(self, number: int, tally: Tally | None, dictionaries: bool) -> tuple[Codes, pa.Table]:
        """The codes of one batch, and its rows with a value drawn in every bin."""
        if not 0 <= number < len(self):
            raise ParameterError(f"number ({number}) of a batch must lie in 0..{len(self) - 1}")
        rng = self._generator(number)
        codes = self._plan[0].draw(number, rng)
        schema = self.joint.schema
        dictionaries = dictionaries and not schema.rules  # rules compare the texts themselves

        def decode(codes: Codes) -> pa.Table:
            rows = schema.decode(codes, rng, masses=self.joint.masses, dictionaries=dictionaries)
            return put_values(schema, rows, self._asked, rng) if self._asked else rows

        if not schema.rules and not schema.zeros:
            return codes, decode(codes)
        enforcer = Enforcer(
            schema, self.joint.core, decode, rng, self.draw.independent, self._allowed, tuple(self._asked)
        )
        return enforcer.rows(codes, self.tally() if tally is None else tally)

    def table(self) -> pa.Table:
        """All rows as one table."""
        digest, parts = self._digest(), [self.empty()]
        for number in range(len(self)):
            codes, rows = self.coded_batch(number)
            digest.add(codes)
            parts.append(rows)
        return pa.concat_tables(parts).replace_schema_metadata(as_metadata(self._attrs(digest)))

    def _digest(self) -> RowDigest:
        return RowDigest(len(self.joint.schema.attrs))

    def _attrs(self, digest: RowDigest) -> dict[str, Any]:
        """What rows say of themselves: which release they are from, and whether they are an imputation."""
        attrs: dict[str, Any] = {} if self.imputed is None else self.imputed.attrs
        if self.joint.release:
            attrs[KEY] = {**attrs.get(KEY, {}), "release": self.joint.release, "rows": digest.text}
        return attrs

    @property
    def imputed(self) -> Imputed | None:
        """What rows of this draw say of themselves; None where the joint is no draw from a posterior."""
        if not self.joint.health.is_draw:
            return None
        changed = {
            "n_rows": self.n_rows != self.joint.n_rows,
            "given": bool(self.draw.given),
            "independent": self.draw.independent,
        }
        binned = wide_bins(self.joint.schema) if self.draw.values == "drawn" else ()
        return Imputed(binned, tuple(name for name, is_changed in changed.items() if is_changed))

    def tally(self) -> Tally:
        """An empty count of what rules cost."""
        return Tally(self.joint.schema.attrs, self.joint.core.shape)

    def empty(self) -> pa.Table:
        """No rows, with their columns."""
        none: Codes = np.empty((0, len(self.joint.schema.attrs)), dtype=np.int32)
        return self.joint.schema.decode(none, np.random.default_rng(0))

    def write(
        self,
        path: str | PathLike[str],
        *,
        formulas: Formulas = "quote",
        workers: int | None = None,
        tally: Tally | None = None,
        progress: Callable[[str], None] | None = None,
        force: bool = False,
    ) -> None:
        """Write all rows as CSV (also gzipped) or Parquet, by the ending of the path, without ever holding more than a few batches.

        `workers` batches are drawn at once, by default as many as there are processors; the file is the same for any number. Stata (.dta) and
        SPSS (.sav) files, with the labels of the schema, are written from memory. `force` replaces a file that is there already.
        """
        digest = self._digest()
        rows = self._drawn(_checked_workers(workers), tally, progress, digest)
        if is_labelled(path):
            said = {} if self.imputed is None else {"about": LABEL, "note": self.imputed.note}
            write_labelled(path, rows, self.joint.schema, force=force, **said)
        else:
            write_table(
                path, rows, formulas=formulas, force=force, said=lambda: as_metadata(self._attrs(digest))
            )
        if self.joint.release and Path(path).suffix != ".parquet":
            Origin(self.joint.release, digest.text).write(Path(path), force=force)

    def to_spark(self, session: Any, *, partitions: int | None = None) -> Any:
        """The rows as a data frame of a Spark session, drawn by its executors when they are needed."""
        from dpcipher.joint.spark import spark_rows

        return spark_rows(self, session, partitions=partitions)

    def _drawn(
        self, workers: int, tally: Tally | None, progress: Callable[[str], None] | None, digest: RowDigest
    ) -> Iterator[pa.Table]:
        """All batches in order, texts as dictionaries; their levels go into the digest."""
        if not len(self):
            yield self.empty()

        def draw(number: int) -> tuple[Codes, pa.Table, Tally]:
            own = self.tally()
            return *self.coded_batch(number, tally=own, dictionaries=True), own

        step = max(1, len(self) // _REPORTS)
        for number, (codes, rows, own) in enumerate(_in_order(draw, len(self), workers)):
            digest.add(codes)
            if tally is not None:
                tally.merge(own)
            if progress is not None and number % step == 0 and len(self) > _REPORTS:
                progress(f"drawing rows: {number / len(self):.0%}")
            yield rows

    @cached_property
    def _plan(self) -> tuple[CodeBatches, dict[str, Any]]:
        """The batches, and the state of the generator after what they have in common was drawn."""
        rng = np.random.default_rng(self.seed)
        batches = self.joint.core.in_batches(
            self.n_rows, rng, independent=self.draw.independent, allowed=self._allowed, chunk=self.draw.size
        )
        return batches, dict(rng.bit_generator.state)

    def _generator(self, number: int) -> np.random.Generator:
        """The generator of a batch, whoever makes it: of its own or, where there is one batch alone, the one that made the plan."""
        if len(self) > 1:
            return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        rng = np.random.default_rng(0)
        rng.bit_generator.state = self._plan[1]
        return rng

    @cached_property
    def _allowed(self) -> Mapping[int, Bools] | None:
        return self.joint.schema.allowed(self.draw.given) if self.draw.given else None

    @cached_property
    def _asked(self) -> Asked:
        return asked_values(self.joint.schema, self.draw.given)


def _in_order(draw: Callable[[int], Made], count: int, workers: int) -> Iterator[Made]:
    """What `draw` makes of 0, 1, …, in order, a few of them ahead in other threads: NumPy and Arrow let go of the interpreter while they work."""
    if workers == 1 or count == 1:
        yield from map(draw, range(count))
        return
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[Made]] = deque()
        try:
            for number in range(count):
                ahead.append(pool.submit(draw, number))
                if len(ahead) > workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for waiting in ahead:
                waiting.cancel()


def _checked_workers(workers: int | None) -> int:
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ParameterError(f"workers ({workers!r}) must be a whole number above 0; try workers=2")
    return workers
