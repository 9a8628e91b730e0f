"""Readings of the paper's algorithm through the public door."""

from dataclasses import replace

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.engines.reading import READINGS
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
        dc.solve(release, set=0, engine="paper", **options)
        for options in ({}, {"reading": "literal"}, {"reading": dc.Reading()}, {"reading": "guarded"})
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


def test_lam_goes_over_the_reading(release: dc.Release) -> None:
    """`lam` is the ridge of whatever reading is asked for."""
    short, long = (
        dc.solve(release, set=0, engine="paper", **options)
        for options in ({"reading": "clipped", "lam": 1.0}, {"reading": dc.Reading(guard="steps", lam=1.0)})
    )
    assert np.array_equal(table(short), table(long))


@pytest.mark.parametrize("name", READINGS)
def test_every_reading_is_a_method(name: str, release: dc.Release) -> None:
    """A synthesizer can be told any of them, and so can `solve`."""
    assert dc.Cipher(1.0, unit="add-remove", engine="paper", reading=name).reading == name
    assert table(dc.solve(release, set=1, engine="paper", reading=name)).sum() == pytest.approx(1)


def test_wrong_readings_are_refused(release: dc.Release) -> None:
    """By name or by type, before any work."""
    with pytest.raises(ParameterError, match="did you mean 'literal'"):
        dc.solve(release, engine="paper", reading="litteral")
    with pytest.raises(ParameterError, match=r"dc\.Reading"):
        dc.Cipher(1.0, unit="add-remove", reading=3)  # type: ignore[arg-type]
