"""Whole synthesizers on neighbours: every question against what it declares, and all of them together against the budget."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from dpcipher.evaluation.check import EACH, Check, describe, replay_check
from dpcipher.evaluation.evidence import (
    Bound,
    answered_loss,
    epsilon_of,
    losses,
    lower_bound,
    mu_on_integers,
    root_rho_of,
)
from dpcipher.evaluation.replay import Transcript, record
from dpcipher.evaluation.subjects import BUDGETS, SUBJECTS, UNITS, Subject
from dpcipher.methods import Synthesizer
from dpcipher.privacy.terms import Unit
from dpcipher.tables.domain import Floats

WIDE_NOISE = (0.1, None)  # a budget whose noise has few ties


def question_checks(rng: np.random.Generator) -> Iterator[Check]:
    """Every synthesizer on all neighbours of its table: the question that comes nearest to what it declares."""
    for subject in SUBJECTS:
        for unit in UNITS:
            for budget in BUDGETS:
                method = subject.method(unit, budget)
                tables = [subject.rows, *subject.neighbours(unit)]
                name = _name(subject, method, "rho")
                yield replay_check(
                    "questions", name, unit, method, tables, subject.schema, int(rng.integers(2**31))
                )


def method_checks(trials: int, rng: np.random.Generator) -> Iterator[Check]:
    """Every synthesizer on the neighbour that its questions tell apart best, with fresh answers to those questions."""
    for subject in SUBJECTS:
        for unit in UNITS[:2]:
            for budget in BUDGETS:
                method = subject.method(unit, budget)
                here, there = worst_neighbour(method, subject, unit, int(rng.integers(2**31)))
                if here.questions:  # a method that asks nothing has nothing to prove
                    sides = [
                        losses(here.questions, there.questions, trials, rng, of_first=first)
                        for first in (True, False)
                    ]
                    yield _judged("methods", subject, unit, method, here, sides[0], sides[1])


def worst_neighbour(
    method: Synthesizer, subject: Subject, unit: Unit, seed: int
) -> tuple[Transcript, Transcript]:
    """A recorded run and its replay on the neighbour that all questions together tell apart best."""
    here, zcdp = record(method, subject.rows, subject.schema, seed=seed), method.budget.kind != "pure"
    replays = [
        record(method, other, subject.schema, replay=here, seed=seed) for other in subject.neighbours(unit)
    ]

    def told_apart(there: Transcript) -> float:
        pairs = zip(here.questions, there.questions, strict=True)
        return sum(mine.range(theirs, zcdp=zcdp) for mine, theirs in pairs)

    return here, max(replays, key=told_apart)


def _judged(
    part: str, subject: Subject, unit: Unit, method: Synthesizer, ran: Transcript, here: Floats, there: Floats
) -> Check:
    """The part of a method's budget that losses on both sides prove: epsilon, or mu."""
    amount, bound = float(method.budget.amount), _bound(method, ran)
    claimed = amount if bound is epsilon_of else math.sqrt(2 * amount)
    found = lower_bound(here, there, bound, EACH)
    return Check(part, _name(subject, method), describe(unit), claimed, found, len(here))


def _bound(method: Synthesizer, ran: Transcript) -> Bound:
    """Epsilon of a pure budget; of zCDP mu where all noise is Gaussian, and else what holds for any mechanism."""
    if method.budget.kind == "pure":
        return epsilon_of
    if any(question.kind != "gaussian" for question in ran.questions):
        return root_rho_of
    return mu_on_integers(min(question.scale for question in ran.questions))


def independence_checks(runs: int) -> Iterator[Check]:
    """Whole runs with installed noise: the largest rank correlation between the noise of two cells, of one answer or of two."""
    for subject in SUBJECTS:
        method = subject.method(UNITS[0], WIDE_NOISE)
        noises = [_noise_of(record(method, subject.rows, subject.schema)) for _ in range(runs)]
        width = min(map(len, noises))  # runs that choose different tables have different numbers of cells
        if width < 2:
            continue
        ranks = rankdata([noise[:width] for noise in noises], axis=0)
        correlation = np.abs(np.corrcoef(ranks, rowvar=False)) - np.eye(width)
        # Fisher's transformation of a rank correlation is about normal; 1.06/(runs - 3) is its variance (Fieller et al. 1957).
        quantile = -float(ndtri(EACH / (width * (width - 1))))
        critical = math.tanh(quantile * math.sqrt(1.06 / (runs - 3)))
        name = f"{subject.name}: correlation of noise"
        yield Check("independence", name, describe(UNITS[0]), critical, float(correlation.max()), runs)


def _noise_of(transcript: Transcript) -> Floats:
    parts = [
        (np.asarray(question.answer) - question.truth).ravel() / question.scale
        for question in transcript.questions
        if question.kind != "choice"
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def run_checks(runs: int, rng: np.random.Generator) -> Iterator[Check]:
    """Whole runs on both tables with installed noise, each replayed on the other: slow, and nothing is taken for granted."""
    for subject in SUBJECTS:
        for budget in BUDGETS:
            unit = UNITS[0]
            method = subject.method(unit, budget)
            first, other = _worst_rows(method, subject, unit, int(rng.integers(2**31)))
            if not first.questions:
                continue
            here, there = (
                np.array([_run_loss(method, subject, other, side) for _ in range(runs)]) for side in (0, 1)
            )
            yield _judged("runs", subject, unit, method, first, here, there)


def _worst_rows(method: Synthesizer, subject: Subject, unit: Unit, seed: int) -> tuple[Transcript, object]:
    here, there = worst_neighbour(method, subject, unit, seed)
    for other in subject.neighbours(unit):
        again = record(method, other, subject.schema, replay=here, seed=seed)
        if all((a.truth == b.truth).all() for a, b in zip(again.questions, there.questions, strict=True)):
            return here, other
    raise AssertionError("the worst neighbour is one of the neighbours")


def _run_loss(method: Synthesizer, subject: Subject, other: object, side: int) -> float:
    """The loss of one whole run on one side, replayed on the other."""
    tables = (subject.rows, other)
    ran = record(method, tables[side], subject.schema)
    again = record(method, tables[1 - side], subject.schema, replay=ran)
    loss = answered_loss(ran.questions, again.questions)
    return loss if side == 0 else -loss


def _name(subject: Subject, method: Synthesizer, concentrated: str = "mu") -> str:
    """The subject, and what is claimed of it: epsilon, or the measure of zero-concentrated privacy that a part counts in."""
    return f"{subject.name}, {'epsilon' if method.budget.kind == 'pure' else concentrated}"
