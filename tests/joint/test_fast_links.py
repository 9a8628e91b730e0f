"""Fast independent draws of a link against the probabilities that it states, worked out in double precision."""

import numpy as np
import pytest

from dpcipher.joint import link as fast_links
from dpcipher.joint.link import FastLink, Link

SHAPE = (4, 3, 5, 2)
EACH = 20_000


def example(
    levels: int, seed: int, *, steep: float = 1.0, zeros: bool = False
) -> tuple[Link, tuple[int, ...]]:
    """A link on three groups of earlier attributes, one of them a pair; with `zeros` some levels have no probability at all."""
    rng = np.random.default_rng(seed)
    shape = (*SHAPE, levels)
    groups: tuple[tuple[int, ...], ...] = ((0,), (1, 3), (2,))
    sizes = tuple(int(np.prod([shape[axis] for axis in group])) for group in groups)
    base = rng.dirichlet(np.ones(levels))
    if zeros:
        base[rng.permutation(levels)[: levels // 2]] = 0.0
    factors = rng.normal(0, steep, (sum(sizes), levels))
    return Link(4, groups, sizes, base / base.sum(), factors, np.zeros_like(factors)), shape


def configurations(seed: int, count: int = 6) -> np.ndarray:
    """A few rows of earlier attributes."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, size, count) for size in (*SHAPE, 1)], axis=1)
    return rows.astype(np.int32)


@pytest.mark.parametrize("levels", [1, 2, 5, 17, 100])
@pytest.mark.parametrize("table", [40, 2**18])
def test_levels_follow_the_probabilities_of_the_link(levels: int, table: int, monkeypatch) -> None:
    """For each of several rows the χ² of many levels is unremarkable, with every group by itself and with all groups crossed."""
    monkeypatch.setattr(fast_links, "_TABLE", table)
    monkeypatch.setattr(fast_links, "_BLOCK", 999 * levels)
    link, shape = example(levels, seed=levels, zeros=levels > 4)
    rows = configurations(1)
    exact = link.probabilities(rows, shape, dtype=np.float64)
    drawn = FastLink(link, shape).draw(np.repeat(rows, EACH, axis=0), np.random.default_rng(2))
    for number, wanted in enumerate(exact):
        counts = np.bincount(drawn[number * EACH : (number + 1) * EACH], minlength=levels)
        assert len(counts) == levels
        assert not counts[wanted == 0].any()
        common = EACH * wanted > 5
        chi2 = float(((counts - EACH * wanted)[common] ** 2 / (EACH * wanted[common])).sum())
        assert chi2 < common.sum() + 6 * np.sqrt(2 * common.sum())
        rare = counts[~common].sum()
        assert abs(rare - EACH * wanted[~common].sum()) < 6 * np.sqrt(EACH * wanted[~common].sum()) + 6


def test_levels_of_successive_rows_are_independent() -> None:
    """Levels of neighbouring rows, and of the same row in two draws, are uncorrelated."""
    link, shape = example(9, seed=3)
    rows = np.repeat(configurations(2, 1), 40_000, axis=0)
    rng = np.random.default_rng(4)
    one, two = (FastLink(link, shape).draw(rows, rng) for _ in range(2))
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.025  # five standard errors
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.025


def test_chances_that_single_precision_loses_are_drawn_in_double(monkeypatch) -> None:
    """Factors so far apart that their products vanish: levels still follow the exact probabilities, and none is impossible."""
    link, shape = example(6, seed=5, steep=60.0)
    rows = np.repeat(configurations(3, 40), 500, axis=0)
    exact = link.probabilities(rows, shape, dtype=np.float64)
    calls = []
    slowly = FastLink._draw_slowly
    monkeypatch.setattr(
        FastLink, "_draw_slowly", lambda self, *given: calls.append(len(given[0])) or slowly(self, *given)
    )
    monkeypatch.setattr(fast_links, "_TABLE", 1)
    drawn = FastLink(link, shape).draw(rows, np.random.default_rng(6))
    assert sum(calls) > 0
    assert exact[np.arange(len(rows)), drawn].min() > 1e-6
    counts = np.bincount(drawn, minlength=6)
    assert np.abs(counts - exact.sum(axis=0)).max() < 6 * np.sqrt(len(rows) / 4)


@pytest.mark.parametrize("levels", [2, 17, 100])
def test_a_height_means_the_same_level_as_on_a_ladder(levels: int) -> None:
    """Some rows in any order: but for heights within rounding of a rung, the level is the one that the cumulative probabilities of the link have there."""
    link, shape = example(levels, seed=levels, zeros=levels > 4)
    rows = configurations(4, 3_000)
    chosen = np.random.default_rng(7).permutation(3_000)[:2_000]
    heights = np.random.default_rng(8).random(2_000)
    drawn = FastLink(link, shape)._drawer(rows)(chosen, heights)
    rungs = np.cumsum(link.probabilities(rows[chosen], shape, dtype=np.float64), axis=1)
    exact = (rungs <= heights[:, None]).sum(axis=1)
    near = np.abs(rungs - heights[:, None]).min(axis=1) < 1e-5
    assert near.mean() < 0.01
    np.testing.assert_array_equal(drawn[~near], exact[~near])


@pytest.mark.parametrize("room", [2**10, 2**14])
def test_the_tables_of_many_groups_stay_within_their_room(room: int) -> None:
    """Forty binary columns before a binary one: fewer tables than columns, and no more numbers than there is room for."""
    groups = tuple((axis,) for axis in range(40))
    values = np.random.default_rng(9).normal(0, 0.1, (80, 2))
    link = Link(40, groups, (2,) * 40, np.full(2, 0.5), values, np.full((80, 2), 0.5))
    tables = FastLink(link, (2,) * 41, room)._crossed
    assert len(tables) < 20
    assert sum(table.factor.size for table in tables) <= room
    assert sorted(axis for table in tables for axis in table.axes) == list(range(40))
