"""Arguments that users mix up: each is refused in our words, with what to give instead."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "sex": {"kind": "categorical", "levels": ["F", "M"]},
            "age": {"kind": "integer", "min": 20, "max": 79, "bins": 3},
        }
    }
)
RELEASE = dc.Release.from_tables({("sex", "age"): [[40, 30, 20], [20, 30, 40]]}, SCHEMA, scale=1.0)
FRAME = pd.DataFrame({"sex": ["F", "M"] * 10, "age": range(20)})


def first_row(joint: np.ndarray) -> np.ndarray:
    """A function of a joint distribution."""
    return np.asarray(joint[0])


REQUESTS: dict[str, tuple[Callable[[], object], str]] = {
    "a path": (lambda: dc.fit_models("people.release.parquet", "sex ~ age"), r"dc.Release.load\(path\)"),
    "a Path": (lambda: dc.fit_models(Path("people.csv"), "sex ~ age"), r"dc.Release.load\(path\)"),
    "one joint": (lambda: dc.fit_models(dc.solve(RELEASE), "sex ~ age"), "Give the release that it was made of"),
    "nothing": (lambda: dc.fit_models(None, "sex ~ age"), r"sets \(NoneType\) must be data frames"),
    "a list of nothing": (lambda: dc.fit_models([None], "sex ~ age"), "must be data frames, or one release"),
    "columns of unequal length": (lambda: dc.fit_models({"sex": [1, 2], "age": [1]}, "sex ~ age"), "must be data frames"),
    "a release in a list": (lambda: dc.fit_models([RELEASE], "sex ~ age"), "must be the release itself"),
    "the formula first": (lambda: dc.fit_models("sex ~ age", RELEASE), "stand after the release"),  # type: ignore[arg-type]
    "the formula before the rows": (lambda: dc.fit_models("sex ~ age", FRAME), r"formula \(DataFrame\) must be text"),  # type: ignore[arg-type]
    "rows for a posterior": (lambda: dc.posterior(FRAME, "sex"), r"release \(DataFrame\) must be a release"),  # type: ignore[arg-type]
    "a path for a posterior": (lambda: dc.posterior("people.release.parquet", "sex"), "not a path"),  # type: ignore[arg-type]
    "no columns": (lambda: dc.posterior(RELEASE, ()), "at least one column"),
    "a number for columns": (lambda: dc.posterior(RELEASE, 3), r"columns \(3\) must be the name"),  # type: ignore[arg-type]
    "rows for an estimate": (lambda: dc.estimate(FRAME, first_row, "sex"), "must be a release"),  # type: ignore[arg-type]
    "columns before the function": (lambda: dc.estimate(RELEASE, "sex", first_row), "stand before the columns"),  # type: ignore[arg-type]
    "a function for columns": (lambda: dc.estimate(RELEASE, first_row, first_row), r"columns \(function\)"),  # type: ignore[arg-type]
    "a function that gives text": (lambda: dc.estimate(RELEASE, lambda joint: "half", "sex"), "it gave str"),
    "a function that gives nothing": (lambda: dc.estimate(RELEASE, lambda joint: None, "sex"), "it gave NoneType"),  # type: ignore[arg-type,return-value]
    "a word for a seed": (lambda: dc.fit_models(RELEASE, "sex ~ age", seed="a"), r"seed \('a'\) must be"),  # type: ignore[arg-type]
    "a seed below 0": (lambda: dc.posterior(RELEASE, "sex", seed=-1), r"seed \(-1\) must be"),
    "a broken seed": (lambda: dc.estimate(RELEASE, first_row, "sex", seed=1.5), r"seed \(1.5\) must be"),  # type: ignore[arg-type]
    "words for values": (lambda: dc.fit_models(RELEASE, "sex ~ age", values={"age": ["a"] * 3}), "one finite number"),  # type: ignore[dict-item]
    "a number for values": (lambda: dc.fit_models(RELEASE, "sex ~ age", values={"age": 3}), "must be a list"),  # type: ignore[dict-item]
    "a list for values": (lambda: dc.fit_models(RELEASE, "sex ~ age", values=[25, 35, 45]), "dictionary of lists"),  # type: ignore[arg-type]
    "a level for levels": (lambda: dc.fit_models(RELEASE, "sex ~ age", levels={"sex": "M"}), "must be a list"),
    "a number for the levels of rows": (lambda: dc.fit_models(FRAME, "sex ~ age", levels=3), "dictionary of lists"),  # type: ignore[arg-type]
    "the order of a number": (lambda: dc.fit_models(RELEASE, "sex ~ age", levels={"age": ["x"]}), r"write C\(age\)"),
    "numbers for a category": (
        lambda: dc.fit_models(RELEASE, "sex ~ C(age)", values={"age": [25, 45, 65]}), "uses this column as a category",
    ),
    "words to combine": (lambda: dc.combine(["a", "b"], [1.0, 1.0]), "estimates must be numbers"),
    "unequal lists to combine": (lambda: dc.combine([[1.0, 2.0], [1.0]], [1.0, 1.0]), "estimates must be numbers"),  # type: ignore[list-item]
}  # fmt: skip


@pytest.mark.parametrize("request_", REQUESTS)
def test_what_cannot_be_meant_is_refused_with_what_to_give(request_: str) -> None:
    """A parameter error, before anything is fitted, that names the argument and the way out."""
    ask, rule = REQUESTS[request_]
    with pytest.raises(ParameterError, match=rule):
        ask()


def test_refusals_print_no_cell_of_a_frame() -> None:
    """An error text is a release: of rows in the wrong place it names the type alone."""
    secret = pd.DataFrame({"sex": ["secret"]})
    for ask in (lambda: dc.fit_models("sex ~ age", secret), lambda: dc.estimate(RELEASE, secret, "sex")):  # type: ignore[arg-type]
        with pytest.raises(ParameterError) as refused:
            ask()
        assert "secret" not in str(refused.value)


def test_columns_may_be_anything_that_lists_names() -> None:
    """A name alone, a list and an iterator mean the same."""
    given = ("sex", ["sex"], iter(["sex"]))
    first, *others = (dc.posterior(RELEASE, columns, draws=20, seed=1).draws for columns in given)  # type: ignore[arg-type]
    assert all(np.array_equal(first, other) for other in others)
