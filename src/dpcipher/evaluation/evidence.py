"""Evidence from draws on two neighbours: lower confidence bounds on epsilon and on mu.

A draw is known by its privacy loss, the logarithm of its probability on D over its probability on D′. Every threshold on the loss is an
event. The best threshold is found on one draw in eight and judged on the others, so that searching costs no confidence. Bounds on the two
probabilities of an event are Clopper and Pearson's, which hold at every sample size.

Losses are exact where the law of an answer is known: log P(answer | first table) − log P(answer | second).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logit, ndtri

from dpcipher.evaluation.replay import RecordedQuestion
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise

Bound = Callable[
    [float, float], float
]  # from the probabilities of an event on the two neighbours, the first the larger

N_THRESHOLDS = 400
LEAST_GAUSSIAN = 0.69
SEARCH, SEARCH_ALPHA = (
    8,
    0.01,
)  # one draw in so many chooses the event; with a milder bound, since it proves nothing
_ORDERS = 1 + np.geomspace(1e-3, 200, 120)


def clopper_pearson(hits: ArrayLike, trials: int, alpha: float) -> tuple[Floats, Floats]:
    """Bounds on a probability after so many hits; each is wrong with a chance of at most `alpha`.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    seen = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(seen > 0, betaincinv(np.maximum(seen, 1e-300), trials - seen + 1, alpha), 0.0)
        high = np.where(
            seen < trials, 1 - betaincinv(np.maximum(trials - seen, 1e-300), seen + 1, alpha), 1.0
        )
    return low, high


def epsilon_of(p: float, q: float) -> float:
    """The epsilon that an event needs at least: log(p/q)."""
    return float(np.log(p / q)) if p > q > 0 else 0.0


def range_of(p: float, q: float) -> float:
    """The range that an event and its contrary show: how far the logarithms of their ratios lie apart (Durfee and Rogers 2019).

    >>> round(range_of(0.75, 0.25) / 2, 4)  # log 3
    1.0986
    """
    return float(logit(p) - logit(q)) if 1 > p > q > 0 else 0.0


def mu_of(p: float, q: float) -> float:
    """The mu of Gaussian differential privacy that an event needs at least (Dong, Roth and Su 2022); for Gaussian noise alone.

    >>> round(mu_of(0.8413447460685429, 0.5), 6)
    1.0
    """
    return float(ndtri(p) - ndtri(q)) if 1 > p > q > 0 else 0.0


def mu_on_integers(scale: float) -> Bound:
    """The bound for Gaussian noise on integers, whose events may show a little more than mu.

    By how much was computed from the exact law, the largest over all thresholds for a shift of one: 1.108 at a scale of 0.69, 1.046 at 1, 1.011
    at 2, always below 1 + 0.052/scale². Below 0.69 the bound that holds for every mechanism is taken.
    """
    if scale < LEAST_GAUSSIAN:
        return root_rho_of
    return lambda p, q: mu_of(p, q) / (1 + 0.052 / scale**2)


def root_rho_of(p: float, q: float) -> float:
    """√(2 rho) for the least rho of zCDP that an event allows: the largest Rényi divergence of the event over its order.

    For Gaussian noise √(2 rho) is mu. Other mechanisms may have less Gaussian trade-offs, for which `mu_of` would prove too much.
    """
    if not 1 > p > q > 0:
        return 0.0
    here = _ORDERS * np.log(p) + (1 - _ORDERS) * np.log(q)
    there = _ORDERS * np.log1p(-p) + (1 - _ORDERS) * np.log1p(-q)
    divergence = np.logaddexp(here, there) / (_ORDERS - 1)
    return float(np.sqrt(2 * max(0.0, float((divergence / _ORDERS).max()))))


def lower_bound(here: Floats, there: Floats, bound: Bound, alpha: float) -> float:
    """The most that the losses of draws on D (`here`) and on D′ (`there`) prove, at a chance of at most `alpha` of proving too much.

    Both directions are looked at; the draws that choose between them and their thresholds are not those that prove.
    """
    directions = ((here, there), (-there, -here))
    found = [_best_threshold(first[::SEARCH], second[::SEARCH], bound) for first, second in directions]
    (_, threshold), (first, second) = max(zip(found, directions, strict=True), key=lambda pair: pair[0])
    proof = [np.delete(side, np.s_[::SEARCH]) for side in (first, second)]
    counts = [_at_least(side, np.array([threshold])) for side in proof]
    return float(_bounded(counts, [len(side) for side in proof], bound, alpha)[0])


def _best_threshold(first: Floats, second: Floats, bound: Bound) -> tuple[float, float]:
    """The bound that the best threshold on the loss seems to prove, and that threshold."""
    both = np.concatenate([first, second])
    thresholds = np.unique(np.quantile(both, np.linspace(0, 1, N_THRESHOLDS)))
    counts = [_at_least(side, thresholds) for side in (first, second)]
    proved = _bounded(counts, [len(first), len(second)], bound, SEARCH_ALPHA)
    best = int(np.argmax(proved))
    return float(proved[best]), float(thresholds[best])


def _at_least(losses: Floats, thresholds: Floats) -> Floats:
    """How many losses reach each threshold; sums of floats in another order may differ in the last digits, and still reach it."""
    return np.asarray(len(losses) - np.searchsorted(np.sort(losses), thresholds - 1e-9), dtype=np.float64)


def _bounded(hits: list[Floats], trials: list[int], bound: Bound, alpha: float) -> Floats:
    """The bound that each event proves: the lower bound of the likelier side against the upper bound of the other."""
    low, _ = clopper_pearson(hits[0], trials[0], alpha / 2)
    _, high = clopper_pearson(hits[1], trials[1], alpha / 2)
    return np.array([bound(float(p), float(q)) for p, q in zip(low, high, strict=True)])


def losses(
    here: Sequence[RecordedQuestion],
    there: Sequence[RecordedQuestion],
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


def answered_loss(here: Sequence[RecordedQuestion], there: Sequence[RecordedQuestion]) -> float:
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
    mine: RecordedQuestion, theirs: RecordedQuestion, trials: int, rng: np.random.Generator, *, of_first: bool
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
    mine: RecordedQuestion, theirs: RecordedQuestion, trials: int, rng: np.random.Generator, *, of_first: bool
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
