"""Thousands of files that are wrong: each must be refused with an error of our own that tells nothing private, or be read, at once.

usage: python fuzzing.py FOLDER --cases 10000 | --minutes 60 [--seed 0] [--only CSV,ledger]     prints what was found as JSON
"""

import argparse
import contextlib
import io
import json
import logging
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parent
MOST_SECONDS, MOST_GIGABYTES, LONGEST_MESSAGE = 5.0, 6, 2_000
MOST_GROWTH = 500  # megabytes, over all cases


class Hang(BaseException):
    """A case took too long; no handler of ours catches it."""


@dataclass
class Found:
    """What came of all cases of one loader."""

    cases: int = 0
    refused: int = 0
    loaded: int = 0
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Watch:
    """Whatever is said while a case runs: by logging, warnings, and on both streams."""

    def __init__(self) -> None:
        self.heard = io.StringIO()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Until the block ends, everything that is said is heard."""
        handler, root = logging.StreamHandler(self.heard), logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            with (
                warnings.catch_warnings(record=True) as caught,
                contextlib.redirect_stdout(self.heard),
                contextlib.redirect_stderr(self.heard),
            ):
                warnings.simplefilter("always")
                yield
            for warning in caught:
                self.heard.write(f"{warning.category.__name__}: {warning.message}\n")
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


def judge(case: Any, canaries: tuple[str, ...]) -> tuple[bool, float, list[str]]:
    """Run a case: whether it was read, how long it took, and what is wrong about how it ended."""
    from dpcipher.errors import DpcipherError

    watch, wrong, said, read, start = Watch(), [], "", False, time.process_time()
    signal.setitimer(signal.ITIMER_REAL, 12 * MOST_SECONDS)  # of a machine that is shared
    try:
        with watch.listening():
            case()
        read = True
    except DpcipherError as error:
        said = "".join(traceback.format_exception(error))
        if len(str(error)) > LONGEST_MESSAGE:
            wrong.append(f"a message of {len(str(error))} characters")
    except Hang:
        wrong.append("hangs")
    except Exception as error:
        said = "".join(traceback.format_exception(error))
        wrong.append(f"crashes: {said[-1500:]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.process_time() - start
    if seconds > MOST_SECONDS:
        wrong.append(f"takes {seconds:.1f} s")
    leaked = [canary for canary in canaries if canary in said + watch.heard.getvalue()]
    return read, seconds, wrong + [f"tells {canary}: {said[-800:]}" for canary in leaked]


def _limit() -> None:
    """No more memory than this, and an alarm instead of a hang."""
    most = MOST_GIGABYTES * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def ring(signum: int, frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, ring)


def megabytes() -> float:
    """The most memory that this process ever took."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(folder: Path, *, cases: int, minutes: float, seed: int, only: list[str]) -> dict[str, Any]:
    """Cases of all loaders in turn, so many or for so long."""
    sys.path.insert(0, str(HERE))
    from private_cases import CANARIES, PRIVATE
    from public_cases import PUBLIC

    _limit()
    makers = {name: make for name, make in {**PRIVATE, **PUBLIC}.items() if not only or name in only}
    found, end = {name: Found() for name in makers}, time.monotonic() + 60 * minutes
    before, numbers = 0.0, count()
    for number in numbers:
        name = list(makers)[number % len(makers)]
        if (number >= cases) if cases else (time.monotonic() > end):
            break
        rng = random.Random(f"{seed}/{name}/{number}")
        case = makers[name](rng, folder)
        read, seconds, wrong = judge(case, CANARIES if name in PRIVATE else ())
        one = found[name]
        one.cases, one.refused, one.loaded = one.cases + 1, one.refused + (not read), one.loaded + read
        one.slowest = max(one.slowest, seconds)
        one.wrong += [f"{name}, case {number} of seed {seed}: {what}" for what in wrong]
        if number == 40 * len(makers):
            before = megabytes()
        (folder / "at").write_text(f"{name} {number}")  # what a process that dies was doing
    grown = megabytes() - before if before else 0.0
    return {
        "loaders": {name: asdict(one) for name, one in found.items()},
        "megabytes": grown,
        "seconds": time.process_time(),
    }


def fuzz(
    folder: Path, *, cases: int = 0, minutes: float = 0, seed: int = 0, only: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run this file in a process of its own, whose memory and time are limited; a crash of the process is told too."""
    command = [
        sys.executable,
        __file__,
        str(folder),
        "--cases",
        str(cases),
        "--minutes",
        str(minutes),
        "--seed",
        str(seed),
    ]
    if only:
        command += ["--only", ",".join(only)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(
            f"ended with {ended.returncode} at {(folder / 'at').read_text()}\n{ended.stderr[-3000:]}"
        )
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    options = vars(parser.parse_args())
    print(json.dumps(main(options.pop("folder"), **options)))
