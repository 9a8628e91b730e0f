"""What the adapters share: the command line, the clock and the answer. Runs in each peer's own environment.

usage: python ADAPTER.py METHOD ROWS.csv DOMAIN.json EPSILON DELTA SEED OUT.csv

ROWS.csv holds integer codes, DOMAIN.json {column: size}. OUT.csv gets as many synthetic rows as ROWS.csv has;
OUT.round.csv gets those of the peer's own default sampler, where that is another. The last line printed is JSON.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one cell of the grid asks of a peer."""

    method: str
    codes: Codes
    domain: dict[str, int]
    epsilon: float
    delta: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Synthetic rows, columns in the order of the domain."""

    rows: Codes
    note: str
    rounded: Codes | None = None


def read_job(method: str, rows: str, domain: str, epsilon: str, delta: str, seed: str) -> Job:
    """The job that the command line names."""
    sizes = json.loads(Path(domain).read_text())
    head = Path(rows).read_text().partition("\n")[0].strip().split(",")
    codes = np.loadtxt(rows, delimiter=",", skiprows=1, dtype=np.int64)
    return Job(
        method=method,
        codes=codes[:, [head.index(name) for name in sizes]],
        domain=sizes,
        epsilon=float(epsilon),
        delta=float(delta),
        seed=int(seed),
    )


def write_rows(path: Path, names: list[str], rows: Codes) -> None:
    """Integer codes under a line of names."""
    np.savetxt(path, rows, fmt="%d", delimiter=",", header=",".join(names), comments="")


def alive() -> float:
    """Seconds since this process began, so that the imports count (Linux)."""
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(began) / os.sysconf("SC_CLK_TCK")


def run(fit: Callable[[Job], Answer]) -> None:
    """Fit and sample once, write the rows, print what it took."""
    *given, out = sys.argv[1:]
    job = read_job(*given)
    np.random.seed(job.seed)  # noqa: NPY002 - the samplers of all three peers draw from it
    started = time.perf_counter()
    answer = fit(job)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    write_rows(Path(out), list(job.domain), answer.rows)
    if answer.rounded is not None:
        write_rows(Path(out).with_suffix(".round.csv"), list(job.domain), answer.rounded)
    told = {
        "seconds": round(seconds, 2),
        "total_seconds": round(alive(), 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": round(used.ru_maxrss / 1024),
        "note": answer.note,
    }
    print(json.dumps(told))
