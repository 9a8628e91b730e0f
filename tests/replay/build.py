"""A release as plain values, and a release from them: the one file of the replays that may name what is inside a release.

A change of the classes inside a release changes this file and no recorded case.
"""

from typing import Any

import numpy as np

import dpcipher as dc
from dpcipher.release.release import CoarseTable, NoisyTable, NoisyTotal, Release
from dpcipher.release.statement import Statement
from dpcipher.tables.measurement import Noise


def as_plain(release: Release) -> dict[str, Any]:
    """The measurements of a release, and what else its public side needs; in an order of their own."""
    form = "centred" if release.totals else "table"
    found = [_measured(form, t.attrs, t.counts, t.mechanism, t.set) for t in release.tables]
    found += [
        _measured("runs", [c.attr], c.counts, c.mechanism, c.set) | {"starts": list(c.starts)}
        for c in release.coarse
    ]
    found += [_measured("total", [], np.array([t.count]), t.mechanism, t.set) for t in release.totals]
    statement = release.statement
    return {
        "measured": sorted(found, key=lambda one: (one["set"], one["form"], one["columns"])),
        "schema": release.schema.to_dict(),
        "n_rows": statement.n_rows,
        "predict": (statement.certificate.get("selection") or {}).get("predict"),
        "cap": dict(statement.unit),
        "cost": statement.certificate.get("total"),
    }


def _measured(form: str, columns: Any, values: Any, noise: Noise, number: int) -> dict[str, Any]:
    """One measurement."""
    law, scale = noise.kind, float(noise.scale).hex()
    shared = {"form": form, "columns": list(columns), "set": number, "law": law, "scale": scale}
    return shared | {"values": values.ravel().tolist()}


def from_plain(plain: dict[str, Any]) -> Release:
    """The release that these values describe."""
    schema = dc.Schema.from_dict(plain["schema"])
    tables, coarse, totals = [], [], []
    for one in plain["measured"]:
        noise = Noise(one["law"], float.fromhex(one["scale"]))
        values = np.array(one["values"])
        if one["form"] == "runs":
            starts = tuple(one["starts"])
            coarse.append(CoarseTable(one["columns"][0], starts, values, noise, one["set"]))
        elif one["form"] == "total":
            totals.append(NoisyTotal(int(values[0]), noise, one["set"]))
        else:
            shape = [schema.shape[schema.attrs.index(name)] for name in one["columns"]]
            tables.append(NoisyTable(tuple(one["columns"]), values.reshape(shape), noise, one["set"]))
    chosen = {"rounds": 1, "candidates": 1, "shortlist": 1, "share": "1/2", "predict": plain["predict"]}
    facts = {"measure": "epsilon", "total": plain["cost"], "by": "a recorded case", "selection": chosen}
    certificate = {} if plain["predict"] is None else facts
    statement = Statement("declared", n_rows=plain["n_rows"], unit=plain["cap"], certificate=certificate)
    return Release(schema, tuple(tables), statement, coarse=tuple(coarse), totals=tuple(totals))
