"""Refusals of models of private rows: `fit_models` takes frames of them, and `evaluate --model` calls it. None quotes a cell."""

import datetime
import traceback
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ParameterError
from dpcipher.inference.regression import Family

ROWS = 40


class Hostile:
    """A cell whose every comparison fails with its text in an error of no usual kind."""

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("CANARY")


class Stream:
    """A table of another library that cannot be read, and whose error quotes a cell."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("CANARY")


CANARIES = ("CANARY", "4711", "9999")
PRIVATE = pd.DataFrame(
    {
        "y": np.arange(ROWS) % 2,
        "x": np.random.default_rng(0).normal(size=ROWS),
        "text": [f"CANARY{i % 3}" for i in range(ROWS)],
        "mixed": ["CANARY", 4711] * (ROWS // 2),
        "minus": np.r_[-4711.0, np.ones(ROWS - 1)],
        "torn": ["1"] * (ROWS - 1) + ["CANARY"],
        "lists": [[4711]] * ROWS,
        "day": [datetime.date(9999, 1, 1)] * ROWS,
        "exact": [Decimal("4711")] * ROWS,
        "two": pd.Categorical(["CANARYa", "CANARYb"] * (ROWS // 2)),
        "three": pd.Categorical((["1", "2", "CANARY"] * ROWS)[:ROWS]),
        "endless": np.r_[np.inf, np.ones(ROWS - 1)],
        "same": ["CANARY"] * ROWS,
        "none": [None] * ROWS,
        "huge": [4711 * 10**400] * ROWS,
        "raw": [b"CANARY"] * ROWS,
        "hostile": [Hostile() for _ in range(ROWS)],
        "signal": [Decimal("4711"), Decimal("sNaN")] * (ROWS // 2),
        "arrow": pd.array(["CANARY"] * (ROWS - 1) + ["1"], dtype=pd.ArrowDtype(pa.string())),
        "nested": pd.array([["CANARY"]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    }
)
REFUSED = [
    ("y ~ np.log(text)", None, "np.log"),
    ("y ~ np.log(minus)", None, "np.log"),
    ("y ~ x:minus:np.log(minus):three", None, "np.log"),
    ("y ~ C(np.log(minus))", None, "formula"),
    ("y ~ mixed", None, r"columns \(mixed\)"),
    ("mixed ~ x", "linear", r"columns \(mixed\)"),
    ("y ~ lists", None, r"columns \(lists\)"),
    ("y ~ day", None, r"columns \(day\)"),
    ("y ~ np.sqrt(exact)", None, "formula"),
    ("y ~ I(torn * 1.0)", None, "formula"),
    ("y ~ torn.astype(float)", None, "formula"),
    ("torn ~ x", "linear", r"outcome \(torn\)"),
    ("torn ~ x", "poisson", r"outcome \(torn\)"),
    ("two ~ x", "linear", r"outcome \(two\)"),
    ("three ~ x", "linear", r"outcome \(three\)"),
    ("three ~ x", "logistic", r"outcome \(three\)"),
    ("minus ~ x", "poisson", r"outcome \(minus\)"),
    ("endless ~ x", "linear", r"outcome \(endless\)"),
    ("endless ~ x", "poisson", r"outcome \(endless\)"),
    ("huge ~ x", "linear", r"outcome \(huge\)"),
    ("same ~ x", "logistic", r"outcome \(same\)"),
    ("y ~ none", None, r"columns \(none\)"),
    ("y ~ poly(text, 2)", None, "poly"),
    ("y ~ poly(text, degree=2)", None, "poly"),
    ("y ~ poly(x, degree=2) + poly(arrow, degree=2)", None, "poly"),
    ("y ~ bs(text)", None, "bs"),
    ("y ~ C(text, levels=['other'])", None, "all levels of its column"),
    ("y ~ C(two, levels=['other'])", None, "all levels of its column"),
    ("y ~ C(np.log(minus), levels=[0.0])", None, "formula"),
    ("y ~ {np.asarray(text, dtype=float)}", None, "formula"),
    ("y ~ {np.datetime64(text[0])}", None, "formula"),
    ("y ~ {text.nonsense(text[0])}", None, "formula"),
    ("y ~ {x[text]}", None, "formula"),
    ("y ~ {text.cat.rename_categories('x')}", None, "formula"),
    ("y ~ hostile", None, r"columns \(hostile\)"),
    ("hostile ~ x", "linear", r"columns \(hostile\)"),
    ("y ~ signal", None, r"columns \(signal\)"),
    ("arrow ~ x", "poisson", r"outcome \(arrow\)"),
    ("y ~ nested", None, r"columns \(nested\)"),
    ("y ~ {text > 5}", None, "formula"),
    ("y ~ {int(text[0])}", None, "formula"),
    ("y ~ {dict()[text[0]]}", None, "formula"),
    ("y ~ {np.linalg.inv(x)}", None, "formula"),
    ("y ~ {1 / len(text[:0])}", None, "formula"),
    ("y ~ text.other", None, "formula"),
    ("y ~ logg(x)", None, "no function 'logg'"),
    ("I(text) ~ x", None, "formula|outcome"),
]


@pytest.mark.parametrize(("formula", "family", "why"), REFUSED)
def test_no_refusal_of_a_model_of_private_rows_quotes_a_cell(
    formula: str, family: Family | None, why: str
) -> None:
    """Neither the message nor what Python shows of its causes; and no warning does."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(ParameterError, match=why) as caught:
            dc.fit_models(PRIVATE, formula, family)
    shown = "".join(traceback.format_exception(caught.value)[-1:]) + str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not [
        canary for canary in CANARIES if canary in shown + "".join(str(one.message) for one in warned)
    ]


def test_no_refusal_of_rows_that_cannot_be_read_quotes_a_cell() -> None:
    """Whatever another library raises is not repeated."""
    with pytest.raises(ParameterError, match=r"sets \(Stream\) must be data frames") as caught:
        dc.fit_models(Stream(), "y ~ x")
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


def test_a_column_outside_the_model_does_not_matter() -> None:
    """Columns that the formula does not name are neither read nor converted."""
    models = dc.fit_models(PRIVATE, "y ~ x")
    assert models.frame["term"].tolist() == ["Intercept", "x"]


@pytest.mark.parametrize("formula", ["age ~ np.log(job)", "job ~ age", "age ~ {int(job[0])}"])
def test_evaluate_quotes_no_cell_either(formula: str, tmp_path: Path) -> None:
    """The command that fits a model to private rows: its refusal is about the formula and the columns."""
    (tmp_path / "s.yaml").write_text(
        "columns:\n  age: {kind: integer, min: 0, max: 3}\n  job: {kind: categorical, levels: [CANARYa, CANARYb, CANARYc]}\n"
    )
    rows = pd.DataFrame({"age": [0, 1, 2, 3] * 9, "job": ["CANARYa", "CANARYb", "CANARYc"] * 12})
    for name in ("private.csv", "synthetic.csv"):
        rows.to_csv(tmp_path / name, index=False)
    arguments = ["private.csv", "s.yaml", "synthetic.csv", "--family", "linear"]
    files = [str(tmp_path / word) if "." in word else word for word in arguments]
    result = CliRunner().invoke(main, ["evaluate", *files, "--model", formula])
    assert result.exit_code == 1
    assert "formula" in result.output or "outcome" in result.output
    assert "CANARY" not in result.output
