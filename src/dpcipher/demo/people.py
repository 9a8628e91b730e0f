"""The people of the demo: invented rows with every kind of column, missing values, and dependence worth keeping.

The rows come from a fixed seed and describe nobody, so a demo may show what a curator would keep to herself.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.tables.domain import Floats

REGIONS = np.array(["coast", "hills", "plain", "town"])
SCHOOLS = np.array(["primary", "secondary", "college", "university"])
HEALTH = np.array(["poor", "fair", "good"])

SCHEMA = """\
# What everybody may know about the table: its columns and the values they can take. Written by hand, not read from the rows.
version: 1
columns:
  region: {kind: categorical, levels: [coast, hills, plain, town]}
  age: {kind: integer, min: 18, max: 89, bins: 8}
  school: {kind: ordinal, levels: [primary, secondary, college, university], missing: level}
  employed: {kind: boolean}
  income: {kind: number, edges: [0, 10, 20, 30, 45, 60, 200], missing: level}
  joined: {kind: date, edges: [2015-01-01, 2017-01-01, 2019-01-01, 2021-01-01, 2023-01-01, 2024-12-31]}
  health: {kind: ordinal, levels: [poor, fair, good]}
"""


def invent_people(n_rows: int = 5000, *, seed: int = 2024) -> pd.DataFrame:
    """Invented people: older ones joined earlier, schooling pays, and health goes with age and income."""
    rng = np.random.default_rng(seed)
    region = rng.choice(4, n_rows, p=[0.35, 0.1, 0.2, 0.35])
    age = np.clip(18 + rng.gamma(3.0, 10.0, n_rows), 18, 89).astype(int)
    school = _ordered(rng, 0.45 * (region == 3) - 0.03 * (age - 45), (-1.6, 0.3, 1.4))
    working = _chance(1.6 + 0.5 * (school - 1) - 5.0 * (age > 66) - 1.2 * (age < 22))
    employed = rng.random(n_rows) < working
    income = _income(rng, school, employed, age)
    joined = _joined(rng, age)
    health = _ordered(rng, 0.02 * (income - 25) - 0.05 * (age - 45), (-2.2, -0.2))
    people = pd.DataFrame(
        {
            "region": REGIONS[region],
            "age": age,
            "school": SCHOOLS[school],
            "employed": employed,
            "income": income.round(2),
            "joined": joined.astype(str),
            "health": HEALTH[health],
        }
    )
    people.loc[rng.random(n_rows) < 0.04, "school"] = None
    people.loc[rng.random(n_rows) < _chance(-2.5 + 0.02 * (age - 45)), "income"] = None
    return people


def _chance(score: Floats) -> Floats:
    """The logistic curve: a probability from a score."""
    return np.asarray(1 / (1 + np.exp(-score)))


def _ordered(rng: np.random.Generator, score: Floats, cuts: tuple[float, ...]) -> NDArray[np.int64]:
    """Ordered levels from a score plus logistic noise, cut at fixed points."""
    return np.asarray(np.searchsorted(cuts, score + rng.logistic(size=len(score))), dtype=np.int64)


def _income(
    rng: np.random.Generator, school: NDArray[np.int64], employed: NDArray[np.bool_], age: Floats
) -> Floats:
    """Thousands a year: what a job pays by schooling and age, or a benefit."""
    wage = np.exp(
        2.7 + 0.32 * school + 0.008 * (np.minimum(age, 60) - 40) + 0.35 * rng.standard_normal(len(age))
    )
    benefit = np.exp(2.3 + 0.4 * rng.standard_normal(len(age)))
    return np.clip(np.where(employed, wage, benefit), 0.0, 200.0)


def _joined(rng: np.random.Generator, age: Floats) -> NDArray[np.datetime64]:
    """A day from 2015 to 2024: early for the old, late for the young."""
    share = rng.beta(1.0 + 0.03 * (89 - age), 1.0 + 0.03 * (age - 18))
    return np.datetime64("2015-01-01") + (share * 3652).astype("timedelta64[D]")
