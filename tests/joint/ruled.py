"""A generated table with rules of every sort, and a judge of its rows that knows nothing of the package."""

import numpy as np
import pandas as pd

from dpcipher.schema import Schema, column

CITIES = [f"c{number}" for number in range(12)]
STATES = [f"s{number}" for number in range(4)]
RULES = (
    "age < 15 -> married == N",
    "age < 5 -> school == N and work in [N]",
    "married == yes -> age >= 15",
    "start <= end",
    {
        "determines": {"city": "state"},
        "map": {city: STATES[number % 4] for number, city in enumerate(CITIES)},
    },
    "income >= 100 -> work != N",
    "work == N and school == high and married == yes and city in [c0, c1, c2] -> state != s3 and end is not missing",
    "school is missing -> work is missing or income < 10",
)
COLUMNS = (
    column("age", "integer", edges=[0, 5, 15, 30, 60, 99]),
    column("married", "categorical", levels=["N", "no", "yes"]),
    column("school", "ordinal", levels=["N", "low", "high"], missing="level"),
    column("work", "categorical", levels=["N", "part", "full"], missing="level"),
    column("start", "integer", min=0, max=29, bins=3),
    column("end", "integer", min=0, max=29, bins=3, missing="level"),
    column("city", "categorical", levels=CITIES),
    column("state", "categorical", levels=STATES),
    column("income", "number", edges=[0, 10, 100, 500]),
)
SCHEMA = Schema(COLUMNS, rules=RULES)
# Small enough for methods that write out the full table.
NAMES = ("age", "married", "work", "start", "end")
SMALL = Schema(
    tuple(column for column in COLUMNS if column.name in NAMES),
    rules=(
        "age < 15 -> married == N",
        "age < 5 -> work in [N]",
        "married == yes -> age >= 15",
        "start <= end",
    ),
)


def people(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows that keep every rule."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n_rows)
    frame = pd.DataFrame({"age": age})
    frame["married"] = np.where(age < 15, "N", rng.choice(["no", "yes"], n_rows))
    frame["school"] = np.where(age < 5, "N", rng.choice(["N", "low", "high"], n_rows, p=[0.1, 0.4, 0.5]))
    frame["work"] = np.where(age < 5, "N", rng.choice(["N", "part", "full"], n_rows))
    days = np.sort(rng.integers(0, 30, (n_rows, 2)), axis=1)
    frame["start"] = days[:, 0]
    frame["end"] = pd.array(np.where(rng.random(n_rows) < 0.1, -1, days[:, 1]), dtype="Int64")
    frame.loc[frame["end"] == -1, "end"] = pd.NA
    city = rng.integers(0, 12, n_rows)
    frame["city"], frame["state"] = [CITIES[c] for c in city], [STATES[c % 4] for c in city]
    frame["income"] = np.where(frame["work"] == "N", rng.random(n_rows) * 100, rng.random(n_rows) * 500)
    gone = (rng.random(n_rows) < 0.05) & (frame["income"] < 10) & (age >= 5)
    frame.loc[gone, "school"] = None
    wide = _wide(frame) & frame["end"].isna()
    frame.loc[wide, "end"] = 29
    return frame


def _wide(rows: pd.DataFrame) -> pd.Series:
    return (
        (rows["work"] == "N")
        & (rows["school"] == "high")
        & (rows["married"] == "yes")
        & rows["city"].isin(["c0", "c1", "c2"])
    )


def broken(rows: pd.DataFrame) -> dict[str, int]:
    """How many rows break each rule, from the values alone."""
    counts = {
        "married": (rows["age"] < 15) & (rows["married"] != "N"),
        "work": (rows["age"] < 5) & (rows["work"] != "N"),
        "start": (rows["start"] > rows["end"]).fillna(False),
    }
    if "city" in rows:
        number = rows["city"].str[1:].astype(int)
        counts |= {
            "school": (rows["age"] < 5) & (rows["school"] != "N"),
            "state": rows["state"].str[1:].astype(int) != number % 4,
            "income": (rows["income"] >= 100) & (rows["work"] == "N"),
            "wide": _wide(rows) & ((rows["state"] == "s3") | rows["end"].isna()),
            "missing": rows["school"].isna() & ~(rows["work"].isna() | (rows["income"] < 10)),
        }
    return {name: int(mask.sum()) for name, mask in counts.items()}
