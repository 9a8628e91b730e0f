"""Bins found privately against other ways to cut, on generated columns that share one budget: `python benchmarks/bins.py [OUT]`.

Ten columns, six of them numbers: smooth, skewed, with atoms and top codes, mixtures. Each way cuts the six, all pairs are measured with what its own search
left of the budget, and synthetic rows are compared with the private ones: the 1-D Wasserstein distance, over the mean absolute deviation of the column, and the
mean error of random ranges of one and of two columns. Finished runs are kept in OUT and not run again.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance

import dpcipher as dc
from dpcipher.privacy.budget import Budget
from dpcipher.schema import Schema, column

Edges = list[float]
SPENT = 0.06  # of the budget, by every private search: a tenth times six columns of ten
NUMBERS = {
    "age": (0, 99),
    "income": (0, 1_000_000),
    "balance": (-10_000, 110_000),
    "duration": (0, 5_000),
    "score": (0, 1),
    "days": (-1, 999),
}


def people(n: int, seed: int) -> pd.DataFrame:
    """Numbers of every shape, which depend on one another and on four categories."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    age = np.clip(45 + 15 * level * 0.5 + rng.normal(0, 15, n), 0, 99).astype(int)
    income = np.where(rng.random(n) < 0.3, 0, np.exp(10.3 + 0.6 * level + rng.normal(0, 0.7, n)))
    balance = np.where(rng.random(n) < 0.08, 0, 400 * np.sinh(0.5 + level + rng.normal(0, 0.8, n)))
    duration = rng.exponential(250 * np.exp(0.3 * level))
    score = 1 / (1 + np.exp(-(level + np.where(rng.random(n) < 0.5, 2, -2) + rng.normal(0, 0.4, n))))
    days = np.where(rng.random(n) < 0.75, -1, np.minimum(rng.gamma(4, 50, n), 999))
    frame = pd.DataFrame({"age": age, "income": income.round(), "balance": balance.round(), "duration": duration.round(),
                          "score": score, "days": days.round()})  # fmt: skip
    for name, (low, high) in NUMBERS.items():
        frame[name] = frame[name].clip(low, high)
    for number, levels in enumerate((2, 3, 5, 12)):
        rank = np.argsort(np.argsort(level + rng.normal(0, 1, n))) * levels // n
        frame[f"c{number}"] = rank
    return frame


def schema_of(cut: Callable[[str], dict[str, object]]) -> Schema:
    """The schema, its numbers cut as told."""
    kinds = {name: "number" if name == "score" else "integer" for name in NUMBERS}
    columns = [column(name, kinds[name], **cut(name)) for name in NUMBERS]
    return Schema(
        (*columns, *(column(f"c{i}", "integer", min=0, max=k - 1) for i, k in enumerate((2, 3, 5, 12))))
    )


def auto(name: str) -> dict[str, object]:
    """Found by measure."""
    return {"min": NUMBERS[name][0], "max": NUMBERS[name][1], "bins": "auto"}


def equal(name: str) -> dict[str, object]:
    """Twenty equal bins."""
    return {"min": NUMBERS[name][0], "max": NUMBERS[name][1], "bins": 20}


def declared(name: str, edges: Edges) -> dict[str, object]:
    """Edges that were found, as a schema declares them."""
    low, high = NUMBERS[name]
    inner = [edge if name == "score" else round(edge) for edge in edges]
    return {"edges": [low, *sorted({edge for edge in inner if low < edge < high}), high]}


def quantiles(values: np.ndarray, bounds: tuple[float, float], rho: float, rng: np.random.Generator) -> Edges:
    """32 private quantiles: a binary tree of 2**12 leaves with Gaussian noise, and the leaves at which their sums pass k/32."""
    levels, (low, high) = 12, bounds
    counts = np.histogram(values, bins=2**levels, range=bounds)[0].astype(float)
    sigma = math.sqrt(levels / (2 * rho))
    tree = [counts.reshape(2**level, -1).sum(axis=1) for level in range(1, levels + 1)]
    noisy = [level + rng.normal(0, sigma, level.size) for level in tree]
    estimate = noisy[0]
    for level in noisy[1:]:
        pairs = level.reshape(-1, 2)
        estimate = (pairs + ((estimate - pairs.sum(axis=1)) / 2)[:, None]).ravel()
    sums = np.maximum.accumulate(np.cumsum(np.maximum(estimate, 0)))
    places = np.searchsorted(sums, sums[-1] * np.arange(1, 32) / 32)
    return [low + (high - low) * (place + 1) / 2**levels for place in places]


def privtree(
    values: np.ndarray, bounds: tuple[float, float], epsilon: float, rng: np.random.Generator
) -> Edges:
    """PrivTree (Zhang, Xiao and Xie 2016) for intervals: fan-out 2, threshold 0, noise 3/epsilon, a bias of noise times ln 2 for each level."""
    scale = 3 / epsilon
    bias, edges, waiting = scale * math.log(2), [], [(bounds[0], bounds[1], 0)]
    ordered = np.sort(values)
    while waiting:
        low, high, depth = waiting.pop()
        count = np.searchsorted(ordered, high) - np.searchsorted(ordered, low)
        if depth < 16 and max(count - depth * bias, -bias) + rng.laplace(0, scale) > 0:
            middle = (low + high) / 2
            edges.append(middle)
            waiting += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return sorted(edges)


def cut_by(way: str, frame: pd.DataFrame, epsilon: float, seed: int) -> tuple[Schema, float]:
    """The schema of one way, and the part of the budget that is left for tables."""
    rng = np.random.default_rng([seed, 7])
    if way == "auto":
        return schema_of(auto), 1.0
    if way == "equal":
        return schema_of(equal), 1.0
    each = SPENT * rho_of(epsilon) / len(NUMBERS)
    found = {}
    for name, bounds in NUMBERS.items():
        values = frame[name].to_numpy(dtype=float)
        if way == "quantiles":
            found[name] = quantiles(values, bounds, each, rng)
        else:
            found[name] = privtree(values, bounds, math.sqrt(2 * each), rng)
    return schema_of(lambda name: declared(name, found[name])), 1 - SPENT


def rho_of(epsilon: float) -> float:
    """The rho behind (epsilon, 1e-9)."""
    return float(Budget.parse(epsilon=epsilon, delta=1e-9).composable().amount)


def scores(frame: pd.DataFrame, synthetic: pd.DataFrame, seed: int) -> dict[str, float]:
    """Wasserstein distances, and errors of ranges whose ends are private values or anywhere in the range, half and half."""
    rng = np.random.default_rng([seed, 9])
    result: dict[str, float] = {}
    hits: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for name, (low, high) in NUMBERS.items():
        mine, theirs = frame[name].to_numpy(float), synthetic[name].to_numpy(float)
        spread = np.abs(mine - np.median(mine)).mean()
        result[f"w1 {name}"] = wasserstein_distance(mine, theirs) / spread
        hits[name] = []
        for turn in range(60):
            ends = np.sort(rng.choice(mine, 2) if turn % 2 else rng.uniform(low, high, 2))
            hits[name].append(
                ((mine >= ends[0]) & (mine <= ends[1]), (theirs >= ends[0]) & (theirs <= ends[1]))
            )
        result[f"range {name}"] = float(np.mean([abs(a.mean() - b.mean()) for a, b in hits[name]]))
    names = list(NUMBERS)
    for name in names:
        errors = []
        for other in names:
            if other != name:
                pairs = zip(hits[name], hits[other][::-1], strict=True)
                errors += [abs((a & c).mean() - (b & d).mean()) for (a, b), (c, d) in pairs]
        result[f"range2 {name}"] = float(np.mean(errors))
    return result


WAYS = ("auto", "equal", "quantiles", "privtree")


def run(way: str, n: int, epsilon: float, seed: int) -> dict[str, object]:
    """One release and its scores."""
    frame = people(n, seed)
    schema, left = cut_by(way, frame, epsilon, seed)
    release = dc.measure(frame, schema, rho=left * rho_of(epsilon), unit="add-remove", workload=2)
    synthetic = dc.solve(release).sample(n, seed=seed)
    bins = {f"bins {name}": release.schema.column(name).size for name in NUMBERS}
    return {"way": way, "n": n, "epsilon": epsilon, "seed": seed, **bins, **scores(frame, synthetic, seed)}


def main(out: Path, seeds: int) -> None:
    """All runs that are not there yet, then the table."""
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(row["way"], row["n"], row["epsilon"], row["seed"]) for row in done}
    for seed in range(seeds):
        for n in (5_000, 50_000):
            for epsilon in (1.0, round(math.e**2, 4)):
                for way in WAYS:
                    if (way, n, epsilon, seed) not in known:
                        row = run(way, n, epsilon, seed)
                        done.append(row)
                        with out.open("a") as sink:
                            sink.write(json.dumps(row) + "\n")
    table(pd.DataFrame(done))


def table(frame: pd.DataFrame) -> None:
    """Means over seeds, and the geometric mean over columns relative to `auto`."""
    wide = frame.groupby(["n", "epsilon", "way"]).mean(numeric_only=True).drop(columns="seed")
    for kind in ("bins ", "w1 ", "range ", "range2 "):
        part = wide[[name for name in wide.columns if name.startswith(kind)]]
        part = part.assign(mean=np.exp(np.log(part).mean(axis=1)))
        print(f"\n{kind.strip()}\n{part.round(4).to_string()}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "bins.jsonl"), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    )
