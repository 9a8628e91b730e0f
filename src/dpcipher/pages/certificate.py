"""The certificate: every fact of how a release was made, as the release itself states it."""

from collections.abc import Mapping
from typing import Any

from dpcipher.drawing.html import facts, folded, paragraphs, table
from dpcipher.pages.words import choice
from dpcipher.privacy.budget import Budget
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement

MOST_TABLES = 500


def certificate(release: Release) -> str:
    """Facts for specialists, and the list of measured tables."""
    statement = release.statement
    said = {
        "Status": f"{statement.status}: {statement.meaning}",
        "Protected unit": _unit(statement),
        "Budget": _budget(statement.budget),
        "Privacy loss, as the sampler's own privacy map certifies it": _loss(statement.certificate),
        **({"Choice of tables": chosen} if (chosen := choice(release)) else {}),
        "Sets": f"{release.sets} independent sanitization(s) of the same tables",
        "Rows": f"public{', as the curator declared' if statement.tells_presence else ''}"
        if statement.n_rows is not None
        else "private; the number on this page is estimated from the noisy tables",
        "Ledger": _plain(statement.ledger) or "none",
        "Software": _plain(statement.software) or "not stated",
        "Created": statement.created or "not stated",
        "Checksum of the release (SHA-256)": release.checksum,
        "Fingerprint of the schema (SHA-256)": release.schema.fingerprint(),
    }
    check = (
        "To check that a release file is the one described here, load it and compare its checksum: "
        "dpcipher.Release.load(path).checksum."
    )
    return (
        facts(said)
        + paragraphs([check])
        + folded(f"All {len(release.workload):,} measured tables", _tables(release))
    )


def _tables(release: Release) -> str:
    noise: dict[tuple[str, ...], list[str]] = {attrs: [] for attrs in release.workload[:MOST_TABLES]}
    for measured in release.tables:
        if measured.set == 0 and measured.attrs in noise:
            noise[measured.attrs].append(measured.mechanism.describe())
    lines = [
        (" × ".join(attrs), f"{release.schema.n_cells(attrs):,}", "; again ".join(described))
        for attrs, described in noise.items()
    ]
    return table(["table", "cells", "noise on every cell"], lines)


def _unit(statement: Statement) -> str:
    if not statement.unit:
        return "not stated by the publisher"
    relation, max_rows = statement.unit["relation"], statement.unit["max_rows"]
    return f"{relation}, at most {max_rows} row(s) per person. {statement.protection}"


def _budget(budget: Mapping[str, Any]) -> str:
    return Budget.from_dict(dict(budget)).describe() if budget else "not stated by the publisher"


def _loss(certified: Mapping[str, Any]) -> str:
    if not certified:
        return "none"
    return f"{certified['measure']} = {certified['total']:.6g} in all; {certified['by']}"


def _plain(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
