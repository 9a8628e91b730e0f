"""A release in words: what was measured, under which promise."""

from pathlib import Path
from typing import Any

from dpcipher.pages.words import choice
from dpcipher.privacy.budget import Budget
from dpcipher.release.release import Release


def release_text(release: Release, path: Path) -> str:
    """What a person should know about a release that was just written."""
    noise = sorted({table.mechanism.describe() for table in release.tables})
    lines = [
        f"Wrote    {path}",
        f"Tables   {len(release.workload)} over {len(release.schema.attrs)} columns, {_cells(release):,} noisy cells{_sets(release)}",
        *_chosen(release),
        f"Noise    {noise[0] if len(noise) == 1 else f'{noise[0]} and {len(noise) - 1} other scales'}",
        f"Budget   {promise(release)}",
        f"Unit     {protection(release)}",
        f"Status   {release.statement.status}: {release.statement.meaning}",
    ]
    return "\n".join(lines)


def release_facts(release: Release, path: Path) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "release": str(path),
        "tables": [list(attrs) for attrs in release.workload],
        "n_cells": _cells(release),
        "sets": release.sets,
        "checksum": release.checksum,
        "selection": release.statement.certificate.get("selection"),
        "statement": release.statement.to_dict(),
    }


def promise(release: Release) -> str:
    """The budget in words; a publisher's tables come without one."""
    budget = release.statement.budget
    return Budget.from_dict(dict(budget)).describe() if budget else "not stated by the publisher"


def protection(release: Release) -> str:
    """Who is protected, in words."""
    return release.statement.protection


def _chosen(release: Release) -> list[str]:
    """One line where tables were chosen; none where they were given."""
    said = choice(release)
    return [f"Chosen   {said}"] if said else []


def _cells(release: Release) -> int:
    return sum(table.counts.size for table in release.tables)


def _sets(release: Release) -> str:
    return "" if release.sets == 1 else f", {release.sets} independent sets"
