"""Long experiments in blocks: finished blocks are kept, so that a run that was killed goes on where it was.

A block is a pure function of its task: its seed follows from the task alone. Each finished block is one file, written to a
temporary name and renamed; whichever blocks a killed run left behind, the rest comes out as if it had never been killed.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ParameterError

Arrays = Mapping[str, NDArray[np.generic]]
Say = Callable[[str], None]

STAMP = "NOT PRIVATE: seeded noise"
_SETTINGS = "settings.json"


class Task(Protocol):
    """Something that names a block, and its repeats."""

    @property
    def name(self) -> str:
        """The name of its file."""


Work = TypeVar("Work", bound=Task)


@dataclass(frozen=True)
class Blocks(Generic[Work]):
    """A folder of finished blocks, the function that makes one, and the settings they were made with."""

    folder: Path
    make: Callable[[Work], Arrays]
    settings: Mapping[str, object]

    def run(self, tasks: Sequence[Work], *, workers: int, say: Say) -> None:
        """Make every block that is not there yet, `workers` at a time."""
        self._claim()
        left = [task for task in tasks if not self._file(task).exists()]
        done = len(tasks) - len(left)
        for task in self._finish(left, workers):
            done += 1
            say(f"{done} of {len(tasks)} blocks: {task.name}")

    def load(self, task: Work) -> dict[str, NDArray[np.generic]]:
        """What a finished block holds."""
        with np.load(self._file(task), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if name != "stamp"}

    def _finish(self, tasks: Sequence[Work], workers: int) -> Iterator[Work]:
        if workers == 1 or len(tasks) < 2:
            for task in tasks:
                self._keep(task, self.make(task))
                yield task
            return
        # Fresh processes: a fork of a process with threads may hang, and the number of threads is read at the first import.
        with (
            one_thread_each(),
            ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn")) as pool,
        ):
            waiting = {pool.submit(self.make, task): task for task in tasks}
            try:
                for future in as_completed(waiting):
                    self._keep(waiting[future], future.result())
                    yield waiting[future]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _file(self, task: Work) -> Path:
        return self.folder / f"{task.name}.npz"

    def _keep(self, task: Work, arrays: Arrays) -> None:
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part", delete=False) as file:
            np.savez(file, allow_pickle=False, stamp=np.array(STAMP), **arrays)
        os.replace(file.name, self._file(task))

    def _claim(self) -> None:
        """Blocks of other settings must not be mixed with ours."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path, ours = self.folder / _SETTINGS, json.loads(json.dumps(dict(self.settings)))
        if path.exists() and json.loads(path.read_text(encoding="utf-8")) != ours:
            raise ParameterError(
                f"output ({self.folder}) holds blocks of another version or other settings; give another folder, or delete it"
            )
        path.write_text(json.dumps(ours, indent=2) + "\n", encoding="utf-8")


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
