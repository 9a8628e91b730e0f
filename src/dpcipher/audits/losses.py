"""The privacy loss of answers whose law is known: log P(answer | first table) − log P(answer | second)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcipher.audits.transcript import Question
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise


def losses(
    here: Sequence[Question],
    there: Sequence[Question],
    trials: int,
    rng: np.random.Generator,
    *,
    of_first: bool,
) -> Floats:
    """The privacy loss of fresh answers to recorded questions, answered from the first table or from the second.

    The loss is exact, since the law of every answer is known: log P(answer | first) − log P(answer | second), summed over the questions.
    """
    total = np.zeros(trials)
    for mine, theirs in zip(here, there, strict=True):
        if mine.kind == "choice":
            total += _choice_losses(mine, theirs, trials, rng, of_first=of_first)
        else:
            total += _noise_losses(mine, theirs, trials, rng, of_first=of_first)
    return total


def answered_loss(here: Sequence[Question], there: Sequence[Question]) -> float:
    """The privacy loss of the answers that were given: log P(answers | first) − log P(answers | second)."""
    total = 0.0
    for mine, theirs in zip(here, there, strict=True):
        if mine.kind == "choice":
            scores = [question.truth / question.scale for question in (mine, theirs)]
            total += float(choice_losses(scores[0], scores[1], np.array([mine.answer]))[0])
        else:
            noise = (np.asarray(mine.answer).reshape(-1) - mine.truth.reshape(-1))[None]
            gap = (mine.truth - theirs.truth).reshape(-1)
            total += float(additive_losses(mine.kind, mine.scale, noise, gap, of_first=True)[0])
    return total


def _noise_losses(
    mine: Question, theirs: Question, trials: int, rng: np.random.Generator, *, of_first: bool
) -> Floats:
    gap = (mine.truth - theirs.truth).reshape(-1)
    moved = gap[gap != 0]
    if not moved.size:
        return np.zeros(trials)
    assert mine.kind != "choice"
    source = SeededNoise(int(rng.integers(2**62)))
    drawn = source.add(np.zeros((trials, moved.size), dtype=np.int64), Noise(mine.kind, mine.scale))
    return additive_losses(mine.kind, mine.scale, drawn, moved, of_first=of_first)


def additive_losses(kind: str, scale: float, drawn: Counts, gap: Counts, *, of_first: bool) -> Floats:
    """The loss of noise (trials by cells) on counts of which the first table has `gap` more than the second."""
    first = drawn if of_first else drawn - gap
    second = first + gap
    if kind == "laplace":
        return np.asarray((np.abs(second) - np.abs(first)).sum(axis=1) / scale, dtype=np.float64)
    return np.asarray((second.astype(float) ** 2 - first.astype(float) ** 2).sum(axis=1) / (2 * scale**2))


def _choice_losses(
    mine: Question, theirs: Question, trials: int, rng: np.random.Generator, *, of_first: bool
) -> Floats:
    """Rounds of the exponential mechanism by Gumbel noise: the largest noisy scores, in order."""
    scores = [np.asarray(q.truth, dtype=float) / q.scale for q in (mine, theirs)]
    noisy = scores[0 if of_first else 1] + rng.gumbel(size=(trials, scores[0].size))
    chosen = np.argsort(-noisy, axis=1)[:, : mine.rounds]
    return choice_losses(scores[0], scores[1], chosen)


def choice_losses(first: Floats, second: Floats, chosen: NDArray[np.intp]) -> Floats:
    """The loss of choices (trials by rounds) with these scores over their scale: each round among those that are left."""
    total, each = np.zeros(len(chosen)), np.arange(len(chosen))
    for sign, scores in ((1, first), (-1, second)):
        left = np.tile(scores, (len(chosen), 1))
        for place in chosen.T:
            total += sign * (left[each, place] - np.logaddexp.reduce(left, axis=1))
            left[each, place] = -np.inf
    return total
