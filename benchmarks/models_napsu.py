"""What do models from one release cost beside NAPSU-MQ, and do both say the same?

usage: python benchmarks/models_napsu.py prepare FILE.npz     one noisy release of all pairs of 2×2×3×3 for the peer
       python benchmarks/models_napsu.py page FILE.npz OUT.npz [OUT.npz …]

Between the two, `peers/napsu_mq.py` (see there for its environment) is run on the file, once with twinify's own settings and, where these do not end, once with
fewer steps. Both sides get the same Gaussian noise and the number of rows. Noise is seeded: nothing here is private.
"""

import json
import sys
import time
from itertools import combinations

import numpy as np
from common import Floats, markdown, write_page

from dpcipher.inference.design import make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.models import fit_models
from dpcipher.privacy.draws import SeededNoise
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from experiments.paper.population import POPULATION, SHAPE
from experiments.paper.stacks import margins

N_ROWS, RHO, SEED, TIMED = 2_000, 0.1, 14, 5
PAIRS = tuple(combinations(range(len(SHAPE)), 2))
SCHEMA = Schema.from_domain({f"V{number}": size for number, size in enumerate(SHAPE, 1)})
FORMULA = "V4 ~ C(V1) + C(V2) + C(V3)"
MECHANISM = Noise("gaussian", (len(PAIRS) / (2 * RHO)) ** 0.5)


def noisy_tables() -> list[Counts]:
    """Every pair with discrete Gaussian noise; all six together are ρ-zCDP under add-remove."""
    counts = POPULATION.draw(N_ROWS, 1, np.random.default_rng(SEED))
    source = SeededNoise(SEED)
    return [source.add(margins(counts, axes)[0], MECHANISM) for axes in PAIRS]


def prepare(path: str) -> None:
    """The file for the peer."""
    flat = np.concatenate([table.ravel() for table in noisy_tables()]).astype(float)
    np.savez(path, shape=SHAPE, tables=json.dumps(PAIRS), sigma=MECHANISM.scale, n_rows=N_ROWS, y=flat[None])


def ours() -> tuple[DrawSummary, float]:
    """The coefficients from our release, with the interactions that no table shows taken for none as NAPSU-MQ does; the least of a few processor times."""
    tables = [
        Measurement(Query(axes), counts, MECHANISM)
        for axes, counts in zip(PAIRS, noisy_tables(), strict=True)
    ]
    release, seconds = Release(SCHEMA, tuple(tables), Statement(status="NOT PRIVATE", n_rows=N_ROWS)), []
    for _ in range(TIMED):
        started = time.process_time()
        models = fit_models(release, FORMULA, "multinomial", seed=1)
        seconds.append(time.process_time() - started)
    assert models.release is not None
    assert models.release.closed is not None
    return models.release.closed, min(seconds)


def theirs(joints: Floats) -> DrawSummary:
    """The coefficients of the peer's draws of the joint."""
    task = make_task(SCHEMA, FORMULA, "multinomial")
    order = [1 + SCHEMA.attrs.index(name) for name in task.formula.columns]
    return DrawSummary(task.fit(joints.reshape(-1, *SHAPE).transpose(0, *order)).coefficients)


def page(given: str, answers: list[str]) -> None:
    """The page of results."""
    own, seconds = ours()
    width = np.ptp(own.interval(), axis=0)
    lines = [["fit_models (1,000 draws)", f"{seconds:.2f}", "1", "–", "–"]]
    for path in answers:
        answer = np.load(path)
        drawn = theirs(answer["joints"][0])
        shift = np.abs(drawn.estimate - own.estimate) / own.std_error
        ratio = np.ptp(drawn.interval(), axis=0) / width
        spent = float(answer["seconds"][0])
        lines.append(
            [
                str(answer["settings"]),
                f"{spent:.0f}",
                f"{spent / seconds:,.0f}",
                f"{shift.max():.2f}",
                f"{ratio.mean():.2f}",
            ]
        )
    text = (
        f"Ten coefficients of V4 on V1, V2, V3 from one release of all six pairs of 2×2×3×3, n = {N_ROWS:,}, discrete Gaussian noise (ρ = {RHO}, σ = {MECHANISM.scale:.2f}), the number of rows told to "
        "both. NAPSU-MQ is twinify's own code (JAX, NumPyro's NUTS) on the same noisy counts; its time is processor time with compiling, which every new shape of tables pays. "
        "Its model has no interaction beyond the pairs, so the last two columns compare with our `closed_low` and `closed_high`: the largest difference of estimates in "
        "standard errors, and the mean ratio of widths. NAPSU-MQ reads as many counts as its model has parameters (its canonical queries), ours all counts of all six tables, which hold every "
        "margin several times over: one reason why its intervals are wider."
    )
    head = ["", "processor seconds", "ratio", "largest shift (standard errors)", "width / ours"]
    write_page(
        "models_napsu",
        "Models from one release beside NAPSU-MQ",
        f"python benchmarks/models_napsu.py page {given}",
        [text, markdown(head, lines)],
    )


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
    else:
        page("release.npz", sys.argv[3:])
