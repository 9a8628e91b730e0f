"""The posterior of columns whose tables are centred, against least squares and against the same knowledge in plain tables."""

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.pair_sums import PairSums
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SCHEMA = Schema.from_domain({"a": 2, "b": 3})
COUNTS = np.array([[900, 700, 400], [1200, 500, 300]])
TOTAL = Measurement(Query(()), np.array(COUNTS.sum()), Noise("gaussian", 20.0))


def centred_release() -> Release:
    """Both columns and their pair, centred, without luck: counts as they are, and the noise that was not drawn stated."""
    parts = {("a",): COUNTS.sum(axis=1), ("b",): COUNTS.sum(axis=0), ("a", "b"): COUNTS}
    tables = tuple(
        Measurement(
            Query(SCHEMA.axes(attrs), centred=True),
            counts.size * counts - counts.sum(),
            Noise("gaussian", 15.0 * counts.size),
        )
        for attrs, counts in parts.items()
    )
    return Release(SCHEMA, (*tables, TOTAL), Statement("declared"))


def test_draws_have_the_means_and_the_spreads_of_least_squares() -> None:
    """With so many rows the prior says nothing: counts of the table itself are those of the reconciled release, and so is the number of rows."""
    release = centred_release()
    drawn = dc.posterior(release, ("a", "b"), draws=800, seed=2, population=False)
    counts = drawn.draws * drawn.rows[:, None, None]
    expected, error = release.project(("a", "b")).values, release.std_error(("a", "b")).values
    assert np.abs(counts.mean(axis=0) - expected).max() < 0.2 * error.max()
    np.testing.assert_allclose(counts.std(axis=0), error, rtol=0.12)
    assert drawn.rows.mean() == pytest.approx(int(TOTAL.values), abs=4)
    assert drawn.rows.std() == pytest.approx(20.0, rel=0.12)


def test_one_column_by_itself() -> None:
    """Its own table, the margin of the pair, and the total: tables of other columns say nothing."""
    release = centred_release()
    drawn = dc.posterior(release, "b", draws=800, seed=3, population=False)
    counts = drawn.draws * drawn.rows[:, None]
    np.testing.assert_allclose(counts.std(axis=0), release.std_error("b").values, rtol=0.12)
    assert np.abs(counts.mean(axis=0) - COUNTS.sum(axis=0)).max() < 6


def one_centred_table() -> Release:
    """A centred table of three columns, and the number of rows."""
    schema = Schema.from_domain({"a": 2, "b": 3, "c": 2})
    counts = np.random.default_rng(6).integers(200, 900, (2, 3, 2))
    table = Measurement(
        Query((0, 1, 2), centred=True), 12 * counts - counts.sum(), Noise("gaussian", 15.0 * 12)
    )
    total = Measurement(Query(()), np.array(counts.sum()), Noise("gaussian", 20.0))
    return Release(schema, (table, total), Statement("declared"))


def test_pairs_of_one_centred_table_are_drawn_from_what_it_says_about_pairs() -> None:
    """Their means and spreads, and those of the number of rows, are least squares'."""
    release = one_centred_table()
    drawn = dc.posterior(release, ("a", "b", "c"), draws=800, seed=4, population=False)
    counts = (drawn.draws * drawn.rows[:, None, None, None]).sum(axis=3)
    np.testing.assert_allclose(counts.std(axis=0), release.std_error(("a", "b")).values, rtol=0.15)
    assert np.abs(counts.mean(axis=0) - release.project(("a", "b")).values).max() < 4
    assert drawn.rows.std() == pytest.approx(20.0, rel=0.12)


def test_the_way_back_is_the_transpose() -> None:
    """Of sums over pairs and of the rows beside a centred table."""
    evidence = gather(one_centred_table(), (0, 1, 2))
    sums = PairSums(LogLinear(evidence.levels, ((0, 1), (0, 2), (1, 2)), evidence.possible), evidence)
    rng = np.random.default_rng(7)
    cells, slopes = rng.normal(size=(4, 12)), rng.normal(size=(4, len(sums.seen)))
    assert len(sums.seen) == 10  # four contrasts of columns, five of pairs, and the rows
    np.testing.assert_allclose((sums.sums(cells) * slopes).sum(), (cells * sums.back(slopes)).sum())
