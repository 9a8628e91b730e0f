"""Run the peers over data and budgets, one process per cell, and append each cell to results/peers.jsonl.

usage: python benchmarks/peers/run.py --peer opendp_mbi --methods MST AIM --data nltcs child --epsilons 1 e2 --cap 1800

Needs DPCIPHER_DATA, DPCIPHER_NETWORKS and the Python of each peer's environment (see benchmarks/README.md).
A cell already recorded is skipped, unless it was timed out at a lower cap: a run that stopped goes on where it was.
"""

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1]))
from common import RESULTS, load_coded, real, tvd_rows
from small import bankruptcy, logits

HERE = Path(__file__).parent
RECORD = RESULTS / "peers.jsonl"
DELTA = 1e-9
EPSILONS = {"e-2": math.exp(-2), "1": 1.0, "e2": math.exp(2)}
REAL = ("adult", "nltcs", "nist_ma2019", "mushroom")
NETWORKS = ("child", "insurance", "alarm")
SMALL = {  # tables that a method can be run on to its end: rows and the number of levels of each column
    "2x2x3x3": lambda: (logits((2, 2, 3, 3), 500, 0), (2, 2, 3, 3)),
    "bankruptcy": lambda: (bankruptcy(), (6, 9, 3, 3, 3)),
}
MEGABYTES = 12 * 1024
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "PYTHONWARNINGS": "ignore",
}

Codes = NDArray[np.int64]
Line = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """An adapter, the variable that names its Python, and the packages whose versions matter.

    Without that variable, its Python is that of the environment of its name in the folder DPCIPHER_VENVS.
    """

    script: str
    variable: str
    packages: tuple[str, ...]

    @property
    def python(self) -> str:
        if given := os.environ.get(self.variable):
            return given
        name = self.variable.removeprefix("DPCIPHER_").lower()
        python = Path(os.environ.get("DPCIPHER_VENVS", ".")) / name / "bin" / "python"
        if not python.exists():
            raise SystemExit(f"set {self.variable} to the Python of this peer's environment")
        return str(python)

    def versions(self) -> str:
        ask = "import sys; from importlib.metadata import version as v; print(', '.join(f'{p} {v(p)}' for p in sys.argv[1:]))"
        return subprocess.check_output([self.python, "-c", ask, *self.packages], text=True).strip()


PEERS = {
    "opendp_mbi": Peer("opendp_mbi.py", "DPCIPHER_OPENDP_MBI", ("opendp", "mbi", "jax")),
    "smartnoise": Peer("smartnoise.py", "DPCIPHER_SMARTNOISE", ("smartnoise-synth", "mbi", "jax")),
    "dpmm": Peer("dpmm_peer.py", "DPCIPHER_DPMM", ("dpmm",)),
    "dpsynth": Peer("dpsynth_peer.py", "DPCIPHER_DPSYNTH", ("mbi", "jax")),
}


@dataclass(frozen=True)
class Cell:
    """One run of one method of one peer."""

    peer: str
    method: str
    data: str
    epsilon: str
    seed: int


@cache
def load(name: str) -> tuple[Codes, tuple[int, ...]]:
    """Rows and sizes of a real table, of a small one or of a network's sample."""
    if name in REAL:
        return real(name)
    if name in SMALL:
        return SMALL[name]()
    folder = Path(os.environ["DPCIPHER_NETWORKS"])
    return load_coded(folder / f"{name}.csv", folder / f"{name}-domain.json")


def settled(lines: Iterable[Line], cap: float) -> set[Cell]:
    """The cells that need no run: all recorded ones but those timed out at a lower cap."""
    return {
        Cell(line["peer"], line["method"], line["data"], line["epsilon"], line["seed"])
        for line in lines
        if line["status"] != "timed out" or line["cap"] >= cap
    }


def recorded() -> list[Line]:
    """Every line of the record so far."""
    return [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []


def resident(pid: int) -> float:
    """Megabytes that a process holds now; 0 once it is gone."""
    return _stat(pid, 21) * os.sysconf("SC_PAGE_SIZE") / 2**20


def busy(pid: int) -> float:
    """Seconds of processor time that a process has had; 0 once it is gone."""
    return (_stat(pid, 11) + _stat(pid, 12)) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int, field: int) -> int:
    """A number of /proc/PID/stat, counted from the field after the name."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[field])
    except OSError:
        return 0


def limited(command: Sequence[str], *, cap: float, log: Path) -> Line:
    """Run a command under limits of processor time and memory; how it ended and what it took.

    Processor time, because the clock of a shared machine would cut slow hours short; a process that waits is
    stopped all the same, after three times the cap.
    """
    started, peak, ended = time.monotonic(), 0.0, ""
    with log.open("w") as text:
        process = subprocess.Popen(command, stdout=text, stderr=text, env={**os.environ, **ONE_THREAD})
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            if peak > MEGABYTES:
                ended = "out of memory"
            elif max(busy(process.pid), (time.monotonic() - started) / 3) > cap:
                ended = "timed out"
            if ended:
                process.kill()
                process.wait()
            time.sleep(0.2)
    return {
        "status": ended or ending(process.returncode, log.read_text()),
        "seconds": round(time.monotonic() - started, 1),
        "megabytes": round(peak),
    }


def ending(code: int, text: str) -> str:
    """The status of a process that ended by itself."""
    if code == 0:
        return "ok"
    short = ("MemoryError", "RESOURCE_EXHAUSTED", "Out of memory", "bad_alloc")
    return "out of memory" if any(word in text for word in short) else "failed"


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if any(map(str.isalpha, line))), "")


def run_cell(cell: Cell, cap: float, folder: Path) -> Line:
    """Run one cell; its line of the record without the peer's versions."""
    codes, shape = load(cell.data)
    names = [f"c{axis}" for axis in range(len(shape))]
    rows, domain, out = folder / "rows.csv", folder / "domain.json", folder / "out.csv"
    np.savetxt(rows, codes, fmt="%d", delimiter=",", header=",".join(names), comments="")
    domain.write_text(json.dumps(dict(zip(names, shape, strict=True))))
    budget = [repr(EPSILONS[cell.epsilon]), repr(DELTA), str(cell.seed)]
    peer = PEERS[cell.peer]
    command = [peer.python, str(HERE / peer.script), cell.method, str(rows), str(domain), *budget, str(out)]
    line = {**vars(cell), "cap": cap, **limited(command, cap=cap, log=folder / "log.txt")}
    said = last_line((folder / "log.txt").read_text())
    if line["status"] != "ok":
        return {**line, "note": said[:300] if line["status"] == "failed" else ""}
    line |= json.loads(said)
    line["tvd"] = distances(codes, out, shape)
    rounded = out.with_suffix(".round.csv")
    if rounded.exists():
        line["tvd_round"] = distances(codes, rounded, shape)
    return line


def distances(codes: Codes, synthetic: Path, shape: tuple[int, ...]) -> list[float]:
    """Mean TVD of 1, 2 and 3-way tables between the data and the rows in a file."""
    rows = np.loadtxt(synthetic, delimiter=",", skiprows=1, dtype=np.int64)
    return [round(distance, 5) for distance in tvd_rows(codes, rows, shape)]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--methods", nargs="+", default=["MST"])
    parser.add_argument(
        "--data", nargs="+", choices=(*REAL, *NETWORKS, *SMALL, "asia", "wide"), default=REAL + NETWORKS
    )
    parser.add_argument("--epsilons", nargs="+", choices=EPSILONS, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--cap", type=float, default=1800.0, help="seconds of processor time after which a cell is killed"
    )
    return parser.parse_args()


def main() -> None:
    given = options()
    versions = PEERS[given.peer].versions()
    grid = itertools.product(given.seeds, given.methods, given.epsilons, given.data)
    for seed, method, epsilon, data in grid:
        cell = Cell(given.peer, method, data, epsilon, seed)
        if cell in settled(recorded(), given.cap):
            print("skip", *vars(cell).values(), flush=True)
            continue
        print("run ", *vars(cell).values(), end=" … ", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            line = {**run_cell(cell, given.cap, Path(folder)), "version": versions}
        with RECORD.open("a") as record:
            record.write(json.dumps(line) + "\n")
        print(
            line["status"],
            f"{line['seconds']} s",
            f"{line['megabytes']} MB",
            line.get("tvd", line["note"]),
            flush=True,
        )


if __name__ == "__main__":
    main()
