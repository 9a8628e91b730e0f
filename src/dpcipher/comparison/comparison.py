"""What a comparison found: every score of every fit, a table, and plots of error against epsilon. Curator only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dpcipher.drawing.curves import Curve, draw_curves
from dpcipher.drawing.html import bullets, figure, page, table
from dpcipher.drawing.svg import standalone
from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.release.curator_only import WATERMARK, CuratorOnly, private_folder, write
from dpcipher.tables.write import csv_text

PAGE, NUMBERS = "compare.html", "compare.csv"
_KEYS = ("method", "epsilon", "repeat")
_NAMES = {"tvd": "Mean TVD of the {}-way tables", "linf": "Largest error of a share in the {}-way tables"}


@dataclass(frozen=True)
class Comparison(CuratorOnly):
    """Scores of every method at every epsilon in every repeat: one row a fit in `frame`. `skipped` says which methods could not run, and why."""

    frame: pd.DataFrame
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def scores(self) -> list[str]:
        """The names of the scores: tvd_1, linf_1, tvd_2, …"""
        return [name for name in self.frame.columns if name not in (*_KEYS, "seconds")]

    def table(self, score: str | None = None) -> pd.DataFrame:
        """The mean of one score over the repeats, a row for each method and a column for each epsilon."""
        means = self.frame.groupby(["method", "epsilon"], sort=False)[self._score(score)].mean()
        return means.unstack("epsilon")

    def plot(self, score: str | None = None) -> str:
        """One score against epsilon as an SVG image: the mean of each method, and bars from the 10 % to the 90 % quantile."""
        name = self._score(score)
        return standalone(draw_curves(self._curves(name), title=describe(name)))

    def write_page(self, folder: str | Path, name: str = PAGE) -> Path:
        """Write tables, plots and all scores into a folder of mode 0700."""
        place = private_folder(folder)
        write(place / NUMBERS, f"# {WATERMARK}\n{csv_text(self.frame)}")
        return write(place / name, self._page())

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the first says who may see them."""
        cells: list[dict[str, Any]] = json.loads(self.frame.to_json(orient="records", double_precision=15))
        return {"watermark": WATERMARK, "cells": cells, "skipped": dict(self.skipped)}

    def _score(self, score: str | None) -> str:
        name = score or ("tvd_2" if "tvd_2" in self.scores else self.scores[0])
        if name not in self.scores:
            raise ParameterError(
                f"score ({name!r}) must be one of {', '.join(self.scores)}{did_you_mean(name, self.scores)}"
            )
        return name

    def _curves(self, score: str) -> list[Curve]:
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

    def _page(self) -> str:
        sections = {describe(score): self._section(score) for score in self.scores}
        if self.skipped:
            sections["Methods that could not run"] = bullets(
                [f"{method}: {reason}" for method, reason in self.skipped.items()]
            )
        return page("Methods compared", "curator's comparison", sections, watermark=WATERMARK)

    def _section(self, score: str) -> str:
        means = self.table(score)
        heads = ["method", *(f"ε = {epsilon:g}" for epsilon in means.columns)]
        body = [
            (str(name), *(f"{value:.4f}" for value in line))
            for name, line in zip(means.index, means.to_numpy(), strict=True)
        ]
        body += [(name, *["not run"] * len(means.columns)) for name in self.skipped]
        says = (
            f"Means over {self.frame['repeat'].nunique()} repeats; bars from the 10 % to the 90 % quantile."
        )
        drawn = figure(draw_curves(self._curves(score), title=describe(score)), says)
        return drawn + table(heads, body, caption=describe(score))


def describe(score: str) -> str:
    """A score in words.

    >>> describe("tvd_2")
    'Mean TVD of the 2-way tables'
    """
    kind, _, order = score.partition("_")
    return _NAMES[kind].format(order)
