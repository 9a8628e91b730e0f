"""What does choosing the tables by looking at the data do to the coverage of models from one release?

usage: python benchmarks/models_auto.py [repeats=100]

An outcome y, three columns that it depends on strongly, moderately and weakly, and eight further columns that depend on one another, so that tables
compete for the budget. `workload="auto"` spends part of it on choosing; `fit_models` then knows the noise of what was measured, and leaves open what was
not. Beside it stands the posterior that takes every pair that was not measured for unrelated. Under pure ε the noise is Laplace's; with δ it is Gaussian, and tables are
measured centred. Noise is seeded: nothing here is private.
"""

import sys
from collections import defaultdict
from math import exp

import numpy as np
from common import Floats, markdown, write_page
from numpy.typing import NDArray

from dpcipher.errors import SolveError
from dpcipher.inference.design import make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.release_models import draw_coefficients
from dpcipher.methods.cipher import Cipher
from dpcipher.privacy.draws import Draws
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema
from experiments.paper.population import design

SIZES, POWERS, DELTAS, DRAWS = (1_000, 4_000), (-1, 0, 1), (None, 1e-6), 400
OPEN, CLOSED = "fit_models", "closed"
MODEL = {"y": 2, "strong": 3, "moderate": 3, "weak": 3}
SCHEMA = Schema.from_domain({**MODEL, **{f"z{number}": 4 for number in range(8)}})
# The constant, then two levels of each column against the first.
TRUTH = np.array([-0.2, 1.2, -1.0, 0.6, -0.5, 0.25, -0.2])
COLUMNS = (None, "strong", "strong", "moderate", "moderate", "weak", "weak")
X = design((3, 3, 3))
TASK = make_task(SCHEMA, "y ~ C(strong) + C(moderate) + C(weak)", "logistic")
READING = """## Reading it

- The noise of a chosen table does not depend on the choice: terms whose table was measured are covered as usual, or more often where the noise leaves the prior to speak.
- A term whose table was not chosen is left open by `fit_models`: its interval is as wide as the prior lets it be, and a note says that it is the prior's. It tells little, and covers.
- Taken for unrelated, such a term has an interval that is a point at 0. It covers nothing but 0, however weak the effect: a release cannot speak of what it did not measure.
"""


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


def chosen(n_rows: int, epsilon: float, delta: float | None, seed: int) -> Release:
    """A release of tables that were chosen privately."""
    codes = people(n_rows, np.random.default_rng([15, n_rows, seed]))
    method = Cipher(epsilon, delta=delta, unit="add-remove", workload="auto")
    release = method.fit_counts(codes, SCHEMA, draws=Draws.seeded(seed), codes=True).release
    assert isinstance(release, Release)
    return release


def bounds(release: Release, seed: int) -> dict[str, tuple[Floats, Floats]]:
    """95 % intervals of the coefficients as `fit_models` gives them, and with every pair that was not measured taken for unrelated."""
    fit = draw_coefficients(release, TASK, draws=DRAWS, seed=seed)
    return {
        OPEN: DrawSummary(fit.beta).interval(),
        CLOSED: DrawSummary(TASK.fit(fit.joint.draws).coefficients).interval(),
    }


def measured_terms(release: Release) -> Floats:
    """For each coefficient: 1 where its column was measured together with y, 0 where not, NaN for the constant."""
    held = [set(attrs) for attrs in release.workload]
    return np.array(
        [np.nan if name is None else float(any({name, "y"} <= attrs for attrs in held)) for name in COLUMNS]
    )


def study(n_rows: int, delta: float | None, power: int, repeats: int) -> list[str]:
    """One row of the table."""
    hits, widths = defaultdict(list), defaultdict(list)
    shares, tables, refused = [], [], 0
    for seed in range(repeats):
        release = chosen(n_rows, exp(power), delta, seed)
        assert release.centred == (delta is not None)  # centred
        seen = measured_terms(release)
        shares.append(np.nanmean(seen))
        tables.append(len(release.workload))
        try:
            found = bounds(release, seed)
        except SolveError:
            refused += 1
            continue
        for way, (low, high) in found.items():
            hit = (low <= TRUTH) & (high >= TRUTH)
            for kind, which in (("measured", seen == 1), ("not", seen == 0)):
                hits[way, kind].append(hit[which])
                widths[way, kind] += (high - low)[which].tolist()
    keys = [(way, kind) for way in (OPEN, CLOSED) for kind in ("measured", "not")]
    return [
        "Laplace" if delta is None else "Gaussian",
        f"{n_rows:,}",
        f"e^{power}",
        f"{np.mean(tables):.1f}",
        f"{np.mean(shares):.0%}",
        *(f"{_coverage(hits[key])} ({np.mean(widths[key]):.2f})" if widths[key] else "–" for key in keys),
        str(refused),
    ]


def _coverage(hits: list[NDArray[np.bool_]]) -> str:
    """The share of covered terms with its standard error over repeats, whose terms go together."""
    total = sum(part.size for part in hits)
    share = sum(int(part.sum()) for part in hits) / total
    return f"{share:.3f} ± {sum(float((part - share).sum()) ** 2 for part in hits) ** 0.5 / total:.3f}"


def main(repeats: int) -> None:
    """Write the page."""
    rows = [study(n, delta, power, repeats) for delta in DELTAS for n in SIZES for power in POWERS]
    head = ["noise", "n", "ε", "tables", "terms measured", "coverage (width) of measured terms", "of others"]
    table = markdown([*head, "closed: measured terms", "closed: others", "refused"], rows)
    text = (
        f'Nominal 95 % intervals of six coefficients of y from one release with `workload="auto"`, {repeats} repeats each, seeds 15, n, repeat. Laplace noise under pure ε; Gaussian noise at δ = {DELTAS[1]:g}, where tables are centred. '
        "A term is measured where a table holds its column together with y; `fit_models` leaves the others open. `closed` takes every pair that was not measured for unrelated, as "
        f"`posterior` does unless it is told otherwise. Coverage has its Monte Carlo standard error; {DRAWS} draws."
    )
    write_page(
        "models_auto",
        "Models where the tables were chosen",
        f"python benchmarks/models_auto.py {repeats}",
        [text, table, READING],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
