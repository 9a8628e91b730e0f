"""The samplers against their exact laws, wrong samplers that must be caught, and independence of runs and processes."""

import importlib.metadata
import os
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpcipher.errors import DpcipherError, NotPrivate, ParameterError
from dpcipher.privacy import draws
from dpcipher.privacy.budget import Budget, float_up, noise_for
from dpcipher.privacy.draws import NoiseSource, OpenDPNoise, SeededNoise
from dpcipher.privacy.terms import Unit
from dpcipher.tables.measurement import Noise

N_DRAWS = 100_000
ALPHA = 1e-6  # a right sampler fails one run in 100,000; the gates below reject wrong ones far beyond it
LAWS = [("laplace", 0.5), ("laplace", 3.0), ("laplace", 28.0), ("gaussian", 0.7), ("gaussian", 10.0)]
Draws = NDArray[np.int64]


def log_weights(name: str, scale: float, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log of the law, up to a constant."""
    return -np.abs(k) / scale if name == "laplace" else -(k.astype(float) ** 2) / (2 * scale**2)


def p_value(draws: Draws, name: str, scale: float, most_bins: int = 60) -> float:
    """Chi-square of draws against the exact law, in at most 60 bins of about equal chance, each expecting 20 or more."""
    reach = int(45 * scale) + 5
    k = np.arange(-reach, reach + 1)
    weight = np.exp(log_weights(name, scale, k))
    cumulative = np.cumsum(weight / weight.sum())
    least = max(1 / most_bins, 20 / draws.size)
    last, edges = 0.0, []
    for value, below in zip(k, cumulative, strict=True):
        if below - last >= least and 1 - below >= least:
            edges.append(value)
            last = below
    expected = np.diff(np.concatenate([[0.0], cumulative[np.asarray(edges) + reach], [1.0]])) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    return float(stats.chisquare(observed, expected).pvalue)


@cache
def drawn(source: type[NoiseSource], name: str, scale: float) -> Draws:
    """Many draws around zero, made once."""
    maker = SeededNoise(7) if source is SeededNoise else source()
    return maker.add(np.zeros(N_DRAWS, dtype=np.int64), Noise(name, scale))  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [OpenDPNoise, SeededNoise])
@pytest.mark.parametrize(("name", "scale"), LAWS)
def test_draws_follow_the_exact_law_and_no_other_scale(
    source: type[NoiseSource], name: str, scale: float
) -> None:
    """The right scale passes; ten per cent more or less must be rejected, in the same draws."""
    draws = drawn(source, name, scale)
    assert p_value(draws, name, scale) > ALPHA
    assert p_value(draws, name, scale * 1.1) < ALPHA
    assert p_value(draws, name, scale / 1.1) < ALPHA


@pytest.mark.parametrize(("name", "scale"), LAWS)
def test_draws_are_symmetric_and_uncorrelated(name: str, scale: float) -> None:
    """Signs balance, the variance is the stated one, and neighbours in the array do not know of each other."""
    draws = drawn(OpenDPNoise, name, scale).astype(float)
    signs = np.sign(draws[draws != 0])
    assert abs(signs.sum()) / np.sqrt(signs.size) < 5
    variance = Noise(name, scale).variance  # type: ignore[arg-type]
    assert abs((draws**2).mean() - variance) < 6 * (draws**2).std() / np.sqrt(draws.size)
    for lag in (1, 2, 3):
        assert abs((draws[lag:] * draws[:-lag]).sum()) / (variance * np.sqrt(draws.size)) < 5


def rounded_laplace(rng: np.random.Generator, scale: float) -> Draws:
    """Continuous noise rounded to integers: the wrong law."""
    return np.rint(rng.laplace(0, scale, N_DRAWS)).astype(np.int64)


def zero_counted_twice(rng: np.random.Generator, scale: float) -> Draws:
    """The classic slip: a sign for zero too, so that zero comes twice as often."""
    size = rng.geometric(-np.expm1(-1 / scale), N_DRAWS) - 1
    return np.asarray(size * rng.choice([-1, 1], N_DRAWS), dtype=np.int64)


def biased_comparison(rng: np.random.Generator, scale: float) -> Draws:
    """A comparison that errs now and then, as in the OpenDP samplers before 0.14.2: one draw in thirty a step too near."""
    draws = SeededNoise(1).add(np.zeros(N_DRAWS, dtype=np.int64), Noise("laplace", scale))
    return draws - np.sign(draws) * (rng.random(N_DRAWS) < 1 / 30)


@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("wrong", [rounded_laplace, zero_counted_twice, biased_comparison])
def test_wrong_samplers_are_caught(
    wrong: Callable[[np.random.Generator, float], Draws], scale: float
) -> None:
    """The same gate that passes the right samplers rejects planted wrong ones."""
    assert p_value(wrong(np.random.default_rng(3), scale), "laplace", scale) < ALPHA


UNITS = [Unit("add-remove"), Unit("replace"), Unit("add-remove", 3), Unit("replace", 3)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.relation}-{unit.max_rows}")
@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.7}, {"epsilon": 1}, {"rho": 0.37}, {"epsilon": 1, "delta": 1e-6}]
)
def test_the_certificate_of_opendp_is_within_the_share(unit: Unit, budget: dict[str, float]) -> None:
    """OpenDP's own privacy map, computed without us, does not exceed what each table was given."""
    for share in map(Budget.parse(**budget).share, (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2))):
        mechanism = noise_for(share, unit)
        allowed = float_up(share.rho or share.epsilon or Fraction(0))
        certified = OpenDPNoise().certificate(mechanism, unit)
        assert allowed * (1 - 1e-12) <= certified <= allowed
        assert SeededNoise(1).certificate(mechanism, unit) == pytest.approx(certified, rel=1e-13)


def test_two_runs_differ_and_tables_keep_their_shape() -> None:
    """Nothing is repeated from one table to the next, and the counts that came in are not touched."""
    counts = np.arange(60, dtype=np.int64).reshape(3, 4, 5)
    before = counts.copy()
    for mechanism in (Noise("laplace", 10.0), Noise("gaussian", 10.0)):
        first, second = (OpenDPNoise().add(counts.T, mechanism) for _ in range(2))
        assert first.shape == (5, 4, 3)
        assert first.dtype == np.int64
        assert (first != second).sum() > 30
        assert abs((first - counts.T).mean()) < 20
    assert (counts == before).all()
    assert OpenDPNoise().add(np.zeros((0, 3), dtype=np.int64), mechanism).shape == (0, 3)


def in_forked_children(work: Callable[[], bytes], n_children: int) -> list[bytes]:
    """What each of several forked processes answers."""
    answers = []
    for _ in range(n_children):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn about forking next to idle BLAS threads
            child = os.fork()
        if child == 0:
            try:
                os.write(writer, work())
            finally:
                os._exit(0)
        os.close(writer)
        answers.append(os.read(reader, 1 << 16))
        os.close(reader)
        os.waitpid(child, 0)
    return answers


def test_forked_children_draw_different_noise() -> None:
    """A seedable generator copied by fork repeats itself; OpenDP's source must not."""
    mechanism, counts = Noise("laplace", 1000.0), np.zeros(50, dtype=np.int64)
    OpenDPNoise().add(counts, mechanism)
    private = in_forked_children(lambda: OpenDPNoise().add(counts, mechanism).tobytes(), 3)
    assert len(set(private)) == 3
    assert {len(answer) for answer in private} == {400}
    seeded = SeededNoise(5)
    assert len(set(in_forked_children(lambda: seeded.add(counts, mechanism).tobytes(), 3))) == 1


def test_seeded_noise_repeats_and_says_that_it_is_not_private() -> None:
    """Equal seeds give equal noise, which is why nothing it touches may be released."""
    counts, mechanism = np.zeros(50, dtype=np.int64), Noise("gaussian", 10.0)
    assert (SeededNoise(1).add(counts, mechanism) == SeededNoise(1).add(counts, mechanism)).all()
    assert (SeededNoise(1).add(counts, mechanism) != SeededNoise(2).add(counts, mechanism)).any()
    assert OpenDPNoise.is_private
    assert not SeededNoise.is_private


def test_no_noise_is_for_experiments_only() -> None:
    """OpenDP's sampler would accept scale 0 and return the exact data; we do not let it."""
    counts, none = np.arange(5, dtype=np.int64), Noise("none", 0)
    with pytest.raises(NotPrivate, match="none"):
        OpenDPNoise().add(counts, none)
    assert (SeededNoise(1).add(counts, none) == counts).all()
    assert (
        OpenDPNoise().certificate(none, Unit("replace"))
        == SeededNoise(1).certificate(none, Unit("replace"))
        == np.inf
    )


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros(3, dtype=np.int32), [0, 0], None])
def test_only_64_bit_counts_are_noised(bad: object) -> None:
    """Floats and narrow integers are refused before anything is drawn."""
    with pytest.raises(ParameterError, match="int64"):
        OpenDPNoise().add(bad, Noise("laplace", 1.0))  # type: ignore[arg-type]


def test_large_noise_does_not_wrap() -> None:
    """At the largest scale the draws are still spread as the law says."""
    for name in ("laplace", "gaussian"):
        draws = OpenDPNoise().add(np.zeros(2000, dtype=np.int64), Noise(name, 2.0**40))  # type: ignore[arg-type]
        assert 0.8 < draws.astype(float).std() / Noise(name, 2.0**40).variance ** 0.5 < 1.2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "accepted"),
    [("0.9.0", False), ("0.14.1", False), ("0.14.2", True), ("0.16.0", True), ("1.0.0a1", True)],
)
def test_biased_versions_of_opendp_are_refused(
    version: str, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is checked when noise is drawn, not only when the package is installed."""
    monkeypatch.setattr(importlib.metadata, "version", lambda package: version)
    load = draws.opendp.__wrapped__
    if accepted:
        assert load().__name__ == "opendp.prelude"
    else:
        with pytest.raises(DpcipherError, match=r"0\.14\.2"):
            load()


def test_tables_that_are_drawn_together_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for each mechanism, of bounded size; every cell gets its own noise, of its own table's scale, and returns to its place."""
    calls: list[tuple[int, Noise]] = []
    right = OpenDPNoise._noisy

    def watched(self, counts, mechanism):
        calls.append((counts.size, mechanism))
        return right(self, counts, mechanism)

    monkeypatch.setattr(OpenDPNoise, "_noisy", watched)
    monkeypatch.setattr("dpcipher.privacy.draws.CELLS_AT_ONCE", 2_000)
    fine, coarse = Noise("laplace", 0.05), Noise("gaussian", 1000.0)
    shapes = [(3, 4), (200,), (1,), (20, 30), (2_500,), (0, 3)]
    mechanisms = [fine, coarse, fine, fine, fine, coarse]
    tables = [np.arange(np.prod(shape)).reshape(shape) + 7 * place for place, shape in enumerate(shapes)]
    told: list[int] = []
    noisy = OpenDPNoise().add_many(tables, mechanisms, progress=told.append)
    assert calls == [(613, fine), (2_500, fine), (200, coarse)]
    assert told == [613, 3_113, 3_313]
    for shape, table, answer, mechanism in zip(shapes, tables, noisy, mechanisms, strict=True):
        assert answer.shape == shape
        assert answer.dtype == np.int64
        if mechanism == fine:  # a cell is moved with a chance of 4e-9
            assert np.array_equal(answer, table)
        elif answer.size:
            assert 500 < (answer - table).std() < 2_000
            assert len(set((answer - table).tolist())) > 150


def test_many_tables_are_checked_like_one() -> None:
    """Counts that are no integers and a release without noise are refused before anything is drawn."""
    table = np.arange(6)
    with pytest.raises(ParameterError, match="int64"):
        OpenDPNoise().add_many([table, table.astype(float)], [Noise("laplace", 1.0)] * 2)
    with pytest.raises(NotPrivate, match="none"):
        OpenDPNoise().add_many([table], [Noise("none", 0.0)])
    assert OpenDPNoise().add_many([], []) == []
