"""A million synthetic rows of every engine against eight rules: how many break one, and what keeping them costs.

usage: python benchmarks/rules.py [n_rows=1000000] [repeats=5]
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from common import markdown, show, tvd_rows, write_page

import dpcipher as dc
from dpcipher.joint.joint import Joint
from dpcipher.methods import (
    MWEM,
    Fourier,
    FullHistogram,
    Independent,
    JunctionTree,
    Modips,
    MultinomialDirichlet,
    PrivBayes,
    Uniform,
)
from dpcipher.privacy.draws import Draws, SeededNoise
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema import Schema, column
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "joint"))
from ruled import SCHEMA, SMALL, broken, people

PEOPLE = 20_000


def codes_of(rows: pd.DataFrame, schema: Schema) -> np.ndarray:
    """The codes of rows."""
    return schema.encode(pa.Table.from_pandas(rows[list(schema.names)], preserve_index=False))


def measured(codes: np.ndarray, schema: Schema, epsilon: float, seed: int) -> Release:
    """All pairs with seeded noise, as `measure` would release them."""
    tables, shape, noise = [], schema.shape, SeededNoise(seed)
    pairs = [(i, j) for i in range(len(shape)) for j in range(i + 1, len(shape))]
    mechanism = Noise("laplace", len(pairs) / epsilon)
    for i, j in pairs:
        counts = np.bincount(codes[:, i] * shape[j] + codes[:, j], minlength=shape[i] * shape[j])
        noisy = noise.add(counts.reshape(shape[i], shape[j]).astype(np.int64), mechanism)
        tables.append(Measurement(Query((i, j)), noisy, mechanism))
    return Release(schema, tuple(tables), Statement(status="NOT PRIVATE"))


def million(name: str, joint: Joint, n_rows: int) -> list[object]:
    """One line: rows that break a rule, and what keeping them cost."""
    tally, counts, start = joint.tally(), 0, time.process_time()
    stream = joint.stream(n_rows, seed=1)
    for part in (stream.batch(number, tally=tally) for number in range(len(stream))):
        counts += sum(broken(part.to_pandas()).values())
    cost = tally.cost
    moved = max(cost.moved.items(), key=lambda item: item[1])
    spent = time.process_time() - start
    furthest = f"{moved[0]} {moved[1]:.4f}" if moved[1] > 0 else "none"
    return [
        name,
        f"{n_rows:,}",
        counts,
        f"{cost.redrawn:.4f}",
        f"{cost.values_redrawn:.4f}",
        furthest,
        f"{spent:.0f} s",
    ]


def joints() -> Iterator[tuple[str, Callable[[], Joint]]]:
    """Every engine, and every method, at epsilon 1."""
    rows = people(PEOPLE)
    large, small = codes_of(rows, SCHEMA), codes_of(rows, SMALL)
    yield "engine table", lambda: dc.solve(measured(large, SCHEMA, 1.0, 0), engine="table")
    yield "engine rows", lambda: dc.solve(measured(large, SCHEMA, 1.0, 0), engine="rows")
    yield "engine paper, small table", lambda: dc.solve(measured(small, SMALL, 1.0, 0), engine="paper")
    for method in (PrivBayes, JunctionTree, Independent, Uniform):
        yield f"{method.__name__}", lambda method=method: fitted(method, large, SCHEMA)
    for method in (FullHistogram, MWEM, Fourier, MultinomialDirichlet, Modips):
        yield f"{method.__name__}, small table", lambda method=method: fitted(method, small, SMALL)


def fitted(method: type, codes: np.ndarray, schema: Schema) -> Joint:
    """The joint of a method, from coded rows and seeded noise."""
    options = {"n_rows": PEOPLE} if method is MultinomialDirichlet else {}
    synthesizer = method(1.0, unit="add-remove", **options)
    return synthesizer.fit_counts(codes, schema, draws=Draws.seeded(0), codes=True).joints[0]


def without_rules(repeats: int) -> str:
    """The same noisy tables solved with and without the rules: broken rows, and error."""
    bare, lines = replace(SCHEMA, rules=()), []
    rows = people(PEOPLE)
    codes = codes_of(rows, SCHEMA)
    for label, schema in (("no rules", bare), ("eight rules", SCHEMA)):
        shares, errors = [], []
        for seed in range(repeats):
            joint = dc.solve(measured(codes, schema, 1.0, seed), engine="table")
            drawn = joint.sample(PEOPLE, seed=seed)
            shares.append([count / len(drawn) for count in broken(drawn).values()])
            synthetic = codes_of(drawn, bare)
            errors.append(tvd_rows(codes, synthetic, schema.shape)[:3])
        lines.append(
            [label, *(f"{share:.4f}" for share in np.mean(shares, axis=0)), show(np.mean(errors, axis=0))]
        )
    return markdown(["schema", *broken(rows), "TVD 1/2/3-way"], lines)


def many_rules() -> str:
    """Twenty columns: a map of 500 cities to 50 states, and fifty rules between the others."""
    rng, n_rows = np.random.default_rng(0), 20_000
    names = [f"q{number}" for number in range(17)]
    columns = [
        column("city", "categorical", levels=[f"c{number}" for number in range(500)]),
        column("state", "categorical", levels=[f"s{number}" for number in range(50)]),
        column("age", "integer", min=0, max=99),
        *(column(name, "categorical", levels=["N", *map(str, range(1, 10))]) for name in names),
    ]
    rules: list[object] = [
        {"determines": {"city": "state"}, "map": {f"c{number}": f"s{number % 50}" for number in range(500)}}
    ]
    rules += [f"age < {15 + number} -> {name} == N" for number, name in enumerate(names)]
    rules += [f"{left} == N -> {right} == N" for left, right in zip(names[1:], names[:-1], strict=True)]
    rules += [f"age < 90 and {name} == 2 -> q16 != 9" for name in names[:16]]
    rules += ["q0 == 1 and q1 == 2 and q2 == 3 -> q4 != 5"]
    start = time.process_time()
    schema = Schema(tuple(columns), rules=tuple(rules))
    times = {f"schema with {len(rules)} rules, {len(schema.zero_masks)} masks": time.process_time() - start}
    age, city = rng.integers(0, 100, n_rows), rng.integers(0, 500, n_rows)
    codes = np.zeros((n_rows, 20), dtype=np.int32)
    codes[:, 0], codes[:, 1], codes[:, 2] = city, city % 50, age
    for place in range(16, -1, -1):
        drawn = rng.integers(0, 9, n_rows)
        later = codes[:, 4 + place] == 0 if place < 16 else False
        codes[:, 3 + place] = np.where((age < 15 + place) | later, 0, drawn)
    codes[(codes[:, 3] == 1) & (codes[:, 4] == 2) & (codes[:, 5] == 3) & (codes[:, 7] == 5), 7] = 4
    release = measured(codes, schema, 5.0, 0)
    for name, job in (
        ("reconcile 190 tables", lambda: release.reconcile(0)),
        ("solve, rows engine", lambda: dc.solve(release)),
    ):
        start = time.process_time()
        joint = job()
        times[name] = time.process_time() - start
    start = time.process_time()
    tally = joint.tally()
    counts = 0
    stream = joint.stream(100_000, seed=1)
    for part in (stream.batch(number, tally=tally) for number in range(len(stream))):
        frame = part.to_pandas()
        counts += int((frame["state"].str[1:].astype(int) != frame["city"].str[1:].astype(int) % 50).sum())
        counts += sum(
            int(((frame["age"] < 15 + i) & (frame[name] != "N")).sum()) for i, name in enumerate(names)
        )
        for left, right in zip(names[1:], names[:-1], strict=True):
            counts += int(((frame[left] == "N") & (frame[right] != "N")).sum())
    times[f"100,000 rows: {counts} broken, {tally.cost.redrawn:.4f} drawn again"] = (
        time.process_time() - start
    )
    return markdown(["step", "processor time"], [[name, f"{spent:.1f} s"] for name, spent in times.items()])


def main(n_rows: int = 1_000_000, repeats: int = 5) -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name, make in joints():
        lines.append(million(name, make(), n_rows))
        print(*lines[-1], flush=True)
    head = [
        "engine or method",
        "rows",
        "broken",
        "drawn again",
        "other values in bins",
        "column moved most",
        "processor time",
    ]
    sections = [
        f"{PEOPLE:,} generated people ([the rules](../../tests/joint/ruled.py)), nine columns, all pairs, pure ε = 1. A judge that reads values alone counts the rows "
        "that break a rule.",
        markdown(head, lines),
        "## With and without rules\n\nThe same noisy tables, table engine, share of synthetic rows that break each rule, and the error of tables "
        f"(mean over {repeats} seeds).",
        without_rules(repeats),
        "## Many rules\n\nTwenty columns, 20,000 rows, all pairs at ε = 5.",
        many_rules(),
    ]
    write_page("rules", "Rules", f"python benchmarks/rules.py {n_rows} {repeats}", sections)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
