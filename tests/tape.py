"""A tape at OpenDP's own constructors and at `secrets`: what is asked of private rows, and the same answers for a neighbour.

Record on D, replay on D′. No module of the package is named, so that no rewrite of it can lose the tape. Import this module at the top of a test
file: it must be in place before anything is drawn, because measurements are cached. While no tape runs, everything passes through.
"""

import io
import json
import math
import os
import re
import runpy
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import opendp.prelude as dp
import pyarrow.parquet as pq
from scipy.optimize import brentq, minimize_scalar

UNNAMED = -(2**62)  # a noisy count that reaches no threshold


@dataclass(frozen=True)
class Question:
    """True numbers that met a mechanism, and the answer; of a draw below a bound, that bound."""

    kind: str  # laplace, gaussian, choice, below
    scale: float
    truth: np.ndarray
    rounds: int
    answer: Any

    def cost(self, other: "Question", *, pure: bool, rare: int = 0) -> float:
        """What the answer tells two tables apart by: epsilon of a pure budget, rho otherwise; of texts, those that both have."""
        mine, theirs = self.truth, other.truth
        if mine.shape != theirs.shape:
            mine, theirs = mine[mine > rare], theirs[theirs > rare]
        gap = np.abs(mine - theirs).astype(float)
        if self.kind == "laplace":
            assert pure, "Laplace noise under a budget of rho"
            return float(gap.sum() / self.scale)
        if self.kind == "gaussian":
            assert not pure, "Gaussian noise under a pure budget"
            return float((gap**2).sum() / (2 * self.scale**2))
        if self.kind == "below":
            return 0.0
        each = 2 * float(gap.max()) / self.scale
        return self.rounds * (each if pure else each**2 / 8)


@dataclass
class Tape:
    """Seeded answers and the questions behind them; given those of a recorded run, its answers over again.

    Where levels are found, texts that only one person has change the length of a question, and OpenDP sees no names. Texts with more than `rare` rows
    are in both tables, in the same order; the others are not named on the neighbour.
    """

    recorded: Sequence[Question] | None = None
    seed: int = 0
    rare: int = 0
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def ask(self, kind: str, scale: float, truth: Any, rounds: int = 1) -> Any:
        """Note a question and answer it."""
        exact = np.array(truth, dtype=np.int64)
        answer = (
            self._draw(kind, scale, exact, rounds)
            if self.recorded is None
            else self._again(kind, scale, exact, rounds)
        )
        self.questions.append(Question(kind, scale, exact, rounds, answer))
        return answer

    def _again(self, kind: str, scale: float, truth: np.ndarray, rounds: int) -> Any:
        """The recorded answer, if the question is the recorded one."""
        assert self.recorded is not None
        place = len(self.questions)
        assert place < len(self.recorded), "a neighbour is asked more questions"
        known = self.recorded[place]
        assert (kind, scale, rounds) == (known.kind, known.scale, known.rounds), (
            f"question {place + 1} changed on a neighbour"
        )
        if kind == "below":
            return self._from_urn(known, int(truth))
        if truth.shape != known.truth.shape:
            return self._by_text(known, truth)
        return known.answer

    def _from_urn(self, known: Question, bound: int) -> int:
        """The same ball: one of those of the beginning, as far from the first of them, or one that came back, as far from the last."""
        assert self.recorded is not None
        ours, theirs = (
            self._first(self.questions, bound),
            self._first(self.recorded[: len(self.questions)], int(known.truth)),
        )
        if known.answer < theirs:
            return int(known.answer) * ours // theirs
        return bound - (int(known.truth) - int(known.answer))

    @staticmethod
    def _first(questions: Sequence[Question], bound: int) -> int:
        """How many balls the urn began with: the bound of its first draw."""
        for question in reversed(questions):
            if question.kind != "below" or int(question.truth) > bound:
                break
            bound = int(question.truth)
        return bound

    def _by_text(self, known: Question, truth: np.ndarray) -> list[int]:
        mine, theirs = truth > self.rare, known.truth > self.rare
        same = self.rare > 0 and mine.sum() == theirs.sum()
        assert same, "the shape of a question changed on a neighbour"
        answer = np.full(len(truth), UNNAMED)
        answer[mine] = np.array(known.answer)[theirs]
        return [int(number) for number in answer]

    def _draw(self, kind: str, scale: float, truth: np.ndarray, rounds: int) -> Any:
        if kind == "below":
            first = self._first(self.questions, int(truth))
            fresh = int(truth) == first or self.rng.random() < 0.5
            return (
                first * (2 * int(self.rng.integers(8)) + 1) // 16
                if fresh
                else int(self.rng.integers(first, int(truth)))
            )
        if kind == "choice":
            noisy = (truth - truth.max()) / scale + self.rng.gumbel(size=truth.size)
            return [int(place) for place in np.argsort(-noisy)[:rounds]]
        draw = self.rng.laplace if kind == "laplace" else self.rng.normal
        return [int(number) for number in truth + np.rint(draw(0.0, scale, truth.size)).astype(np.int64)]

    def finish(self) -> None:
        """Refuse a neighbour that was asked less."""
        assert self.recorded is None or len(self.questions) == len(self.recorded), (
            "a neighbour is asked fewer questions"
        )


_RUNNING: list[Tape] = []


@contextmanager
def running(tape: Tape) -> Iterator[Tape]:
    """Answer every private question from this tape; what is drawn afterwards without a seed gets one."""
    seeds, generator = iter(range(10**9)), np.random.default_rng
    _RUNNING.append(tape)
    try:
        with (
            patch.object(
                np.random, "default_rng", lambda seed=None: generator(next(seeds) if seed is None else seed)
            ),
            patch.object(secrets, "randbits", lambda bits: next(seeds)),
            patch.object(os, "fsync", lambda file: None),
        ):
            yield tape
        tape.finish()
    finally:
        _RUNNING.remove(tape)


class _Taped:
    """A measurement of OpenDP that answers from the tape while one runs."""

    def __init__(self, real: Any, kind: str, scale: float, rounds: int) -> None:
        self.real, self.asked = real, (kind, scale, rounds)

    def __call__(self, truth: Any) -> Any:
        kind, scale, rounds = self.asked
        return _RUNNING[-1].ask(kind, scale, truth, rounds) if _RUNNING else self.real(truth)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def _install() -> None:
    """Put the tape where OpenDP is asked for a measurement, and where a secret number is drawn."""

    def taped(name: str, kind: str) -> Callable[..., Any]:
        real = getattr(dp.m, name)

        @wraps(real)
        def make(*given: Any, scale: float, k: int = 1, **options: Any) -> _Taped:
            chosen = {**options, "k": k} if kind == "choice" else options
            return _Taped(real(*given, scale=scale, **chosen), kind, scale, k)

        return make

    for name, kind in (
        ("make_laplace", "laplace"),
        ("make_gaussian", "gaussian"),
        ("make_noisy_top_k", "choice"),
    ):
        setattr(dp.m, name, taped(name, kind))
    below = secrets.randbelow
    secrets.randbelow = lambda bound: _RUNNING[-1].ask("below", 1.0, bound) if _RUNNING else below(bound)


_install()


@dataclass
class Run:
    """Everything that a run shows to the world, and the questions behind it."""

    questions: list[Question]
    result: Any
    progress: list[str]
    warned: list[tuple[str, str]]
    error: tuple[str, str] | None
    printed: str
    files: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """What others may see, dates and ids aside."""
        seen = {name: value for name, value in vars(self).items() if name not in ("questions", "result")}
        return seen | {"result": facts(self.result)}

    def costs(self, other: "Run", *, pure: bool, rare: int = 0) -> list[float]:
        """What each answer tells two runs apart by."""
        pairs = zip(self.questions, other.questions, strict=True)
        return [mine.cost(theirs, pure=pure, rare=rare) for mine, theirs in pairs]


def run(
    call: Callable[[Any, Callable[[str], None]], Any],
    rows: Any,
    *,
    like: Run | None = None,
    seed: int = 0,
    rare: int = 0,
) -> Run:
    """Run a call on private rows in an empty folder; `like` another run, with its answers."""
    lines: list[str] = []
    tape = Tape(None if like is None else like.questions, seed, rare)
    out, result, error = io.StringIO(), None, None
    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with running(tape), redirect_stdout(out), redirect_stderr(out):
            try:
                result = call(rows, lines.append)
            except (Exception, SystemExit) as problem:
                if isinstance(problem, AssertionError):
                    raise
                error = (type(problem).__name__, neutral(str(problem)))
        files = {
            str(path.relative_to(folder)): contents(path)
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }
    warned = [(warning.category.__name__, neutral(str(warning.message))) for warning in caught]
    return Run(
        tape.questions,
        result,
        [neutral(line) for line in lines],
        warned,
        error,
        neutral(out.getvalue()),
        files,
    )


def command(*words: str) -> None:
    """The command line in this process, so that the tape hears it."""
    with patch.object(sys, "argv", ["dpcipher", *words]):
        try:
            runpy.run_module("dpcipher", run_name="__main__", alter_sys=False)
        except SystemExit as end:
            if end.code not in (0, None):
                raise


def neutral(text: str) -> str:
    """The text without moments, ids and checksums, which differ between any two runs."""
    text = re.sub(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d:\d\d|Z)?)?", "(moment)", text)
    text = re.sub(r"\b[0-9a-f]{16,}\b", "(id)", text)
    return re.sub(r"/tmp/\S+|\b\d+(\.\d+)? (s|ms|seconds)\b", "(here)", text)


def contents(path: Path) -> Any:
    """What a file holds, moments and ids aside."""
    if path.suffix != ".parquet":
        return neutral(path.read_bytes().decode("latin-1"))
    table = pq.read_table(path)
    noted = {
        key.decode(): neutral(value.decode("latin-1")) for key, value in (table.schema.metadata or {}).items()
    }
    return {"columns": table.to_pydict(), "notes": noted}


def facts(value: Any) -> Any:
    """What a result says of itself, as plain values: a release what it saves, a fitted method its release, statement and rows."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        return {str(name): facts(item) for name, item in items}
    known: dict[str, Any] = {"shown": neutral(repr(value))}
    with TemporaryDirectory() as folder:
        if hasattr(value, "checksum"):
            value.save(Path(folder) / "r.parquet")
            known["file"] = contents(Path(folder) / "r.parquet")
    if hasattr(value, "sample"):
        release = value.release
        rows = value.sample(50, seed=1)
        known["release"] = None if release is None else facts(release)
        known["statement"] = neutral(json.dumps(value.statement.certificate, default=str))
        known["rows"] = [table.to_numpy().tolist() for table in (rows if isinstance(rows, list) else [rows])]
    return known


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy is (ε, δ), by bisection (Canonne, Kamath and Steinke 2020, Corollary 13)."""

    def log_delta(rho: float) -> float:
        def at(log_order: float) -> float:
            order = 1 + math.exp(log_order)
            moment = (order - 1) * (order * rho - epsilon) + (order - 1) * math.log1p(-1 / order)
            return moment - math.log(order)

        return float(minimize_scalar(at, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9}).fun)

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-12, epsilon, xtol=1e-15, rtol=1e-13))
