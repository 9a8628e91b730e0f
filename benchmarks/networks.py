"""Rows sampled from well-known Bayesian networks, whose definitions ship inside the package pgmpy.

usage: python benchmarks/networks.py FOLDER    writes NAME.csv and NAME-domain.json for asia, child, insurance, alarm, and for `wide`:
a random network of 200 columns
"""

import gzip
import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np

NAMES = ("asia", "child", "insurance", "alarm")
VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*\d+\s*\]\s*\{([^}]*)\}")
PROBABILITY = re.compile(r"probability\s*\(([^)]*)\)\s*\{(.*?)\n\}", re.DOTALL)

Network = dict[str, tuple[list[str], np.ndarray]]


def load(name: str) -> tuple[dict[str, list[str]], Network]:
    """Levels of each variable, and its parents and conditional table (the variable on the last axis)."""
    spec = importlib.util.find_spec("pgmpy")  # the package need not be imported, and is heavy to import
    if spec is None or spec.origin is None:
        raise SystemExit("pgmpy is not installed; run: pip install --no-deps pgmpy")
    path = Path(spec.origin).parent / "utils" / "example_models" / f"{name}.bif.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    levels = {found[1]: [level.strip() for level in found[2].split(",")] for found in VARIABLE.finditer(text)}
    tables = dict(_table(found[1], found[2], levels) for found in PROBABILITY.finditer(text))
    assert set(tables) == set(levels)
    return levels, tables


def _table(head: str, body: str, levels: dict[str, list[str]]) -> tuple[str, tuple[list[str], np.ndarray]]:
    name, _, given = (part.strip() for part in head.partition("|"))
    parents = [parent.strip() for parent in given.split(",")] if given else []
    table = np.zeros([len(levels[parent]) for parent in parents] + [len(levels[name])])
    for line in filter(None, (line.strip() for line in body.split(";"))):
        if line.startswith("table"):
            table[...] = [float(value) for value in line.removeprefix("table").split(",")]
        elif line.startswith("("):
            where, values = line[1:].split(")")
            place = tuple(
                levels[p].index(level.strip()) for p, level in zip(parents, where.split(","), strict=True)
            )
            table[place] = [float(value) for value in values.split(",")]
    assert np.allclose(table.sum(-1), 1, atol=1e-3)
    return name, (parents, table / table.sum(-1, keepdims=True))


def sample(tables: Network, names: list[str], n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows by ancestral sampling, columns in the order of `names`."""
    drawn: dict[str, np.ndarray] = {}
    while len(drawn) < len(tables):
        for name, (parents, table) in tables.items():
            if name not in drawn and all(parent in drawn for parent in parents):
                chances = np.broadcast_to(
                    table[tuple(drawn[parent] for parent in parents)], (n_rows, table.shape[-1])
                )
                below = np.cumsum(chances, axis=1) < rng.random((n_rows, 1))
                drawn[name] = below.sum(1).clip(0, table.shape[-1] - 1)
    return np.stack([drawn[name] for name in names], axis=1)


def random_network(columns: int, rng: np.random.Generator) -> tuple[dict[str, list[str]], Network]:
    """Columns of 2 to 6 levels, each with one or two parents among the ten before it, and uneven conditional tables."""
    sizes = rng.integers(2, 7, columns)
    levels = {f"c{i}": [str(level) for level in range(size)] for i, size in enumerate(sizes)}
    tables: Network = {}
    for i, size in enumerate(sizes):
        near = np.arange(max(0, i - 10), i)
        parents = sorted(rng.choice(near, min(len(near), rng.integers(1, 3)), replace=False)) if i else []
        shape = [int(sizes[parent]) for parent in parents]
        tables[f"c{i}"] = [f"c{parent}" for parent in parents], rng.dirichlet(np.full(size, 0.5), shape)
    return levels, tables


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    networks = {name: (*load(name), 10_000) for name in NAMES}
    networks["wide"] = (*random_network(200, np.random.default_rng(0)), 20_000)
    for name, (levels, tables, n_rows) in networks.items():
        rows = sample(tables, list(levels), n_rows, np.random.default_rng(0))
        np.savetxt(
            folder / f"{name}.csv", rows, fmt="%d", delimiter=",", header=",".join(levels), comments=""
        )
        (folder / f"{name}-domain.json").write_text(json.dumps({v: len(k) for v, k in levels.items()}))
        print(name, rows.shape)


if __name__ == "__main__":
    main()
