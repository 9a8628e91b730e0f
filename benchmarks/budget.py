"""Very small budgets: where the error of tables chosen privately comes from, on generated networks at epsilon = e⁻².

usage: python benchmarks/budget.py [repeats=3]

Columns first, then a spanning tree of pairs chosen by the exponential mechanism, then its pairs: by several divisions of the budget, and with parts of it
given for free (known trees, columns with a budget of their own). Noise is seeded here: nothing is private.
"""

import itertools
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from unittest import mock

import numpy as np
from common import Axes, Codes, Floats, agreed, markdown, show, table, tvd_rows, write_page
from networks import Network, random_network, sample

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.methods.cipher import Cipher
from dpcipher.methods.independent import Independent
from dpcipher.privacy.budget import rho_for
from dpcipher.privacy.draws import Draws, SeededChooser
from dpcipher.schema.schema import Schema
from dpcipher.selection import rounds
from dpcipher.selection.prediction import independent
from dpcipher.selection.rounds import SpanningFirst
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

EPSILON, DELTA, ROWS, NETWORKS = math.exp(-2), 1e-9, 10_000, 3
RHO = float(rho_for(Fraction(EPSILON), Fraction(1, 10**9)))
WIDTHS, MANY_COLUMNS = (20, 37), 70


def skewed_network(columns: int, rng: np.random.Generator) -> tuple[dict[str, list[str]], Network]:
    """Columns of 2 to 4 levels, some much rarer than others; a quarter have no parent, the others up to three among the six before."""
    sizes = rng.integers(2, 5, columns)
    tables: Network = {}
    for i, size in enumerate(sizes):
        near = np.arange(max(0, i - 6), i)
        wanted = 0 if rng.random() < 0.25 else min(len(near), int(rng.integers(1, 4)))
        parents = sorted(rng.choice(near, wanted, replace=False)) if wanted else []
        chances = 0.25 * size * rng.dirichlet(np.ones(size)) + 0.02
        shape = [int(sizes[parent]) for parent in parents]
        tables[f"c{i}"] = [f"c{parent}" for parent in parents], rng.dirichlet(chances, shape)
    return {f"c{i}": [str(level) for level in range(size)] for i, size in enumerate(sizes)}, tables


KINDS: dict[str, Callable[[int, np.random.Generator], tuple[dict[str, list[str]], Network]]] = {
    "even": random_network,
    "skewed": skewed_network,
}


READING = (
    "With a twentieth for the columns first the error of a tree is largest: they are poor themselves, and make pairs look dependent that are not. Half of the budget and six tenths do alike. "
    "`auto` looks at two pairs per column instead of a tree. Lists only as long as can be told apart were tried, and taken back after a first run of auto.py: 9 % were lost on mushroom, and on generated "
    "latent classes, where all columns depend on one another, 2 %. What is given for nothing says what is left to gain: the choice, and the noise of columns and of pairs about alike; within the budget one takes "
    "it from the other.\n\n"
    "What lowers both is a question that costs less. Counting the rows once, and measuring all tables less their mean, does: `auto` against `auto, whole tables`, which is what it was before, with half of the budget for "
    "columns instead of two fifths. (Shares of .3, .4 and .5 for columns and of .04, .06 and .1 for the rows were tried on four seeds of these networks: .4 and .06 did best, by 2 % at most.) Measuring the interactions of pairs "
    "alone, whose squared sensitivity is 4/9 of that of a 3×3 table, does not: whole pairs tell of their columns too, which then need a larger share."
)


@dataclass(frozen=True)
class Data:
    """Rows of a network."""

    codes: Codes
    shape: tuple[int, ...]

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_domain({f"c{axis}": size for axis, size in enumerate(self.shape)})

    @cached_property
    def pairs(self) -> list[Axes]:
        return list(itertools.combinations(range(len(self.shape)), 2))

    def counts(self, axes: Axes) -> Floats:
        return table(self.codes, self.shape, axes)

    def distances(self, predict: Callable[[Axes], Floats]) -> np.ndarray:
        """Of every pair from its prediction, in whole rows."""
        return np.array([np.abs(self.counts(pair) - predict(pair)).sum() for pair in self.pairs], np.int64)

    def measured(
        self, tables: list[Axes], share: float, rng: np.random.Generator, centred: bool = False
    ) -> list[Measurement]:
        """Tables with equal parts of a share; centred where the number of rows is measured by itself.

        One row moves a table of K cells by 1 in squared L2, and by 1 - 1/K without its mean.
        """
        found = []
        for axes in tables:
            counts = self.counts(axes)
            query = Query(axes, centred=centred)
            l2_squared = query.moved(self.shape, "add-remove")[1]
            noise = Noise("gaussian", math.sqrt(l2_squared * len(tables) / (2 * RHO * share)))
            found.append(Measurement(query, np.rint(rng.normal(query.contrast(counts), noise.scale)), noise))
        return found

    def interactions(self, pairs: list[Axes], share: float, rng: np.random.Generator) -> list[Measurement]:
        """Pairs whose interactions alone are measured, with equal parts of a share.

        One row moves the interaction of a K × L table by (1 - 1/K)(1 - 1/L) in squared L2, a table by 1.
        """
        found = []
        for axes in pairs:
            query = Query(axes, contrasts=axes)
            l2_squared = query.moved(self.shape, "add-remove")[1]
            noise = Noise("gaussian", math.sqrt(l2_squared * len(pairs) / (2 * RHO * share)))
            seen = rng.normal(query.contrast(self.counts(axes)), noise.scale)
            found.append(Measurement(query, np.rint(seen), noise))
        return found


def generated(kind: str, columns: int, seed: int) -> Data:
    levels, tables = KINDS[kind](columns, np.random.default_rng(100 + seed))
    codes = sample(tables, list(levels), ROWS, np.random.default_rng(seed))
    return Data(codes, tuple(map(len, levels.values())))


@dataclass(frozen=True)
class TreeDesign:
    """Shares of the columns, of the choice and of the pairs of a tree.

    Pairs are whole tables or their `interactions` alone. With a share of the `total`, all tables are measured less their mean. What is `free` is not paid
    for: with no share of the choice the tree is known.
    """

    columns: float
    choice: float
    pairs: float
    total: float = 0.0
    interactions: bool = False
    free: str = ""

    def rows(self, data: Data, seed: int) -> Codes:
        """Synthetic rows."""
        rng, noisy = np.random.default_rng(seed), list[Measurement]()
        one_way = [(axis,) for axis in range(len(data.shape))]
        if self.total:
            noise = Noise("gaussian", math.sqrt(1 / (2 * RHO * self.total)))
            noisy.append(Measurement(Query(()), np.array(rng.normal(ROWS, noise.scale)), noise))
        noisy += data.measured(one_way, self.columns, rng, self.total > 0)
        if self.pairs:
            tree = self._tree(data, noisy, rng)
            noisy += (
                data.interactions(tree, self.pairs, rng)
                if self.interactions
                else data.measured(tree, self.pairs, rng, self.total > 0)
            )
        chain, _ = solve_rows(denoise(agreed(data.shape, noisy)))
        return np.concatenate(list(chain.sample(ROWS, rng)))

    def _tree(self, data: Data, noisy: list[Measurement], rng: np.random.Generator) -> list[Axes]:
        """The spanning tree of the largest distances from independent columns, as far as the choice tells them."""
        edges, scale = len(data.shape) - 1, 1e-6
        known = [
            Measurement(Query(one.query.axes), data.counts(one.query.axes), Noise("none", 0.0))
            for one in noisy
        ]
        if self.choice:
            known, scale = noisy, math.sqrt(edges / (2 * RHO * self.choice))
        prediction = independent(agreed(data.shape, known))
        assert prediction is not None
        scores = data.distances(prediction.predict)
        return [
            data.pairs[place] for place in SpanningFirst(data.pairs)(SeededChooser(rng), scores, scale, edges)
        ]


DESIGNS = {
    "independent columns": TreeDesign(1.0, 0.0, 0.0),
    "tree, thirds (as MST)": TreeDesign(1 / 3, 1 / 3, 1 / 3),
    "tree, .05 columns": TreeDesign(0.05, 0.1, 0.85),
    "tree, .4 columns": TreeDesign(0.4, 0.1, 0.5),
    "tree, .5 columns": TreeDesign(0.5, 0.1, 0.4),
    "tree, .6 columns": TreeDesign(0.6, 0.1, 0.3),
    "tree, .5 columns, interactions": TreeDesign(0.5, 0.1, 0.4, interactions=True),
    "tree, .7 columns, interactions": TreeDesign(0.7, 0.1, 0.2, interactions=True),
    "tree, .45 columns, .06 rows, less means": TreeDesign(0.45, 0.1, 0.39, total=0.06),
    "tree known for nothing": TreeDesign(0.5, 0.0, 0.5, free="tree"),
    "columns with twice as much": TreeDesign(1.0, 0.1, 0.4, free="columns"),
    "pairs with 2.5 times as much": TreeDesign(0.5, 0.1, 1.0, free="pairs"),
}


def auto_rows(data: Data, seed: int) -> Codes:
    """By `Cipher(workload="auto")`."""
    method = Cipher(EPSILON, delta=DELTA, unit="add-remove", workload="auto")
    fitted = method.fit_counts(data.codes, data.schema, draws=Draws.seeded(seed), codes=True)
    return np.concatenate(list(fitted.joint.core.sample(ROWS, np.random.default_rng(seed))))


def whole_rows(data: Data, seed: int) -> Codes:
    """By `auto` as it would be without centred tables."""
    with mock.patch.multiple(rounds, centres=lambda *_, **__: False, COLUMNS=Fraction(1, 2)):
        return auto_rows(data, seed)


def study(repeats: int) -> list[list[str]]:
    """A row for every design: its error on each kind and width, and the mean ratio to `auto`."""
    makers: dict[str, Callable[[Data, int], Codes]] = {"auto": auto_rows, "auto, whole tables": whole_rows}
    makers |= {name: design.rows for name, design in DESIGNS.items()}
    errors: dict[str, list[Floats]] = {name: [] for name in makers}
    for kind, width in itertools.product(KINDS, WIDTHS):
        found: dict[str, list[list[float]]] = {name: [] for name in makers}
        for network in range(NETWORKS):
            data = generated(kind, width, network)
            for name, seed in itertools.product(makers, range(repeats)):
                own = zlib.crc32(f"{name} {network} {seed}".encode())  # no two designs share their luck
                found[name].append(tvd_rows(data.codes, makers[name](data, own), data.shape))
        for name, values in found.items():
            errors[name].append(np.mean(values, axis=0))
            print(kind, width, name, show(errors[name][-1]), flush=True)
    ratios = {
        name: np.mean([one / own for one, own in zip(values, errors["auto"], strict=True)], axis=0)
        for name, values in errors.items()
    }
    return [[name, *map(show, values), show(ratios[name], 2)] for name, values in errors.items()]


def independent_rows(data: Data, seed: int) -> Codes:
    """By `Independent`, which measures the columns alone."""
    method = Independent(EPSILON, delta=DELTA, unit="add-remove")
    fitted = method.fit_counts(data.codes, data.schema, draws=Draws.seeded(seed), codes=True)
    return np.concatenate(list(fitted.joint.core.sample(ROWS, np.random.default_rng(seed))))


def many_columns(repeats: int) -> list[list[str]]:
    """`auto` and `Independent` on many columns: errors of each kind, and their ratio."""
    lines = []
    for kind in KINDS:
        errors: list[list[list[float]]] = []
        for network, seed in itertools.product(range(NETWORKS), range(repeats)):
            data = generated(kind, MANY_COLUMNS, network)
            made = [make(data, seed) for make in (auto_rows, independent_rows)]
            errors.append([tvd_rows(data.codes, rows, data.shape) for rows in made])
        auto, alone = np.mean(errors, axis=0)
        lines.append([f"{kind}, {MANY_COLUMNS} columns", show(auto), show(alone), show(auto / alone, 2)])
    return lines


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    runs = NETWORKS * repeats
    head = [
        "design",
        *(f"{kind}, {width} columns" for kind, width in itertools.product(KINDS, WIDTHS)),
        "mean ratio to auto",
    ]
    note = (
        f"(ε, δ) = (e⁻², 10⁻⁹), add-remove, {ROWS} rows; mean TVD of 1/2/3-way tables between rows and data, {NETWORKS} networks of each kind and width, "
        f"{repeats} seeds each; a run differs from seed to seed by about a tenth, so a ratio over all {len(KINDS) * len(WIDTHS) * runs} runs is known to 2 or 3 %. "
        "A tree: columns first, with the share that is named, a tenth for the choice of a spanning tree by distances from what the columns predict, the rest "
        "for its pairs in equal parts. The last three are no private designs: what is named is given beyond the budget."
    )
    write_page(
        "budget",
        "Very small budgets",
        f"python benchmarks/budget.py {repeats}",
        [
            note,
            markdown(head, study(repeats)),
            READING,
            "## Many columns\n\nBeside columns measured alone, with all of the budget, as `Independent` does.",
            markdown(["data", "auto", "Independent", "ratio"], many_columns(max(2, repeats // 2))),
        ],
    )


if __name__ == "__main__":
    main()
