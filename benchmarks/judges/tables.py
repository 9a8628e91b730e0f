"""The tables that are judged: what each holds, its public schema, and the rows that methods may learn from."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from common import data_folder
from excerpt import FEATURES, TOP_CODE, excerpt_schema

from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

TESTED = 0.2  # the part of the rows that no method sees, where models are tested on real rows

BANK_EDGES = {
    "age": (18, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 95),
    "balance": (
        -8_019,
        -500,
        0,
        1,
        100,
        250,
        500,
        1_000,
        1_500,
        2_000,
        3_000,
        5_000,
        10_000,
        20_000,
        102_127,
    ),
    "day": (1, 6, 11, 16, 21, 26, 31),
    "duration": (0, 30, 60, 90, 120, 150, 180, 240, 300, 360, 480, 600, 900, 1_200, 1_800, 4_918),
    "campaign": (1, 2, 3, 4, 5, 7, 10, 20, 63),
    "pdays": (-1, 0, 60, 90, 120, 180, 240, 300, 365, 871),
    "previous": (0, 1, 2, 3, 4, 6, 10, 275),
}
BANK_LEVELS = {
    "job": "admin. blue-collar entrepreneur housemaid management retired self-employed services student technician "
    "unemployed unknown",
    "marital": "divorced married single",
    "education": "primary secondary tertiary unknown",
    "default": "no yes",
    "housing": "no yes",
    "loan": "no yes",
    "contact": "cellular telephone unknown",
    "month": "jan feb mar apr may jun jul aug sep oct nov dec",
    "poutcome": "failure other success unknown",
    "y": "no yes",
}


@dataclass(frozen=True)
class Table:
    """A table, its schema, and what is to be predicted on it; `held_out` rows are for testing models alone."""

    name: str
    rows: pd.DataFrame
    schema: Schema
    held_out: pd.DataFrame | None = None
    target: str | None = None
    positive: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # columns whose integer codes are names, not numbers


NIST = ("industry", "demographic", "family", "simple", "all")
PREDICTED = ("adult", "bank", "acs")


@cache
def load(name: str) -> Table:
    """One of the judged tables."""
    loaders: dict[str, Callable[[], Table]] = {"adult": _adult, "bank": _bank, "acs": _acs}
    return loaders[name]() if name in loaders else _excerpt(name)


def _excerpt(name: str) -> Table:
    """A feature set of the Massachusetts excerpt; cells are texts, as N is a code among numbers."""
    folder = data_folder() / "nist_ma2019"
    dictionary = json.loads((folder / "data_dictionary.json").read_text())
    listed = json.loads((folder / "ma2019.json").read_text())["schema"]["INDP"]["values"]
    names = FEATURES[name].split()
    rows = pd.read_csv(folder / "ma2019.csv", dtype=str, keep_default_na=False)[names]
    for numeric in set(names) & {"PINCP", "POVPIP"}:
        rows[numeric] = pd.to_numeric(rows[numeric], errors="coerce")
    return Table(name, rows, excerpt_schema(dictionary, listed, names))


def _acs() -> Table:
    """Whether a person's income is in the upper half, from the excerpt's other columns."""
    whole = _excerpt("acs")
    upper = tuple(str(decile) for decile in range(5, 10))
    return _split(Table("acs", whole.rows, whole.schema, target="PINCP_DECILE", positive=upper))


def _adult() -> Table:
    folder = data_folder() / "adult"
    sizes = json.loads((folder / "adult-domain.json").read_text())
    rows = pd.read_csv(folder / "adult.csv")[list(sizes)]
    named = (
        "workclass",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "native-country",
        "income>50K",
    )
    schema = Schema.from_domain(sizes)
    return _split(Table("adult", rows, schema, target="income>50K", positive=("1",), categories=named))


def _bank() -> Table:
    rows = pd.read_csv(data_folder() / "bank" / "bank-full.csv", keep_default_na=False)
    columns = tuple(
        column(name, "integer", edges=BANK_EDGES[name])
        if name in BANK_EDGES
        else column(name, "categorical", levels=tuple(BANK_LEVELS[name].split()))
        for name in rows
    )
    return _split(Table("bank", rows, Schema(columns), target="y", positive=("yes",)))


def _split(table: Table) -> Table:
    """The same table with a fixed fifth of its rows held out."""
    order = np.random.default_rng(0).permutation(len(table.rows))
    cut = int(len(order) * TESTED)
    held_out, seen = (table.rows.iloc[np.sort(part)] for part in (order[:cut], order[cut:]))
    seen, held_out = seen.reset_index(drop=True), held_out.reset_index(drop=True)
    return replace(table, rows=seen, held_out=held_out)


def write(rows: pd.DataFrame, path: Path) -> None:
    """Rows as the excerpt writes them: N where there is no value, whole numbers without a point."""
    shown = rows.copy()
    for name in set(shown.columns) & set(TOP_CODE):
        shown[name] = shown[name].clip(upper=TOP_CODE[name])
    for name in shown.columns:
        column = shown[name]
        if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
            shown[name] = column.astype("Int64")
    shown.to_csv(path, index=False, na_rep="N")
