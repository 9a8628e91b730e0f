"""What does choosing the tables by looking at the data do to the coverage of models from one release?

usage: python benchmarks/models_auto.py [repeats=60]

An outcome y, three columns that it depends on strongly, moderately and weakly, and eight further columns that depend on one another, so that tables
compete for the budget. `workload="auto"` spends part of it on choosing; the posterior then knows the noise of what was measured, and takes
every interaction that was not for none. With `interactions=2` the other pairs are left open, to the prior alone. Noise is seeded: nothing here is private.
"""

import sys
from collections import Counter, defaultdict
from math import exp

import numpy as np
from common import Floats, markdown, write_page
from numpy.typing import NDArray

from dpcipher.errors import SolveError
from dpcipher.inference.logit import fit_logit
from dpcipher.methods.cipher import Cipher
from dpcipher.paper.population import design
from dpcipher.posteriors.posterior import posterior
from dpcipher.privacy.choose import Draws
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

SIZES, POWERS, DRAWS = (1_000, 4_000), (-1, 0, 1), 400
MODEL = {"y": 2, "strong": 3, "moderate": 3, "weak": 3}
SCHEMA = Schema.from_domain({**MODEL, **{f"z{number}": 4 for number in range(8)}})
# The constant, then two levels of each column against the first.
TRUTH = np.array([-0.2, 1.2, -1.0, 0.6, -0.5, 0.25, -0.2])
COLUMNS = (None, "strong", "strong", "moderate", "moderate", "weak", "weak")
X = design((3, 3, 3))


def people(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows: three independent columns, the outcome by a logit of their main effects, and a chain of eight others."""
    causes = rng.integers(0, 3, (n_rows, 3))
    scores = X[np.ravel_multi_index(tuple(causes.T), (3, 3, 3))] @ TRUTH
    outcome = (rng.random(n_rows) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    others = [rng.integers(0, 4, n_rows)]
    for _ in range(7):
        kept = rng.random(n_rows) < 0.4
        others.append(np.where(kept, others[-1], rng.integers(0, 4, n_rows)))
    return np.column_stack([outcome, causes, *others])


def chosen(n_rows: int, epsilon: float, seed: int) -> Release:
    """A release of tables that were chosen privately."""
    codes = people(n_rows, np.random.default_rng([15, n_rows, seed]))
    method = Cipher(epsilon, unit="add-remove", workload="auto")
    release = method.fit_counts(codes, SCHEMA, draws=Draws.seeded(seed), codes=True).release
    assert isinstance(release, Release)
    return release


def bounds(release: Release, seed: int, interactions: int | None) -> tuple[Floats, Floats]:
    """95 % intervals of the coefficients."""
    drawn = posterior(release, tuple(MODEL), draws=DRAWS, seed=seed, interactions=interactions)
    counts = 1e4 * drawn.draws.reshape(DRAWS, 2, -1).swapaxes(1, 2)
    each = fit_logit(X, counts).coefficients.reshape(DRAWS, -1)
    low, high = np.quantile(each, [0.025, 0.975], axis=0)
    return low, high


def measured_terms(release: Release) -> Floats:
    """For each coefficient: 1 where its column was measured together with y, 0 where not, NaN for the constant."""
    held = [set(attrs) for attrs in release.workload]
    return np.array(
        [np.nan if name is None else float(any({name, "y"} <= attrs for attrs in held)) for name in COLUMNS]
    )


def study(n_rows: int, power: int, repeats: int) -> list[str]:
    """One row of the table."""
    hits, widths = defaultdict(list), defaultdict(list)
    shares, tables, refused = [], [], Counter[str]()
    for seed in range(repeats):
        release = chosen(n_rows, exp(power), seed)
        seen = measured_terms(release)
        shares.append(np.nanmean(seen))
        tables.append(len(release.workload))
        for name, interactions in (("as measured", None), ("pairs left open", 2)):
            try:
                low, high = bounds(release, seed, interactions)
            except SolveError:
                refused[name] += 1
                continue
            hit = (low <= TRUTH) & (high >= TRUTH)
            for kind, which in (("measured", seen == 1), ("not", seen == 0)):
                hits[name, kind] += hit[which].tolist()
                widths[name, kind] += (high - low)[which].tolist()
    keys = [(name, kind) for name in ("as measured", "pairs left open") for kind in ("measured", "not")]
    shown = [f"{np.mean(hits[key]):.3f} ({np.mean(widths[key]):.2f})" if hits[key] else "–" for key in keys]
    turned_away = " / ".join(str(refused[name]) for name in ("as measured", "pairs left open"))
    return [
        f"{n_rows:,}",
        f"e^{power}",
        f"{np.mean(tables):.1f}",
        f"{np.mean(shares):.0%}",
        *shown,
        turned_away,
    ]


def main(repeats: int) -> None:
    """Write the page."""
    rows = [study(n_rows, power, repeats) for n_rows in SIZES for power in POWERS]
    head = ["n", "ε", "tables", "terms measured", "coverage (width) of measured terms", "of others"]
    table = markdown([*head, "measured, pairs left open", "others, pairs left open", "refused"], rows)
    text = (
        f'Nominal 95 % intervals of six coefficients of y from one release with `workload="auto"`, {repeats} repeats each, seeds 15, n, repeat. '
        "A term is measured where a table holds its column together with y."
    )
    write_page(
        "models_auto",
        "Models where the tables were chosen",
        f"python benchmarks/models_auto.py {repeats}",
        [text, table],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
