"""A release as plain values, and a release from them: the one file of the replays that may name what is inside a release.

A change of the classes inside a release changes this file and no recorded case.
"""

from typing import Any

import numpy as np

import dpcipher as dc
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query


def as_plain(release: Release) -> dict[str, Any]:
    """The measurements of a release, and what else its public side needs; in an order of their own."""
    found = [_measured(release.schema.attrs, one) for one in release.measurements]
    statement = release.statement
    return {
        "measured": sorted(found, key=lambda one: (one["set"], one["form"], one["columns"])),
        "schema": release.schema.to_dict(),
        "n_rows": statement.n_rows,
        "predict": (statement.certificate.get("selection") or {}).get("predict"),
        "cap": dict(statement.unit),
        "cost": statement.certificate.get("total"),
    }


def _measured(names: Any, one: Measurement) -> dict[str, Any]:
    """One measurement."""
    query, law, scale = one.query, one.noise.kind, float(one.noise.scale).hex()
    runs = query.groups[0] if query.groups else None
    form = "runs" if runs else "centred" if query.centred else "table" if query.axes else "total"
    shared = {"form": form, "columns": [names[axis] for axis in query.axes], "set": one.set}
    shared |= {"law": law, "scale": scale, "values": one.values.ravel().tolist()}
    return shared | ({"starts": list(runs.starts)} if runs else {})


def from_plain(plain: dict[str, Any]) -> Release:
    """The release that these values describe."""
    schema = dc.Schema.from_dict(plain["schema"])
    found = []
    for one in sorted(
        plain["measured"], key=lambda one: ["table", "centred", "runs", "total"].index(one["form"])
    ):
        axes = schema.axes(one["columns"])
        runs = [Groups.runs(one["starts"], schema.shape[axes[0]])] if one["form"] == "runs" else []
        query = Query(axes, tuple(runs), centred=one["form"] == "centred")
        values = np.array(one["values"]).reshape(query.shape(schema.shape))
        noise = Noise(one["law"], float.fromhex(one["scale"]))
        found.append(Measurement(query, values, noise, one["set"]))
    chosen = {"rounds": 1, "candidates": 1, "shortlist": 1, "share": "1/2", "predict": plain["predict"]}
    facts = {"measure": "epsilon", "total": plain["cost"], "by": "a recorded case", "selection": chosen}
    certificate = {} if plain["predict"] is None else facts
    statement = Statement("declared", n_rows=plain["n_rows"], unit=plain["cap"], certificate=certificate)
    return Release(schema, tuple(found), statement)
