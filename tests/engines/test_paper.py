from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from written_equations import equations

from dpcipher.engines.paper import READINGS, Paper, solve_paper
from dpcipher.engines.ridge import Family, explicit, solve_ridge
from dpcipher.errors import ParameterError, SizeError, WorkloadError
from dpcipher.tables.domain import Axes
from dpcipher.tables.table import margin

GUARDED = READINGS["guarded"]


def random_joint(shape: tuple[int, ...], seed: int, weight: float = 1.0) -> np.ndarray:
    """A joint drawn from a symmetric Dirichlet distribution."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), weight)).reshape(shape)


def counted(
    joint: np.ndarray, sets: list[Axes], total: float = 1000.0
) -> list[tuple[Axes, np.ndarray, float]]:
    """Noiseless counts of some tables."""
    return [(axes, total * margin(joint, tuple(range(joint.ndim)), axes), 1.0) for axes in sets]


def sets_of(n_attrs: int, order: int) -> list[Axes]:
    """All sets of attributes of an order."""
    return list(combinations(range(n_attrs), order))


def tvd(a: np.ndarray, b: np.ndarray) -> float:
    """Total variation distance."""
    return 0.5 * float(np.abs(a - b).sum())


# the ridge


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 10**6), st.floats(1e-3, 1.0))
def test_the_matrix_free_ridge_is_the_explicit_one(sizes: list[int], seed: int, lam: float) -> None:
    """Conjugate gradients, the smaller dense form, and the normal equations written out give the same z."""
    rng = np.random.default_rng(seed)
    rest = rng.dirichlet(np.ones(int(np.prod(sizes)))).reshape(sizes) - 0.01 / np.prod(sizes)
    families = []
    for axis in range(len(sizes)):
        sums = rest.sum(axis=axis, keepdims=True)
        inverse = np.where(rng.random(sums.shape) < 0.9, 1 / np.maximum(sums, 1e-3), 0.0)
        families.append(Family(axis, inverse, rng.random((2, *np.squeeze(inverse, axis).shape))))
    matrix = explicit(rest, families)
    right = np.concatenate([family.right.reshape(2, -1) for family in families], axis=1).T
    expected = np.linalg.inv(matrix.T @ matrix + lam * np.eye(rest.size)) @ matrix.T @ right
    for dense in (True, False):
        z, converged = solve_ridge(rest, families, lam, dense=dense)
        assert converged
        assert np.abs(z.reshape(2, -1).T - expected).max() < 2e-5 * max(1.0, np.abs(expected).max())


# the algorithm


def literal(shape: tuple[int, ...], known: dict[Axes, np.ndarray], lam: float) -> np.ndarray:
    """Algorithm 1 written out over the explicit equations, the last attribute of every set as its target."""
    tables = dict(known)
    for order in range(2, len(shape) + 1):
        for axes in combinations(range(len(shape)), order):
            if axes in tables:
                continue
            sizes = [shape[axis] for axis in axes]
            local = {tuple(axes.index(a) for a in sub): tables[sub] for sub in combinations(axes, order - 1)}
            system = equations(sizes, order - 1, local)
            a = system.matrix
            z = np.linalg.inv(a.T @ a + lam * np.eye(a.shape[1])) @ a.T @ system.right
            rest = tables[axes[:-1]]
            joint = np.zeros(sizes)
            for value, name in zip(z, system.unknowns, strict=True):
                event, condition = name[2:-1].split("|")
                cell = tuple(int(word.split("=")[1]) for word in condition.split(","))
                joint[(*cell, int(event.split("=")[1]))] = value * rest[cell]
            joint[..., -1] = rest - joint[..., :-1].sum(axis=-1)
            tables[axes] = joint
    clipped = np.maximum(tables[tuple(range(len(shape)))], 0)
    return clipped / clipped.sum()


@pytest.mark.parametrize("lam", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize(
    ("shape", "sets"),
    [
        ((2, 2, 2), sets_of(3, 2)),
        ((2, 3, 3), sets_of(3, 2)),
        ((2, 2, 3, 3), sets_of(4, 2)),
        ((2, 2, 3, 3), sets_of(4, 3)),
        ((3, 2, 2, 3), [(0, 1, 2), (2, 3)]),
        ((3, 2, 3), sets_of(3, 1)),
        ((2, 3, 2), [(0, 1), (1, 2)]),
    ],
)
def test_the_engine_is_the_literal_algorithm(shape: tuple[int, ...], sets: list[Axes], lam: float) -> None:
    """On any workload, mixed orders and missing pairs included, the engine equals Algorithm 1 over the explicit equations."""
    joint = random_joint(shape, 11)
    every = tuple(range(len(shape)))
    closure = {sub for axes in sets for k in range(1, len(axes) + 1) for sub in combinations(axes, k)}
    known = {axes: margin(joint, every, axes) for axes in closure}
    solved, fit = solve_paper(shape, counted(joint, sets), Paper(lam=lam, target="last"))
    assert np.abs(solved - literal(shape, known, lam)).max() < 1e-9
    assert (
        set(fit.built)
        == {axes for k in range(2, len(shape) + 1) for axes in combinations(every, k)} - closure
    )
    assert fit.converged


def test_a_full_table_is_the_flat_histogram_bit_for_bit() -> None:
    """Q = {full table}: counts clipped at zero and normalised, not one bit different."""
    counts = np.random.default_rng(5).integers(-20, 60, size=(3, 4, 2)).astype(float)
    solved, fit = solve_paper((3, 4, 2), [((0, 1, 2), counts, 8.0)])
    clipped = np.maximum(counts, 0)
    assert np.array_equal(solved, clipped / clipped.sum())
    assert not fit.built


def test_nothing_left_after_clipping_is_uniform() -> None:
    """A table whose noisy counts are all negative has no answer of its own."""
    solved, fit = solve_paper((2, 3), [((0, 1), np.full((2, 3), -4.0), 8.0)])
    assert np.array_equal(solved, np.full((2, 3), 1 / 6))
    assert fit.negative_mass == 1.0


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ((0.8, 0.2), (0.7, 0.3), 0.232),
        ((0.8, 0.2), (0.9, 0.1), 0.141),
        ((0.2, 0.8), (0.7, 0.3), 0.058),
        ((0.2, 0.8), (0.9, 0.1), 0.035),
    ],
)
def test_one_way_tables_show_the_known_bias(
    first: tuple[float, float], second: tuple[float, float], distance: float
) -> None:
    """Two attributes from one-way tables: z(v) = P(V1=0) P(v) / (sum P² + λ), which is not independence."""
    tables = [((0,), 1000 * np.array(second), 1.0), ((1,), 1000 * np.array(first), 1.0)]
    solved, _ = solve_paper((2, 2), tables, Paper(lam=1e-6, target="last", guard="rows"))
    z = first[0] * np.array(second) / (np.sum(np.square(second)) + 1e-6)
    raw = np.stack([z * second, (1 - z) * second], axis=1)
    assert np.abs(solved - np.maximum(raw, 0) / np.maximum(raw, 0).sum()).max() < 1e-9
    assert tvd(solved, np.outer(second, first)) == pytest.approx(distance, abs=6e-4)


def test_the_seed_chooses_the_targets() -> None:
    """The same seed gives the same answer, some other seed another one; other rules need no seed."""
    tables = counted(random_joint((2, 3, 3, 2), 3), sets_of(4, 2))
    first, again = (
        solve_paper((2, 3, 3, 2), tables, GUARDED, rng=np.random.default_rng(4)) for _ in range(2)
    )
    assert np.array_equal(first[0], again[0])
    assert first[1].built == again[1].built
    others = [
        solve_paper((2, 3, 3, 2), tables, GUARDED, rng=np.random.default_rng(seed))[0] for seed in range(5)
    ]
    assert any(tvd(first[0], other) > 1e-3 for other in others)
    assert set(
        solve_paper((2, 3, 3, 2), tables, Paper(guard="rows", target="largest"))[1].built.values()
    ) == {1, 2}


def test_an_average_is_over_all_targets() -> None:
    """Three attributes: the average answer is the mean of the three unclipped answers."""
    joint = random_joint((2, 2, 2), 7, 20.0)  # near uniform: nothing is clipped
    tables = counted(joint, sets_of(3, 2))
    mean, fit = solve_paper((2, 2, 2), tables, Paper(guard="rows", target="average"))
    singles = []
    for turn in ((1, 2, 0), (0, 2, 1), (0, 1, 2)):  # each attribute in turn is moved to the last place
        moved = counted(joint.transpose(turn), sets_of(3, 2))
        singles.append(
            solve_paper((2, 2, 2), moved, Paper(guard="rows", target="last"))[0].transpose(np.argsort(turn))
        )
    assert fit.negative_mass == pytest.approx(0, abs=1e-12)
    assert np.abs(mean - np.mean(singles, axis=0)).max() < 1e-9


def test_several_covering_tables_are_averaged_by_inverse_variance() -> None:
    """Attribute 1 is in two tables: its one-way table is their average, weighted by the variance of each sum."""
    rng = np.random.default_rng(9)
    first, second = 100 * random_joint((2, 3), 1), 300 * random_joint((3, 4), 2)
    both = [((0, 1), first, 2.0), ((1, 2), second, 5.0)]
    variances = np.array([2.0 * 2 / first.sum() ** 2, 5.0 * 4 / second.sum() ** 2])
    weights = (1 / variances) / (1 / variances).sum()
    middle = weights[0] * first.sum(axis=0) / first.sum() + weights[1] * second.sum(axis=1) / second.sum()
    known = {(0, 1): first / first.sum(), (1, 2): second / second.sum(), (1,): middle}
    known |= {(0,): known[0, 1].sum(axis=1), (2,): known[1, 2].sum(axis=0)}
    solved, _ = solve_paper((2, 3, 4), both, Paper(target="last"))
    assert np.abs(solved - literal((2, 3, 4), known, 0.01)).max() < 1e-9
    exact = [((0, 1), first, 0.0), ((0, 1), first + rng.random((2, 3)), 3.0)]
    assert np.allclose(solve_paper((2, 3), exact)[0], first / first.sum())


@pytest.mark.parametrize("target", ["random", "last", "largest", "average"])
def test_an_attribute_of_one_level_changes_nothing(target: str) -> None:
    """A constant attribute, target or not, leaves the answer for the others a distribution with the same first table."""
    joint = random_joint((2, 3, 1), 4)
    solved, _ = solve_paper(
        (2, 3, 1), counted(joint, sets_of(3, 2)), Paper(guard="rows", target=target, lam=1e-9)
    )
    assert np.abs(solved - joint).max() < 1e-6


# guards


def noisy(shape: tuple[int, ...], seed: int, scale: float) -> list[tuple[Axes, np.ndarray, float]]:
    """All pair tables of a joint, 200 rows, with noise."""
    rng = np.random.default_rng(seed)
    tables = counted(random_joint(shape, seed), sets_of(len(shape), 2), 200.0)
    return [
        (axes, np.round(counts + rng.laplace(0, scale, counts.shape)), 2 * scale**2)
        for axes, counts, _ in tables
    ]


@settings(max_examples=60, deadline=None)
@example(seed=200000, reading=Paper(), scale=20.0)  # a denominator of zero but for rounding
@given(st.integers(0, 10**6), st.sampled_from(list(READINGS.values())), st.sampled_from([1.0, 20.0, 500.0]))
def test_any_noise_gives_a_distribution(seed: int, reading: Paper, scale: float) -> None:
    """Whatever the noise and the reading, what comes out is finite, non-negative and sums to one."""
    solved, fit = solve_paper(
        (2, 3, 2, 3), noisy((2, 3, 2, 3), seed, scale), reading, rng=np.random.default_rng(seed)
    )
    assert np.isfinite(solved).all()
    assert solved.min() >= 0
    assert solved.sum() == pytest.approx(1)
    assert 0 <= fit.negative_mass <= 1


def test_a_guard_leaves_out_bad_equations_only() -> None:
    """An empty level makes 0/0: its equations are left out and counted, and the rest of the answer is as without that level."""
    small = random_joint((2, 2, 2), 3)
    padded = np.zeros((2, 3, 2))
    padded[:, :2] = small
    solved, fit = solve_paper((2, 3, 2), counted(padded, sets_of(3, 2)), Paper(guard="rows", target="last"))
    plain, none = solve_paper((2, 2, 2), counted(small, sets_of(3, 2)), Paper(guard="rows", target="last"))
    assert fit.skipped == 1
    assert none.skipped == 0
    assert np.abs(solved[:, :2] - plain).max() < 1e-9
    assert not solved[:, 2].any()


def test_guards_tame_noise() -> None:
    """With strong noise the guarded answers are closer to the truth than unguarded ones, on the mean of forty tables."""
    error = {}
    for name in ("literal", "guarded", "guarded, clipped inputs", "clipped"):
        answers = [
            (
                random_joint((2, 3, 2, 3), s),
                solve_paper(
                    (2, 3, 2, 3), noisy((2, 3, 2, 3), s, 25.0), READINGS[name], rng=np.random.default_rng(s)
                )[0],
            )
            for s in range(40)
        ]
        error[name] = np.mean(
            [tvd(truth.sum(axis=(2, 3)), solved.sum(axis=(2, 3))) for truth, solved in answers]
        )
    assert error["guarded, clipped inputs"] < error["guarded"] < error["literal"]
    assert error["clipped"] < error["guarded"]


# refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 0.0}, r"lam \(0.0\) must be"),
        ({"lam": float("nan")}, "lam"),
        ({"target": "rnadom"}, "did you mean 'random'"),
        ({"guard": "rosw"}, "did you mean 'rows'"),
        ({"clip": 1}, r"clip \(1\)"),
        ({"lam": "much"}, r"lam \('much'\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    """Each check fires and says what would be right."""
    with pytest.raises(ParameterError, match=message):
        Paper(**options)  # type: ignore[arg-type]


def test_wrong_tables_are_refused() -> None:
    """An attribute in no table, a wrong shape and a negative variance are refused."""
    with pytest.raises(WorkloadError, match="none holds number 1"):
        solve_paper((2, 2), [((0,), np.ones(2), 1.0)])
    with pytest.raises(WorkloadError, match="levels"):
        solve_paper((2, 3), [((0, 1), np.ones((2, 2)), 1.0)])
    with pytest.raises(WorkloadError, match="variance"):
        solve_paper((2, 2), [((0, 1), np.ones((2, 2)), -1.0)])


def test_too_many_subsets_are_refused_before_any_work() -> None:
    """The message names the size and the engines that can."""
    shape = (10,) * 12
    with pytest.raises(SizeError, match=r"4,095 sets.*engine='table'.*engine='rows'"):
        solve_paper(shape, [((axis,), np.ones(10), 1.0) for axis in range(12)])
