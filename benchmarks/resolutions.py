"""Releases of tables of different resolution: the time and memory of reconciling many, and the errors of one: `python benchmarks/resolutions.py [case]`.

Limits: all pairs of 1,000 columns of 16 levels in 4 × 4 groups take at most twice the processor time of all pairs of 1,000 columns of 4 levels, and 500 columns of
65 levels with all pairs in 9 × 9 groups at most 25 s. Each case runs in a process of its own.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import combinations

import numpy as np

import dpcipher as dc
from dpcipher.release.statement import Statement
from dpcipher.schema.grouped import query_of
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

NOISE = Noise("gaussian", 5.0)
CASES = {
    "pairs of 4 levels": (1000, 4, 0),
    "pairs of 16 in 4 x 4": (1000, 16, 4),
    "pairs of 65 in 9 x 9, columns alone": (500, 65, 8),
}
AGES, FIVES, TENS = 60, list(range(0, 60, 5)), list(range(0, 60, 10))


def cost(name: str) -> None:
    """Processor seconds and peak memory of reconciling all pairs."""
    columns, levels, width = CASES[name]
    schema = dc.Schema.from_domain({f"c{number}": levels for number in range(columns)})
    groups = Groups.runs(range(0, levels, width), levels) if width else None
    queries = [Query(axes, (groups, groups) if groups else ()) for axes in combinations(range(columns), 2)]
    queries += [Query((axis,)) for axis in range(columns if levels == 65 else 0)]
    rng = np.random.default_rng(0)
    measured = tuple(
        Measurement(query, rng.normal(100, 5, query.shape(schema.shape)), NOISE) for query in queries
    )
    release = dc.Release(schema, measured, Statement("declared"))
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    assert release.reconciled.total > 0
    seconds = time.process_time() - begun
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    print(f"{name:40} {len(queries):9,} tables {seconds:7.1f} s {memory:7,.0f} MB", flush=True)


def errors(scale: float, seeds: Iterable[int]) -> None:
    """Mean distances of the solved joint from 8,000 rows, over ages and both pairs at every level: ages fine alone and coarse in pairs, and one width throughout."""
    ages = np.arange(AGES)
    woman = 1 / (1 + np.exp(-(ages - 30) / 8))
    income = np.exp(-0.5 * ((np.arange(6) - ages[:, None] / 12) / 1.2) ** 2)
    joint = (
        np.exp(-(((ages - 30) / 18.0) ** 2))[:, None, None] * np.stack([woman, 1 - woman], axis=1)[:, :, None]
    )
    joint = joint * (income / income.sum(axis=1, keepdims=True))[:, None]
    rows = np.random.default_rng(0).multinomial(8_000, (joint / joint.sum()).ravel()).reshape(joint.shape)
    schema = dc.Schema.from_domain({"age": AGES, "sex": 2, "income": 6})
    fine = [("age",), ("age", "sex"), ("age", "income")]
    cases = {
        "years alone, fives by sex, tens by income": [
            fine[0],
            dc.Grouped(fine[1], age=FIVES),
            dc.Grouped(fine[2], age=TENS),
        ],
        "years throughout": fine,
        "fives throughout": [dc.Grouped(table, age=FIVES) for table in fine],
        "tens throughout": [dc.Grouped(table, age=TENS) for table in fine],
    }
    for name, tables in cases.items():
        distances = []
        for seed in seeds:
            rng, measured = np.random.default_rng(seed), []
            for table in tables:
                query = query_of(schema, table)
                counts = query.apply(rows, (0, 1, 2))
                measured.append(
                    Measurement(
                        query, counts + np.rint(rng.normal(0, scale, counts.shape)), Noise("gaussian", scale)
                    )
                )
            solved = np.asarray(
                dc.solve(dc.Release(schema, tuple(measured), Statement("declared"))).project(schema.attrs),
                dtype=float,
            )
            asked = [query_of(schema, table) for table in fine]
            gaps = [query.apply(solved / solved.sum() - rows / rows.sum(), (0, 1, 2)) for query in asked]
            distances.append(np.mean([np.abs(gap).sum() / 2 for gap in gaps]))
        print(f"noise {scale:g}: {name:44} {np.mean(distances):.4f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        cost(sys.argv[1])
    else:
        for case in CASES:
            subprocess.run([sys.executable, __file__, case], check=True)
        for scale in (12.0, 30.0, 80.0):
            errors(scale, range(10))
