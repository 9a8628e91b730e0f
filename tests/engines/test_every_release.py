"""Every release has an answer: whatever the shape, the tables and the noise, a solve ends in a distribution, or says that nothing is known."""

import warnings
from itertools import combinations
from math import exp, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcipher.engines.denoise.wide import MOST_SETS, _one_by_one
from dpcipher.engines.solve import solve
from dpcipher.errors import DpcipherWarning, ReleaseError, SolveError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from dpcipher.tables.raking import Goal, rake_stack

TEN = (2,) * 10
GROUPS = range(20)


def noisy_release(
    counts: NDArray[np.int64],
    tables: list[tuple[int, ...]],
    mechanism: Noise,
    seed: int,
    *,
    public: bool = False,
    zeros: tuple[Zero, ...] = (),
) -> Release:
    """Tables of a full table of counts, with seeded noise."""
    plain = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(counts.shape)})
    schema, noise = Schema(plain.columns, zeros=zeros), SeededNoise(seed)
    measured = tuple(
        Measurement(Query(axes), noise.add(margin(counts, axes), mechanism), mechanism) for axes in tables
    )
    n_rows = int(counts.sum()) if public else None
    return Release(schema, measured, Statement(status="NOT PRIVATE", n_rows=n_rows))


def margin(counts: NDArray[np.int64], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """The counts over some axes."""
    return counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))


def random_tables(rng: np.random.Generator, columns: int) -> list[tuple[int, ...]]:
    """All tables of one order, the whole table, or a random mixture of widths that leaves no column out."""
    order = int(rng.integers(0, 6))
    if order:
        return list(combinations(range(columns), min(columns, order)))
    widths = rng.integers(1, min(columns, 7) + 1, size=4)
    found = {tuple(sorted(rng.choice(columns, width, replace=False).tolist())) for width in widths}
    return sorted(found | {(axis,) for axis in range(columns)})


def random_release(seed: int) -> Release:
    """Every tenth is a whole table of ten binary columns; budgets run from far too small to generous, rows from none to many."""
    rng = np.random.default_rng(seed)
    whole = seed % 10 == 0
    shape = TEN if whole else tuple(int(size) for size in rng.integers(1, 5, rng.integers(1, 7)))
    tables = [tuple(range(10))] if whole else random_tables(rng, len(shape))
    law, scale = str(rng.choice(["laplace", "gaussian"])), exp(rng.uniform(-2, 4 if whole else 8))
    n_rows = int(rng.choice([0, 1, 5, 50, 1000, 100_000]))
    counts = rng.multinomial(n_rows, rng.dirichlet(np.full(prod(shape), rng.choice([0.05, 0.4, 3.0]))))
    counts = counts.reshape(shape)
    impossible = min(shape[:2]) > 1 and 1 < len(shape) < 6 and rng.random() < 0.25
    zeros = (Zero({"c0": 0, "c1": 1}),) if impossible else ()
    if impossible:
        counts[0, 1] = 0
    public = bool(rng.random() < 0.4)
    return noisy_release(counts, tables, Noise(law, scale), seed, public=public, zeros=zeros)


def engines(release: Release, seed: int) -> list[str]:
    """Those that apply in a moment: the literal algorithm knows every subset of columns, the rows engine has many rows."""
    few = len(release.schema.attrs) <= 6 or len(release.workload) == 1
    return ["table", *(["paper"] if few else []), *(["rows"] if seed % 16 == 0 else [])]


def solved(release: Release, engine: str) -> Joint:
    """The joint, with a warning exactly where the noisy number of rows is not above zero."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        joint = solve(release, engine=engine)
    assert isinstance(joint, Joint)
    drowned = release.reconciled.total <= 0
    assert [one.category for one in caught] == [DpcipherWarning] * drowned
    assert (joint.health.engine == "uniform") == drowned
    return joint


@pytest.mark.parametrize("group", GROUPS)
def test_random_releases_have_an_answer_in_every_engine(group: int) -> None:
    """Two hundred releases: probabilities are finite and sum to one, and rows can be drawn from them."""
    for seed in range(10 * group, 10 * group + 10):
        release = random_release(seed)
        for engine in engines(release, seed):
            joint = solved(release, engine)
            for axis in range(len(release.schema.attrs)):
                table = joint.core.project((axis,))
                assert table.min() >= 0
                assert table.sum() == pytest.approx(1)
            assert len(joint.sample(5, seed=1)) == 5


def tvd(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The total variation distance."""
    return float(np.abs(one - other).sum() / 2)


@pytest.mark.parametrize("log_epsilon", [-1, 0, 1, 2])
@pytest.mark.parametrize("n_rows", [3_000, 30_000])
def test_a_whole_table_of_ten_columns_is_no_worse_than_clipped(log_epsilon: int, n_rows: int) -> None:
    """The joint is as near to the truth as the noisy cells themselves, clipped and normalised, and far nearer than uniform."""
    ours, clipped, even = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(n_rows, rng.dirichlet(np.full(1024, 0.4))).reshape(TEN)
        release = noisy_release(counts, [tuple(range(10))], Noise("laplace", exp(-log_epsilon)), seed)
        core = solved(release, "table").core
        assert isinstance(core, DenseTable)
        plain = np.maximum(release.measurements[0].values, 0)
        ours.append(tvd(core.probabilities, counts / n_rows))
        clipped.append(tvd(plain / plain.sum(), counts / n_rows))
        even.append(tvd(np.full(TEN, 1 / 1024), counts / n_rows))
    assert np.mean(ours) <= 1.02 * np.mean(clipped) + 1e-4
    assert np.mean(ours) < 0.7 * np.mean(even)


def test_where_noise_dominates_a_whole_table_is_better_than_clipped() -> None:
    """Where noise is all there is, shrinkage beats clipping."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(3_000, rng.dirichlet(np.full(1024, 0.4))).reshape(TEN)
    release = noisy_release(counts, [tuple(range(10))], Noise("laplace", exp(3)), 5)
    plain = np.maximum(release.measurements[0].values, 0)
    core = solved(release, "table").core
    assert isinstance(core, DenseTable)
    assert tvd(core.probabilities, counts / 3_000) < tvd(plain / plain.sum(), counts / 3_000)


def test_a_table_of_very_many_columns_is_shrunk_as_one() -> None:
    """Fourteen columns have 16,384 sets, of which the smaller ones are looked at one by one; without noise nothing changes."""
    orders = _one_by_one(14)
    assert 2 < orders < 14
    assert sum(1 for k in range(orders + 1) for _ in combinations(range(14), k)) <= MOST_SETS
    rng = np.random.default_rng(2)
    counts = rng.multinomial(20_000, rng.dirichlet(np.full(2**14, 0.2))).reshape((2,) * 14)
    exact = noisy_release(counts, [tuple(range(14))], Noise("none", 0), 0)
    core = solved(exact, "table").core
    assert isinstance(core, DenseTable)
    np.testing.assert_allclose(core.probabilities, counts / 20_000, atol=1e-9)
    release = noisy_release(counts, [tuple(range(14))], Noise("laplace", 1.0), 0)
    core = solved(release, "table").core
    assert isinstance(core, DenseTable)
    plain = np.maximum(release.measurements[0].values, 0)
    assert tvd(core.probabilities, counts / 20_000) <= 1.02 * tvd(plain / plain.sum(), counts / 20_000)


def test_exact_tables_inside_a_wide_noisy_one_are_met() -> None:
    """What is known without noise stays so, however the rest is shrunk and made non-negative."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(500, rng.dirichlet(np.full(48, 0.3))).reshape(3, 2, 4, 2)
    release = noisy_release(counts, [(0, 1, 2, 3)], Noise("laplace", 4.0), 1)
    exact = tuple(Measurement(Query(axes), margin(counts, axes), Noise("none", 0)) for axes in ((0, 1), (3,)))
    joint = solved(Release(release.schema, (*release.measurements, *exact), release.statement), "table")
    for axes in ((0, 1), (3,)):
        np.testing.assert_allclose(joint.core.project(axes), margin(counts, axes) / 500, atol=1e-6)


def test_margins_that_contradict_one_another_do_not_overflow() -> None:
    """Three binary columns, each the opposite of the others: thousands of sweeps drive cells to nothing, and no further."""
    opposite = np.array([[0.0, 0.5], [0.5, 0.0]])
    near = 0.999 * opposite + 0.00025
    swept = np.full((1, 2, 2, 2), 0.125)
    rake_stack(swept, [Goal(axes, near[None]) for axes in ((0, 1), (0, 2), (1, 2))], sweeps=20_000)
    assert np.isfinite(swept).all()
    assert swept.sum() == pytest.approx(1)


@pytest.mark.parametrize("engine", ["table", "rows", "paper"])
def test_a_release_without_rows_is_uniform_and_says_why(engine: str) -> None:
    """The note names the noise where there is noise, and the emptiness where there is none; no row is drawn by default."""
    counts = np.zeros((2, 3), dtype=np.int64)
    empty = noisy_release(counts, [(0, 1)], Noise("laplace", 3.0), 0, public=True)
    with pytest.warns(DpcipherWarning, match="it is about no rows"):
        joint = solve(empty, engine=engine)
    assert isinstance(joint, Joint)
    assert joint.n_rows == len(joint.sample()) == 0
    np.testing.assert_allclose(joint.core.project((0, 1)), 1 / 6)
    drowned = Release.from_tables({("c0", "c1"): counts - 100}, empty.schema, scale=30.0)
    with pytest.warns(
        DpcipherWarning, match=r"\(-600\) is not above 0: the noise is larger than the counts\. A larger"
    ):
        joint = solve(drowned, engine=engine)
    assert isinstance(joint, Joint)
    assert not joint.health.converged
    assert "engine uniform: the release's number of rows (-600) is not above 0" in str(joint.health)


def test_an_unknown_joint_respects_structural_zeros() -> None:
    """All rows are equally likely, of those that can be."""
    schema = Schema.from_domain({"a": 2, "b": 3})
    schema = Schema(schema.columns, zeros=(Zero({"a": 1, "b": 2}),))
    with pytest.warns(DpcipherWarning):
        joint = solve(Release.from_tables({("a", "b"): np.full((2, 3), -9.0)}, schema, scale=30.0))
    assert isinstance(joint, Joint)
    expected = np.array([[1, 1, 1], [1, 1, 0]]) / 5
    np.testing.assert_allclose(joint.core.project((0, 1)), expected)


def test_zeros_that_leave_no_cell_are_refused_for_that_reason() -> None:
    """All mass on a level that two zeros together forbid: the error says that it is the zeros."""
    schema = Schema.from_domain({"a": 2, "b": 2})
    zeros = (Zero({"a": 1, "b": 0}), Zero({"a": 1, "b": 1}))
    release = Release.from_tables(
        {("a",): np.array([0.0, 90.0]), ("b",): np.array([50.0, 40.0])},
        Schema(schema.columns, zeros=zeros),
        scale=0,
    )
    with pytest.raises(SolveError, match="structural zeros"):
        solve(release)


def test_counts_beyond_all_rows_are_refused_by_the_release() -> None:
    """A number of rows has at most 62 bits."""
    with pytest.raises(ReleaseError, match=r"table \(a\) must hold finite counts within"):
        Release.from_tables({("a",): np.array([1e200, 0.0])}, Schema.from_domain({"a": 2}), scale=1.0)


@pytest.mark.parametrize("tables", [[(0, 1, 2, 3)], [(0, 1), (1, 2), (2, 3)]], ids=["whole", "pairs"])
def test_tables_that_are_nearly_exact_are_met_and_not_called_contradictory(
    tables: list[tuple[int, ...]],
) -> None:
    """A million rows under next to no noise: what is measured comes back within its noise, and the health has nothing to say."""
    rng = np.random.default_rng(3)
    counts = rng.multinomial(1_000_000, rng.dirichlet(np.full(36, 0.4))).reshape(3, 3, 2, 2)
    joint = solved(noisy_release(counts, tables, Noise("laplace", 0.14), 3), "table")
    assert joint.health.converged
    assert joint.health.notes == ()
    for axes in tables:
        assert tvd(joint.core.project(axes), margin(counts, axes) / 1_000_000) < 1e-5
