"""The principal axes of a multinomial's covariance: against the general eigenproblem, also where probabilities are equal, nearly so, or zero."""

import numpy as np
import pytest

from dpcipher.engines.denoise import shapes
from dpcipher.engines.denoise.multinomial_axes import multinomial_axes
from dpcipher.engines.denoise.shapes import proportional_basis

RNG = np.random.default_rng(5)
PROBABILITIES = {
    "smooth": RNG.dirichlet(np.full(150, 3.0)),
    "skewed": RNG.dirichlet(np.full(300, 0.02)),
    "equal": np.ones(40),
    "all but two equal": np.r_[np.full(60, 0.01), 0.1, 0.3],
    "zeros": np.r_[np.zeros(30), RNG.random(50)],
    "one level has all": np.r_[1.0, np.zeros(20)],
    "nearly equal": 1 + 1e-11 * RNG.random(60),
    "hardly different": 1 + 1e-8 * RNG.random(60),
    "forty powers of ten": np.exp(RNG.normal(0, 20, 120)),
    "two levels": np.array([0.3, 0.7]),
    "many levels in groups": RNG.integers(1, 9, 400).astype(float),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_axes_diagonalise_the_covariance(name: str) -> None:
    """Orthonormal contrasts, each turned into a multiple of itself, with the eigenvalues that LAPACK finds."""
    p = PROBABILITIES[name] / PROBABILITIES[name].sum()
    covariance = np.diag(p) - np.outer(p, p)
    variance, vectors = multinomial_axes(p)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(p) - 1), atol=1e-10)
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(covariance @ vectors, vectors * variance, atol=1e-12)
    np.testing.assert_allclose(np.sort(variance), np.linalg.eigvalsh(covariance)[1:], atol=1e-12)


@pytest.mark.parametrize("name", PROBABILITIES)
def test_tables_shrink_alike_in_either_basis(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shrinker does with coefficients and variances depends on the eigenspaces alone, not on the basis within them."""
    p = PROBABILITIES[name] / PROBABILITIES[name].sum()
    table = RNG.normal(size=len(p))
    table -= table.mean()
    shrunk = []
    for many in (1, 10**6):
        monkeypatch.setattr(shapes, "MANY_LEVELS", many)
        basis = proportional_basis(p)
        kept = basis.variance / (basis.variance + 1e-3)
        shrunk.append(basis.tables(basis.coefficients(table[None]) * kept))
    np.testing.assert_allclose(shrunk[0], shrunk[1], atol=1e-8)
