"""What a plan foresees beside what releases find: `python benchmarks/forecast.py [releases=3]`.

Generated tables of ten columns that depend on one hidden number: five with `bins: auto` (even, a bell, skewed, of few values, zeros and a skewed rest) and five of 2 to 12
levels; all pairs, add-remove. Of every release the bins of each open column, and the mean TVD of its solved pairs from the true ones, in the bins that were found.
"""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from common import asked_repeats, markdown, write_page
from scipy.special import ndtr

import dpcipher as dc

ROWS = (1_000, 7_600, 50_000)
BUDGETS: tuple[dict[str, float], ...] = (
    {"epsilon": 1.0},
    {"epsilon": 1.0, "delta": 1e-9},
    {"epsilon": 7.4, "delta": 1e-9},
)
LEVELS = (2, 3, 5, 9, 12)
VALUES, UP_TO = np.array([0, 1, 2, 3, 5, 10, 50]), [0.5, 0.7, 0.8, 0.88, 0.94, 0.98]
ENDS = {"even": 999, "bell": 999, "skewed": 10**6, "few values": 60, "zeros": 10**6}
SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            **{name: {"kind": "integer", "min": 0, "max": end, "bins": "auto"} for name, end in ENDS.items()},
            **{f"{n} levels": {"kind": "categorical", "levels": list(range(n))} for n in LEVELS},
        }
    }
)


def people(n: int, seed: int) -> pd.DataFrame:
    """Rows whose columns correlate through one hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)

    def column(weight: float) -> Any:
        return weight * hidden + np.sqrt(1 - weight**2) * rng.normal(size=n)

    frame = {
        "even": np.floor(1_000 * ndtr(column(0.4))),
        "bell": np.round(500 + 100 * column(0.6)),
        "skewed": np.round(np.exp(10 + column(0.6))),
        "few values": VALUES[np.searchsorted(UP_TO, ndtr(column(0.5)))],
        "zeros": np.where(ndtr(column(0.5)) < 0.4, 0, np.round(np.exp(9 + column(0.5)))),
        **{f"{levels} levels": np.floor(levels * ndtr(column(0.5)) ** 1.5) for levels in LEVELS},
    }
    most = {**ENDS, **{f"{levels} levels": levels - 1 for levels in LEVELS}}
    return pd.DataFrame({name: np.clip(cells, 0, most[name]).astype(int) for name, cells in frame.items()})


def pair_error(frame: pd.DataFrame, release: dc.Release) -> float:
    """The mean TVD of solved pairs from the true ones."""
    joint, schema = dc.solve(release), release.schema
    codes = schema.encode(pa.Table.from_pandas(frame, preserve_index=False))
    distances = []
    for pair in itertools.combinations(range(len(schema.attrs)), 2):
        true = np.zeros([schema.shape[axis] for axis in pair])
        np.add.at(true, tuple(codes[:, list(pair)].T), 1 / len(frame))
        fitted = np.asarray(joint.project(tuple(schema.attrs[axis] for axis in pair)))
        distances.append(np.abs(fitted - true).sum() / 2)
    return float(np.mean(distances))


def line(n: int, budget: dict[str, float], releases: int) -> list[str]:
    """Bins of every open column, and errors: foreseen, and of releases."""
    plan = dc.plan(SCHEMA, unit="add-remove", n_rows=n, **budget)
    bins: dict[str, list[int]] = {name: [] for name in ENDS}
    errors = []
    for seed in range(releases):
        frame = people(n, seed)
        release = dc.measure(frame, SCHEMA, unit="add-remove", **budget)
        for name, number in release.statement.certificate["bins"]["found"].items():
            bins[name].append(number)
        errors.append(pair_error(frame, release))
    expected = [f"{each.expected}: {', '.join(map(str, bins[each.column]))}" for each in plan.bins]
    solved, noise = (
        float(np.mean([getattr(table, name) for table in plan.tables])) for name in ("solved_tvd", "tvd")
    )
    told = f"{budget['epsilon']:g}, {budget.get('delta', 0):g}"
    cells = [f"{n:,}", told, *expected, f"{noise:.3f}", f"{solved:.3f}", f"{np.mean(errors):.3f}"]
    print(*cells, flush=True)
    return cells


def main() -> None:
    releases = asked_repeats(3)
    lines = [line(n, budget, releases) for n in ROWS for budget in BUDGETS]
    head = ["rows", "ε, δ", *ENDS, "TVD of the noise, planned", "solved TVD, planned", "of releases"]
    write_page(
        "forecast",
        "What a plan foresees",
        f"python benchmarks/forecast.py {releases}",
        [
            f"Of each open column the bins that the plan expects, and those that {releases} releases found.",
            markdown(head, lines),
        ],
    )


if __name__ == "__main__":
    main()
