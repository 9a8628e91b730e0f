"""The entry point: which engine runs, what it says of itself, and that the engines agree where theory says so."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcipher.engines.rows import Rows
from dpcipher.engines.solve import TABLE_CELLS, pick, solve
from dpcipher.engines.table import FullTable
from dpcipher.errors import DpcipherWarning, ParameterError, ReleaseError, SizeError
from dpcipher.joint.joint import Joint
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

SHAPE = (2, 3, 2, 4)
SCHEMA = Schema.from_domain(dict(zip("abcd", SHAPE, strict=True)))


def tree(seed: int) -> NDArray[np.float64]:
    """A joint whose dependence is a tree: b depends on a, c and d on b."""
    rng = np.random.default_rng(seed)
    root = rng.dirichlet(np.full(2, 4))
    given = [rng.dirichlet(np.full(size, 4), size=levels) for levels, size in ((2, 3), (3, 2), (3, 4))]
    return np.einsum("a,ab,bc,bd->abcd", root, *given)


def release_of(
    joint: NDArray[np.float64], order: int = 2, scale: float = 0.0, total: float = 4_000.0
) -> Release:
    """All tables of an order, exact or declared noisy."""
    tables = {}
    for axes in itertools.combinations(range(4), order):
        drop = tuple(axis for axis in range(4) if axis not in axes)
        tables[tuple("abcd"[axis] for axis in axes)] = joint.sum(axis=drop) * total
    return Release.from_tables(tables, SCHEMA, scale=scale)


def solved(release: Release, engine: str) -> Joint:
    """The one joint of a release."""
    joint = solve(release, engine=engine)
    assert isinstance(joint, Joint)
    return joint


@pytest.mark.parametrize("seed", range(3))
def test_table_and_rows_agree_on_a_tree(seed: int) -> None:
    """Both are exact there: the table to its tolerance, the rows to the grain of their population."""
    joint = tree(seed)
    table = np.asarray(solved(release_of(joint), "table").project(tuple("abcd")))
    rows = solved(release_of(joint), "rows")
    codes = np.indices(SHAPE).reshape(4, -1).T.astype(np.int32)
    chain = np.exp(rows.core.log_prob(codes)).reshape(SHAPE)
    assert np.abs(table - joint).sum() / 2 < 1e-5
    assert np.abs(chain - joint).sum() / 2 < 2e-3


def test_all_three_engines_return_the_full_table_when_it_is_given() -> None:
    """With the whole table measured there is nothing left to build."""
    joint = np.random.default_rng(3).dirichlet(np.ones(48)).reshape(SHAPE)
    release = release_of(joint, order=4)
    assert np.asarray(solved(release, "paper").project(tuple("abcd"))) == pytest.approx(joint, abs=1e-12)
    assert np.asarray(solved(release, "table").project(tuple("abcd"))) == pytest.approx(joint, abs=1e-5)
    assert np.abs(np.asarray(solved(release, "rows").project(tuple("abcd"))) - joint).sum() / 2 < 5e-3


def test_auto_picks_by_size_and_says_why() -> None:
    """Judged on the schema alone."""
    small, large = (
        Schema.from_domain({f"c{place}": size for place in range(n)}) for size, n in ((10, 2), (100, 10))
    )
    assert pick("auto", small) == (FullTable(), f"the full table has 100 cells, at most {TABLE_CELLS:,}")
    assert pick("auto", large)[0] == Rows()
    assert "above" in pick("auto", large)[1]
    assert "100 cells" not in solved(release_of(tree(0)), "auto").health.why
    assert "48 cells" in str(solved(release_of(tree(0)), "auto").health)


def test_an_unknown_or_impossible_engine_is_refused() -> None:
    """Name, value, rule and fix."""
    with pytest.raises(ParameterError, match=r"engine \('tabel'\) must be one of .*; did you mean 'table'"):
        solve(release_of(tree(0)), engine="tabel")
    with pytest.raises(SizeError, match="Use engine='rows'"):
        pick("table", Schema.from_domain({f"c{place}": 1000 for place in range(10)}))


def test_contradictory_exact_tables_are_named_by_their_columns() -> None:
    """Two exact tables that disagree on what they share cannot both be right."""
    tables = {("a", "b"): np.full((2, 3), 10.0), ("b", "c"): np.full((3, 2), 11.0), ("d",): np.full(4, 15.0)}
    release = Release.from_tables(tables, SCHEMA, scale=0)
    with pytest.raises(ReleaseError, match=r"the exact tables on a × b and b × c contradict each other"):
        solve(release)


def test_drowned_data_says_what_would_help_at_the_line_that_asked() -> None:
    """A negative cell is nothing to speak of; a total below zero is, and the warning points at the caller, not inside the library."""
    drowned = release_of(tree(0), scale=5.0, total=-100.0)
    with pytest.warns(
        DpcipherWarning, match=r"the noise is larger than the counts\. A larger epsilon"
    ) as caught:
        solve(drowned)
    assert [one.filename for one in caught] == [__file__]


def test_residuals_are_in_sigmas_and_misfit_is_admitted() -> None:
    """Pairs that no joint has (three binary columns, each the opposite of the others) do not pass for solved."""
    schema = Schema.from_domain({"x": 2, "y": 2, "z": 2})
    opposite = np.array([[0.0, 500.0], [500.0, 0.0]])
    pairs = {("x", "y"): opposite, ("y", "z"): opposite, ("x", "z"): opposite}
    joint = solve(Release.from_tables(pairs, schema, scale=1.0))
    assert isinstance(joint, Joint)
    assert not joint.health.converged
    assert joint.health.worst is not None
    assert joint.health.worst[1] > 10
    assert "not all tables could be met: 3 of" in str(joint.health)
    fine = solved(release_of(tree(1), scale=3.0), "table")
    assert fine.health.converged
    assert max(fine.health.residuals.values()) < 1


def test_one_set_is_a_joint_and_all_sets_are_a_list_whatever_their_number() -> None:
    """With `set` the kind of answer follows from what was asked, not from the release; without it the number of sets decides."""
    single = release_of(tree(0))
    again = [replace(table, set=1) for table in single.measurements]
    double = replace(single, measurements=(*single.measurements, *again))
    for release in (single, double):
        every = solve(release, set="all", engine="table")
        assert [type(joint) for joint in every] == [Joint] * release.sets
        last = solve(release, set=release.sets - 1, engine="table")
        np.testing.assert_array_equal(last.project(tuple("abcd")), every[-1].project(tuple("abcd")))
    assert isinstance(solve(single), Joint)
    assert isinstance(solve(double), list)
    with pytest.raises(ReleaseError, match=r"set \(2\) must be one of the release's sets, 0 to 1"):
        solve(double, set=2)
    with pytest.raises(
        ParameterError, match=r"set \('first'\) must be 'all' or the number of a set; try set=0"
    ):
        solve(double, set="first")
