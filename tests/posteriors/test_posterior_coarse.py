"""The posterior of columns with coarse counts: what they say is in the draws, as least squares has it."""

from dataclasses import replace

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import SolveError
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.pair_sums import PairSums
from dpcipher.posteriors.targets import Tables
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.grouped import table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

SIZES = {"a": 6, "b": 2, "c": 3}
SCHEMA = Schema.from_domain(SIZES)
COUNTS = np.random.default_rng(3).integers(200, 900, tuple(SIZES.values()))
STARTS = (0, 1, 4)
NOISE, FINE = Noise("gaussian", 40.0), Noise("gaussian", 4.0)


def coarse() -> Measurement:
    """Exact counts of three runs of a's levels, with little noise stated that was not drawn."""
    levels = COUNTS.sum(axis=(1, 2))
    query = Query((0,), (Groups.runs(STARTS, 6),))
    return Measurement(query, query.apply(levels, (0,)), FINE)


def release(*sets: tuple[str, ...], centred: bool = False) -> Release:
    """Tables of these columns with much noise stated, and the coarse counts."""
    tables = []
    for attrs in sets:
        own = COUNTS.sum(axis=tuple(axis for axis, name in enumerate(SIZES) if name not in attrs))
        counts = own.size * own - own.sum() if centred else own
        mechanism = Noise("gaussian", 40.0 * own.size) if centred else NOISE
        tables.append(Measurement(Query(SCHEMA.axes(attrs), centred=centred), counts, mechanism))
    totals = [Measurement(Query(()), np.array(COUNTS.sum()), NOISE)] if centred else []
    return Release(SCHEMA, (*tables, coarse(), *totals), Statement("declared"))


PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
WHOLE = (("a", "b", "c"),)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("sets", [PAIRS, WHOLE])
def test_draws_have_the_spreads_of_least_squares(sets: tuple[tuple[str, ...], ...], centred: bool) -> None:
    """Of levels, of a pair, and of the sums that were counted coarsely: these are known ten times better than from the tables alone."""
    noisy = release(*sets, centred=centred)
    drawn = dc.posterior(noisy, tuple(SIZES), draws=800, seed=5, population=False)
    counts = drawn.draws * drawn.rows[:, None, None, None]
    levels, pair = counts.sum(axis=(2, 3)), counts.sum(axis=3)
    runs = np.add.reduceat(levels, STARTS, axis=1)
    np.testing.assert_allclose(levels.std(axis=0), noisy.std_error("a").values, rtol=0.15)
    np.testing.assert_allclose(pair.std(axis=0), noisy.std_error(("a", "b")).values, rtol=0.15)
    np.testing.assert_allclose(runs.std(axis=0), FINE.variance**0.5, rtol=0.15)
    assert np.abs(runs.mean(axis=0) - coarse().values).max() < 2
    assert np.abs(levels.mean(axis=0) - noisy.project("a").values).max() < 0.2 * levels.std(axis=0).max()


def test_draws_use_pairs_in_groups_of_levels() -> None:
    """Columns with every level, two pairs in runs and one in named groups that cross them: sums over groups spread as least squares says."""
    runs, named = Groups.runs((0, 2), 6), Groups.of_lists([[0, 3, 5], [1, 2, 4]], 6, ("odd", "even"))
    wide, narrow = Noise("gaussian", 60.0), Noise("gaussian", 20.0)
    queries = [
        Query((0,)),
        Query((1,)),
        Query((2,)),
        Query((0, 1), (runs, None)),
        Query((0, 2), (named, None)),
    ]
    measured = [
        Measurement(q, q.apply(COUNTS, (0, 1, 2)), wide if len(q.axes) == 1 else narrow) for q in queries
    ]
    noisy = Release(SCHEMA, tuple(measured), Statement("declared"))
    drawn = dc.posterior(noisy, tuple(SIZES), draws=800, seed=8, population=False)
    counts = drawn.draws * drawn.rows[:, None, None, None]
    for query in queries[:1] + queries[3:]:
        own = counts.sum(axis=tuple(1 + axis for axis in range(3) if axis not in query.axes))
        for place, groups in enumerate(query.groups, start=1):
            own = own if groups is None else groups.merge(own, place)
        error = np.asarray(noisy.std_error(table_of(SCHEMA, query)).values)
        np.testing.assert_allclose(own.std(axis=0), error, rtol=0.15)
        assert (np.abs(own.mean(axis=0) - query.apply(COUNTS, (0, 1, 2))) < 0.4 * error).all()


def test_exact_tables_in_groups_of_levels_are_met() -> None:
    """An exact pair in crossing named groups beside noisy levels: every draw has it, and levels spread as least squares says."""
    named = Groups.of_lists([[0, 3, 5], [1, 2, 4]], 6, ("odd", "even"))
    exact, levels = Query((0, 1), (named, None)), COUNTS.sum(axis=(1, 2))
    wide, none = Noise("gaussian", 60.0), Noise("none", 0.0)
    measured = [
        Measurement(Query((0,)), levels, wide),
        Measurement(Query((2,)), COUNTS.sum(axis=(0, 1)), wide),
        Measurement(exact, exact.apply(COUNTS, (0, 1, 2)), none),
    ]
    noisy = Release(SCHEMA, tuple(measured), Statement("declared"))
    drawn = dc.posterior(noisy, ("a", "b"), draws=400, seed=8, population=False)
    counts = drawn.draws * drawn.rows[:, None, None]
    sums = named.merge(counts, 1)
    np.testing.assert_allclose(sums, np.broadcast_to(measured[2].values, sums.shape), rtol=1e-9)
    error = noisy.std_error("a").values
    np.testing.assert_allclose(counts.sum(axis=2).std(axis=0), error, rtol=0.2)
    assert np.abs(counts.sum(axis=2).mean(axis=0) - levels).max() < 0.4 * error.max()


def test_contrasts_are_drawn_from_as_least_squares_has_them() -> None:
    """Contrasts of two columns and of both beside the number of rows; those of a column that is not asked for say nothing."""
    noise = Noise("gaussian", 40.0)
    queries = [Query((0,), contrasts=(0,)), Query((1,), contrasts=(1,)), Query((0, 1), contrasts=(0, 1))]
    measured = [
        Measurement(Query(()), np.array(COUNTS.sum()), noise),
        Measurement(Query((2,)), COUNTS.sum((0, 1)), noise),
    ]
    for query in queries:
        size = int(np.prod([SCHEMA.shape[axis] for axis in query.contrasts]))
        answer = query.apply(COUNTS, (0, 1, 2))
        measured.append(Measurement(query, answer, Noise("gaussian", 40.0 * size)))
    noisy = Release(SCHEMA, tuple(measured), Statement("declared"))
    drawn = dc.posterior(noisy, ("a", "b"), draws=800, seed=9, population=False)
    counts, error = drawn.draws * drawn.rows[:, None, None], noisy.std_error(("a", "b")).values
    np.testing.assert_allclose(counts.std(axis=0), error, rtol=0.15)
    assert np.abs(counts.mean(axis=0) - COUNTS.sum(axis=2)).max() < 0.4 * error.max()
    assert [table.axes for table in gather(noisy, (0,)).tables] == [(), (0,)]
    exact = replace(measured[2], noise=Noise("none", 0.0))
    with pytest.raises(SolveError, match="exact contrasts"):
        gather(Release(SCHEMA, (*measured[:2], exact, *measured[3:]), Statement("declared")), (0,))


def test_one_table_of_two_columns_and_of_one() -> None:
    """A single table with coarse counts beside it is no longer all that is known of its columns."""
    noisy = release(("a", "b"), ("c",))
    for columns in (("a", "b"), ("a",)):
        drawn = dc.posterior(noisy, columns, draws=600, seed=6, population=False)
        levels = (drawn.draws.reshape(600, 6, -1).sum(axis=2)) * drawn.rows[:, None]
        runs = np.add.reduceat(levels, STARTS, axis=1)
        np.testing.assert_allclose(runs.std(axis=0), FINE.variance**0.5, rtol=0.2)


def test_coarse_counts_of_a_column_that_is_not_asked_for_tell_the_number_of_rows() -> None:
    """Three counts of standard deviation 4 know the total better than a table of noise 40."""
    drawn = dc.posterior(release(("b",), ("b", "c"), ("a",)), "b", draws=600, seed=7, population=False)
    assert drawn.rows.mean() == pytest.approx(COUNTS.sum(), abs=2)
    assert drawn.rows.std() == pytest.approx((3 * FINE.variance) ** 0.5, rel=0.15)


def test_the_way_back_is_the_transpose() -> None:
    """Of tables with runs of levels, plain or centred, and of sums over pairs with runs beside them."""
    rng = np.random.default_rng(8)
    for sets, centred in ((PAIRS, False), (PAIRS, True), (WHOLE, False), (WHOLE, True)):
        evidence = gather(release(*sets, centred=centred), (0, 1, 2))
        model = LogLinear(evidence.levels, ((0, 1), (0, 2), (1, 2)), evidence.possible)
        for seen in [Tables(model, evidence), *([PairSums(model, evidence)] if sets == WHOLE else [])]:
            cells = model.pull(rng.normal(size=(4, model.cells))) @ model.design.T
            cells, slopes = cells + rng.normal(size=(4, 1)), rng.normal(size=(4, len(seen.seen)))
            np.testing.assert_allclose((seen.sums(cells) * slopes).sum(), (cells * seen.back(slopes)).sum())
