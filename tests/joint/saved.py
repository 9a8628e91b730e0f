"""Joints of each kind, and their files as version 0.1.0 wrote them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.joint.chain import Chain
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.link import Link
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 2})
HEALTH = SolveReport(
    "rows", "why not", {("a", "b"): 0.5, ("c",): 1.25}, 0.01, 3, 0.5, False, ("a note", "another")
)


def dense() -> DenseTable:
    """A table of all cells, its columns first in memory."""
    return DenseTable(np.asfortranarray(np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)))


def chain() -> Chain:
    """b, then a given b, then c given a and given a and b together, with a cell barred."""
    rng = np.random.default_rng(1)

    def link(attribute: int, groups: tuple[tuple[int, ...], ...], levels: int, barred: Any = ()) -> Link:
        sizes = tuple(int(np.prod([SCHEMA.shape[axis] for axis in group])) for group in groups)
        factors, goals = rng.random((2, sum(sizes), levels))
        return Link(attribute, groups, sizes, np.full(levels, 1 / levels), factors, goals, barred)

    bar = ((0, 1), np.arange(12).reshape(6, 2) == 5)
    return Chain(SCHEMA.shape, (link(1, (), 3), link(0, ((1,),), 2), link(2, ((0,), (0, 1)), 2, (bar,))))


def network() -> Network:
    """b, and then a and c given b."""
    rng = np.random.default_rng(2)
    return Network(
        SCHEMA.shape,
        (
            Node((1,), (), rng.dirichlet(np.ones(3))),
            Node((0, 2), (1,), rng.dirichlet(np.ones(4), 3).reshape(3, 2, 2)),
        ),
    )


CORES = {"dense": dense, "chain": chain, "network": network}


def facts(kind: str) -> dict[str, Any]:
    """The header, as version 0.1.0 wrote it."""
    health = {
        "engine": "rows",
        "why": "why not",
        "residuals": [[["a", "b"], 0.5], [["c"], 1.25]],
        "negative_mass": 0.01,
        "sweeps": 3,
        "seconds": 0.5,
        "converged": False,
        "notes": ["a note", "another"],
    }
    return {"version": 1, "kind": kind, "n_rows": 100, "schema": SCHEMA.to_dict(), "health": health}


def save(path: Path, header: object, arrays: Mapping[str, Any]) -> Path:
    """An archive as version 0.1.0 wrote it; the header as plain values or as its text."""
    text = header if isinstance(header, str) else json.dumps(header)
    coded = np.frombuffer(text.encode(), dtype=np.uint8)
    with path.open("wb") as sink:
        np.savez_compressed(sink, allow_pickle=False, dpcipher=coded, **arrays)
    return path
