"""Scores: how close synthetic rows are to private ones. Curator only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.drawing.dots import Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.inference.models import Models
from dpcipher.inference.sss import SSS
from dpcipher.scoring.classifier import Accuracy, Propensity

MOST_DRAWN = 20


@dataclass(frozen=True, repr=False)
class TableScore(CuratorOnly):
    """The distance of one synthetic table from the private one; means over the synthetic sets if there are several."""

    attrs: tuple[str, ...]
    tvd: float
    linf: float


@dataclass(frozen=True, repr=False)
class ModelScore(CuratorOnly):
    """One model on both sides: the two fits, their SSS categories and the overlap of their intervals (a mean)."""

    formula: str
    private: Models
    synthetic: Models
    sss: SSS
    overlap: float

    def _card(self) -> Card:
        counts = ", ".join(f"{name} {count}" for name, count in self.sss.counts.items() if count)
        return Card(
            "Model on both sides",
            {"Formula": self.formula, "SSS": counts, "Interval overlap": f"{self.overlap:.3f}"},
        )


@dataclass(frozen=True, repr=False)
class Scores(CuratorOnly, Drawable):
    """Distances of all tables by order, and what else was asked for. Computed from private rows: not for publication.

    Where rows of a person beyond a cap were left out, `capping` is the mean TVD between all rows and those that counted, by order, and `noise` that
    between those that counted and the synthetic ones; `tvd` is of all rows, and so of both errors.
    """

    tables: Mapping[int, tuple[TableScore, ...]]
    of_tables: Mapping[int, int]
    shape: tuple[int, ...]
    propensity: Propensity
    overlap: float
    accuracy: Accuracy | None = None
    model: ModelScore | None = None
    capping: Mapping[int, float] = field(default_factory=dict)
    noise: Mapping[int, float] = field(default_factory=dict)

    @property
    def tvd(self) -> dict[int, float]:
        """The mean total variation distance by order: 0 is the same, 1 is nothing in common."""
        return self._by_order(np.mean, "tvd")

    @property
    def linf(self) -> dict[int, float]:
        """The largest difference of any cell's probability in any table, by order (the paper's l-infinity error)."""
        return self._by_order(max, "linf")

    @property
    def worst_tvd(self) -> dict[int, float]:
        """The total variation distance of the worst table, by order."""
        return self._by_order(max, "tvd")

    @property
    def mean_linf(self) -> dict[int, float]:
        """The largest difference within a table, averaged over tables, by order."""
        return self._by_order(np.mean, "linf")

    @property
    def k_marginal(self) -> dict[int, float]:
        """NIST's k-marginal score by order, from 0 (disjoint) to 1000 (identical): 1000·(1 − mean TVD)."""
        return {order: 1000 * (1 - value) for order, value in self.tvd.items()}

    def _by_order(self, reduce: Callable[[list[float]], Any], distance: str) -> dict[int, float]:
        return {
            order: float(reduce([getattr(table, distance) for table in tables]))
            for order, tables in self.tables.items()
        }

    def normalised(self, cells: int, full: int | None = None) -> dict[str, dict[int, float]]:
        """TVD and l-infinity times `cells`/`full`: the paper's weight for what a method has to store.

        `cells` is what the method measured; `full` is the size of the full table unless given. The paper does not say how it
        normalises; this is the reading under which storing the full table costs nothing extra.
        """
        cost = cells / (prod(self.shape) if full is None else full)
        both = {"tvd": self.tvd, "linf": self.linf}
        return {
            name: {order: value * cost for order, value in values.items()} for name, values in both.items()
        }

    def per_table(self, order: int) -> pd.DataFrame:
        """Every scored table of an order, the worst first."""
        rows = [(" × ".join(table.attrs), table.tvd, table.linf) for table in self.tables[order]]
        frame = pd.DataFrame(rows, columns=["table", "tvd", "linf"])
        return self._stamped_frame(frame.sort_values("tvd", ascending=False, ignore_index=True))

    def per_column(self) -> pd.DataFrame:
        """The mean TVD of the tables that hold each column, by order; the worst column (in the widest order) first."""
        rows = [
            (attr, f"tvd_{order}", table.tvd)
            for order, tables in self.tables.items()
            for table in tables
            for attr in table.attrs
        ]
        long = pd.DataFrame(rows, columns=["column", "order", "tvd"])
        frame = long.groupby(["column", "order"], sort=False)["tvd"].mean().unstack("order")
        frame = frame.rename_axis(columns=None)
        return self._stamped_frame(frame.sort_values(list(frame.columns)[::-1], ascending=False))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the first says who may see them."""
        plain: dict[str, Any] = {}
        for name in ("tvd", "worst_tvd", "linf", "mean_linf", "k_marginal"):
            plain[name] = {str(order): value for order, value in getattr(self, name).items()}
        plain["propensity"] = asdict(self.propensity) | {"ratio": self.propensity.ratio}
        plain["overlap"] = self.overlap
        if self.accuracy is not None:
            plain["accuracy"] = asdict(self.accuracy)
        if self.model is not None:
            plain["model"] = {
                "formula": self.model.formula,
                "overlap": self.model.overlap,
                "sss": self.model.sss.counts,
            }
        for name in ("capping", "noise"):
            if self.capping:
                plain[name] = {str(order): value for order, value in getattr(self, name).items()}
        return self._stamped(plain)

    @property
    def capped_lines(self) -> list[str]:
        """How much of the error comes from leaving out rows beyond a cap, and how much from noise, in words."""
        if not self.capping:
            return []
        both = ", ".join(
            f"{order}-way {value:.4f} and {self.noise[order]:.4f}" for order, value in self.capping.items()
        )
        return [
            f"mean TVD from leaving out rows beyond the cap, and from noise on the rows that count: {both}"
        ]

    def _card(self) -> Card:
        return Card(
            "Scores",
            {f"Mean TVD, {order}-way": f"{value:.4f}" for order, value in self.tvd.items()}
            | {"pMSE ratio": f"{self.propensity.ratio:.2f}", "Interval overlap": f"{self.overlap:.3f}"},
            ("order", "tables", "mean TVD", "worst TVD", "largest difference", "k-marginal"),
            [
                (
                    f"{order}-way",
                    f"{len(tables):,} of {self.of_tables[order]:,}",
                    f"{self.tvd[order]:.4f}",
                    f"{self.worst_tvd[order]:.4f}",
                    f"{self.linf[order]:.4f}",
                    f"{self.k_marginal[order]:.1f}",
                )
                for order, tables in self.tables.items()
            ],
            notes=[
                *self.capped_lines,
                "TVD is the share of rows that would have to move for two tables to be equal. dc.plot(scores) draws the worst.",
            ],
        )

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        """The worst tables of every order, or of those that hold some columns."""
        known = {attr for tables in self.tables.values() for table in tables for attr in table.attrs}
        for name in columns or ():
            if name not in known:
                raise ParameterError(
                    f"column {name!r} is in no scored table{did_you_mean(name, sorted(known))}"
                )
        panels = {
            f"{order}-way tables, the worst first": _worst_plot(order, kept)
            for order, tables in self.tables.items()
            if (kept := [table for table in tables if set(columns or ()) <= set(table.attrs)])
        }
        return Plot("Distance of synthetic from private rows", panels)

    def _text(self) -> str:
        lines = ["order  tables       TVD  (worst)    l-inf  k-marginal"]
        for order, tables in self.tables.items():
            many = f"{len(tables)}/{self.of_tables[order]}"
            lines.append(
                f"{order:5}  {many:>9}  {self.tvd[order]:.4f}  ({self.worst_tvd[order]:.4f})  {self.linf[order]:.4f}  {self.k_marginal[order]:10.1f}"
            )
        lines.append(
            f"pMSE {self.propensity.pmse:.3g}, {self.propensity.ratio:.2f} times what chance alone gives ({self.propensity.expected:.3g}; {self.propensity.words})"
        )
        lines += self.capped_lines
        lines.append(f"overlap of 95 % intervals of one-way shares {self.overlap:.3f}")
        if self.accuracy is not None:
            a = self.accuracy
            lines.append(
                f"accuracy on held-out rows for {a.target}: {a.synthetic:.3f} trained on synthetic, {a.private:.3f} on private, "
                f"{a.majority:.3f} by the most common level"
            )
        if self.model is not None:
            shares = ", ".join(f"{name} {count}" for name, count in self.model.sss.counts.items() if count)
            lines.append(
                f"model {self.model.formula}: SSS {shares}; interval overlap {self.model.overlap:.3f}"
            )
        return "\n".join(lines)


def _worst_plot(order: int, tables: Sequence[TableScore]) -> str:
    ordered = sorted(tables, key=lambda table: -table.tvd)[:MOST_DRAWN]
    lines = [
        Line(
            name,
            (Dot(table.tvd, f"{name}: TVD {table.tvd:.4f}, largest difference of a share {table.linf:.4f}"),),
            f"{table.tvd:.4f}",
        )
        for table in ordered
        for name in [" × ".join(table.attrs)]
    ]
    told = "; ".join(f"{line.name} {line.numbers}" for line in lines[:5])
    return dot_plot(
        lines,
        title=f"Worst {order}-way tables",
        description=f"Total variation distance: {told}.",
        axis="total variation distance",
        scale=fit_scale([table.tvd for table in tables]),
    )
