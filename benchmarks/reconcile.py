"""What reconciling many tables costs: processor seconds and peak memory, each case in a process of its own: `python benchmarks/reconcile.py [case]`."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from dpcipher.release.reconcile import reconcile
from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

NOISE = Noise("gaussian", 5.0)
Case = tuple[Domain, list[Query]]


def _domain(columns: int, levels: int, **zeros: object) -> Domain:
    return Domain(tuple(f"c{n}" for n in range(columns)), (levels,) * columns, **zeros)  # type: ignore[arg-type]


def _pairs(columns: int, groups: Groups | None = None) -> list[Query]:
    return [Query(axes, (groups, groups) if groups else ()) for axes in combinations(range(columns), 2)]


def _alone(columns: int, groups: Groups | None = None) -> list[Query]:
    return [Query((axis,), (groups,) if groups else ()) for axis in range(columns)]


def _impossible() -> Case:
    mask = np.arange(400).reshape(20, 20) == 399
    return _domain(260, 20, zeros=(((0, 1), mask),)), [*_alone(260), *_pairs(60)]


CASES: dict[str, Callable[[], Case]] = {
    "all pairs of 1,000 columns of 5 levels": lambda: (_domain(1000, 5), _pairs(1000)),
    "all pairs of 1,000 columns of 4 levels": lambda: (_domain(1000, 4), _pairs(1000)),
    "1,000 columns of 16 levels, pairs in 4 x 4 groups": lambda: (
        _domain(1000, 16),
        _pairs(1000, Groups.runs(range(0, 16, 4), 16)),
    ),
    "500 columns of 65 levels, and pairs in 9 x 9 groups": lambda: (
        _domain(500, 65),
        [*_alone(500), *_pairs(500, Groups.runs(range(0, 65, 8), 65))],
    ),
    "300 columns of 64 levels, and each in 8 uneven runs": lambda: (
        _domain(300, 64),
        [*_alone(300), *_alone(300, Groups.runs([0, 3, 8, 16, 24, 33, 48, 60], 64))],
    ),
    "260 columns of 20 levels, one impossible cell": _impossible,
}


def run(name: str) -> str:
    """One case: the fit, and the variances of some tables."""
    domain, queries = CASES[name]()
    rng = np.random.default_rng(0)
    measured = [Measurement(query, rng.normal(100, 5, query.shape(domain.sizes)), NOISE) for query in queries]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    fit = reconcile(domain, measured)
    fitted = time.process_time()
    for query in queries[:200]:
        fit.variance(query)
        fit.interaction_variance(query)
    answered = time.process_time()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    return (
        f"{name:52} fit {fitted - begun:6.2f} s, 200 variances {answered - fitted:5.2f} s, {memory:5.0f} MB"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(run(sys.argv[1]))
    for case in () if len(sys.argv) > 1 else CASES:
        subprocess.run([sys.executable, __file__, case], check=True)
