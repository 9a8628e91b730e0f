"""What compiling would gain: loops of the rows engine in numba against the same work in NumPy, in one process each way round.

usage: python benchmarks/compiled.py     (needs numba, which nothing else here does)
"""

from collections.abc import Callable

import numba
import numpy as np
from common import least_seconds, markdown, write_page
from rowsout import adult_chain

from dpcipher.engines.rows import FACTOR, LEAST, Equation, _grouped, _raked, _start
from dpcipher.joint.blocks import Block
from dpcipher.joint.chain import Chain
from dpcipher.joint.even import _GoalWalk

ROWS, OFFERED = 65_536, 8_192
BINARY, POPULATION = 200, 16_384
TIMES = 5


@numba.njit(boundscheck=False, fastmath=True)
def compiled_draw(base, factor, starts, tables, heights, levels):  # type: ignore[no-untyped-def]
    """A level for each row: its chances in a small array, cumulated, and searched by halving."""
    size, chances = len(base), np.empty(len(base), np.float32)
    for row in range(len(heights)):
        chances[:] = base
        for table in range(len(starts)):
            start = (starts[table] + tables[table, row]) * size
            for level in range(size):
                chances[level] *= factor[start + level]
        for level in range(1, size):
            chances[level] += chances[level - 1]
        height, low, high = np.float32(heights[row]) * chances[-1], 0, size - 1
        while low < high:
            middle = (low + high) // 2
            if chances[middle] <= height:
                low = middle + 1
            else:
                high = middle
        levels[row] = low


@numba.njit(boundscheck=False)
def compiled_gains(excess, n_levels, cells, rows, here, there, gains):  # type: ignore[no-untyped-def]
    """What each row's move would change."""
    for move in range(len(rows)):
        gain = 0.0
        for block in range(cells.shape[1]):
            place = cells[rows[move], block] * n_levels
            gain += excess[place + there[move]] - excess[place + here[move]]
        gains[move] = gain


@numba.njit(boundscheck=False)
def compiled_sums(own, chances, table):  # type: ignore[no-untyped-def]
    """The sums over the rows of each cell, of chances that are scaled to one."""
    for row in range(len(own)):
        total = np.float32(0)
        for level in range(chances.shape[1]):
            total += chances[row, level]
        for level in range(chances.shape[1]):
            table[own[row], level] += chances[row, level] / total


@numba.njit(boundscheck=False)
def compiled_raked(current, wanted, factors, sizes):  # type: ignore[no-untyped-def]
    """`_raked` cell by cell."""
    table, behind, start = current.copy(), len(current), 0
    rows = current.sum(axis=1)
    for size in sizes:
        behind //= size
        have = np.zeros((size, table.shape[1]))
        for cell in range(len(table)):
            have[cell // behind % size] += table[cell]
        ratio = np.minimum(np.maximum(wanted[start : start + size] / have, 1 / FACTOR), FACTOR)
        factors[start : start + size] *= ratio
        for cell in range(len(table)):
            table[cell] *= ratio[cell // behind % size]
            table[cell] *= rows[cell] / table[cell].sum()
        start += size
    return table


@numba.njit(boundscheck=False)
def compiled_product(own, ratio, chances):  # type: ignore[no-untyped-def]
    """Each row's chances times those of its cell."""
    for row in range(len(own)):
        for level in range(chances.shape[1]):
            chances[row, level] *= ratio[own[row], level]


def draws(chain: Chain, codes: np.ndarray) -> tuple[float, float]:
    """Seconds of one level for each row, all columns."""
    heights = np.random.default_rng(1).random(len(codes)) * (1 - 2.0**-20)
    every, spent = np.arange(len(codes)), np.zeros(2)
    for link in chain._fast_links[1:]:
        tables = np.stack([crossed.rows(codes, chain.shape) for crossed in link._crossed])
        starts = np.cumsum([0, *(len(crossed.factor) for crossed in link._crossed[:-1])])
        factor = np.concatenate([crossed.factor.ravel() for crossed in link._crossed])
        levels = np.empty(len(codes), np.int32)
        inputs = (link._base, factor, starts, tables, heights, levels)
        drawer = link._drawer(codes)
        spent += [
            least_seconds(lambda d=drawer: d(every, heights), TIMES),
            least_seconds(lambda i=inputs: compiled_draw(*i), TIMES),
        ]
        assert (levels != drawer(every, heights)).mean() < 1e-3
    return spent[0], spent[1]


def gains(chain: Chain, codes: np.ndarray) -> tuple[float, float]:
    """Seconds of judging one move for some rows, all columns."""
    rng, spent = np.random.default_rng(2), np.zeros(2)
    rows = rng.permutation(len(codes))[:OFFERED]
    for link in chain.links[1:]:
        cells = link.blocks.cells(codes, chain.shape)
        goals = link.goals * link.blocks.counts(cells)
        walk = _GoalWalk(codes[:, link.attribute].copy(), link.blocks, cells, goals)
        proposed = rng.integers(len(link.base), size=len(codes)).astype(np.int32)
        excess, found = link.blocks.crossed(walk.excess).ravel(), np.empty(len(rows))
        inputs = (excess, len(link.base), walk._cells, rows, walk.levels[rows], proposed[rows], found)
        spent += [
            least_seconds(lambda w=walk, p=proposed: w.gains(rows[None], p), TIMES),
            least_seconds(lambda i=inputs: compiled_gains(*i), TIMES),
        ]
        np.testing.assert_allclose(
            found + len(link.groups), walk.gains(rows[None], proposed), rtol=1e-9, atol=1e-6
        )
    return spent[0], spent[1]


def raking() -> tuple[float, float]:
    """Seconds of one sweep over the tables of a binary column with many others."""
    rng = np.random.default_rng(3)
    codes = np.asfortranarray(rng.integers(0, 2, (POPULATION, BINARY)), dtype=np.int32)
    equations = [Equation((axis,), rng.dirichlet(np.ones(4)).reshape(2, 2)) for axis in range(BINARY)]
    link = _start(BINARY, np.array([0.4, 0.6]), equations, ())
    cells = link.blocks.cells(codes, (2,) * BINARY)
    wanted = link.goals * link.blocks.counts(cells) + LEAST

    def in_numpy(block: Block, own: np.ndarray, chances: np.ndarray, factors: np.ndarray) -> None:
        current = _grouped(own, block.size, chances) + LEAST
        raked = _raked(block, current, wanted[block.levels], factors[block.levels])
        chances *= (raked / current).astype(chances.dtype).take(own, axis=0)

    def compiled(block: Block, own: np.ndarray, chances: np.ndarray, factors: np.ndarray) -> None:
        current = np.full((block.size, 2), LEAST)
        compiled_sums(own, chances, current)
        raked = compiled_raked(current, wanted[block.levels], factors[block.levels], block.sizes)
        compiled_product(own, (raked / current).astype(chances.dtype), chances)

    def sweep(step: Callable[..., None]) -> np.ndarray:
        chances, factors = np.full((POPULATION, 2), 0.5, np.float32), np.ones_like(link.factors)
        for block, own in zip(link.blocks.blocks, cells, strict=True):
            step(block, own, chances, factors)
        return factors

    np.testing.assert_allclose(sweep(in_numpy), sweep(compiled), rtol=1e-4)
    return least_seconds(lambda: sweep(in_numpy), TIMES), least_seconds(lambda: sweep(compiled), TIMES)


def main() -> None:
    chain = adult_chain()
    codes = np.asfortranarray(np.concatenate(list(chain.sample(ROWS, np.random.default_rng(0)))))
    jobs = {
        f"a level for each of {ROWS:,} rows, 13 columns of Adult": draws(chain, codes),
        f"judging a move of each of {OFFERED:,} rows, 13 columns of Adult": gains(chain, codes),
        f"one raking sweep of {POPULATION:,} rows, a binary column with {BINARY} others": raking(),
    }
    lines = [
        (job, f"{1000 * plain:.1f}", f"{1000 * loop:.1f}", f"{plain / loop:.2f}")
        for job, (plain, loop) in jobs.items()
    ]
    about = (
        f"The inner loops of the rows engine in numba {numba.__version__}, compiled beforehand, against NumPy as it is installed. Processor milliseconds, the least of {TIMES}, on a "
        "machine that others shared. Levels are drawn from chances in single precision, found by halving. Counting pairs is not here, because NumPy takes no longer than a [loop in C](scale.md)."
    )
    verdict = (
        "Judging moves is about a tenth of the time of even rows on Adult, raking about a quarter of that of a release with hundreds of binary columns, by profile. A compiled part would "
        "therefore gain about a tenth of the whole at best, and is left out: one set of numbers, and an installation that needs no compiler."
    )
    page = markdown(["work", "NumPy, ms", "numba, ms", "times as fast"], lines)
    write_page(
        "compiled", "What compiling would gain", "python benchmarks/compiled.py", [about, page, verdict]
    )


if __name__ == "__main__":
    main()
