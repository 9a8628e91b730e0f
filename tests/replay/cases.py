"""The recorded cases: small tables, and calls on them with every argument that matters spelled out.

Rows are made here once, when a case is recorded, and kept in its file. To record one again: see `record.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

# Cases whose numbers need only be near those that were recorded, and why: tables within 1e-9, joints 1e-7, coefficients a tenth of a standard error.
NEAR: dict[str, str] = {}
# Cases whose questions are asked in other batches than they were recorded in, and why: the noise is given cell by cell.
BATCHED: dict[str, str] = {}


@dataclass(frozen=True)
class Case:
    """Rows, a schema, a call with its options, and what to look at afterwards.

    `call` is "measure", "from_tables" or the name of a method. `look` may have an `engine`, `pairs` of columns for the joints, options of the
    draw (`rows`), `models` by formula, and `estimates` of a share on pairs of columns. `as_file` is the encoding of a CSV file.
    """

    call: str
    schema: dict[str, Any]
    options: dict[str, Any]
    rows: Callable[[], pd.DataFrame | str] = str
    look: dict[str, Any] = field(default_factory=dict)
    as_file: str = ""

    def as_call(self) -> dict[str, Any]:
        """What is asked, without the rows."""
        return {
            "call": self.call,
            "schema": self.schema,
            "options": self.options,
            "look": self.look,
            "as_file": self.as_file,
        }

    def as_given(self) -> dict[str, Any]:
        """All that a replay needs."""
        rows = self.rows()
        return self.as_call() | {"rows": rows if isinstance(rows, str) else rows.to_csv(index=False)}


# Rows


def coded(shape: Sequence[int], n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Columns c0, c1, …; each but the first is a copy of the one before, seven times in ten."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, shape, (n_rows, len(shape)))
    for place in range(1, len(shape)):
        copied = codes[:, place - 1] % shape[place]
        codes[:, place] = np.where(rng.random(n_rows) < 0.7, copied, codes[:, place])
    return pd.DataFrame(codes, columns=list(domain(shape)))


def domain(shape: Sequence[int]) -> dict[str, int]:
    """The schema of such rows."""
    return {f"c{place}": size for place, size in enumerate(shape)}


def incomes(n_rows: int = 700) -> pd.DataFrame:
    """Ages and skewed incomes."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"age": rng.integers(0, 99, n_rows), "income": np.round(rng.lognormal(9, 1, n_rows), -1).astype(int)}
    )


def visits(n_persons: int = 120) -> pd.DataFrame:
    """People with one to four visits to wards."""
    rng = np.random.default_rng(6)
    persons = np.repeat(np.arange(n_persons), rng.integers(1, 5, n_persons))
    wards = rng.choice(["AA", "BB", "CC", "DD"], len(persons), p=[0.4, 0.3, 0.25, 0.05])
    return pd.DataFrame({"id": persons, "ward": wards, "ill": rng.choice(["no", "yes"], len(persons))})


def survey(n_rows: int = 400) -> pd.DataFrame:
    """Ages, schooling, work and hours that keep the rules below."""
    rng = np.random.default_rng(9)
    age = rng.integers(0, 90, n_rows)
    school = np.where(age < 16, "none", rng.choice(["none", "low", "high"], n_rows, p=[0.2, 0.5, 0.3]))
    work = np.where(age < 16, "no", rng.choice(["no", "yes"], n_rows, p=[0.4, 0.6]))
    hours = np.where(work == "no", 0, rng.integers(1, 61, n_rows))
    begun = np.minimum(age, rng.integers(0, 90, n_rows))
    return pd.DataFrame({"age": age, "school": school, "work": work, "hours": hours, "begun": begun})


SURVEY: dict[str, Any] = {
    "columns": {
        "age": {"kind": "integer", "edges": [0, 16, 40, 65, 90]},
        "school": {"kind": "ordinal", "levels": ["none", "low", "high"]},
        "work": {"kind": "categorical", "levels": ["no", "yes"]},
        "hours": {"kind": "integer", "edges": [0, 1, 20, 40, 61]},
        "begun": {"kind": "integer", "edges": [0, 16, 40, 65, 90]},
    }
}
RULES = ["age < 16 -> school == none", "work == no -> hours == 0", "begun <= age"]
WARD = {"kind": "categorical", "levels": ["AA", "BB", "CC"], "other": "CC"}
ILL = {"kind": "categorical", "levels": ["no", "yes"]}
FOUND_WARD = {
    "kind": "categorical",
    "levels": "discover",
    "pattern": "[A-Z]+",
    "max_length": 4,
    "max_levels": 3,
}


# measure: two units, three budgets, orders 1 and 2, and tables that are chosen

UNITS: dict[str, dict[str, Any]] = {
    "added": {"unit": "add-remove", "max_rows": 1},
    "replaced": {"unit": "replace", "max_rows": 2},
}
BUDGETS: dict[str, dict[str, float]] = {
    "pure": {"epsilon": 2.0},
    "delta": {"epsilon": 2.0, "delta": 1e-6},
    "rho": {"rho": 0.25},
}
SMALL, LARGE = (3, 4, 2, 3), (3, 2, 4, 3, 2, 3, 3, 4)


def given_tables(order: int, budget: dict[str, float], unit: dict[str, Any]) -> Case:
    """All tables of an order on a small domain."""
    return Case(
        "measure",
        domain(SMALL),
        {"workload": order, "sets": 1, "n_rows_public": False, **budget, **unit},
        lambda: coded(SMALL, 250),
    )


def chosen_tables(shape: Sequence[int], budget: dict[str, float], unit: dict[str, Any], **auto: Any) -> Case:
    """Tables chosen with a part of the budget; solved on rows where they are to predict a column."""
    choice = {"max_order": None, "max_cells": 10_000, "target": None, "predict": None, **auto}
    options = {"workload": choice, "sets": 1, **budget, **unit}
    look = {"engine": "rows"} if choice["predict"] else {}
    return Case("measure", domain(shape), options, lambda: coded(shape, 500), look)


MEASURED = {
    f"measure-{name}-{budget}-{unit}": given_tables(order, BUDGETS[budget], UNITS[unit])
    for name, order in (("columns", 1), ("pairs", 2))
    for budget in BUDGETS
    for unit in UNITS
}
CHOSEN = {
    f"measure-auto-{budget}-{unit}": chosen_tables(
        {("pure", "replaced"): SMALL, ("pure", "added"): (3,) * 11}.get((budget, unit), LARGE),
        {key: 4 * value if key != "delta" else value for key, value in BUDGETS[budget].items()},
        UNITS[unit],
        **({"max_order": 2} if (budget, unit) == ("delta", "replaced") else {}),
    )
    for budget in BUDGETS
    for unit in UNITS
}

# measure: special options

OPEN = {
    "columns": {
        "age": {"kind": "integer", "min": 0, "max": 99, "bins": "auto", "max_bins": 12},
        "income": {"kind": "number", "min": 0, "max": 1_000_000, "bins": "auto", "max_bins": 12},
    }
}
OPEN_RANGE = {
    "columns": {
        "age": {"kind": "integer", "min": 0, "max": 99, "bins": 5},
        "income": {"kind": "number", "min": "auto", "max": "auto", "bins": "auto", "max_bins": 10},
    }
}
ZEROS = [
    {
        "impossible": {"age": {"min": 0, "max": 15}, "school": ["low", "high"]},
        "becomes": {"school": "none"},
    },
    {"impossible": {"work": ["no"], "hours": {"min": 1, "max": 61}}},
]
SPECIAL = {
    "measure-weights": Case(
        "measure",
        domain((3, 3, 2)),
        {"workload": [["c0", "c1"], ["c2"]], "weights": [[["c0", "c1"], 3.0], [["c2"], 1.0]], "sets": 1, "rho": 0.2, **UNITS["added"]},
        lambda: coded((3, 3, 2), 250),
    ),
    "measure-sets": Case(
        "measure",
        domain((3, 3, 2)),
        {"workload": 2, "sets": 3, "epsilon": 3.0, "delta": 1e-6, **UNITS["added"]},
        lambda: coded((3, 3, 2), 250),
    ),
    "measure-persons": Case(
        "measure",
        {"columns": {"ward": WARD, "ill": ILL}},
        {"workload": 2, "person": "id", "missing_person": "refuse", "epsilon": 1.0, "unit": "add-remove", "max_rows": 2},
        visits,
    ),
    "measure-public-rows": Case(
        "measure",
        domain((3, 3)),
        {"workload": 2, "n_rows_public": True, "epsilon": 1.0, "unit": "add-remove", "max_rows": 1},
        lambda: coded((3, 3), 200),
    ),
    "measure-open-bins": Case(
        "measure",
        OPEN,
        {"workload": 2, "sets": 1, "epsilon": 4.0, "unit": "add-remove", "max_rows": 1},
        incomes,
        {"models": [{"formula": "income ~ age", "draws": 60}]},
    ),
    "measure-open-range": Case(
        "measure", OPEN_RANGE, {"workload": 2, "sets": 2, "rho": 1.0, "unit": "replace", "max_rows": 1}, incomes
    ),
    "measure-found-levels": Case(
        "measure",
        {"columns": {"ward": FOUND_WARD, "ill": ILL}},
        {"workload": 2, "person": "id", "missing_person": "refuse", "epsilon": 8.0, "delta": 1e-4, "unit": "add-remove", "max_rows": 3},
        visits,
    ),
    "measure-centred": replace(
        chosen_tables((3,) * 8, {"epsilon": 6.0, "delta": 1e-6}, {"unit": "add-remove", "max_rows": 1}, max_order=2),
        look={"models": [{"formula": "c3 ~ c2 + c1", "family": "multinomial", "draws": 60}]},
    ),
    "measure-predict": chosen_tables((3,) * 8, {"epsilon": 8.0}, {"unit": "replace", "max_rows": 1}, predict="c4"),
    "measure-zeros": Case(
        "measure",
        {**SURVEY, "zeros": ZEROS},
        {"workload": 2, "epsilon": 4.0, "unit": "add-remove", "max_rows": 1},
        survey,
    ),
    "measure-rules": Case(
        "measure",
        {**SURVEY, "rules": RULES},
        {"workload": 2, "epsilon": 4.0, "delta": 1e-6, "unit": "add-remove", "max_rows": 1},
        survey,
        {"rows": {"n_rows": 30}},
    ),
}  # fmt: skip


# measure: every kind of column, from CSV files


def people_csv(n_rows: int = 220) -> str:
    """Codes for missing, empty cells, labels, truth values and levels that are not declared."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "SEX": rng.choice(["1", "2", "N", ""], n_rows, p=[0.45, 0.45, 0.05, 0.05]),
            "STATE": rng.choice(["OR", "WA", "XX"], n_rows),
            "DEGREE": rng.choice(["low", "mid", "high"], n_rows),
            "VETERAN": rng.choice(["yes", "no"], n_rows),
            "AGE": rng.integers(0, 95, n_rows),
        }
    ).to_csv(index=False)


def amounts_csv(n_rows: int = 220) -> str:
    """Amounts with special values and codes for missing, days, and times of day."""
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n_rows), "D")
    minutes = rng.integers(0, 1440, n_rows)
    pay = np.round(rng.uniform(0, 500, n_rows), 2).astype(str)
    pay[:40], pay[40:50], pay[50:55] = "0", "-9", ""
    return pd.DataFrame(
        {
            "PAY": pay,
            "DAY": days.strftime("%Y-%m-%d"),
            "CLOCK": [f"{m // 60:02d}:{m % 60:02d}" for m in minutes],
            "SIZE": rng.integers(-5, 130, n_rows),
        }
    ).to_csv(index=False)


def european_csv(n_rows: int = 160) -> str:
    """Semicolons, decimal commas, points between thousands, and letters beyond ASCII."""
    rng = np.random.default_rng(4)
    lines = [
        f"{town};{whole // 1000}.{whole % 1000:03d},{part:02d}"
        for town, whole, part in zip(
            rng.choice(["Köln", "Łódź", "Brno"], n_rows),
            rng.integers(1_000, 9_999, n_rows),
            rng.integers(0, 100, n_rows),
            strict=True,
        )
    ]
    return "\n".join(["Stadt;Betrag", *lines, ""])


def texts_csv(n_rows: int = 160) -> str:
    """Quoted cells with separators, numbers written in several forms, and one row for each number."""
    rng = np.random.default_rng(8)
    lines = [
        f'"{name}",{number}'
        for name, number in zip(
            rng.choice(["Smith, Ann", 'the ""B""', "plain"], n_rows),
            rng.choice(["1", "1.0", "2", "+3", "4", ""], n_rows),
            strict=True,
        )
    ]
    return "\n".join(["name,number", *lines, ""])


IN_FILES: dict[str, Any] = {"workload": 2, "epsilon": 2.0, "unit": "replace", "max_rows": 1}
FILES = {
    "file-codes": Case(
        "measure",
        {
            "columns": {
                "SEX": {"kind": "categorical", "levels": ["1", "2"], "labels": {"1": "Male", "2": "Female"}, "missing_values": ["N"], "missing": "level"},
                "STATE": {"kind": "categorical", "levels": ["OR", "WA", "else"], "other": "else"},
                "DEGREE": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
                "VETERAN": {"kind": "categorical", "levels": ["no", "yes"]},
                "AGE": {"kind": "integer", "min": 0, "max": 79, "bins": 4, "other": "nearest"},
            }
        },
        {**IN_FILES, "n_rows_public": False},
        people_csv,
        as_file="utf-8",
    ),
    "file-amounts": Case(
        "measure",
        {
            "columns": {
                "PAY": {"kind": "number", "edges": [0, 50, 200, 500], "special": [0], "missing_values": [-9], "missing": "level", "decimals": 2, "unit": "euro"},
                "DAY": {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": 4},
                "CLOCK": {"kind": "time", "min": "00:00", "max": "23:59", "bins": 3, "step": "00:15"},
                "SIZE": {"kind": "integer", "edges": [0, 10, 50, 100], "other": "nearest", "step": 5},
            }
        },
        {**IN_FILES, "delta": 1e-6},
        amounts_csv,
        as_file="utf-8",
    ),
    "file-european": Case(
        "measure",
        {
            "columns": {
                "Stadt": {"kind": "categorical", "levels": ["Köln", "Łódź", "Brno"]},
                "Betrag": {"kind": "number", "edges": [1000, 2000.5, 5000, 10_000], "decimals": 2},
            },
            "format": {"separator": "semicolon", "encoding": "iso-8859-2", "decimal": ",", "thousands": "."},
        },
        {**IN_FILES, "n_rows_public": False},
        european_csv,
        as_file="iso-8859-2",
    ),
    "file-texts": Case(
        "measure",
        {
            "columns": {
                "name": {"kind": "categorical", "levels": ["Smith, Ann", 'the "B"', "plain"]},
                "number": {"kind": "categorical", "levels": ["1", "2", "3"], "missing": "level", "other": "missing"},
            }
        },
        {**IN_FILES, "n_rows_public": False},
        texts_csv,
        as_file="utf-8",
    ),
}  # fmt: skip


# Methods

FEW = (3, 2, 2, 3)
OWN: dict[str, dict[str, Any]] = {
    "Cipher": {"workload": 2, "engine": "table", "sets": 1},
    "FullHistogram": {},
    "MWEM": {"workload": 2, "rounds": 3, "queries": "tables", "passes": 20},
    "PrivBayes": {"beta": 0.3, "theta": 4.0},
    "Fourier": {"workload": 2},
    "MultinomialDirichlet": {"n_rows": 40},
    "Modips": {"sets": 2, "alpha": 0.5},
    "JunctionTree": {"beta": 0.3, "strength": 0.2, "theta": 4.0},
    "Independent": {},
    "Uniform": {},
}


def method(name: str, budget: dict[str, float]) -> Case:
    """A whole method on few cells."""
    options = {**OWN[name], **budget, "unit": "add-remove", "max_rows": 1}
    return Case(name, domain(FEW), options, lambda: coded(FEW, 200))


PURE = {f"method-{name}-pure": method(name, {"epsilon": 3.0}) for name in OWN}
DELTA = {
    f"method-{name}-delta": method(name, {"epsilon": 3.0, "delta": 1e-6})
    for name in OWN
    if name not in ("Independent", "Uniform")
}


# Somebody's tables, engines, rows and models


def noisy(
    shape: Sequence[int],
    tables: Sequence[tuple[Sequence[int], str, float]],
    n_rows: int = 400,
    shift: int = 0,
) -> list[dict[str, Any]]:
    """Published tables of coded rows: columns by number, the law of their noise, and its scale (0 means exact)."""
    rows, rng, published = coded(shape, n_rows, seed=11), np.random.default_rng(12), []
    for axes, law, scale in tables:
        counts = np.zeros([shape[axis] for axis in axes], dtype=int)
        np.add.at(counts, tuple(rows.iloc[:, axis] for axis in axes), 1)
        draw = rng.laplace if law == "laplace" else rng.normal
        noise = np.rint(draw(0.0, scale, counts.shape)).astype(int) if scale else 0
        columns = [f"c{axis}" for axis in axes]
        published.append(
            {
                "columns": columns,
                "counts": (counts + noise - shift).tolist(),
                "mechanism": law,
                "scale": scale,
            }
        )
    return published


def all_pairs(shape: Sequence[int], law: str, scale: float) -> list[tuple[Sequence[int], str, float]]:
    """Every pair of columns, with one law and scale."""
    return [((one, two), law, scale) for two in range(len(shape)) for one in range(two)]


def declared(
    shape: Sequence[int], tables: list[dict[str, Any]], n_rows: int | None = None, **look: Any
) -> Case:
    """A release of somebody's tables."""
    return Case("from_tables", domain(shape), {"tables": tables, "n_rows": n_rows}, look=look)


PUBLISHED = {
    "tables-exact": declared(FEW, noisy(FEW, all_pairs(FEW, "laplace", 0.0)), engine="table"),
    "tables-noisy": declared(FEW, noisy(FEW, all_pairs(FEW, "laplace", 3.0)), engine="table"),
    "tables-mixed": declared(
        FEW, noisy(FEW, [((0, 1, 2), "gaussian", 4.0), ((1, 2), "laplace", 2.0), ((3,), "laplace", 0.0), ((2, 3), "gaussian", 2.5)]),
        400, engine="rows",
    ),
    "tables-paper": declared(FEW, noisy(FEW, all_pairs(FEW, "gaussian", 2.0)), engine="paper"),
    "tables-rows": declared(LARGE, noisy(LARGE, all_pairs(LARGE, "laplace", 3.0)), engine="rows"),
    "tables-noise-dominates": declared(FEW, noisy(FEW, all_pairs(FEW, "laplace", 30.0), 20, shift=40), engine="auto"),
}  # fmt: skip

AGES: dict[str, Any] = {
    "columns": {
        "age": {"kind": "integer", "min": 20, "max": 59, "bins": 4},
        "pay": {"kind": "number", "edges": [0, 10, 40, 100], "decimals": 1},
        "town": {"kind": "categorical", "levels": ["A", "B", "C"]},
        "grade": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
        "ill": {"kind": "categorical", "levels": ["no", "yes"]},
    }
}


def aged(scale: float, **look: Any) -> Case:
    """Pairs of the columns above, with noise."""
    shape, names = (4, 3, 3, 3, 2), list(AGES["columns"])
    tables = [
        {**one, "columns": [names[int(column[1:])] for column in one["columns"]]}
        for one in noisy(shape, all_pairs(shape, "gaussian", scale), 600)
    ]
    return Case("from_tables", AGES, {"tables": tables, "n_rows": None}, look=look)


DRAWN = {
    "rows-given": aged(3.0, rows={"given": {"town": "B", "age": {"min": 30, "max": 49}}}),
    "rows-independent": aged(3.0, rows={"independent": True, "n_rows": 25}),
    "rows-streamed": aged(3.0, rows={"n_rows": 40, "size": 16}),
    "rows-middles": aged(3.0, rows={"values": "middle"}),
}
MODELS = {
    "model-logistic": aged(3.0, solve=False, models=[{"formula": "ill ~ age + town", "family": "logistic", "draws": 100}]),
    "model-linear": aged(4.0, solve=False, models=[{"formula": "pay ~ age + ill", "family": "linear", "draws": 100, "values": {"pay": [5, 20, 60]}}]),
    "model-multinomial": aged(3.0, solve=False, models=[{"formula": "town ~ age", "family": "multinomial", "draws": 100}]),
    "model-ordinal": aged(3.0, solve=False, models=[{"formula": "grade ~ ill + pay", "family": "ordinal", "draws": 100}]),
    "model-combined": aged(3.0, solve=False, models=[{"formula": "ill ~ town", "imputed": 3, "columns": ["town", "ill"]}]),
    "model-estimate": aged(3.0, solve=False, estimates=[["town", "ill"]]),
}  # fmt: skip

CASES: dict[str, Case] = {
    **MEASURED,
    **CHOSEN,
    **SPECIAL,
    **FILES,
    **PURE,
    **DELTA,
    **PUBLISHED,
    **DRAWN,
    **MODELS,
}
