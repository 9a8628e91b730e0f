"""The runs of a comparison, each a method, an epsilon and a repeat, fitted, sampled and scored from its own seed; and their journal.

The journal of a long run holds append-only JSON lines, one for each finished item, so that a run that was killed goes on where it was.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.curator.counts import CountSource
from dpcipher.errors import ParameterError
from dpcipher.joint.joint import Joint
from dpcipher.methods import Synthesizer
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema
from dpcipher.scoring.distances import choose_tables, distances
from dpcipher.tables.domain import Codes


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
    """What all runs share: the private rows, the methods, and how they are scored. Never leaves the machine.

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
