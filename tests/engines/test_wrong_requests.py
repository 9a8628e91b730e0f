"""What `solve` and `sample` cannot mean is refused in our words, and nothing that would be ignored is taken."""

from collections.abc import Callable
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import dpcipher as dc
from dpcipher.errors import ParameterError

SCHEMA = dc.Schema.from_domain({"smokes": 2, "ill": 2})
RELEASE = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, SCHEMA, scale=5.0)
JOINT = dc.solve(RELEASE)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a path": (lambda: dc.solve("people.release.parquet"), r"load a file with dc\.Release\.load\(path\)"),  # type: ignore[call-overload]
    "a word as seed": (lambda: dc.solve(RELEASE, seed="a"), r"seed \('a'\) must be a whole number"),  # type: ignore[call-overload]
    "no seed": (
        lambda: dc.solve(RELEASE, engine="paper", seed=None),
        r"seed \(None\) must be a whole number",
    ),  # type: ignore[call-overload]
    "sampling by a word": (lambda: JOINT.sample(5, seed="a"), r"seed \('a'\) must be a whole number"),  # type: ignore[arg-type]
    "sampling below zero": (lambda: JOINT.sample(5, seed=-1), r"seed \(-1\) must be a whole number"),
    "a stream by half": (lambda: JOINT.stream(5, seed=1.5), r"seed \(1\.5\) must be a whole number"),  # type: ignore[arg-type]
    "an engine's name": (
        lambda: dc.solve(RELEASE, engine="rwos"),
        "engine .'rwos'. must be one of auto, .*did you mean 'rows'",
    ),
    "another value": (lambda: dc.solve(RELEASE, engine=3), r"engine \(3\) must be one of auto, .*dc\.Paper"),  # type: ignore[call-overload]
    "a class": (lambda: dc.solve(RELEASE, engine=dc.Rows), r"or a value: dc\.Paper\(…\), dc\.FullTable\(\)"),  # type: ignore[call-overload]
    "a last column": (
        lambda: dc.solve(RELEASE, engine=dc.Rows(last="il")),
        r"last \('il'\) must be a column.*did you mean 'ill'",
    ),
    "an engine of a method": (
        lambda: dc.Cipher(1.0, unit="add-remove", engine="magic"),
        "engine .'magic'. must be one of",
    ),
    "a negative population": (
        lambda: dc.solve(RELEASE, engine="rows", seed=-1),
        r"seed \(-1\) must be a whole number",
    ),
    "whose row is missing": (
        lambda: dc.measure("absent.csv", SCHEMA, epsilon=1, unit="add-remove", missing_person="drop"),
        "must be left out without a person",
    ),
}


def test_linear_algebra_takes_one_thread() -> None:
    """As for a posterior: several threads of small products wait for one another, and a seed would not repeat on other machines."""
    threads: list[int] = []

    def progress(_: str) -> None:
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"):
        dc.solve(RELEASE, progress=progress)
    assert set(threads) == {1}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_cannot_be_meant_is_refused(wrong: str) -> None:
    """With the name, the value and what to do; never by an error of NumPy or Python."""
    call, says = REFUSED[wrong]
    with pytest.raises(ParameterError, match=says):
        call()
