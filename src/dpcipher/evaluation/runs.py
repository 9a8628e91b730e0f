"""The private rows of a comparison, its runs, each from a seed of its own, and the journal of those that are finished. Curator only.

The journal of a long run holds append-only JSON lines, one for each finished item, so that a killed run goes on where it stopped.
"""

import hashlib
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.curator.counts import CountSource, RowCounts, TableCounts
from dpcipher.curator.persons import kept_codes
from dpcipher.curator.texts import PrivateTexts, numbered, private_texts
from dpcipher.errors import ParameterError
from dpcipher.evaluation.distances import choose_tables, distances
from dpcipher.io.source import open_declared
from dpcipher.joint.joint import Joint
from dpcipher.methods import Synthesizer
from dpcipher.privacy.draws import Draws
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


@dataclass(frozen=True)
class Run:
    """Which fit: the label of a method, an epsilon, and the number of the repeat."""

    method: str
    epsilon: float
    repeat: int

    def seed(self, seed: int) -> int:
        """A seed of its own, whatever else is compared and in which order."""
        text = f"{seed}|{self.method}|{self.epsilon!r}|{self.repeat}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Experiment:
    """The private rows, the methods and the scores that all runs share. Never leaves the machine.

    `codes` are those of the private rows in the closed schema `scored`, whatever bins and levels a method finds.
    """

    truth: CountSource
    codes: Codes
    schema: Schema
    scored: Schema
    methods: Mapping[str, Synthesizer]
    orders: tuple[int, ...]
    n_rows: int
    seed: int
    digest: str  # of the private rows as they were read, finer than `codes`

    def score(self, run: Run) -> dict[str, object]:
        """Fit with seeded noise, draw independent rows, and measure how far their tables are from the private ones."""
        started = time.perf_counter()
        template = replace(self.methods[run.method], epsilon=run.epsilon)
        fitted = template.fit_counts(self.truth, self.schema, draws=Draws.seeded(run.seed(self.seed)))
        seconds = time.perf_counter() - started
        rng = np.random.default_rng([run.seed(self.seed), 1])
        scores = _mean([self._distances(self._rows(joint, rng)) for joint in fitted.joints])
        return {**vars(run), **scores, "seconds": seconds}

    def _rows(self, joint: Joint, rng: np.random.Generator) -> Codes:
        """Independent synthetic rows; where bins or levels were found, their values are coded like the private ones."""
        if not self.schema.is_open:
            return joint.coded(self.n_rows, rng, independent=True)
        rows = joint.stream(self.n_rows, seed=int(rng.integers(2**63)), independent=True)
        return np.concatenate([self.scored.encode(batch) for batch in rows])

    def _distances(self, synthetic: Codes) -> dict[str, float]:
        scores: dict[str, float] = {}
        for order in self.orders:
            tables = choose_tables(len(self.schema.attrs), order, seed=self.seed)
            gaps = distances(self.codes, synthetic, self.scored.shape, tables)
            scores[f"tvd_{order}"] = float(np.mean([gap.tvd for gap in gaps]))
            scores[f"linf_{order}"] = max(gap.linf for gap in gaps)
        return scores


def _mean(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over the sets of a method."""
    return {name: float(np.mean([each[name] for each in scores])) for name in scores[0]}


def run_all(
    experiment: Experiment,
    runs: Sequence[Run],
    workers: int | None,
    progress: Callable[[int, int], None] | None,
    *,
    done: int,
) -> Iterator[dict[str, object]]:
    """Scores of finished runs as they come, from this process or several."""
    say = progress or (lambda _done, _total: None)
    total = done + len(runs)
    say(done, total)
    with _mapper(experiment, min(workers or _cores(), len(runs))) as each:
        for number, line in enumerate(each(runs), start=done + 1):
            yield line
            say(number, total)


_shared: Experiment | None = None


@contextmanager
def _mapper(
    experiment: Experiment, workers: int
) -> Iterator[Callable[[Sequence[Run]], Iterator[dict[str, object]]]]:
    """A map over runs: forked workers inherit the private rows instead of receiving them through a pipe."""
    if workers <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield lambda runs: map(experiment.score, runs)
        return
    global _shared
    _shared = experiment
    try:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            yield lambda runs: pool.imap_unordered(_score_shared, runs)
    finally:
        _shared = None


def _score_shared(run: Run) -> dict[str, object]:
    assert _shared is not None  # set before the workers were forked
    return _shared.score(run)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Journal:
    """Finished items of one run. The first line holds its settings; a journal of other settings is refused with `refusal`."""

    def __init__(self, path: Path, settings: Mapping[str, Any], *, refusal: str) -> None:
        self.path, self._settings = path, json.loads(json.dumps(settings))
        if path.exists():
            self._cut_torn_line()
        if next(self._lines(), None) is None:
            self.append(self._settings)
        elif next(self._lines()) != self._settings:
            raise ParameterError(refusal)

    def finished(self) -> Iterator[dict[str, Any]]:
        """The finished items, in the order they were appended."""
        lines = self._lines()
        next(lines)
        return lines

    def append(self, item: Mapping[str, Any]) -> None:
        """Add one line, synced to disk before the item counts as finished."""
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as sink:
            sink.write(json.dumps(item).encode() + b"\n")
            sink.flush()
            os.fsync(sink.fileno())

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.path.exists():
            with self.path.open("rb") as source:
                yield from map(json.loads, source)

    def _cut_torn_line(self) -> None:
        """Cut off the last line where a killed run left only part of it."""
        os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
