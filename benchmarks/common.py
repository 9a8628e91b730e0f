"""What every benchmark shares: data, noise, distances, and a results page that says on what machine it was made."""

import itertools
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.reconcile import Reconciled, reconcile
from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

RESULTS = Path(__file__).parent / "results"
# Where `experiments` is: beside the package, which is all that is installed.
sys.path.append(str(Path(__file__).parents[1]))
Axes = tuple[int, ...]
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


def data_folder() -> Path:
    """The folder of real tables, named by the environment."""
    folder = os.environ.get("DPCIPHER_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit(
            "set DPCIPHER_DATA to the folder that holds adult/, nltcs/, … (see benchmarks/README.md)"
        )
    return Path(folder)


def load_coded(rows: Path, domain: Path) -> tuple[Codes, tuple[int, ...]]:
    """Integer-coded rows and the number of levels of each column."""
    sizes = json.loads(domain.read_text())
    head = rows.open().readline().strip().split(",")
    codes = np.loadtxt(rows, delimiter=",", skiprows=1, dtype=np.int64)
    return codes[:, [head.index(name) for name in sizes]], tuple(sizes.values())


def real(name: str) -> tuple[Codes, tuple[int, ...]]:
    """One of the real tables: adult, nltcs, mushroom or nist_ma2019."""
    folder = data_folder() / name
    domain = next(folder.glob("*-domain.json"))
    stem = domain.name.removesuffix("-domain.json")
    coded = folder / f"{stem}-coded.csv"
    return load_coded(coded if coded.exists() else folder / f"{stem}.csv", domain)


def table(codes: Codes, shape: Sequence[int], axes: Axes) -> Floats:
    """Counts of one table."""
    sizes = [shape[axis] for axis in axes]
    index = np.ravel_multi_index([codes[:, axis] for axis in axes], sizes)
    return np.bincount(index, minlength=int(np.prod(sizes))).reshape(sizes).astype(float)


def noisy(
    codes: Codes, shape: Sequence[int], tables: Iterable[Axes], mechanism: Noise, seed: int
) -> list[Measurement]:
    """Tables measured with seeded noise of the given law: for benchmarks, NOT PRIVATE."""
    source = SeededNoise(seed)
    return [
        Measurement(Query(axes), source.add(table(codes, shape, axes).astype(np.int64), mechanism), mechanism)
        for axes in tables
    ]


def agreed(shape: Sequence[int], measured: Sequence[Measurement]) -> Reconciled:
    """Tables of columns c0, c1, … made to agree."""
    return reconcile(Domain(tuple(f"c{axis}" for axis in range(len(shape))), tuple(shape)), measured)


def laplace(n_tables: int, epsilon: float | None) -> Noise:
    """Discrete Laplace noise for `n_tables` tables under add-remove at a total of `epsilon`; None is no noise."""
    return Noise("none", 0.0) if epsilon is None else Noise("laplace", n_tables / epsilon)


def subsets(n_axes: int, order: int, *, at_most: int | None = None) -> list[Axes]:
    """All tables of an order, or a fixed random choice of them where there are too many."""
    number = math.comb(n_axes, order)
    if at_most is None or number <= at_most:
        return list(itertools.combinations(range(n_axes), order))
    chosen = np.random.default_rng(0).choice(number, at_most, replace=False)
    return [_combination(n_axes, order, place) for place in chosen.tolist()]


def _combination(n_axes: int, order: int, place: int) -> Axes:
    """The table at one place of all of an order, without listing them: a thousand columns have 166 million triples."""
    axes, axis = [], 0
    for left in range(order - 1, -1, -1):
        while place >= (behind := math.comb(n_axes - axis - 1, left)):
            place, axis = place - behind, axis + 1
        axes.append(axis)
        axis += 1
    return tuple(axes)


def tvd_rows(truth: Codes, rows: Codes, shape: Sequence[int]) -> list[float]:
    """Mean TVD of 1/2/3-way tables (100 fixed triples where there are more) between two sets of rows."""
    return [
        float(
            np.mean(
                [
                    0.5
                    * np.abs(table(truth, shape, s) / len(truth) - table(rows, shape, s) / len(rows)).sum()
                    for s in subsets(len(shape), order, at_most=100 if order > 2 else None)
                ]
            )
        )
        for order in (1, 2, 3)
    ]


def tvd_dense(truth: Floats, fitted: Floats) -> list[float]:
    """Mean TVD of 1/2/3-way tables between two dense tables of probabilities."""
    found = []
    for order in (1, 2, 3):
        distances = []
        for keep in subsets(truth.ndim, order):
            drop = tuple(axis for axis in range(truth.ndim) if axis not in keep)
            distances.append(0.5 * np.abs(truth.sum(drop) - fitted.sum(drop)).sum())
        found.append(float(np.mean(distances)))
    return found


def peak_megabytes() -> float:
    """The most memory this process has held; on Linux its own, where getrusage would count that of the process it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(script: str, *what: object) -> list[float]:
    """The numbers that a script prints for one task, in a fresh process; what results/SCRIPT.jsonl has of it is not measured again."""
    records = RESULTS / f"{Path(script).stem}.jsonl"
    lines = records.read_text().splitlines() if records.exists() else []
    known = {tuple(record["task"]): record["result"] for record in map(json.loads, lines)}
    task = tuple(map(str, what))
    if task not in known:
        alone = {**os.environ, "POLARS_MAX_THREADS": "1"}
        said = subprocess.run(
            [sys.executable, script, *task], check=True, stdout=subprocess.PIPE, text=True, env=alone
        ).stdout
        known[task] = [float(number) for number in said.split()]
        print(*task, *known[task], flush=True)
        with records.open("a") as file:
            file.write(json.dumps({"task": task, "result": known[task]}) + "\n")
    return list(known[task])


def machine() -> str:
    """The line under every results table."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("dpcipher", "numpy", "scipy"))
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, {packages}"


def write_page(name: str, title: str, command: str, sections: Sequence[str]) -> Path:
    """Write results/NAME.md."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text(
        "\n\n".join([f"# {title}", f"`{command}` on {machine()}.", *sections]) + "\n", encoding="utf-8"
    )
    print(path.read_text())
    return path


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [list(map(str, head)), ["---"] * len(head), *(list(map(str, row)) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(values: Iterable[float], digits: int = 4) -> str:
    """Numbers side by side: .0061/.0105/.0910."""
    return "/".join(f"{value:.{digits}f}".removeprefix("0") for value in values)


def asked_repeats(default: int) -> int:
    """The number among the words of the command line, if there is one."""
    return next((int(word) for word in sys.argv[1:] if word.isdigit()), default)


def least_seconds(job: Callable[[], object], times: int = 1) -> float:
    """Processor time of a job, the least of some."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        job()
        taken.append(time.process_time() - started)
    return min(taken)


def repeat(job: Callable[[int], list[float]], times: int) -> Floats:
    """The rows that `job(seed)` gives for seeds 0, 1, …."""
    return np.array([job(seed) for seed in range(times)])
