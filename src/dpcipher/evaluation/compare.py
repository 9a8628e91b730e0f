"""Compare methods on the same private rows, over epsilons and repeats. Curator only; the noise is seeded."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.drawing.curator_only import WATERMARK, private_folder, write
from dpcipher.drawing.curves import Curve
from dpcipher.drawing.plot import Drawable, Plot, no_columns
from dpcipher.errors import DpcipherError, ParameterError, did_you_mean
from dpcipher.evaluation.runs import Experiment, Journal, PrivateRows, Run, read_rows, run_all
from dpcipher.io.write import csv_text
from dpcipher.methods import METHODS, Synthesizer
from dpcipher.privacy.budget import positive_fraction
from dpcipher.schema.schema import Schema

Progress = Callable[[int, int], None]
EPSILONS = (0.1, 1.0, 10.0)
JOURNAL = "cells.jsonl"
PAGE, NUMBERS = "compare.html", "compare.csv"
_KEYS = ("method", "epsilon", "repeat")
_NAMES = {"tvd": "Mean TVD of the {}-way tables", "linf": "Largest error of a share in the {}-way tables"}


@dataclass(frozen=True, repr=False)
class Comparison(CuratorOnly, Drawable):
    """Scores of every method at every epsilon in every repeat: one row a fit in `frame`. `skipped` says which methods could not run, and why."""

    frame: pd.DataFrame
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", self._stamped_frame(self.frame.copy()))

    @property
    def scores(self) -> list[str]:
        """The names of the scores: tvd_1, linf_1, tvd_2, …"""
        return [name for name in self.frame.columns if name not in (*_KEYS, "seconds")]

    def table(self, score: str | None = None) -> pd.DataFrame:
        """The mean of one score over the repeats, a row for each method and a column for each epsilon."""
        means = self.frame.groupby(["method", "epsilon"], sort=False)[self._score(score)].mean()
        return self._stamped_frame(means.unstack("epsilon"))

    def write_page(self, folder: str | Path, name: str = PAGE, *, force: bool = False) -> Path:
        """Write tables, plots and all scores into a folder of mode 0700; `force` replaces those of an earlier run."""
        from dpcipher.evaluation import pages

        place = private_folder(folder)
        write(place / NUMBERS, f"# {self.stamp}\n{csv_text(self.frame)}", force=force)
        return write(place / name, pages.comparison_page(self), force=force)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the first says who may see them."""
        cells: list[dict[str, Any]] = json.loads(self.frame.to_json(orient="records", double_precision=15))
        return self._stamped({"cells": cells, "skipped": dict(self.skipped)})

    def _score(self, score: str | None) -> str:
        name = score or ("tvd_2" if "tvd_2" in self.scores else self.scores[0])
        if name not in self.scores:
            raise ParameterError(
                f"score ({name!r}) must be one of {', '.join(self.scores)}{did_you_mean(name, self.scores)}"
            )
        return name

    def curves(self, score: str) -> list[Curve]:
        """The mean, and the 10 % and 90 % quantiles over the repeats, of every method at every epsilon."""
        curves = []
        for method, runs in self.frame.groupby("method", sort=False):
            groups = runs.groupby("epsilon")[score]
            summary = pd.DataFrame(
                {"mean": groups.mean(), "low": groups.quantile(0.1), "high": groups.quantile(0.9)}
            )
            points = tuple(
                (float(eps), *map(float, row))
                for eps, row in zip(summary.index, summary.to_numpy(), strict=True)
            )
            curves.append(Curve(str(method), points))
        return curves

    def _text(self) -> str:
        tables = [
            f"{describe(score)}\n{self._shown(score).to_string(float_format='{:.4f}'.format, na_rep='not run')}"
            for score in self.scores
        ]
        seconds = self.frame.groupby("method", sort=False)["seconds"].median()
        times = "\n".join(f"{method}: {1000 * value:.1f} ms" for method, value in seconds.items())
        left_out = [f"{method}: left out: {reason}" for method, reason in self.skipped.items()]
        last = [f"median time of a fit\n{times}", *left_out, "Noise was seeded; nothing was charged."]
        return "\n\n".join([*tables, *last])

    def _shown(self, score: str) -> pd.DataFrame:
        """The table with a line for those that could not run."""
        return self.table(score).reindex([*self.table(score).index, *self.skipped])

    def _card(self) -> Card:
        from dpcipher.evaluation import pages

        return pages.comparison_card(self)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        no_columns(columns, "a comparison")
        from dpcipher.evaluation import pages

        name = self._score(None)
        return Plot(describe(name), pages.dot_plots(self, name), note=pages.SPREAD)


def describe(score: str) -> str:
    """A score in words.

    >>> describe("tvd_2")
    'Mean TVD of the 2-way tables'
    """
    kind, _, order = score.partition("_")
    return _NAMES[kind].format(order)


def compare(
    data: Any,
    schema: Schema,
    *,
    methods: Sequence[str] | Mapping[str, Synthesizer] = (
        "cipher",
        "full-histogram",
        "mwem",
        "priv-bayes",
        "independent",
        "uniform",
    ),
    epsilons: Sequence[float] = EPSILONS,
    repeats: int = 10,
    seed: int = 0,
    unit: str,
    max_rows: int = 1,
    person: str | None = None,
    delta: float | None = None,
    orders: Sequence[int] | None = None,
    n_rows: int | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Fit every method at every epsilon `repeats` times, and score synthetic rows against the private ones. CURATOR ONLY.

    `methods` are names of the registry, or a mapping from your own labels to synthesizers, whose epsilon is replaced; unit, `max_rows`, person and delta must be those
    of the comparison. With `person`, the column that says whose row each is, methods learn from at most `max_rows` rows of each, and are scored on all.
    Every run has a seed of its own, so results do not depend on the order, the workers or the other methods. With `out`, finished runs are
    kept in that folder (mode 0700): the same call after a kill goes on where it stopped, to the same result. Noise is seeded and nothing is
    charged: this is how a curator or researcher learns which method suits, not a release. A method that cannot run on this schema or budget is left
    out, and the result says why; where none can, that is an error.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> options = {"epsilons": [1.0], "repeats": 2, "unit": "add-remove", "workers": 1}
    >>> dc.compare(people, schema, methods=["independent", "uniform"], **options).table("tvd_2").shape
    (2, 1)
    """
    chosen, skipped = _methods(methods, schema, unit=unit, max_rows=max_rows, person=person, delta=delta)
    exact = _epsilons(epsilons)
    _check_whole("repeats", repeats)
    _check_whole("workers", 1 if workers is None else workers)
    private = read_rows(data, schema, person, max_rows)
    experiment = _experiment(private, schema, chosen, orders, n_rows, seed)
    runs = [Run(*parts) for parts in product(chosen, exact, range(repeats))]
    journal = None if out is None else _journal(out, experiment, chosen)
    finished = {} if journal is None else {_key(line): line for line in journal.finished()}
    left = [run for run in runs if _key(vars(run)) not in finished]
    for line in run_all(experiment, left, workers, progress, done=len(finished)):
        finished[_key(line)] = line
        if journal is not None:
            journal.append(line)
    return Comparison(pd.DataFrame([finished[_key(vars(run))] for run in runs]), skipped)


def _experiment(
    private: PrivateRows,
    schema: Schema,
    methods: Mapping[str, Synthesizer],
    orders: Sequence[int] | None,
    n_rows: int | None,
    seed: int,
) -> Experiment:
    wanted = tuple(range(1, min(3, len(schema.attrs)) + 1)) if orders is None else tuple(orders)
    rows = len(private.kept) if n_rows is None else n_rows
    _check_whole("n_rows", rows)
    sized = {name: method.sized(rows) for name, method in methods.items()}
    codes, scored = private.scored()
    return Experiment(private.truth(), codes, schema, scored, sized, wanted, rows, seed, private.digest)


def _methods(
    methods: Sequence[str] | Mapping[str, Synthesizer],
    schema: Schema,
    *,
    unit: str,
    max_rows: int,
    person: str | None,
    delta: float | None,
) -> tuple[dict[str, Synthesizer], dict[str, str]]:
    """A template for every label that can run, and of the others the reason why not."""
    if isinstance(methods, str) or not methods:
        raise ParameterError(f"methods ({methods!r}) must be a list of names; try methods=['cipher', 'mwem']")
    unknown = [] if isinstance(methods, Mapping) else [name for name in methods if name not in METHODS]
    if unknown:
        raise ParameterError(
            f"methods ({unknown[0]!r}) must be among {', '.join(METHODS)}{did_you_mean(str(unknown[0]), METHODS)}"
        )
    able: dict[str, Synthesizer] = {}
    refused: dict[str, DpcipherError] = {}
    for name in methods:
        try:
            given = methods[name] if isinstance(methods, Mapping) else None
            method = given or METHODS[name](1.0, unit=unit, max_rows=max_rows, person=person, delta=delta)
            if given is not None:
                _check_alike(name, given, unit=unit, max_rows=max_rows, person=person, delta=delta)
            method.check_schema(schema)
            able[name] = method
        except DpcipherError as error:
            refused[name] = error
    if not able:
        raise next(iter(refused.values()))
    return able, {name: str(error) for name, error in refused.items()}


def _check_alike(name: str, method: Synthesizer, **asked: object) -> None:
    """Refuse a method that promises something else than the others, or whose budget cannot be replaced: their scores say nothing of one another."""
    unit = method.protects
    promised = {
        "unit": unit.relation,
        "max_rows": unit.max_rows,
        "person": method.person,
        "delta": method.delta,
    }
    for word, value in asked.items():
        own = promised.get(word)
        if own != value:
            raise ParameterError(
                f"methods[{name!r}] has {word}={own!r} and the comparison {word}={value!r}: give both the same"
            )
    if getattr(method, "rho", None) is not None:
        raise ParameterError(
            f"methods[{name!r}] has rho, and its epsilon is to be replaced; give it epsilon=1.0"
        )


def _epsilons(epsilons: Sequence[float]) -> list[float]:
    if isinstance(epsilons, (str, int, float)) or not len(epsilons):
        raise ParameterError(f"epsilons ({epsilons!r}) must be a list of numbers; try epsilons=[0.1, 1.0]")
    for epsilon in epsilons:
        positive_fraction("epsilon", epsilon)
    return list(dict.fromkeys(map(float, epsilons)))


def _check_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(f"{name} ({value!r}) must be a whole number above 0; try {name}=10")


def _journal(out: str | Path, experiment: Experiment, methods: Mapping[str, Synthesizer]) -> Journal:
    """The finished runs of the same experiment; epsilons and repeats may be added later."""
    request = {
        "schema": experiment.schema.fingerprint(),
        "data": experiment.digest,
        "methods": {name: repr(method) for name, method in methods.items()},
        "orders": list(experiment.orders),
        "n_rows": experiment.n_rows,
        "seed": experiment.seed,
    }
    refusal = f"out ({out}) holds another comparison (other data, methods, seed or unit); name another folder"
    return Journal(
        private_folder(out) / JOURNAL, {"watermark": WATERMARK, "request": request}, refusal=refusal
    )


def _key(line: Mapping[str, Any]) -> tuple[str, float, int]:
    return line["method"], float(line["epsilon"]), line["repeat"]
