"""Grey-box replay: run a method on two neighbours with the same answers, and compare what it asked with what it declared."""

import math
from dataclasses import dataclass, field

import numpy as np

from dpcipher.methods import Synthesizer
from dpcipher.privacy.choose import Chooser, SeededChooser
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.mechanism import Mechanism
from dpcipher.privacy.noise import NoiseSource, SeededNoise
from dpcipher.schema.schema import Schema


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

    def _check(self, mechanism: Mechanism) -> None:
        assert mechanism.name != "none"

    def _noisy(self, counts, mechanism):
        answer = (
            self.inner.add(counts, mechanism) if self.answers is None else replayed(self.tape, self.answers)
        )
        return self.tape.record(mechanism.name, counts, mechanism.scale, answer)

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
    draws = Draws(
        TapedNoise(tape, answers, seed),
        TapedChooser(tape, answers, seed + 1),
        lambda bound: bound // 2,
        np.random.default_rng(seed),
    )
    fitted = method.fit_counts(counts, schema, draws=draws)
    tape.fitted = fitted
    return tape, fitted.statement.certificate["events"]


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
    again, other_events = run(method, other, schema, seed=seed, answers=tape.answers)
    assert events == other_events, "the questions depend on private rows"
    assert [kind for kind, _, _ in tape.asked] == [kind for kind, _, _ in again.asked]
    noisy = [event for event in events if not str(event["what"]).endswith("from the posterior")]
    total = 0.0
    for (kind, mine, scale), (_, theirs, other_scale), event in zip(
        tape.asked, again.asked, noisy, strict=True
    ):
        assert scale == other_scale
        assert mine.shape == theirs.shape
        cost = true_cost(kind, mine, theirs, scale)
        if kind == "choice" and method.delta is not None:
            cost = cost**2 / (8 * len(np.atleast_2d(mine)))
        assert cost <= float(event["cost"]) * (1 + 1e-9), (
            f"{event['what']}: costs {cost}, declared {event['cost']}"
        )
        total += cost
    return total


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
