"""From tables of rows to the population they are a sample of: one draw for each table, every one its own target."""

import numpy as np

from dpcipher.errors import SolveError
from dpcipher.posteriors.hamiltonian import QUARTER, Chains, Whitening
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.targets import PopulationTarget
from dpcipher.tables.domain import Floats

ITERATIONS, WARM_UP = 8, 12
LEAST_ACCEPTANCE = 0.5
# Up to this many multiplications every draw has coordinates of its own; beyond it all share those of their mean.
MOST_WORK = 300_000_000
NEWTON_STEPS, LONGEST_STEP = 12, 2.0


def draw_population(
    model: LogLinear, coefficients: Floats, tables: Floats, rng: np.random.Generator
) -> Floats:
    """The population's coefficients given each of `tables`, counts by cell, and coefficients that fit them.

    Each draw starts from the normal approximation around its own table, and is moved by Hamiltonian steps that leave its exact posterior as it is.
    """
    rows, statistics = tables.sum(axis=1), model.pull(tables)
    whitening = _whitening(model, coefficients, tables)
    start = rng.normal(size=coefficients.shape)
    target = PopulationTarget(model, statistics, rows)
    moving = Chains(target, whitening, start, rng, step=np.full(len(rows), 0.3), length=QUARTER)
    moving.adapt(WARM_UP)
    run = moving.run(ITERATIONS)
    if run.acceptance < LEAST_ACCEPTANCE or run.divergences > 0.02 * len(rows) * ITERATIONS:
        raise SolveError(
            f"the population could not be sampled reliably: {run.acceptance:.0%} of the steps were accepted. Name fewer columns, or ask for "
            "population=False, which leaves the sampling error out"
        )
    return moving.points


def _whitening(model: LogLinear, coefficients: Floats, rates: Floats) -> Whitening:
    """Centre and spread of the normal approximation: one Newton step from the table toward the prior."""
    draws, size = coefficients.shape
    if draws * model.cells * size**2 > MOST_WORK:
        precision = np.eye(size) + model.information(rates.mean(axis=0))
        root = Whitening.of(coefficients, precision).root
        return Whitening(coefficients - (coefficients @ root) @ root.T, root)
    return _own_whitening(model, coefficients, rates)


def _own_whitening(model: LogLinear, coefficients: Floats, rates: Floats) -> Whitening:
    """Coordinates for every draw: damped Newton steps to the mode of its own target, and the curvature there."""
    statistics, rows = model.pull(rates), rates.sum(axis=1)
    point = coefficients
    for _ in range(NEWTON_STEPS):
        chances = model.probabilities(point)
        slope = point + rows[:, None] * model.pull(chances) - statistics
        step = np.linalg.solve(_precision(model, rows[:, None] * chances), slope[..., None])[..., 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        point = point - step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, 1e-12))
        if longest.max() < 0.05:
            break
    precision = _precision(model, rows[:, None] * model.probabilities(point))
    return Whitening.of(point, precision)


def _precision(model: LogLinear, rates: Floats) -> Floats:
    """The curvature of every target: the prior's and the information of its rows."""
    means = rates @ model.design
    information = (model.design.T[None] * rates[:, None, :]) @ model.design
    information -= means[:, :, None] * means[:, None, :] / rates.sum(axis=1)[:, None, None]
    return np.asarray(np.eye(model.size) + information)
