"""Grey-box replay: run a method on two neighbours with the same answers, and compare what it asked with what it declared."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from unittest.mock import patch

import numpy as np
import pandas as pd

from dpcipher.methods import Synthesizer
from dpcipher.privacy.draws import Chooser, Draws, NoiseSource, SeededChooser, SeededNoise
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Noise


@dataclass
class Tape:
    """What the session was asked, and what it answered, in order."""

    asked: list[tuple[str, np.ndarray, float]] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)

    def record(self, kind: str, truth: np.ndarray, scale: float, answer: object) -> object:
        """Note a question with the true numbers behind it."""
        self.asked.append((kind, np.array(truth, dtype=np.int64), scale))
        self.answers.append(answer)
        return answer


def replayed(tape: Tape, answers: list[object]) -> object:
    """The recorded answer to the question that comes next."""
    assert len(tape.asked) < len(answers), "the questions depend on private rows"
    return answers[len(tape.asked)]


class TapedNoise(NoiseSource):
    """Seeded noise that is recorded, or the recorded answers over again."""

    is_private = False

    def __init__(self, tape: Tape, answers: list[object] | None, seed: int) -> None:
        self.tape, self.answers, self.inner = tape, answers, SeededNoise(seed)

    def _check(self, mechanism: Noise) -> None:
        assert mechanism.kind != "none"

    def _noisy(self, counts, mechanism):
        answer = (
            self.inner.add(counts, mechanism) if self.answers is None else replayed(self.tape, self.answers)
        )
        return self.tape.record(mechanism.kind, counts, mechanism.scale, answer)

    def certificate(self, mechanism, unit):
        """What the law of the noise costs."""
        return self.inner.certificate(mechanism, unit)


class TapedChooser(Chooser):
    """Seeded choices that are recorded, or the recorded ones over again."""

    is_private = False

    def __init__(self, tape: Tape, answers: list[object] | None, seed: int) -> None:
        self.tape, self.answers = tape, answers
        self.inner = SeededChooser(np.random.default_rng(seed))

    def _choose(self, scores, scale, k):
        answer = (
            self.inner.choose_many(scores, scale, k)
            if self.answers is None
            else replayed(self.tape, self.answers)
        )
        return self.tape.record("choice", np.tile(scores, (k, 1)) if k > 1 else scores, scale, answer)

    def _rho(self, scale, sensitivity, k):
        return self.inner._rho(scale, sensitivity, k)


def run(
    method: Synthesizer,
    counts: np.ndarray,
    schema: Schema,
    *,
    seed: int = 0,
    answers: list[object] | None = None,
) -> tuple[Tape, list[dict[str, object]]]:
    """Fit a method with a tape in the session; with `answers`, give those instead of drawing."""
    tape = Tape()
    fitted = tape.fitted = method.fit_counts(counts, schema, draws=_draws(tape, answers, seed))
    return tape, fitted.statement.certificate["events"]


def run_rows(
    method: Synthesizer,
    rows: pd.DataFrame,
    schema: Schema,
    *,
    seed: int = 0,
    answers: list[object] | None = None,
) -> tuple[Tape, list[dict[str, object]]]:
    """The same from a data frame on, through a whole session: only who draws is exchanged."""
    tape = Tape()
    with patch.object(Draws, "secure", lambda: _draws(tape, answers, seed)):
        fitted = method.fit(rows, schema)
    return tape, fitted.statement.certificate["events"]


def _draws(tape: Tape, answers: list[object] | None, seed: int) -> Draws:
    return Draws(
        TapedNoise(tape, answers, seed),
        TapedChooser(tape, answers, seed + 1),
        lambda bound: bound // 2,
        np.random.default_rng(seed),
    )


def true_cost(kind: str, one: np.ndarray, other: np.ndarray, scale: float) -> float:
    """What the answer really tells the two apart by: epsilon of a Laplace answer, rho of a Gaussian one, epsilon of the rounds of a choice."""
    gap = np.abs(one - other)
    if kind == "laplace":
        return float(gap.sum() / scale)
    if kind == "gaussian":
        return float((gap.astype(float) ** 2).sum() / (2 * scale**2))
    return len(np.atleast_2d(gap)) * 2 * float(gap.max(initial=0)) / scale


def check_neighbours(
    method: Synthesizer, one: np.ndarray, other: np.ndarray, schema: Schema, seed: int
) -> float:
    """Every answer costs at most what its event says; returns the true cost of all of them together."""
    tape, events = run(method, one, schema, seed=seed)
    again = run(method, other, schema, seed=seed, answers=tape.answers)
    return sum(cost for _, cost, _ in costs(method, (tape, events), again))


def costs(
    method: Synthesizer,
    here: tuple[Tape, list[dict[str, object]]],
    there: tuple[Tape, list[dict[str, object]]],
) -> list[tuple[str, float, float]]:
    """What each answer tells two runs apart by, and what its event declares: what, true cost, declared cost."""
    (tape, events), (again, other_events) = here, there
    assert events == other_events, "the questions depend on private rows"
    assert [kind for kind, _, _ in tape.asked] == [kind for kind, _, _ in again.asked]
    noisy = [event for event in events if not str(event["what"]).endswith("from the posterior")]
    asked = zip(tape.asked, again.asked, strict=True)
    found = []
    for event in noisy:
        cost, declared = 0.0, float(str(event["cost"]))
        left = int(str(event.get("rounds", 1)))
        while left > 0:
            mine, theirs = next(asked)
            cost += _cost(method, mine, theirs)
            left -= len(np.atleast_2d(mine[1])) if mine[0] == "choice" else 1
        assert cost <= declared * (1 + 1e-9), f"{event['what']}: costs {cost}, declared {declared}"
        found.append((str(event["what"]), cost, declared))
    assert not list(asked), "an answer that no event declares"
    whole = method.budget.composable()
    spent = sum(declared for _, _, declared in found)
    assert spent <= float(whole.rho or whole.epsilon or 0) * (1 + 1e-9), (
        "the events cost more than was charged"
    )
    return found


def _cost(
    method: Synthesizer, mine: tuple[str, np.ndarray, float], theirs: tuple[str, np.ndarray, float]
) -> float:
    """What one answer tells two runs apart by."""
    (kind, here, scale), (_, there, other_scale) = mine, theirs
    assert scale == other_scale
    assert here.shape == there.shape
    cost = true_cost(kind, here, there, scale)
    return cost**2 / (8 * len(np.atleast_2d(here))) if kind == "choice" and method.delta else cost


def worst_ratios(
    method: Synthesizer, rows: pd.DataFrame, others: Iterable[pd.DataFrame], schema: Schema, *, seed: int = 0
) -> dict[str, float]:
    """How near each question comes to what it declares on its worst neighbour: 1 means that not a bit less noise would do.

    Questions are known by their first word; the answers are those that `rows` were given.
    """
    here = run_rows(method, rows, schema, seed=seed)
    found: dict[str, float] = {}
    for other in others:
        there = run_rows(method, other, schema, seed=seed, answers=here[0].answers)
        for what, cost, declared in costs(method, here, there):
            word = what.split()[0]
            found[word] = max(found.get(word, 0.0), cost / declared)
    return found


def one_person(
    rows: pd.DataFrame, relation: str, max_rows: int, cells: Iterable[tuple[int, ...]]
) -> Iterable[pd.DataFrame]:
    """Every neighbour in which a person's rows, as many as allowed, are added to a cell, or moved there from another one."""
    wanted = list(cells)
    if relation == "add-remove":
        yield from (_with(rows, cell, max_rows) for cell in wanted)
        return
    held = sorted(map(tuple, rows.to_numpy().tolist()))
    for origin in [cell for cell, group in groupby(held) if len(list(group)) >= max_rows]:
        here = np.flatnonzero((rows.to_numpy() == np.array(origin)).all(axis=1))[:max_rows]
        left = rows.drop(index=rows.index[here])
        yield from (_with(left, cell, max_rows) for cell in wanted if cell != origin)


def _with(rows: pd.DataFrame, cell: tuple[int, ...], times: int) -> pd.DataFrame:
    more = pd.DataFrame(np.tile(np.array(cell, dtype=np.int64), (times, 1)), columns=rows.columns)
    return pd.concat([rows, more], ignore_index=True)


def neighbours(counts: np.ndarray, relation: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    """A neighbouring table: `rows` rows of one person added, or moved to other cells (all of them to one)."""
    other = counts.copy()
    here = tuple(int(rng.integers(size)) for size in counts.shape)
    if relation == "add-remove":
        other[here] += rows
        return other
    full = np.argwhere(counts >= rows)
    if not len(full):
        return other
    other[tuple(full[rng.integers(len(full))])] -= rows
    other[here] += rows
    return other


def is_close(left: float, right: float, rel: float = 1e-9) -> bool:
    """Equality up to float error."""
    return math.isclose(left, right, rel_tol=rel)
