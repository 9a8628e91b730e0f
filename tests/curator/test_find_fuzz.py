"""Random open schemas on random rows: whatever is declared, nothing fails once the budget is charged, and the found schema takes the same rows."""

import random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpcipher.curator.measure import measure
from dpcipher.errors import SchemaError, SizeError
from dpcipher.privacy.ledger import Account
from dpcipher.schema import Schema

BUDGETS: list[dict[str, float]] = [
    {"epsilon": 0.01}, {"epsilon": 1.0}, {"epsilon": 50.0}, {"epsilon": 1.0, "delta": 1e-9}, {"rho": 1e-6}, {"rho": 5.0}
]  # fmt: skip


def number_column(
    chance: random.Random, rng: np.random.Generator, n: int
) -> tuple[dict[str, Any], pd.Series]:
    """An integer or number column, skewed, with whatever may be declared beside its range."""
    whole = chance.random() < 0.5
    low = chance.choice([0, -1, -500, -(10**9)] if whole else [0.0, -1.5, -1e6, 0.001])
    high = low + chance.choice([1, 99, 5000, 10**6, 10**12] if whole else [1e-3, 1.0, 100.0, 1e6, 1e15])
    values = low + (high - low) * rng.beta(0.5, chance.choice([0.5, 5, 50]), n)
    values = np.clip(values.round() if whole else values, low, high)
    spec: dict[str, Any] = {"kind": "integer" if whole else "number", "bins": "auto"}
    spec |= {"min": chance.choice([low, "auto"]), "max": chance.choice([high, "auto"])}
    if chance.random() < 0.3:
        spec["special"] = [chance.choice([low, high, 0])]
    if chance.random() < 0.3:
        spec["step"] = chance.choice([1, 2, 100])
    return spec, pd.Series(values, dtype=object)


def time_column(chance: random.Random, rng: np.random.Generator, n: int) -> tuple[dict[str, Any], pd.Series]:
    """Dates, or times of day."""
    if chance.random() < 0.5:
        days = pd.to_datetime("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
        ends = chance.choice([{"min": "1980-01-01", "max": "2030-12-31"}, {"min": "auto", "max": "auto"}])
        return {"kind": "date", "bins": "auto", **ends}, pd.Series(days, dtype=object)
    clock = [
        f"{hour:02d}:{minute:02d}"
        for hour, minute in zip(*rng.integers(0, [[24], [60]], (2, n)), strict=True)
    ]
    return {"kind": "time", "bins": "auto", "min": "auto", "max": "auto"}, pd.Series(clock, dtype=object)


def random_case(seed: int) -> tuple[dict[str, Any], pd.DataFrame, random.Random]:
    """A schema as plain values, and rows that fit it."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    n = chance.choice([0, 1, 5, 200, 2000])
    columns: dict[str, Any] = {"job": {"kind": "categorical", "levels": ["a", "b"]}}
    rows: dict[str, Any] = {"job": rng.choice(["a", "b"], n)}
    for number in range(chance.randint(1, 3)):
        spec, values = chance.choice([number_column, number_column, time_column])(chance, rng, n)
        if chance.random() < 0.3:
            spec["missing"] = "level"
            values[rng.random(n) < 0.1] = None
        if chance.random() < 0.3:
            spec["max_bins"] = chance.choice([1, 2, 7, 200])
        columns[f"c{number}"], rows[f"c{number}"] = spec, values
    plain: dict[str, Any] = {"columns": columns}
    if columns["c0"]["kind"] in ("integer", "number") and chance.random() < 0.5:
        plain["zeros"] = [{"impossible": {"c0": {"min": 1}, "job": "b"}, "becomes": {"job": "a"}}]
    return plain, pd.DataFrame(rows), chance


@pytest.mark.parametrize("seed", range(40))
def test_nothing_fails_after_the_charge(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declaration may be refused; after that every release comes to its end, is read back, and codes the same rows."""
    plain, frame, chance = random_case(seed)
    charged = []
    monkeypatch.setattr(Account, "charge", lambda self, privacy, cost, what: charged.append(what))
    try:
        schema = Schema.from_dict(plain)
    except (SchemaError, SizeError):
        pytest.skip("refused before anything is read")
    unit, max_rows = chance.choice(["add-remove", "replace"]), chance.choice([1, 4])
    workload, promise = chance.choice([1, 2, "auto"]), chance.choice(BUDGETS)
    release = measure(
        frame, schema, unit=unit, max_rows=max_rows, workload=workload, sets=chance.choice([1, 2]), **promise
    )  # type: ignore[arg-type]
    assert len(charged) == 1
    assert Schema.from_dict(release.schema.to_dict()).fingerprint() == release.schema.fingerprint()
    if len(frame):
        assert len(release.schema.encode(pa.Table.from_pandas(frame, preserve_index=False))) == len(frame)
