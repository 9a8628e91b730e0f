"""Long experiments in blocks: finished blocks are kept, so that a run that was killed goes on where it was.

A block is a pure function of its scenario and its method, from which its seed follows: whichever blocks a killed run left behind, the rest comes
out as if it had never been killed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from dpcipher.evaluation.runs import Journal
from experiments.paper.stacks import Stack

Arrays = Mapping[str, Stack]
Say = Callable[[str], None]

STAMP = "NOT PRIVATE: seeded noise"
# Epsilon is a power of e, written like this.
NAMES = {-2: "e⁻²", -1: "e⁻¹", 0: "1", 1: "e", 2: "e²"}
POWERS = tuple(NAMES)
ORIGINAL = "original"


@dataclass(frozen=True)
class Block:
    """Some repeats of one method in one scenario: n or m, the power of e that epsilon is, and the population (0 is the published one)."""

    scenario: int
    power: int
    number: int
    repeats: int
    method: str
    population: int = 0

    @property
    def name(self) -> str:
        """Its name in the journal of finished blocks."""
        where = f"random{self.population:02d}" if self.population else str(self.scenario)
        return f"{where}-e{self.power:+d}-block{self.number:03d}x{self.repeats}-{self.method}"


def split(
    scenarios: Sequence[int], methods: Iterable[str], repeats: int, size: int, population: int = 0
) -> list[Block]:
    """Blocks of at most `size` repeats: of every method in every scenario at every epsilon, the first methods first.

    >>> [(block.number, block.repeats) for block in split([200], ["FDH"], 250, 100) if block.power == 0]
    [(0, 100), (1, 100), (2, 50)]
    """
    return [
        Block(scenario, power, start // size, min(size, repeats - start), method, population)
        for method in methods
        for start in range(0, repeats, size)
        for scenario in scenarios
        for power in POWERS
    ]


@dataclass(frozen=True)
class Blocks:
    """The journal of finished blocks, the function that computes one, and the settings they were computed with."""

    path: Path
    compute: Callable[[Block], Arrays]
    settings: Mapping[str, object]

    def run(self, todo: Sequence[Block], *, workers: int, say: Say) -> None:
        """Compute every block that is not in the journal yet, `workers` at a time."""
        finished = {line["name"] for line in self._journal.finished()}
        left = [block for block in todo if block.name not in finished]
        for number, (block, arrays) in enumerate(self._computed(left, workers), len(todo) - len(left) + 1):
            self._journal.append(
                {"name": block.name, **{key: array.tolist() for key, array in arrays.items()}}
            )
            say(f"{number} of {len(todo)} blocks: {block.name}")

    def load(self) -> dict[str, dict[str, Stack]]:
        """The arrays of every finished block, by its name."""
        return {
            line.pop("name"): {key: np.array(values) for key, values in line.items()}
            for line in self._journal.finished()
        }

    @cached_property
    def _journal(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        refusal = f"output ({self.path}) holds blocks of another version or other settings; give another folder, or delete it"
        settings = {"stamp": STAMP, "version": version("dpcipher"), **self.settings}
        return Journal(self.path, settings, refusal=refusal)

    def _computed(self, todo: Sequence[Block], workers: int) -> Iterator[tuple[Block, Arrays]]:
        if workers == 1 or len(todo) < 2:
            yield from ((block, self.compute(block)) for block in todo)
            return
        # Fresh processes: a fork of a process with threads may hang.
        count, fresh = min(workers, len(todo)), get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=fresh, initializer=_one_thread) as pool:
            waiting = {pool.submit(self.compute, block): block for block in todo}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _one_thread() -> None:
    """The matrices of a process are too small for more."""
    threadpool_limits(1)
