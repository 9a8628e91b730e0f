"""The methods that the paper names beside MWEM and FDH, as this package has them, on the paper's two experiments.

Each is fitted one table at a time by the seam for experiments, with seeded noise: NOT PRIVATE. Rows are added or removed, as for every other
method here. `CIPHER by the library` is the paper's algorithm by the same way, for the processor time alone.
"""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from dpcipher.errors import DpcipherWarning
from dpcipher.methods import (
    Cipher,
    Fourier,
    JunctionTree,
    Modips,
    MultinomialDirichlet,
    PrivBayes,
    Synthesizer,
)
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Counts, Floats
from experiments.paper.contenders import Drawn, Stack, draw_rows

SIMULATED_SCHEMA = Schema.from_domain({"V1": 2, "V2": 2, "V3": 3, "V4": 3})


@dataclass(frozen=True)
class Rival:
    """A method of this package under a short name, and the options it is fitted with."""

    name: str
    method: type[Synthesizer]
    options: tuple[tuple[str, object], ...] = ()

    def label(self, scores: Mapping[str, Stack]) -> dict[str, Stack]:
        """Scores under the name of the method."""
        return {f"{self.name}/{key}": value for key, value in scores.items()}

    def seed(self, *entropy: int) -> np.random.SeedSequence:
        """A seed that depends on the method alone."""
        return np.random.SeedSequence([*entropy, crc32(self.name.encode())])

    def draw(
        self, counts: Counts, schema: Schema, *, epsilon: float, seed: np.random.SeedSequence
    ) -> tuple[Drawn, Floats]:
        """A distribution and rows for each table of counts, each with budget `epsilon`; and the processor seconds of every fit."""
        fits, rows_seed = seed.spawn(2)
        seeds = fits.generate_state(len(counts))
        pairs = [
            self._fit(table, schema, epsilon, int(state)) for table, state in zip(counts, seeds, strict=True)
        ]
        chances = np.stack([chances for chances, _ in pairs])
        rows = draw_rows(chances, int(counts[0].sum()), np.random.default_rng(rows_seed))
        return Drawn(chances, rows), np.array([[seconds] for _, seconds in pairs])

    def _fit(self, table: Counts, schema: Schema, epsilon: float, seed: int) -> tuple[Floats, float]:
        method = self.method(epsilon, unit="add-remove", **dict(self.options)).sized(int(table.sum()))  # type: ignore[arg-type]
        started = time.process_time()
        with warnings.catch_warnings():
            # Little budget makes poor fits; how poor is what is measured here.
            warnings.simplefilter("ignore", DpcipherWarning)
            fitted = method.fit_counts(table, schema, draws=Draws.seeded(seed))
        seconds = time.process_time() - started
        axes = tuple(range(len(schema.shape)))
        return np.maximum(fitted.joints[0].core.project(axes), 0.0), seconds


TIMED = Rival("CIPHER by the library", Cipher, (("engine", "paper"), ("workload", 2)))
RIVALS = {
    rival.name: rival
    for rival in (
        Rival("PrivBayes", PrivBayes),
        Rival("Fourier 2-way", Fourier, (("workload", 2),)),
        Rival("junction tree", JunctionTree),
        Rival("modips", Modips),
        Rival("Multinomial–Dirichlet", MultinomialDirichlet),
        TIMED,
    )
}
