"""Coarse counts beside tables: least squares of both, against dense algebra and in what they are for."""

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import ReleaseError
from dpcipher.release import file
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Groups, Query

sys.path.insert(0, str(Path(__file__).parent))
import forge
from brute_gls import BruteGLS, assert_same, reader
from measured import noisy, reconcile, told, told_runs
from measured import runs as counted_runs

SHAPE = (2, 7, 5, 3)
ZEROS = {
    "complete": (),
    "some zeros": (((1, 2), np.random.default_rng(5).random((7, 5)) < 0.2),),
    "an empty level": (((0, 2), np.array([[True] + [False] * 4, [True] + [False] * 4])),),
}
WORKLOADS = {
    "pairs": [((0, 1), 3.0), ((1, 2), 4.0), ((0, 2), 2.0), ((2, 3), 1.0)],
    "a lone column": [((0, 2), 3.0), ((1,), 2.0), ((3,), 1.0)],
    "one table": [((0, 1, 2, 3), 2.0)],
    "triples, and an exact column": [((0, 1, 2), 3.0), ((1, 2, 3), 1.0), ((2,), 0.0)],
}
RUNS = [(1, [0, 2, 5], 0.7), (2, [0, 1], 1.5), (1, [0, 4], 2.0)]  # axis, starts, variance


def observe(rng, workload, runs, zeros=()):
    """A random joint table, its noisy margins and its noisy coarse counts."""
    joint = rng.integers(0, 30, SHAPE).astype(float)
    for axes, mask in zeros:
        joint *= ~mask.reshape([SHAPE[axis] if axis in axes else 1 for axis in range(len(SHAPE))])
    measured, coarse = [], []
    for axes, variance in workload:
        levels = [SHAPE[axis] for axis in axes]
        counts = (reader(SHAPE, axes) @ joint.ravel()).reshape(levels)
        measured.append(noisy(axes, counts + rng.normal(0, variance**0.5, levels), variance))
    for axis, starts, variance in runs:
        exact = np.add.reduceat(reader(SHAPE, (axis,)) @ joint.ravel(), starts)
        counts = exact + rng.normal(0, variance**0.5, len(starts))
        coarse.append(counted_runs(axis, starts, counts, variance, SHAPE[axis]))
    return joint, measured, coarse


def both(measured, coarse, total=None, zeros=()):
    """The reconciled tables, and the independent answer."""
    found = reconcile(SHAPE, [*measured, *coarse], total=total, zeros=zeros)
    return found, BruteGLS(SHAPE, list(map(told, measured)), total, zeros, list(map(told_runs, coarse)))


@pytest.mark.parametrize("zeros", ZEROS.values(), ids=ZEROS)
@pytest.mark.parametrize("public", [False, True], ids=["noisy total", "public total"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_equals_brute_force(workload, public, zeros) -> None:
    """Every table, every variance, a random linear query and the overall χ² equal dense least squares on the joint table."""
    rng = np.random.default_rng(3)
    joint, measured, coarse = observe(rng, workload, RUNS, zeros)
    found, expected = both(measured, coarse, joint.sum() if public else None, zeros)
    assert_same(found, expected, rng)
    assert found.disagreement.overall.dof == expected.dof


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_runs(data) -> None:
    """Random tables and random runs, several of one column too."""
    everything = [axes for k in range(1, 4) for axes in combinations(range(4), k)]
    chosen = data.draw(st.lists(st.sampled_from(everything), min_size=1, max_size=4))
    held = sorted({axis for axes in chosen for axis in axes})
    runs = []
    for _ in range(data.draw(st.integers(1, 3))):
        axis = data.draw(st.sampled_from(held))
        starts = data.draw(st.sets(st.integers(1, SHAPE[axis] - 1), max_size=4))
        runs.append((axis, [0, *sorted(starts)], data.draw(st.sampled_from([0.1, 1.0, 30.0]))))
    zeros = data.draw(st.sampled_from(list(ZEROS.values())))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    _, measured, coarse = observe(rng, [(axes, 2.0) for axes in chosen], runs, zeros)
    found, expected = both(measured, coarse, zeros=zeros)
    for axes in found.closure():
        np.testing.assert_allclose(found.table(axes).ravel(), expected.table(axes), atol=1e-7)
        np.testing.assert_allclose(
            found.variance(axes).ravel(), np.diag(expected.table_covariance(axes)), atol=1e-7
        )


def test_the_mean_variance_of_a_columns_contrasts() -> None:
    """What denoising takes for the noise of a column is the mean over all directions of its contrasts."""
    _, measured, coarse = observe(np.random.default_rng(4), WORKLOADS["pairs"], RUNS)
    found, expected = both(measured, coarse, total=100.0)
    for axes in [(0,), (1,), (2,), (1, 2)]:
        centred = np.eye(1)
        for axis in axes:
            centred = np.kron(centred, np.eye(SHAPE[axis]) - 1 / SHAPE[axis])
        spread = np.trace(centred @ expected.table_covariance(axes)) / np.trace(centred)
        assert found.interaction_variance(axes) == pytest.approx(spread, abs=1e-9)


def test_coarse_counts_narrow_the_sums_that_tables_blur() -> None:
    """Half of a column of 64 levels, from noise of variance 1 on each of them and of 4 on eight runs: far below the 16 of the cells."""
    rng = np.random.default_rng(6)
    truth = rng.integers(50, 90, 64).astype(float)
    half = (np.arange(64) < 32).astype(float)
    gaps = []
    for _ in range(300):
        fine = noisy((0,), truth + rng.normal(0, 1, 64), 1.0)
        runs = truth.reshape(8, 8).sum(axis=1) + rng.normal(0, 2, 8)
        coarse = counted_runs(0, range(0, 64, 8), runs, 4.0, 64)
        found = reconcile((64,), [fine, coarse], total=truth.sum())
        gaps.append(half @ (found.table((0,)) - truth))
    claimed = found.linear_variance((0,), half)
    assert claimed == pytest.approx(1 / (1 / 16 + 1 / 8), rel=1e-6)
    assert np.var(gaps) == pytest.approx(claimed, rel=0.25)


# In a release and its file.

SCHEMA = Schema.from_domain({"age": 5, "sex": 2})
STARTS = (0, 2, 4)
AGE = Measurement(Query((0,), (Groups.runs(STARTS, 5),)), np.array([15, 26, 6]), Noise("laplace", 2.0))


def with_coarse(*coarse: Measurement) -> Release:
    """A release of one table, with coarse counts."""
    table = Measurement(Query((0, 1)), np.arange(10).reshape(5, 2), Noise("laplace", 3.0))
    return Release(SCHEMA, (table, *coarse), Statement("declared"))


def test_a_release_uses_its_coarse_counts() -> None:
    """Estimates are least squares of both: dense algebra says the same."""
    release = with_coarse(AGE)
    tables = [((0, 1), release.measurements[0].values, release.measurements[0].noise.variance)]
    expected = BruteGLS((5, 2), tables, coarse=[(0, STARTS, AGE.values, AGE.noise.variance)])
    np.testing.assert_allclose(release.project("age").values, expected.table((0,)))
    np.testing.assert_allclose(release.std_error("age").values ** 2, np.diag(expected.table_covariance((0,))))


def test_a_card_says_how_many_tables_have_levels_in_groups() -> None:
    """Where there are any."""
    assert "Levels in groups" in with_coarse(AGE)._repr_html_()
    assert "Levels in groups" not in with_coarse()._repr_html_()


def test_files_hold_coarse_counts(tmp_path: Path) -> None:
    """What is written is read; a file may have none."""
    release, plain = with_coarse(AGE), with_coarse()
    again = Release.load(release.save(tmp_path / "coarse.parquet"))
    assert again.checksum == release.checksum != plain.checksum
    coarse = again.measurements[1]
    assert (coarse.query, coarse.noise, coarse.values.tolist()) == (AGE.query, AGE.noise, [15, 26, 6])
    assert len(Release.load(plain.save(tmp_path / "plain.parquet")).measurements) == 1


def test_other_tools_find_runs_by_their_labels(tmp_path: Path) -> None:
    """From the first level to the last; what is not counted in runs keeps the labels of its levels."""
    cells = pd.read_parquet(with_coarse(AGE).save(tmp_path / "r.parquet"))
    runs = cells[cells["table"] == 1]
    assert runs[["level_1", "count"]].values.tolist() == [["0 – 1", 15], ["2 – 3", 26], ["4", 6]]
    assert runs["level_2"].isna().all()
    assert sorted(cells.loc[cells["table"] == 0, "level_1"].unique()) == ["0", "1", "2", "3", "4"]


def test_what_no_estimate_can_use_is_refused() -> None:
    """Groups of another column's levels, columns that are not there, sums over tables."""
    wrong = [
        replace(AGE, query=Query((0,), (Groups.runs(STARTS, 6),))),
        replace(AGE, query=Query((2,))),
        replace(AGE, query=Combination(((Query((0,)), np.ones((3, 5))),))),
    ]
    for one in wrong:
        with pytest.raises(ReleaseError):
            with_coarse(one)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tables": [["agee"]]}, "the schema's attributes"),
        ({"tables": [[]]}, "13 counts for the 11 cells"),
        ({"groups": [[0, 2, 4]]}, "groups .* must be a mapping"),
        ({"groups": {"age": [0, 2, 4]}}, "groups.age .* must be a mapping"),
        ({"groups": {"agee": {"starts": [0, 2, 4]}}}, "the schema's attributes"),
        ({"groups": {"age": {"starts": [0, True, 4]}}}, r"starts\[1\] \(True\) must be a whole number"),
        ({"groups": {"age": {"starts": [0, 2, 5]}}}, "below the number of levels"),
        ({"groups": {"age": {"starts": [1, 2, 4]}}}, "ascend from level 0"),
        ({"groups": {"age": {"starts": [0, 2]}}}, "13 counts for the 12 cells"),
        ({"groups": {"age": {"starts": [0, 1, 4]}}}, "its column level_1"),
        ({"groups": {"age": {"of": [0, 0, 1, 1]}}}, "each of the 5 levels"),
        ({"groups": {"age": {"of": [0, 0, 2, 2, 1]}}}, "in the order of their first levels"),
        ({"groups": {"age": {"starts": [0, 2, 4], "names": ["a"]}}}, "names of groups must be 3"),
        ({"groups": {"age": {"starts": [0, 2, 4], "names": "abc"}}}, "names .* must be a list"),
        ({"groups": {"age": {"starts": [0, 2, 4], "names": ["a", "b", "c"]}}}, "its column level_1"),
        ({"groups": {"age": {"starts": [0, 2, 4], "more": 1}}}, "unknown key 'more'"),
        ({"groups": {"age": None}}, "groups.age .* must be a mapping"),
        ({"contrasts": ["sex"]}, "be among them"),
        ({"centred": True}, "the number of rows beside them"),
        ({"centred": 0}, "centred .* must be true or false"),
        ({"scale": -1}, "scale"),
        ({"set": 1}, "its column set"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_wrong_coarse_counts_in_a_file_are_refused(
    change: dict, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever computes the checksum too still gets no further."""
    path = with_coarse(AGE).save(tmp_path / "r.parquet")
    monkeypatch.setattr(file, "checksum", lambda *_: forge.facts_of(path)["checksum"])
    with pytest.raises(ReleaseError, match=why):
        Release.load(forge.with_change(path, change))
