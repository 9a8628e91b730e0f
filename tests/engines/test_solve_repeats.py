"""Solving what was measured unevenly: tables of unequal noise, some of them twice, are worth what their means are."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dpcipher.engines.paper import Paper
from dpcipher.engines.solve import solve
from dpcipher.joint.joint import Joint
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SHAPE = (2, 3, 2)
SCHEMA = Schema.from_domain(dict(zip("abc", SHAPE, strict=True)))
CODES = np.indices(SHAPE).reshape(3, -1).T.astype(np.int32)


def uneven() -> Release:
    """One-way tables measured roughly, one of them twice, and pairs of unequal noise, one of them twice."""
    rng = np.random.default_rng(21)
    truth = rng.multinomial(3000, rng.dirichlet(np.ones(12))).reshape(SHAPE)
    scales = {"a": [20.0], "b": [20.0, 8.0], "c": [20.0], "ab": [5.0], "bc": [9.0, 4.0]}
    tables = []
    for name, each in scales.items():
        margin = truth.sum(axis=tuple(axis for axis in range(3) if "abc"[axis] not in name))
        for scale in each:
            noisy = margin + np.rint(rng.normal(0, scale, margin.shape)).astype(np.int64)
            tables.append(Measurement(Query(SCHEMA.axes(tuple(name))), noisy, Noise("gaussian", scale)))
    return Release(SCHEMA, tuple(tables), Statement(status="declared"))


def merged(release: Release) -> Release:
    """Every repeat replaced by its inverse-variance mean."""
    tables = []
    for query, group in itertools.groupby(release.measurements, key=lambda one: one.query):
        found = list(group)
        weights = np.array([1 / one.noise.variance for one in found])
        mean = sum(weight * one.values for weight, one in zip(weights, found, strict=True)) / weights.sum()
        tables.append(Measurement(query, mean, Noise("gaussian", weights.sum() ** -0.5)))
    return replace(release, measurements=tuple(tables))


def probabilities(release: Release, engine: str) -> tuple[np.ndarray, Joint]:
    """The joint of a release over all cells."""
    # Random targets differ from release to release.
    joint = solve(release, engine=Paper(target="last") if engine == "paper" else engine)
    assert isinstance(joint, Joint)
    if engine == "rows":
        return np.exp(joint.core.log_prob(CODES)).reshape(SHAPE), joint
    return np.asarray(joint.project(tuple("abc"))), joint


@pytest.mark.parametrize("engine", ["table", "rows", "paper"])
def test_repeats_solve_like_their_mean(engine: str) -> None:
    """The same joint, whichever engine; without the second measurements it is another one."""
    release = uneven()
    assert (len(release.measurements), len(merged(release).measurements)) == (7, 5)
    ours, joint = probabilities(release, engine)
    theirs, other = probabilities(merged(release), engine)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert joint.n_rows == other.n_rows
    assert joint.health.converged
    assert joint.health.residuals == pytest.approx(other.health.residuals)
    single = replace(release, measurements=tuple(release.measurements[place] for place in (0, 1, 3, 4, 5)))
    assert np.abs(ours - probabilities(single, engine)[0]).max() > 1e-4
