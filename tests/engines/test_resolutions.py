"""Tables of different resolution in the engines: joints meet them, groups are divided as columns say, and every resolution helps."""

import math
from functools import cache

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.engines.denoise.resolutions import Resolutions
from dpcipher.engines.solve import solve_set
from dpcipher.release.statement import Statement
from dpcipher.schema.grouped import query_of
from dpcipher.tables.measurement import Measurement, Noise

EVERYTHING = (0, 1, 2, 3)
AGES, FIVES, TENS = 60, list(range(0, 60, 5)), list(range(0, 60, 10))
PEOPLE = dc.Schema.from_domain({"age": AGES, "sex": 2, "income": 6})
SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 11},
            "sex": {"kind": "categorical", "levels": ["F", "M"]},
            "income": {"kind": "integer", "min": 0, "max": 5},
            "state": {"kind": "categorical", "levels": list("abcdef")},
        },
        "zeros": [{"impossible": {"age": {"max": 2}, "income": {"min": 3}}}],
    }
)
PARTS = {
    "a column in groups alone": [dc.Grouped(("age", "sex"), age=[0, 4, 8]), ("income",), ("state",)],
    "crossing runs": [
        ("age",),
        dc.Grouped(("age", "sex"), age=[0, 4, 8]),
        dc.Grouped(("age", "sex"), age=[0, 3, 6, 9]),
        ("income",),
        ("state",),
    ],
    "crossing runs alone": [
        dc.Grouped(("age", "sex"), age=[0, 4, 8]),
        dc.Grouped(("age", "income"), age=[0, 3, 6, 9]),
        ("state",),
    ],
    "a pair inside a coarser triple": [
        ("age",),
        dc.Grouped(("age", "sex"), age=[0, 2, 4, 6, 8, 10]),
        dc.Grouped(("age", "sex", "income"), age=[0, 4, 8], income=[0, 3]),
        ("income",),
        dc.Grouped(("state", "sex"), state={"ends": ["a", "f"], "middle": list("bcde")}),
    ],
    "four columns": [
        ("age",),
        dc.Grouped(
            ("age", "sex", "income", "state"), age=[0, 6], income=[0, 3], state=[list("abc"), list("def")]
        ),
    ],
}


def _release(
    tables: list, scale: float, full: np.ndarray, schema: dc.Schema = SCHEMA, seed: int = 0
) -> dc.Release:
    """Tables of these rows, with Gaussian noise or exact."""
    rng, measured = np.random.default_rng(seed), []
    noise = Noise("gaussian", scale) if scale else Noise("none", 0.0)
    for table in tables:
        query = query_of(schema, table)
        counts = query.apply(full, tuple(range(full.ndim)))
        measured.append(Measurement(query, counts + np.rint(rng.normal(0, scale, counts.shape)), noise))
    return dc.Release(schema, tuple(measured), Statement("declared"))


def _full() -> np.ndarray:
    full = np.random.default_rng(1).gamma(0.5, 30, SCHEMA.shape).astype(int)
    full[:3, :, 3:] = 0
    return full


def _gap(joint: dc.Joint, full: np.ndarray, table: tuple[str, ...]) -> float:
    """The total variation distance between a joint and the rows in one table."""
    query, axes = query_of(joint.schema, table), tuple(range(full.ndim))
    own = np.asarray(joint.project(joint.schema.attrs), dtype=float)
    return float(np.abs(query.apply(own / own.sum(), axes) - query.apply(full, axes) / full.sum()).sum() / 2)


@pytest.mark.parametrize("tables", PARTS.values(), ids=PARTS)
def test_the_joint_meets_exact_tables_in_groups(tables: list) -> None:
    """Nested, crossing and named groups, columns in groups alone, structural zeros: the table engine meets every table and keeps to the zeros."""
    full = _full()
    joint = dc.solve(_release(tables, 0.0, full), engine="table")
    assert max(_gap(joint, full, table) for table in tables) < 1e-5
    assert np.asarray(joint.project(SCHEMA.attrs))[:3, :, 3:].sum() == 0
    assert joint.health.converged


@pytest.mark.parametrize("engine", ["table", "rows"])
def test_both_engines_are_as_near_as_the_noise(engine: str) -> None:
    """Noisy tables in groups are met within a few times what their own noise puts between them and the rows."""
    full, tables = _full(), PARTS["a pair inside a coarser triple"]
    joint = solve_set(_release(tables, 8.0, full), 0, engine=engine)
    for table in tables:
        cells = math.prod(query_of(SCHEMA, table).shape(SCHEMA.shape))
        assert _gap(joint, full, table) < 3 * cells * 8.0 / full.sum()
    assert max(joint.health.residuals.values()) < 5


def test_a_group_is_divided_as_its_column_says_and_evenly_where_no_table_does() -> None:
    """Ages of a group by sex are as all ages of that group; incomes, of which only groups were counted, are even inside them. The health says so."""
    rng = np.random.default_rng(2)
    full = rng.integers(1, 40, (12, 2, 6))
    schema = dc.Schema.from_domain({"age": 12, "sex": 2, "income": 6})
    tables = [
        ("age",),
        dc.Grouped(("age", "sex"), age=[0, 4, 8]),
        dc.Grouped(("sex", "income"), income=[0, 2]),
    ]
    joint = dc.solve(_release(tables, 0.0, full, schema))
    by_sex, ages = np.asarray(joint.project(("age", "sex")), dtype=float), full.sum(axis=(1, 2))
    expected = (
        np.add.reduceat(full.sum(axis=2), [0, 4, 8], axis=0).repeat(4, axis=0)
        * (ages / np.add.reduceat(ages, [0, 4, 8]).repeat(4))[:, None]
    )
    np.testing.assert_allclose(by_sex / by_sex.sum(), expected / full.sum(), atol=1e-6)
    incomes = np.asarray(joint.project("income"), dtype=float)
    np.testing.assert_allclose(incomes[2:], incomes[2:].mean(), rtol=1e-6)
    np.testing.assert_allclose(incomes[:2], incomes[:2].mean(), rtol=1e-6)
    assert any(
        "age (3 groups) × sex" in note and "evenly where no table has" in note for note in joint.health.notes
    )
    assert not any(
        "groups" in note
        for note in dc.solve(_release([("age", "sex"), ("income",)], 0.0, full, schema)).health.notes
    )


def test_the_papers_algorithm_takes_refined_tables() -> None:
    """It knows tables of every level alone."""
    full = np.random.default_rng(3).integers(20, 40, (4, 2))
    schema = dc.Schema.from_domain({"age": 4, "sex": 2})
    release = _release([("age",), dc.Grouped(("age", "sex"), age=[0, 2])], 0.0, full, schema)
    joint = dc.solve(release, engine="paper")
    assert _gap(joint, full, dc.Grouped(("age", "sex"), age=[0, 2])) < 1e-6
    assert any("levels in groups" in note for note in joint.health.notes)


@cache
def _people() -> np.ndarray:
    """Rows whose sex and income change steadily with age."""
    ages = np.arange(AGES)
    share = np.exp(-(((ages - 30) / 18.0) ** 2))
    woman = 1 / (1 + np.exp(-(ages - 30) / 8))
    income = np.exp(-0.5 * ((np.arange(6) - ages[:, None] / 12) / 1.2) ** 2)
    joint = (
        share[:, None, None]
        * np.stack([woman, 1 - woman], axis=1)[:, :, None]
        * (income / income.sum(axis=1, keepdims=True))[:, None]
    )
    return np.random.default_rng(0).multinomial(8_000, (joint / joint.sum()).ravel()).reshape(joint.shape)


def _error(tables: list, seed: int) -> float:
    """The mean distance, over ages and both pairs at every level, of three tables with noise of 30 rows on each count of 8,000 rows."""
    joint = dc.solve(_release(tables, 30.0, _people(), PEOPLE, seed), engine="table")
    return float(
        np.mean([_gap(joint, _people(), table) for table in (("age",), ("age", "sex"), ("age", "income"))])
    )


def test_a_fine_column_beside_coarse_pairs_beats_each_resolution_alone() -> None:
    """Age by single year alone, in five-year groups by sex and in tens by income: nearer to the rows than any one of these widths throughout."""
    mixed = [("age",), dc.Grouped(("age", "sex"), age=FIVES), dc.Grouped(("age", "income"), age=TENS)]
    fine = [("age",), ("age", "sex"), ("age", "income")]
    fives, tens = ([dc.Grouped(table, age=width) for table in fine] for width in (FIVES, TENS))
    errors = [np.mean([_error(tables, seed) for seed in range(3)]) for tables in (mixed, fine, fives, tens)]
    assert errors[0] < 0.98 * min(errors[1:])


def test_runs_of_ordered_levels_are_ordered() -> None:
    """Groups that follow one another are smoothed as levels are; what is missing ends the order."""
    groups = dc.Grouped(("age", "sex"), age=[0, 2, 4, 6, 8, 10])
    view = Resolutions(_release([("age",), groups, ("income",), ("state",)], 3.0, _full()).reconciled)
    orders = view.orders({0: np.arange(12), 2: np.arange(6)})
    assert {
        view.columns[place][0]: len(levels) for place, levels in orders.items() if view.columns[place][1]
    } == {0: 6}
    short = view.orders({0: np.arange(11)})  # the last group holds a level without a place in the order
    assert [len(levels) for place, levels in short.items() if view.columns[place][1]] == [5]
