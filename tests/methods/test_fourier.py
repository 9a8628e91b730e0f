"""Fourier coefficients: the basis, its sensitivity, and the linear program."""

import math
from itertools import product

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted
from test_mwem import margins

from dpcipher.errors import SizeError
from dpcipher.methods import Fourier
from dpcipher.methods.fourier import (
    coefficients,
    design,
    downward,
    helmert,
    l2_squared,
    n_coefficients,
    nearest_table,
)
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

SETS = downward(SCHEMA, 2)


def test_contrasts_are_orthogonal_and_cost_as_many_as_there_are() -> None:
    """Rows orthogonal to each other and to the constant; absolute values of every level add up to K − 1."""
    for levels in range(2, 9):
        full = np.vstack([np.ones(levels, dtype=int), helmert(levels)])
        gram = full @ full.T
        assert np.count_nonzero(gram - np.diag(np.diag(gram))) == 0
        assert (np.abs(helmert(levels)).sum(axis=0) == levels - 1).all()


def test_binary_coefficients_are_parities() -> None:
    """The unnormalised <f^α, x> of Barak et al.: Σ (−1)^<α,x> n(x)."""
    counts = np.random.default_rng(1).integers(0, 50, (2, 2, 2))
    for alpha in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        parity = sum(counts[x] * (-1) ** sum(x[axis] for axis in alpha) for x in product((0, 1), repeat=3))
        margin = counts.sum(axis=tuple(axis for axis in range(3) if axis not in alpha))
        assert coefficients(margin).item() == parity


def test_the_design_matrix_takes_cells_to_coefficients() -> None:
    """The same numbers from the full table as from its margins."""
    counts = planted()
    own = [counts.sum(axis=tuple(axis for axis in range(4) if axis not in axes)) for axes in SETS]
    np.testing.assert_array_equal(
        design(SCHEMA.shape, SETS) @ counts.ravel(), np.concatenate([coefficients(t) for t in own])
    )


def test_one_row_moves_the_coefficients_as_far_as_declared() -> None:
    """Every cell moves them by exactly |F| in L1, and by no more than declared in L2."""
    matrix = design(SCHEMA.shape, SETS)
    assert len(matrix) == n_coefficients(SCHEMA.shape, SETS) == 20  # the paper's count for 2×2×3×3
    np.testing.assert_array_equal(np.abs(matrix).sum(axis=0), 20)
    assert (matrix**2).sum(axis=0).max() <= l2_squared(SCHEMA.shape, SETS)


@pytest.mark.parametrize(("unit", "size", "scale"), [("add-remove", 20, 20.0), ("replace", 19, 38.0)])
def test_the_noise_is_the_published_one(unit: str, size: int, scale: float) -> None:
    """Lap(2|F|/ε) under replacement, where the total is public and not asked; Lap(|F|/ε) under add-remove."""
    tape, _ = run(Fourier(1.0, unit=unit), planted(), SCHEMA)
    assert [(kind, truth.size, noise) for kind, truth, noise in tape.asked] == [("laplace", size, scale)]


def test_the_linear_program_finds_a_table_that_exists() -> None:
    """Coefficients of a real table leave no residual: its margins come back."""
    counts = planted()
    exact = design(SCHEMA.shape, SETS) @ counts.ravel()
    table = nearest_table(SCHEMA.shape, SETS, exact, None)
    assert table.min() >= 0
    for ours, theirs in zip(margins(table), margins(counts), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_linear_program_minimises_the_worst_coefficient() -> None:
    """No randomly perturbed non-negative table has a smaller worst residual."""
    rng = np.random.default_rng(3)
    matrix = design(SCHEMA.shape, SETS)
    noisy = matrix @ planted().ravel() + rng.normal(0, 30, len(matrix))
    best = nearest_table(SCHEMA.shape, SETS, noisy, None).ravel()
    reached = np.abs(matrix @ best - noisy).max()
    trials = np.maximum(0, best + rng.normal(0, 3, (3000, best.size)))
    assert (np.abs(trials @ matrix.T - noisy).max(axis=1) >= reached - 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_error_of_a_marginal_is_within_the_published_bound(seed: int) -> None:
    """Binary columns: L1 error ≤ 2^‖β‖·8|F|·log(|F|/δ)/ε + |F| (Barak et al., theorem 7), here with δ = .01."""
    schema = Schema.from_domain(dict.fromkeys("abcde", 2))
    counts = (
        np.random.default_rng(9)
        .multinomial(3000, np.random.default_rng(8).dirichlet(np.ones(32)))
        .reshape((2,) * 5)
    )
    method = Fourier(1.0, unit="replace").fit_counts(counts, schema, draws=Draws.seeded(seed))
    size = n_coefficients(schema.shape, downward(schema, 2))
    bound = 4 * 8 * size * math.log(size / 0.01) + size
    fitted = 3000 * method.joint.core.project((0, 1))
    assert np.abs(fitted - counts.sum(axis=(2, 3, 4))).sum() <= bound
    assert np.abs(fitted - counts.sum(axis=(2, 3, 4))).sum() < 1000  # and much better than the bound


def test_large_schemas_are_refused_before_anything_is_read() -> None:
    """The limit is judged on the schema; the data would not even open."""
    with pytest.raises(SizeError, match="linear program"):
        Fourier(1.0, unit="replace").fit("no such file", Schema.from_domain({f"c{i}": 10 for i in range(5)}))


def test_rounding_is_optional() -> None:
    """Rounded tables are whole numbers of rows."""
    table = Fourier(1.0, unit="add-remove").fit_counts(planted(), SCHEMA, draws=Draws.seeded(1)).joint
    cells = table.core.probabilities * table.n_rows
    np.testing.assert_allclose(cells, np.rint(cells), atol=1e-9)
    with pytest.raises(ValueError, match="rounded"):
        Fourier(1.0, unit="replace", rounded="no")
