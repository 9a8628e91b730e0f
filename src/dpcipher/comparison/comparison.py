"""What a comparison found: every score of every fit, a table, and plots of error against epsilon. Curator only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dpcipher.comparison import shown
from dpcipher.comparison.shown import describe
from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.drawing.curator_only import private_folder, write
from dpcipher.drawing.curves import Curve
from dpcipher.drawing.plot import Drawable, Plot, no_columns
from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.io.write import csv_text

__all__ = ["Comparison", "describe"]

PAGE, NUMBERS = "compare.html", "compare.csv"
_KEYS = ("method", "epsilon", "repeat")


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
        place = private_folder(folder)
        write(place / NUMBERS, f"# {self.stamp}\n{csv_text(self.frame)}", force=force)
        return write(place / name, shown.page_text(self), force=force)

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
        return shown.card(self)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        no_columns(columns, "a comparison")
        name = self._score(None)
        return Plot(describe(name), shown.dot_plots(self, name), note=shown.SPREAD)
