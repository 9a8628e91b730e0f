"""A release of tables of different resolution: arrays, frames and files, and every estimate against dense least squares."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import DpcipherError, ReleaseError, WorkloadError
from dpcipher.release.statement import Statement
from dpcipher.schema.grouped import query_of, table_of
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Groups, Query
from release.brute_measurements import BruteLeastSquares

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 9, "missing": "level"},
            "state": {"kind": "categorical", "levels": ["NY", "ME", "TX", "CA"]},
            "income": {"kind": "number", "edges": [0, 10, 50, 100, 500]},
            "sex": {"kind": "categorical", "levels": ["F", "M"]},
        }
    }
)
MISSING = SCHEMA.labels("age")[-1]
AGES = [0, 5, MISSING]
NORTH = {"north": ["NY", "ME"], "south": ["CA", "TX"]}
TABLES = [
    ("age",),
    dc.Grouped(("age", "sex"), age=AGES),
    dc.Grouped(("age", "income"), age=[[0, 1, 2], [3, 4, 5, 6, 7, 8, 9], [MISSING]], income=[0, 50]),
    dc.Grouped(("state", "income"), state=NORTH),
    dc.Grouped(("state", "sex"), state=[["NY", "TX"], ["ME"], ["CA"]]),
]


def _joint(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 20, SCHEMA.shape)


def _release(tables: list = TABLES, *, exact: int = -1, seed: int = 0) -> dc.Release:
    """Noisy tables of random rows; one of them may be exact."""
    rng, everything = np.random.default_rng(seed), tuple(range(4))
    measured = []
    for number, table in enumerate(tables):
        query = query_of(SCHEMA, table)
        noise = Noise("none", 0.0) if number == exact else Noise("gaussian", 2.0 + number)
        counts = query.apply(_joint(seed), everything)
        measured.append(
            Measurement(query, counts + np.rint(noise.scale * rng.normal(size=counts.shape)), noise)
        )
    return dc.Release(SCHEMA, tuple(measured), Statement("declared"))


def _brute(release: dc.Release) -> BruteLeastSquares:
    return BruteLeastSquares(SCHEMA.domain, release.measurements)


@pytest.mark.parametrize("exact", [-1, 0, 1])
def test_every_table_that_was_measured_is_estimated_as_dense_least_squares_says(exact: int) -> None:
    """Counts, standard errors, intervals and questions, for every measured table and every set of columns inside one."""
    release = _release(exact=exact)
    brute, rng = _brute(release), np.random.default_rng(1)
    inside = [
        part for table in TABLES for k in range(1, len(table) + 1) for part in combinations(tuple(table), k)
    ]
    for table in [*release.workload, *inside]:
        asked = release.project(table)
        query = (
            query_of(SCHEMA, table) if isinstance(table, dc.Grouped) else release.finest(SCHEMA.axes(table))
        )
        assert query is not None
        expected, covariance = brute.table(query), brute.table_covariance(query)
        np.testing.assert_allclose(asked.values.ravel(), expected, atol=1e-9 * (1 + np.abs(expected).max()))
        np.testing.assert_allclose(
            release.std_error(table).values.ravel() ** 2, np.diag(covariance), atol=1e-9, rtol=1e-9
        )
        weights = rng.normal(size=asked.shape)
        answer = release.query(table, weights)
        assert answer.estimate == pytest.approx(weights.ravel() @ expected, rel=1e-9, abs=1e-7)
        assert answer.std_error**2 == pytest.approx(
            weights.ravel() @ covariance @ weights.ravel(), rel=1e-9, abs=1e-8
        )
        middle = np.asarray(release.interval(table).estimate.values).ravel()
        np.testing.assert_allclose(middle, expected, atol=1e-9 * (1 + np.abs(expected).max()))


def test_a_table_is_as_fine_as_one_measured_table_and_labelled_by_its_groups() -> None:
    """Columns that were measured in groups have these as levels; a column alone has every level it was measured with."""
    release = _release()
    assert release.project(("sex", "age")).levels == (("F", "M"), ("0 – 4", "5 – 9", MISSING))
    assert release.project("age").shape == (11,)
    assert release.project(("income", "state")).levels[1] == ("north", "south")
    assert release.project("state").levels == (("NY, TX", "ME", "CA"),)  # the finest of the two
    frame = release.project(dc.Grouped(("sex", "age"), age=[0, MISSING])).frame
    assert frame["age"].tolist() == ["0 – 9", MISSING] * 2
    assert dc.Release(SCHEMA, release.measurements, release.statement).workload == release.workload
    assert release.workload[1] == dc.Grouped(("sex", "age"), age=["0", "5", MISSING])
    assert table_of(SCHEMA, query_of(SCHEMA, TABLES[3])) == dc.Grouped(
        ("income", "state"), state={"north": ["NY", "ME"], "south": ["TX", "CA"]}
    )


def test_coarser_tables_can_be_asked_for_and_finer_ones_cannot() -> None:
    """Sums of measured groups are estimates like any other; what cuts through a group is refused, with what was measured."""
    release = _release()
    brute = _brute(release)
    coarse = dc.Grouped(("age", "income"), age=[[0, 1, 2, MISSING], range(3, 10)], income=[0, 50])
    expected, covariance = (
        brute.table(query_of(SCHEMA, coarse)),
        brute.table_covariance(query_of(SCHEMA, coarse)),
    )
    np.testing.assert_allclose(release.project(coarse).values.ravel(), expected, rtol=1e-9)
    np.testing.assert_allclose(release.std_error(coarse).values.ravel() ** 2, np.diag(covariance), rtol=1e-9)
    with pytest.raises(WorkloadError, match=r"as coarse as .*age=\['0', '5', "):
        release.project(dc.Grouped(("age", "sex"), age=[0, 3, MISSING]))
    with pytest.raises(WorkloadError, match="no measured table holds them together"):
        release.project(("age", "state"))


def test_conditions_keep_groups_whole() -> None:
    """A condition that meets whole groups counts them; one that cuts through a group is refused by its label."""
    release = _release()
    whole = release.query(("age", "sex"), where={"age": {"min": 5}, "sex": "M"})
    assert whole.estimate == pytest.approx(float(release.project(("age", "sex"))[1, 1]))
    with pytest.raises(WorkloadError, match="'5 – 9' whole"):
        release.query(("age", "sex"), where={"age": {"min": 6}})


def _published(groups: dict | None, table: object, **more: object) -> dc.Release:
    counts = np.ones(4), np.ones(4), np.ones(2)
    others = dict(zip(("state", "income", "sex"), counts, strict=True))
    groups = None if groups is None else {("age", "sex"): groups}
    return dc.Release.from_tables({("age", "sex"): table, **others}, SCHEMA, groups=groups, scale=2.0, **more)


def test_arrays_frames_and_files_say_the_same(tmp_path: Path) -> None:
    """First levels, lists and names; groups by the order they are given in, or by the labels of a frame or a file."""
    counts = np.arange(6).reshape(3, 2)
    runs = _published({"age": AGES}, counts)
    lists = _published({"age": [[MISSING], [5, 6, 7, 8, 9], [0, 1, 2, 3, 4]]}, counts[::-1])
    named = _published(
        {"age": {"old": range(5, 10), "unknown": [MISSING], "young": range(5)}}, counts[[1, 2, 0]]
    )
    cells = {"sex": ["F", "M"] * 3, "count": counts.ravel()}
    frame = pd.DataFrame({"age": np.repeat(["0–4", "5 or more", MISSING], 2), **cells})
    path = tmp_path / "ages.csv"
    frame.assign(age=np.repeat(["under 5", "5 to 9", MISSING], 2)).sample(frac=1, random_state=1).to_csv(
        path, index=False
    )
    words = pd.DataFrame({"age": np.repeat(["young", "old", "unknown"], 2), **cells})
    said = {"old": range(5, 10), "unknown": [MISSING], "young": range(5)}
    others = [
        lists,
        named,
        _published(None, frame),
        _published(None, path),
        _published({"age": said}, words),
        _published({"age": AGES}, frame),
    ]
    for other in others:
        assert other.measurements[0].query == runs.measurements[0].query
        np.testing.assert_array_equal(other.measurements[0].values, runs.measurements[0].values)
    assert named.project(("age", "sex")).levels[0] == ("young", "old", "unknown")


def test_the_labels_that_pages_write_are_read(tmp_path: Path) -> None:
    """A frame of a release is read back as the table that it is, whatever the kind of the columns."""
    release = _release()
    for table in release.workload:
        query = query_of(SCHEMA, table)
        groups = {}
        if query.axes == (1, 2):  # names of groups say nothing of their levels
            groups = {tuple(table): {"state": NORTH}}
        others = {
            (name,): np.ones(size)
            for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)
            if (name,) != tuple(table)
        }
        frame = release.project(table).to_frame("count")
        again = dc.Release.from_tables({tuple(table): frame, **others}, SCHEMA, scale=1.0, groups=groups)
        assert again.measurements[0].query == query
        np.testing.assert_allclose(again.measurements[0].values, release.project(table).values)


def test_a_table_may_be_named_by_its_groups_and_stand_beside_finer_ones() -> None:
    """`dc.Grouped` is the name of a table, so that the same columns may be there at two resolutions."""
    fine, coarse = ("age", "sex"), dc.Grouped(("age", "sex"), age=AGES)
    others = {"state": np.ones(4), "income": np.ones(4)}
    both = {fine: np.ones((11, 2)), coarse: np.ones((3, 2)), **others}
    release = dc.Release.from_tables(
        both, SCHEMA, scale={fine: 3.0, coarse: 1.0, "state": 1.0, "income": 1.0}
    )
    assert [one.noise.scale for one in release.measurements[:2]] == [3.0, 1.0]
    with pytest.raises(ReleaseError, match="twice"):
        dc.Release.from_tables(
            {coarse: np.ones((3, 2)), ("sex", "age"): np.ones((2, 3)), **others},
            SCHEMA,
            scale=1.0,
            groups={("sex", "age"): {"age": AGES}},
        )


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({"age": [0, 5]}, "must not run on into"),
        ({"age": [5, MISSING]}, "ascending, from '0'"),
        ({"age": [0, 7, 5, MISSING]}, "ascending"),
        ({"age": [0, 44, MISSING]}, "44, which is no level"),
        ({"age": [[0, 1], [2, 3]]}, "are in none"),
        ({"age": [[0, 1, 2, 3, 4, 5], range(5, 10), [MISSING]]}, "'5' is there twice"),
        ({"age": [[*range(10), MISSING], []]}, "one is empty"),
        ({"age": [[*range(10), MISSING]]}, "two or more"),
        ({"age": [0, [5, 6]]}, "a list for every group"),
        ({"age": "0,5"}, "must be a list or a mapping"),
        ({"aeg": [0, 5]}, "did you mean 'age'"),
        ({"age": AGES[:2], "sex": ["F", "M"]}, "must not run on"),
        ([0, 5], "said once, by column"),
    ],
)
def test_groups_that_are_none_are_refused_by_name_value_and_rule(groups: dict, why: str) -> None:
    """Every level once, runs from the first level, nothing that is no level."""
    with pytest.raises(DpcipherError, match=why):
        _published(groups, np.ones((3, 2)))


def test_groups_inside_bins_and_tables_that_are_not_there_are_refused() -> None:
    """Runs begin where bins do; groups are those of a table that is given; labels are of levels."""
    rest = {"age": np.ones(11), "state": np.ones(4), "sex": np.ones(2)}
    with pytest.raises(WorkloadError, match=r"inside its bin \[10, 50\); begin at 10"):
        dc.Release.from_tables(
            {"income": np.ones(2), **rest}, SCHEMA, scale=1.0, groups={"income": {"income": [0, 20]}}
        )
    with pytest.raises(ReleaseError, match="not a table"):
        dc.Release.from_tables(
            {"income": np.ones(4), **rest}, SCHEMA, scale=1.0, groups={("age", "sex"): {"age": AGES}}
        )
    with pytest.raises(
        ReleaseError, match=r"shape \(4,\) must have shape \(2,\), as the schema and its groups say"
    ):
        dc.Release.from_tables(
            {"income": np.ones(4), **rest}, SCHEMA, scale=1.0, groups={"income": {"income": [0, 50]}}
        )
    frame = pd.DataFrame({"income": ["[0, 20)", "[20, 500]"], "count": [1, 2]})
    with pytest.raises(ReleaseError, match=r"'\[0, 20\)'.* must be one of the schema's"):
        dc.Release.from_tables({"income": frame, **rest}, SCHEMA, scale=1.0)
    halves = frame.assign(income=["[0, 50)", "[10, 500]"])
    with pytest.raises(ReleaseError, match="there twice"):
        dc.Release.from_tables({"income": halves, **rest}, SCHEMA, scale=1.0)


def test_files_keep_groups_names_and_contrasts(tmp_path: Path) -> None:
    """What is saved is loaded, and other tools find the labels of the groups."""
    total = Measurement(Query(()), np.asarray(500), Noise("gaussian", 2.0))
    sexes = Measurement(Query((3,), (), (3,)), np.array([30, -30]), Noise("gaussian", 3.0))
    release = dc.Release(SCHEMA, (*_release().measurements, total, sexes), Statement("declared"))
    path = release.save(tmp_path / "r.parquet")
    again = dc.Release.load(path)
    assert again.checksum == release.checksum
    assert again.workload == release.workload
    np.testing.assert_array_equal(
        again.project(("state", "income")).values, release.project(("state", "income")).values
    )
    assert again.project(("state", "income")).levels[0] == ("north", "south")
    cells = pd.read_parquet(path)
    assert cells.loc[cells["table"] == 1, "level_1"].unique().tolist() == ["0 – 4", "5 – 9", MISSING]


def test_contrasts_are_measurements_of_a_release() -> None:
    """How the cells of a column differ, beside the number of rows and the columns' own contrasts, gives counts as dense least squares does."""
    rng, everything = np.random.default_rng(4), tuple(range(4))
    runs = Groups.runs([0, 5, 10], 11)
    queries = [
        Query(()),
        *(Query((axis,), (), (axis,)) for axis in range(4)),
        Query((0, 3), (runs, None), (0, 3)),
        Query((1, 2), (), (2,)),
    ]
    measured = []
    for query in queries:
        counts = query.apply(_joint(), everything)
        measured.append(
            Measurement(query, counts + np.rint(3 * rng.normal(size=counts.shape)), Noise("gaussian", 3.0))
        )
    release = dc.Release(SCHEMA, tuple(measured), Statement("declared"))
    brute = BruteLeastSquares(SCHEMA.domain, measured)
    for query in (Query((0,)), Query((0, 3), (runs, None)), Query((1, 2))):
        table = table_of(SCHEMA, query)
        np.testing.assert_allclose(
            release.project(table).values.ravel(), brute.table(query), rtol=1e-9, atol=1e-8
        )
        variance = np.asarray(release.std_error(table).values).ravel() ** 2
        np.testing.assert_allclose(variance, np.diag(brute.table_covariance(query)), rtol=1e-8)
    assert release.workload[-1] == ("state", "income")


def test_what_no_release_holds_is_refused() -> None:
    """Groups of another number of levels; sums over tables; a column in no table; contrasts beside structural zeros."""
    plain = _release().measurements
    wrong = [
        Measurement(Query((0,), (Groups.runs([0, 2], 5),)), np.ones(2), Noise("laplace", 1.0)),
        Measurement(Combination(((Query((0,)), np.ones((3, 11))),)), np.ones(3), Noise("laplace", 1.0)),
        Measurement(Query((0,), (Groups.runs([0, 2], 11),)), np.ones(3), Noise("laplace", 1.0)),
    ]
    for one in wrong:
        with pytest.raises(ReleaseError):
            dc.Release(SCHEMA, (*plain, one), Statement("declared"))
    with pytest.raises(ReleaseError, match="omit state"):
        dc.Release(SCHEMA, plain[:3], Statement("declared"))


def test_a_published_table_in_groups_needs_no_table_of_every_level() -> None:
    """A column that was measured in groups alone counts as measured."""
    release = _release(
        [dc.Grouped(("age", "sex"), age=AGES), ("state",), dc.Grouped("income", income=[0, 50])]
    )
    assert release.project("age").shape == (3,)
    assert release.project("income").levels == (("[0, 50)", "[50, 500]"),)
