"""Readings of the paper's algorithm through the public door."""

from dataclasses import replace

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.engines.paper import READINGS
from dpcipher.errors import ParameterError
from dpcipher.privacy.draws import Draws


@pytest.fixture(scope="module")
def release() -> dc.Release:
    """Two noisy sets of all pairs of four columns."""
    schema = dc.Schema.from_domain({"a": 2, "b": 2, "c": 3, "d": 3})
    rows = np.random.default_rng(1).integers(0, [2, 2, 3, 3], (200, 4))

    method = dc.Cipher(0.5, unit="add-remove", sets=2)
    fitted = method.fit_counts(rows, schema, draws=Draws.seeded(2), codes=True)
    assert fitted.release is not None
    return fitted.release


def table(joint: dc.Joint) -> np.ndarray:
    """The whole joint."""
    return np.asarray(joint.project(tuple("abcd")))


def test_the_default_is_literal(release: dc.Release) -> None:
    """Without a word, with the word, and with the value: the same joint; another reading is another, and says so in its health."""
    plain, named, valued, guarded = (
        dc.solve(release, set=0, engine=engine)
        for engine in ("paper", dc.Paper.read_as("literal"), dc.Paper(), dc.Paper(guard="rows"))
    )
    assert np.array_equal(table(plain), table(named))
    assert np.array_equal(table(plain), table(valued))
    assert not np.allclose(table(plain), table(guarded))
    assert any("guard rows" in note for note in guarded.health.notes)


def test_targets_are_drawn_anew(release: dc.Release) -> None:
    """Two sets with the same tables have targets of their own, and so do two releases; one release is solved alike every time."""
    first = [table for table in release.measurements if table.set == 0]
    twice = replace(release, measurements=(*first, *(replace(table, set=1) for table in first)))
    one, two = dc.solve(twice, engine="paper", set="all")
    again, _ = dc.solve(twice, engine="paper", set="all")
    assert np.array_equal(table(one), table(again))
    assert not np.allclose(table(one), table(two))
    other = replace(twice, statement=replace(twice.statement, created="2001-01-01"))
    assert not np.allclose(table(one), table(dc.solve(other, engine="paper", set=0)))


def test_a_reading_is_a_value(release: dc.Release) -> None:
    """A named reading is the paper's engine with options of its own, and `lam` is the ridge of any."""
    assert dc.Paper.read_as("clipped") == dc.Paper(guard="steps")
    short, long = (dc.solve(release, set=0, engine=dc.Paper(guard="steps", lam=lam)) for lam in (0.01, 1.0))
    assert np.array_equal(table(short), table(dc.solve(release, set=0, engine=dc.Paper.read_as("clipped"))))
    assert not np.allclose(table(short), table(long))
    assert any("λ = 1" in note for note in long.health.notes)


@pytest.mark.parametrize("name", READINGS)
def test_every_reading_is_a_method(name: str, release: dc.Release) -> None:
    """A synthesizer can be told any of them, and so can `solve`."""
    engine = dc.Paper.read_as(name)
    assert dc.Cipher(1.0, unit="add-remove", engine=engine).engine == engine
    assert table(dc.solve(release, set=1, engine=engine)).sum() == pytest.approx(1)


def test_wrong_readings_are_refused() -> None:
    """By name, before any work."""
    with pytest.raises(ParameterError, match="did you mean 'literal'"):
        dc.Paper.read_as("litteral")
