"""`evaluate` and its scores: how close synthetic rows are to private ones. Curator only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import comb, prod
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.curator.persons import kept_codes
from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.drawing.dots import Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.evaluation.classifier import Accuracy, Propensity, accuracy, propensity
from dpcipher.evaluation.distances import choose_tables, distances, interval_overlap, share_overlap
from dpcipher.inference.models import Family, Models, fit_models
from dpcipher.inference.sss import SSS, sss
from dpcipher.io.source import coded_rows, open_declared
from dpcipher.privacy.terms import Unit
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes

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


def evaluate(
    private: Any,
    synthetic: Any,
    schema: Schema,
    *,
    orders: Sequence[int] | None = None,
    limit: int | None = None,
    seed: int = 0,
    holdout: Any = None,
    predict: str | None = None,
    formula: str | None = None,
    family: Family | None = None,
    person: str | None = None,
    max_rows: int = 1,
) -> Scores:
    """Compare synthetic rows with private ones: distances of tables, propensity score, interval overlap, and on request more.

    `synthetic` is one table, or a list of m of them, over which scores are averaged. All tables of the `orders` (1, 2 and 3) are
    compared, or a sample of `limit` of each order chosen by `seed` (by default 10,000 of orders 1 and 2, 100 of others).
    `holdout`, private rows the release was not made from, and the column to `predict` add the accuracy of a classifier
    trained on synthetic rows. `formula` adds a model fitted on both sides and its SSS assessment. With `person`, the column that said whose row each is,
    the error from leaving out rows beyond `max_rows` and the error from noise are told apart.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> scores = dc.evaluate(people, people.sample(frac=1.0, random_state=1), schema)
    >>> scores.tvd[2]
    0.0
    """
    _check_request(schema, holdout, predict)
    truth = coded_rows(private, schema, "private")
    given = synthetic if isinstance(synthetic, list | tuple) else [synthetic]
    sets = [coded_rows(rows, schema, "synthetic", ours=True) for rows in given]
    if not sets:
        raise ParameterError("synthetic ([]) must hold at least one table")
    wanted = tuple(range(1, min(3, len(schema.attrs)) + 1)) if orders is None else tuple(orders)
    tested = None if predict is None else coded_rows(holdout, schema, "holdout")
    kept = None
    if person is not None:
        kept = kept_codes(
            open_declared(private, schema), schema, person, Unit.parse("add-remove", max_rows).max_rows
        )
        if not len(kept):
            raise ParameterError(
                f"private must hold rows that name somebody in person ({person!r}); none does"
            )

    def means(ours: Codes, theirs: list[Codes]) -> dict[int, float]:
        return {
            order: float(np.mean([table.tvd for table in _compare(ours, theirs, schema, order, limit, seed)]))
            for order in wanted
        }

    return Scores(
        capping={} if kept is None else means(truth, [kept]),
        noise={} if kept is None else means(kept, sets),
        tables={order: _compare(truth, sets, schema, order, limit, seed) for order in wanted},
        of_tables={order: comb(len(schema.attrs), order) for order in wanted},
        shape=schema.shape,
        propensity=_propensity(truth, sets, schema, seed),
        overlap=float(np.mean([share_overlap(truth, codes, schema.shape) for codes in sets])),
        accuracy=None
        if tested is None or predict is None
        else _accuracy(truth, sets, tested, schema, predict, seed),
        model=None if formula is None else compare_model(truth, sets, schema, formula, family),
    )


def _compare(
    truth: Codes, sets: list[Codes], schema: Schema, order: int, limit: int | None, seed: int
) -> tuple[TableScore, ...]:
    tables = choose_tables(len(schema.attrs), order, limit=limit, seed=seed)
    by_set = [distances(truth, codes, schema.shape, tables) for codes in sets]
    return tuple(
        TableScore(
            tuple(schema.attrs[axis] for axis in axes), _mean(over_sets, "tvd"), _mean(over_sets, "linf")
        )
        for axes, *over_sets in zip(tables, *by_set, strict=True)
    )


def _propensity(truth: Codes, sets: list[Codes], schema: Schema, seed: int) -> Propensity:
    scores = [propensity(truth, codes, schema.shape, seed=seed) for codes in sets]
    order = min(score.order for score in scores)
    return Propensity(_mean(scores, "pmse"), _mean(scores, "expected"), scores[0].coefficients, order)


def _accuracy(
    truth: Codes, sets: list[Codes], tested: Codes, schema: Schema, target: str, seed: int
) -> Accuracy:
    axis = schema.axes((target,))[0]
    scores = [accuracy(truth, codes, tested, schema.shape, axis, target=target, seed=seed) for codes in sets]
    return replace(scores[0], synthetic=_mean(scores, "synthetic"))


def _mean(scores: Sequence[Any], field: str) -> float:
    """The mean of a score over the synthetic sets."""
    return float(np.mean([getattr(score, field) for score in scores]))


def compare_model(
    truth: Codes, sets: list[Codes], schema: Schema, formula: str, family: Family | None
) -> ModelScore:
    """Fit one model on the private rows and on the synthetic sets, and compare sign, significance and intervals.

    Numbers are compared at the resolution of the schema's bins, on both sides.
    """
    outcome = formula.partition("~")[0].strip().strip("`")
    rows, *others = (level_frame(codes, schema, outcome) for codes in (truth, *sets))
    first = fit_models(rows, formula, family, missing="drop").with_stamp(WATERMARK)
    second = fit_models(others, formula, first.family, missing="drop")
    ours, theirs = first.table(), second.table()
    both = ours["estimate"].notna() & theirs["estimate"].notna()
    ours, theirs = ours[both], theirs[both]
    overlap = interval_overlap((ours["low"], ours["high"]), (theirs["low"], theirs["high"]))
    return ModelScore(formula, first, second, sss(ours, theirs), float(overlap.mean()))


def level_frame(codes: Codes, schema: Schema, outcome: str | None = None) -> pd.DataFrame:
    """Coded rows as a frame for models: listed columns as categories in the declared order, numbers drawn inside their bins.

    Levels of ordinal columns that are numbers are numbers, as in a model from a release, but for the outcome, whose order says its family.
    """
    rng, apart, frame = np.random.default_rng(0), schema.by_column(codes), {}
    for column in schema.columns:
        cells = apart[column.name]
        numbers = column.name != outcome and column.level_numbers is not None
        if column.kind in ("categorical", "ordinal", "boolean") and not numbers:
            frame[column.name] = pd.Categorical.from_codes(
                cells, categories=list(column.labels), ordered=column.kind == "ordinal"
            )
        else:
            frame[column.name] = column.values(cells, rng).to_pandas()
    return pd.DataFrame(frame)


def _check_request(schema: Schema, holdout: Any, predict: str | None) -> None:
    if (holdout is None) != (predict is None):
        raise ParameterError(
            "holdout and predict must be given together: the rows to test on, and the column to predict"
        )
    if predict is not None:
        schema.axes((predict,))
