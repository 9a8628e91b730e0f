"""Evaluate: the one function that compares synthetic rows with private ones. Curator only."""

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.curator.persons import kept_codes
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.errors import ParameterError
from dpcipher.inference.models import Family, fit_models
from dpcipher.inference.sss import sss
from dpcipher.io.source import coded_rows, open_declared
from dpcipher.privacy.terms import Unit
from dpcipher.schema.schema import Schema
from dpcipher.scoring.classifier import Accuracy, Propensity, accuracy, propensity
from dpcipher.scoring.distances import choose_tables, distances, interval_overlap, share_overlap
from dpcipher.scoring.scores import ModelScore, Scores, TableScore
from dpcipher.tables.domain import Codes


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
