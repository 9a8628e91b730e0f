"""The pieces of the sampler: the noise law, the diagnostics and the chains, each against an answer known otherwise."""

import numpy as np
import pytest
from scipy.integrate import quad

import dpcipher as dc
from dpcipher.posteriors import prior, sampler
from dpcipher.posteriors.diagnostics import effective_size, energy_share, r_hat
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.hamiltonian import Chains, Run, Whitening
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.noise_law import NoiseLaw
from dpcipher.posteriors.sampler import SamplerReport, _stretched
from dpcipher.posteriors.targets import PopulationTarget, Tables, TableTarget
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Noise


@pytest.mark.parametrize("summed", [1, 2, 5, 40])
def test_the_noise_law_has_the_moments_of_the_sum(summed: int) -> None:
    """By quadrature: variance and excess kurtosis are those of a sum of Laplace noise (a single one a little less sharp)."""
    cell = Noise("laplace", 10.0).variance
    law = NoiseLaw.of("laplace", cell, np.array([summed]))
    (alpha,), (delta,) = law.hyperbolic
    edge = 30 * float(law.variance[0]) ** 0.5

    def moment(power: int) -> float:
        return float(
            quad(
                lambda x: x**power * np.exp(-alpha * (np.sqrt(delta**2 + x**2) - delta)),
                -edge,
                edge,
                points=[0],
                limit=400,
            )[0]
        )

    variance = moment(2) / moment(0)
    assert variance == pytest.approx(cell * summed, rel=1e-3)
    excess = moment(4) / moment(0) / variance**2 - 3
    assert excess == pytest.approx(3 / summed, abs=0.35 if summed == 1 else 1e-3)


def test_means_of_laws_add_their_cumulants() -> None:
    """The mean of four equal laws has a quarter of the variance and of the excess kurtosis."""
    one = NoiseLaw.of("laplace", 200.0, np.array([3]))
    mean = NoiseLaw.mean([one] * 4)
    assert (*mean.variance, *mean.excess) == pytest.approx((*one.variance / 4, *one.excess / 4))


def autoregressive(rho: float, iterations: int, chains: int) -> Floats:
    """Chains whose autocorrelation is rho^lag, standard normal at every time."""
    rng = np.random.default_rng(1)
    values = [rng.normal(size=chains)]
    for _ in range(iterations - 1):
        values.append(rho * values[-1] + (1 - rho**2) ** 0.5 * rng.normal(size=chains))
    return np.array(values)[..., None]


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_effective_size_of_autoregressive_chains(rho: float) -> None:
    """The effective size of an autoregression of order 1 is n(1 - rho)/(1 + rho)."""
    values = autoregressive(rho, 2_000, 8)
    assert float(effective_size(values)[0]) == pytest.approx(16_000 * (1 - rho) / (1 + rho), rel=0.2)


def test_r_hat_sees_a_chain_elsewhere_and_a_chain_of_another_spread() -> None:
    """Near 1 for chains of one law; above the limit for one chain that is shifted, or narrower."""
    values = autoregressive(0.3, 400, 8)
    assert float(r_hat(values)[0]) < 1.01
    shifted, narrow = values.copy(), values.copy()
    shifted[:, 0] += 2
    narrow[:, :3] *= 0.2
    assert float(r_hat(shifted)[0]) > 1.05
    assert float(r_hat(narrow)[0]) > 1.05


def test_energy_share_is_small_where_the_energy_crawls() -> None:
    """Independent energies have a share near 2; energies that move slowly have nearly none."""
    assert energy_share(autoregressive(0.0, 500, 4)[..., 0]) > 1.5
    assert energy_share(autoregressive(0.99, 500, 4)[..., 0]) < 0.1


def test_chains_find_a_correlated_normal() -> None:
    """Mean and covariance of a normal law that the whitening does not know."""
    covariance = np.array([[4.0, 1.5], [1.5, 1.0]])
    precision, centre = np.linalg.inv(covariance), np.array([3.0, -1.0])

    def target(points: Floats) -> tuple[Floats, Floats]:
        slope = (points - centre) @ precision
        return 0.5 * ((points - centre) * slope).sum(axis=1), slope

    rng = np.random.default_rng(0)
    moving = Chains(
        target, Whitening(np.zeros(2), np.eye(2)), rng.normal(size=(16, 2)), rng, step=np.array([0.3])
    )
    moving.adapt(100)
    run = moving.run(400)
    points = run.points.reshape(-1, 2)
    assert points.mean(axis=0) == pytest.approx(centre, abs=0.15)
    assert np.cov(points.T) == pytest.approx(covariance, abs=0.3)
    assert run.acceptance > 0.6


@pytest.mark.parametrize("n_rows", [None, 90])
def test_gradients_are_those_of_the_potentials(n_rows: int | None) -> None:
    """Central differences, for tables of mixed order, with a structural zero, with and without a known number of rows."""
    schema = dc.Schema.from_domain({"a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(3)
    tables = {
        ("a", "b"): rng.integers(0, 40, (2, 3)),
        ("b", "c"): rng.integers(0, 40, (3, 2)),
        ("c",): np.array([60, 30]),
    }
    release = dc.Release.from_tables(
        tables, schema, scale={("a", "b"): 4.0, ("b", "c"): 9.0, ("c",): 2.0}, n_rows=n_rows
    )
    evidence = gather(release, (0, 1, 2))
    possible = np.ones((2, 3, 2), dtype=bool)
    possible[0, 1] = False
    model = LogLinear(evidence.levels, tuple(evidence.measured), possible)
    target = TableTarget(model, evidence.n_rows, Tables(model, evidence), np.eye(model.size))
    point = rng.normal(size=(1, target.size)) * 0.3
    if n_rows is None:
        point[0, -1] = np.log(80.0)
    assert target(point)[1][0] == pytest.approx(differences(target, point), rel=1e-4, abs=1e-5)
    whole = PopulationTarget(
        model, model.pull(rng.random((1, 12)) * possible.reshape(1, -1)) * 10, np.array([50.0])
    )
    point = rng.normal(size=(1, model.size))
    assert whole(point)[1][0] == pytest.approx(differences(whole, point), rel=1e-4, abs=1e-5)


def differences(target: TableTarget | PopulationTarget, point: Floats) -> Floats:
    """The gradient by central differences."""
    steps = 1e-5 * np.eye(point.shape[1])
    return np.array([(target(point + step)[0] - target(point - step)[0])[0] / 2e-5 for step in steps])


@pytest.mark.parametrize(
    ("fact", "value", "says"),
    [
        ("r_hat", 1.2, "R-hat"),
        ("ess", 20.0, "independent"),
        ("energy", 0.1, "energy"),
        ("divergences", 500, "diverged"),
        ("acceptance", 0.1, "accepted"),
    ],
)
def test_every_fault_is_named(fact: str, value: float, says: str) -> None:
    """A report with one bad fact names it, and only it."""
    facts = {
        "chains": 8,
        "iterations": 100,
        "acceptance": 0.8,
        "divergences": 0,
        "r_hat": 1.01,
        "ess": 400.0,
        "energy": 0.8,
    }
    assert SamplerReport(**facts).faults == ()  # type: ignore[arg-type]
    faults = SamplerReport(**{**facts, fact: value}).faults  # type: ignore[arg-type]
    assert len(faults) == 1
    assert says in faults[0]


def test_coordinates_stretch_along_the_direction_that_is_wider_than_white() -> None:
    """Points with one direction of nine times the variance are white in the new coordinates, and the way there leads back."""
    rng, d = np.random.default_rng(4), 30
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    white = rng.normal(size=(600, d))
    points = white + 2 * np.outer(white @ direction, direction) + 5
    stretched = _stretched(Whitening(np.zeros(d), np.eye(d)), points)
    spread = np.linalg.eigvalsh(np.cov(stretched.white(points).T))
    assert np.linalg.eigvalsh(np.cov(points.T)).max() > 6
    assert spread.max() < 2
    assert stretched.point(stretched.white(points)) == pytest.approx(points)


class Misjudged:
    """A normal law that is six times as wide as its curvature says in a quarter of its directions."""

    size = 120
    scale = np.where(np.arange(size) % 4 == 0, 6.0, 1.0)

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential and its gradient."""
        slopes = points / self.scale**2
        return 0.5 * (points * slopes).sum(axis=1), slopes

    def whitening(self, point: Floats) -> Whitening:
        """As if it were standard normal."""
        return Whitening(point, np.eye(self.size))


def test_chains_that_fail_learn_from_where_they_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lesson makes do with fewer runs, and the draws have the variances of the law."""
    runs: list[int] = []
    run = Chains.run

    def counted(self: Chains, iterations: int) -> Run:
        runs.append(iterations)
        return run(self, iterations)

    monkeypatch.setattr(Chains, "run", counted)
    drawn = sampler.sample(
        Misjudged(), np.zeros(Misjudged.size), draws=400, chains=8, rng=np.random.default_rng(1)
    )
    assert len(runs) == 2
    ratio = drawn.points.std(axis=0) / Misjudged.scale
    assert abs(ratio.mean() - 1) < 0.05
    assert ratio.min() > 0.7
    monkeypatch.setattr(sampler, "_with_lesson", lambda moving, _: moving)
    runs.clear()
    sampler.sample(Misjudged(), np.zeros(Misjudged.size), draws=400, chains=8, rng=np.random.default_rng(1))
    assert len(runs) > 3


def test_chains_that_go_further_take_more_and_shorter_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where steps are short, usual trajectories are cut off at 64 of them; long ones aim at more acceptance."""
    leaps: list[int] = []
    leap = Chains._leap

    def counted(self: Chains, momentum: Floats, step: Floats, number: int) -> tuple[Floats, ...]:
        leaps.append(number)
        return leap(self, momentum, step, number)

    monkeypatch.setattr(Chains, "_leap", counted)
    target = Misjudged()
    start = np.random.default_rng(2).normal(size=(4, target.size)) * target.scale
    usual = Chains(
        target,
        target.whitening(np.zeros(target.size)),
        start,
        np.random.default_rng(1),
        step=np.array([0.01]),
    )
    usual.move()
    usual.further().move()
    assert leaps == [64, 256]
    assert usual.further().stepping.wanted > usual.stepping.wanted
    assert usual.further().within(usual.whitening).stepping.wanted == usual.further().stepping.wanted


@pytest.mark.parametrize("by_cells", [True, False])
def test_tables_of_cells_are_their_margins(by_cells: bool) -> None:
    """By coefficients and cell by cell, the sums of a stack of cells are NumPy's own sums, and `back` is the transpose."""
    rng, shape = np.random.default_rng(5), (2, 3, 4)
    schema = dc.Schema.from_domain({"a": 2, "b": 3, "c": 4})
    release = dc.Release.from_tables(
        {("a", "b"): np.ones((2, 3)), ("b", "c"): np.ones((3, 4)), ("c",): np.ones(4)}, schema, scale=3.0
    )
    evidence = gather(release, (0, 1, 2))
    model = LogLinear(evidence.levels, tuple(evidence.measured), np.ones(shape, dtype=bool))
    tables, cells = Tables(model, evidence), rng.random((5, 24))
    axes = [tuple(1 + axis for axis in range(3) if axis not in table.axes) for table in evidence.tables]
    sums = np.concatenate([cells.reshape(5, *shape).sum(axis=out).reshape(5, -1) for out in axes], axis=1)
    tables.__dict__["_by_cells"] = by_cells
    assert tables.sums(cells) == pytest.approx(sums)
    slopes = rng.normal(size=sums.shape)
    assert (tables.back(slopes) * cells).sum() == pytest.approx((slopes * sums).sum())


@pytest.mark.parametrize("order", [True, False])
def test_a_trend_over_ten_levels_is_not_shrunk_away(order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlated columns of ten and four levels, noise of a third of a typical cell: the covariance of the codes is hit without bias, unless a planted prior ignores the order."""
    if not order:
        monkeypatch.setattr(prior, "LEAST_ORDERED", 1_000)
    rng = np.random.default_rng(6)
    first = rng.normal(size=400_000)
    second = 0.6 * first + 0.8 * rng.normal(size=400_000)
    codes = [np.searchsorted(np.quantile(v, np.arange(1, k) / k), v) for v, k in ((first, 10), (second, 4))]
    chances = np.bincount(codes[0] * 4 + codes[1], minlength=40).reshape(10, 4) / 400_000
    schema, mechanism = dc.Schema.from_domain({"a": 10, "b": 4}), Noise("laplace", 27.0)

    def covariance(joint: Floats) -> float:
        return float(
            np.arange(10) @ joint @ np.arange(4)
            - (np.arange(10) @ joint.sum(1)) * (np.arange(4) @ joint.sum(0))
        )

    gaps = []
    for seed in range(6):
        counts = np.random.default_rng(seed).multinomial(5_000, chances.ravel()).reshape(10, 4)
        noisy = SeededNoise(seed).add(counts, mechanism)
        release = dc.Release.from_tables({("a", "b"): noisy}, schema, scale=27.0)
        found = dc.estimate(release, covariance, ("a", "b"), draws=200, seed=seed)
        gaps.append((float(found.estimate) - covariance(chances)) / float(found.std_error))
    assert (abs(np.mean(gaps)) < 0.8) if order else (np.mean(gaps) < -1.2)
