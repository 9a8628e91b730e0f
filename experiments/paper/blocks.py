"""Long experiments in blocks: finished blocks are kept, so that a run that was killed goes on where it was.

A block is a pure function of its scenario, from which its seed follows: whichever blocks a killed run left behind, the rest comes
out as if it had never been killed.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from dpcipher.evaluation.runs import Journal
from experiments.paper.contenders import Stack

Arrays = Mapping[str, Stack]
Say = Callable[[str], None]

STAMP = "NOT PRIVATE: seeded noise"


class Scenario(Protocol):
    """What a block computes; its name is unique among the blocks of an experiment."""

    @property
    def name(self) -> str:
        """The name of the block."""


Work = TypeVar("Work", bound=Scenario)


@dataclass(frozen=True)
class Blocks(Generic[Work]):
    """The journal of finished blocks, the function that computes one, and the settings they were computed with."""

    path: Path
    compute: Callable[[Work], Arrays]
    settings: Mapping[str, object]

    def run(self, todo: Sequence[Work], *, workers: int, say: Say) -> None:
        """Compute every block that is not in the journal yet, `workers` at a time."""
        finished = {line["name"] for line in self._journal.finished()}
        left = [block for block in todo if block.name not in finished]
        for number, (block, arrays) in enumerate(self._computed(left, workers), len(todo) - len(left) + 1):
            self._journal.append(
                {"name": block.name, **{key: array.tolist() for key, array in arrays.items()}}
            )
            say(f"{number} of {len(todo)} blocks: {block.name}")

    def load(self, names: Collection[str] | None = None) -> dict[str, dict[str, Stack]]:
        """The arrays of every finished block, or of some, by its name."""
        return {
            line.pop("name"): {key: np.array(values) for key, values in line.items()}
            for line in self._journal.finished()
            if names is None or line["name"] in names
        }

    @cached_property
    def _journal(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        refusal = f"output ({self.path}) holds blocks of another version or other settings; give another folder, or delete it"
        return Journal(self.path, {"stamp": STAMP, **self.settings}, refusal=refusal)

    def _computed(self, todo: Sequence[Work], workers: int) -> Iterator[tuple[Work, Arrays]]:
        if workers == 1 or len(todo) < 2:
            yield from ((block, self.compute(block)) for block in todo)
            return
        # Fresh processes: a fork of a process with threads may hang, and the number of threads is read at the first import.
        with (
            one_thread_each(),
            ProcessPoolExecutor(min(workers, len(todo)), mp_context=get_context("spawn")) as pool,
        ):
            waiting = {pool.submit(self.compute, block): block for block in todo}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started inside use one thread each; their matrices are too small for more."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def split(repeats: int, size: int) -> list[tuple[int, int]]:
    """Blocks of repeats as (number, how many); the last may be shorter.

    >>> split(250, 100)
    [(0, 100), (1, 100), (2, 50)]
    """
    return [(start // size, min(size, repeats - start)) for start in range(0, repeats, size)]
