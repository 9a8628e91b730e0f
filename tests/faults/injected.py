"""Every write of every step made to fail: run in a process of its own, with the shim loaded before the C library.

usage: LD_PRELOAD=shim.so python injected.py FOLDER [CODE …]     prints what was found as JSON
"""

import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KILL = 0  # no errno: the process is killed at the call
CODES = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, KILL)
NEVER = 10**9


@dataclass
class Found:
    """What came of all faults of one step."""

    calls: int = 0
    faults: int = 0
    refused: int = 0  # with an error of our own
    harmless: int = 0  # the step came to its end all the same
    killed: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, code: int, error: Exception | None) -> None:
        """One fault more."""
        self.faults += 1
        if code == KILL:
            self.killed += 1
        elif error is None:
            self.harmless += 1
        else:
            self.refused += 1


def compiled(folder: Path) -> Path | None:
    """The shim as a library, or None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "shim.so"
    command = [
        compiler,
        "-O1",
        "-shared",
        "-fPIC",
        "-D_LARGEFILE64_SOURCE",
        "-o",
        library,
        HERE / "shim.c",
        "-ldl",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return library


def inject(
    library: Path, folder: Path, codes: Sequence[int] = CODES, *, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Run this file under the shim; what was found of every step."""
    command = [sys.executable, __file__, str(folder), ",".join(map(str, codes)), *only]
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"injection ended with {ended.returncode}\n{ended.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


class Shim:
    """The functions that the shim adds to the process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def arm(self, folder: Path, at: int, code: int, *, lasting: bool) -> None:
        """From now on, the at-th change of a file under the folder fails; with `lasting`, all after it too."""
        self._library.faults_arm(str(folder).encode(), at, code, int(lasting))

    def disarm(self) -> int:
        """Nothing fails any more; how many changes there were."""
        return int(self._library.faults_disarm())


def _fresh(parent: Path, step: Any) -> Path:
    folder = parent / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    step.prepare(folder)
    return folder


def _cases(calls: int, codes: Iterable[int]) -> Iterator[tuple[int, int, bool]]:
    for place in range(1, calls + 1):
        for code in codes:
            yield place, code, False
            if code != KILL:
                yield place, code, True


def _attempt(
    shim: Shim, folder: Path, step: Any, case: tuple[int, int, bool]
) -> tuple[Exception | None, int]:
    """Run a step with a fault: how it ended, and how many changes it made."""
    place, code, lasting = case
    if code == KILL:
        return _killed(shim, folder, step, place), 0
    shim.arm(folder, place, code, lasting=lasting)
    try:
        step.run(folder)
    except Exception as error:
        return error, shim.disarm()
    return None, shim.disarm()


def _killed(shim: Shim, folder: Path, step: Any, place: int) -> Exception | None:
    """Run a step in a child that is killed at its place-th change; an error if it was not."""
    from kills import forked

    def work() -> None:
        shim.arm(folder, place, KILL, lasting=False)
        step.run(folder)

    _, status = os.waitpid(forked(work), 0)
    return (
        None if status == signal.SIGKILL else RuntimeError(f"ended with {status}; it should have been killed")
    )


def _judge(folder: Path, step: Any, error: Exception | None) -> Iterator[str]:
    """What is wrong after a fault, and after the next run, which must go well and leave nothing of the first."""
    from steps import released_not_charged, strangers

    from dpcipher.errors import DpcipherError

    if error is not None and not isinstance(error, DpcipherError):
        yield f"{type(error).__name__}: {error}"
    if error is not None and ";" not in str(error):
        yield f"no advice: {error}"
    try:
        yield from (f"released, not charged: {name}" for name in released_not_charged(folder))
        step.run(folder)
        yield from (f"released, not charged: {name}" for name in released_not_charged(folder))
    except Exception as again:
        yield f"the next run failed: {type(again).__name__}: {again}"
    yield from (f"left behind: {name}" for name in strangers(folder, step))


def main(parent: Path, codes: Sequence[int], only: Sequence[str]) -> dict[str, Any]:
    """Count the changes of every step, and then let each of them fail in every way."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE))
    from steps import STEPS

    shim, result = Shim(), {}
    for name, step in STEPS.items():
        if only and name not in only:
            continue
        step.run(_fresh(parent, step))  # once, so that whatever is imported or opened later is there
        found = Found(calls=_attempt(shim, _fresh(parent, step), step, (NEVER, errno.EIO, False))[1])
        started = time.process_time()
        for case in _cases(found.calls, codes):
            folder = _fresh(parent, step)
            error, _ = _attempt(shim, folder, step, case)
            found.count(case[1], error)
            said = f"{name}, call {case[0]}, {errno.errorcode.get(case[1], 'killed')}{', lasting' if case[2] else ''}"
            found.wrong += [f"{said}: {wrong}" for wrong in _judge(folder, step, error)]
        result[name] = {**asdict(found), "seconds": time.process_time() - started}
    return result


if __name__ == "__main__":
    chosen = [int(code) for code in sys.argv[2].split(",")] if len(sys.argv) > 2 else list(CODES)
    print(json.dumps(main(Path(sys.argv[1]), chosen, sys.argv[3:])))
