"""A release, synthetic rows and both pages made of them, for the tests of pages. Everything in it is invented."""

from functools import cache

import numpy as np
import pandas as pd

from dpcipher.io.source import coded_rows
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from dpcipher.tables.table import count_rows

SPITEFUL = "<script>alert(1)</script> & \"quoted\" 'level'"

SCHEMA = Schema(
    (
        column("sex", "categorical", levels=("F", "M")),
        column("age", "integer", min=0, max=99),
        column("work", "categorical", levels=("none", "part", "full"), missing="level"),
        column(
            "a column with a long name", "categorical", levels=("Bachelor of something long", SPITEFUL, "c")
        ),
        column("since", "date", edges=("2015-01-01", "2018-01-01", "2021-01-01", "2024-12-31")),
        column("owner", "boolean"),
        column("score", "number", min=0, max=1, bins=30),
        column("code", "categorical", levels=tuple(f"level {k}" for k in range(200))),
        column("tiny", "categorical", levels=("only",)),
        column("rare", "categorical", levels=("usual", "rare")),
    )
)


def people(seed: int, n: int = 3000) -> pd.DataFrame:
    """Invented rows of the schema."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "sex": sex,
            "age": np.clip(rng.gamma(6, 7, n), 0, 99).astype(int),
            "work": rng.choice(np.array(["none", "part", "full", None], dtype=object), n),
            "a column with a long name": rng.choice(
                ["Bachelor of something long", SPITEFUL, "c"], n, p=[0.6, 0.3, 0.1]
            ),
            "since": pd.to_datetime("2015-01-01") + pd.to_timedelta(rng.integers(0, 3600, n), unit="D"),
            "owner": rng.random(n) < np.where(sex == "M", 0.7, 0.3),
            "score": rng.random(n),
            "code": [f"level {k}" for k in np.minimum(rng.geometric(0.03, n) - 1, 199)],
            "tiny": "only",
            "rare": np.where(rng.random(n) < 0.002, "rare", "usual"),
        }
    )


@cache
def release() -> Release:
    """All pairs with Laplace noise of scale 15, as a certified release would state them."""
    codes, rng = coded_rows(people(0), SCHEMA, "rows"), np.random.default_rng(0)
    pairs = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    stop = -np.expm1(-1 / 15)
    tables = []
    for axes in pairs:
        counts = count_rows(codes, axes, SCHEMA.shape)
        noise = rng.geometric(stop, counts.shape) - rng.geometric(stop, counts.shape)
        tables.append(Measurement(Query(axes), counts + noise, Noise("laplace", 15.0)))
    statement = Statement(
        status="certified",
        unit={"relation": "add-remove", "max_rows": 1},
        budget={"epsilon": "3"},
        certificate={
            "measure": "epsilon",
            "total": 3.0,
            "by": "privacy map of opendp",
        },
        ledger={"charge": "1", "head": "ab12"},
        software={"dpcipher": "0.1.0", "opendp": "0.16"},
        created="2026-01-01",
    )
    return Release(SCHEMA, tuple(tables), statement)
