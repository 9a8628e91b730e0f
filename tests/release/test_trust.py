"""Trust: what a release shows of every pair, against simulations whose truth is known."""

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.release.trust import CHANCE, chance_squares, noise_squares, pair_trust

SCHEMA = dc.Schema.from_domain({"a": 4, "b": 5, "c": 3})
SHARES = (np.array([0.6, 0.2, 0.15, 0.05]), np.array([0.5, 0.2, 0.1, 0.1, 0.1]), np.array([0.7, 0.2, 0.1]))


def released(table: np.ndarray, scale: float, rng: np.random.Generator) -> dc.Release:
    """All pairs of a three-way table with Gaussian noise, as a release states it."""
    noisy = {
        axes: table.sum(axis=other) + rng.normal(0, scale, table.sum(axis=other).shape)
        for axes, other in ((("a", "b"), 2), (("a", "c"), 1), (("b", "c"), 0))
    }
    return dc.Release.from_tables(noisy, SCHEMA, scale=scale, mechanism="gaussian")


@pytest.mark.parametrize(("n_rows", "scale"), [(10_000, 20.0), (10_000, 3.0), (500, 20.0)])
def test_noise_and_chance_explain_the_departure_of_independent_columns(n_rows: int, scale: float) -> None:
    """Their sum of squares is what the formula at the top of the module says, and p is even between 0 and 1."""
    rng = np.random.default_rng(0)
    joint = np.einsum("i,j,k->ijk", *SHARES).ravel()
    ratios, ps = [], []
    for _ in range(250):
        release = released(rng.multinomial(n_rows, joint).reshape(4, 5, 3).astype(float), scale, rng)
        counts = release.reconciled.table((0, 1))
        gap = counts - np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
        expected = noise_squares(release.reconciled, (0, 1), counts) + chance_squares(counts)[0]
        ratios.append((gap**2).sum() / expected)
        ps.append(pair_trust(SCHEMA, release.reconciled, (0, 1)).p)
    assert np.mean(ratios) == pytest.approx(1, abs=0.09)
    assert np.mean(ps) == pytest.approx(0.5, abs=0.07)
    assert np.mean(np.array(ps) < 0.05) < 0.1


def test_a_planted_relation_is_found_with_its_size() -> None:
    """The signal is the departure that was planted, in rows of a typical cell; the other pairs have none."""
    rng = np.random.default_rng(1)
    table = 20_000 * np.einsum("i,j,k->ijk", *SHARES)
    planted = np.zeros((4, 5))
    planted[:2, :2] = [[400, -400], [-400, 400]]
    trust = dc.trust(released(table + planted[:, :, None] / 3, 10.0, rng))
    best, *rest = trust.pairs
    assert best.attrs == ("a", "b")
    assert best.signal == pytest.approx(np.sqrt((planted**2).mean()), rel=0.1)
    assert best.signal_to_noise == pytest.approx(best.signal / best.noise)
    assert best.good_for == "single cells"
    assert [pair.good_for for pair in rest] == ["single columns"] * 2
    assert best.p < CHANCE


def test_weaker_relations_are_good_for_less() -> None:
    """The same relation under more and more noise, down to none that can be seen."""
    rng = np.random.default_rng(2)
    table = 50_000 * np.einsum("i,j,k->ijk", *SHARES)
    planted = np.zeros((4, 5, 3))
    planted[:2, :2] = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None] * 300
    words = [dc.trust(released(table + planted, scale, rng)).pairs[0].good_for for scale in (5, 300, 5_000)]
    assert words == ["single cells", "the pattern", "single columns"]


def test_exact_counts_and_columns_of_one_level() -> None:
    """Without noise everything can be read; a column with one level goes with nothing."""
    schema = dc.Schema.from_domain({"a": 2, "b": 2, "one": 1})
    tables = {("a", "b"): [[900, 100], [100, 900]], ("a", "one"): [[1000], [1000]]}
    exact = dc.trust(dc.Release.from_tables(tables, schema, scale=0))
    assert [pair.good_for for pair in exact.pairs] == ["exact", "exact"]
    noisy = dc.trust(dc.Release.from_tables(tables, schema, scale=2.0))
    assert [(pair.attrs, pair.good_for) for pair in noisy.pairs] == [
        (("a", "b"), "single cells"),
        (("a", "one"), "single columns"),
    ]


def test_trust_shows_itself() -> None:
    """As a frame, as text, in a notebook and as a plot."""
    schema = dc.Schema.from_domain({"a": 2, "b": 2})
    trust = dc.trust(dc.Release.from_tables({("a", "b"): [[900, 100], [100, 900]]}, schema, scale=5.0))
    assert list(trust.frame.columns)[:3] == ["first", "second", "cells"]
    assert len(trust.frame) == 1
    assert "single cells" in str(trust)
    assert repr(trust) == "<Trust in pairs: pairs 1, good for single cells 1>"
    assert "signal to noise" in trust._repr_html_()
    assert "a × b" in dc.plot(trust).svg
    with pytest.raises(ParameterError, match="drawn as a whole"):
        dc.plot(trust, "a")
