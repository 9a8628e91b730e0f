"""Finding levels on neighbours: what is asked of the texts of one person, and how often a text that only one person has is named.

recorded and replayed   a release on a frame with persons, against frames in which one person has other rows: common texts move by no more than
                        is declared, and the lone texts would be named with a probability of at most delta, by the exact law of the noise
drawn                   the session's own selection with installed noise, often: how often a lone text is named, at a delta that can be seen
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import open_counts, receive
from dpcipher.evaluation.check import EACH, Check, describe
from dpcipher.evaluation.evidence import clopper_pearson
from dpcipher.evaluation.replay import RecordedQuestion, Transcript, Violation, compare_answers, record
from dpcipher.evaluation.subjects import CONCENTRATED, UNITS
from dpcipher.methods import Cipher
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Cap, Privacy, Unit
from dpcipher.request.session import Session
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

SCHEMA = Schema(
    (
        column(
            "text", "categorical", levels="discover", pattern="[a-z]+[0-9]*", max_length=8, keep=("kept",)
        ),
        column("c", "integer", min=0, max=1),
    )
)
OTHERS = {"frequent": 400, "rare": 5, "once": 1, "kept": 3}
EXTRA = 3  # rows of the person beyond those that count
# With noise of sigma 1 a text is named with a probability of 0.0586 two rows below the threshold, and of 0.3 one row below it.
SEEN_DELTA = Fraction(6, 100)


def level_checks(trials: int, rng: np.random.Generator) -> Iterator[Check]:
    """Both, for every unit."""
    for unit in UNITS:
        yield lone_text_check(unit, int(rng.integers(2**31)))
    for unit in UNITS:
        for name, rows in (("one text", ["lone"] * unit.max_rows), ("many texts", _different(unit.max_rows))):
            yield drawn_check(unit, name, rows, trials)


def lone_text_check(unit: Unit, seed: int) -> Check:
    """A release on a frame, replayed on every neighbour: the lone texts that come nearest to delta."""
    epsilon, delta = CONCENTRATED
    method = Cipher(epsilon, delta=delta, unit=unit.relation, max_rows=unit.max_rows, person="id", workload=1)
    name, worst, tables = "replayed: lone texts, delta", 0.0, list(_tables(unit))
    claimed = float(Fraction(str(delta)) / 2)
    try:
        here = record(method, tables[0], SCHEMA, seed=seed)
        for other in tables[1:]:
            there = record(method, other, SCHEMA, replay=here, seed=seed)
            compare_answers(method, here, there)
            worst = max(worst, lone_probability(here, there, unit))
    except Violation as violation:
        return Check("levels", name, describe(unit), claimed, math.inf, len(tables) - 1, str(violation))
    return Check("levels", name, describe(unit), claimed, worst, len(tables) - 1)


def lone_probability(here: Transcript, there: Transcript, unit: Unit) -> float:
    """How probable it is that a text which only one of two tables has is named there: the larger of the two sides."""
    event = next(event for event in here.events if event["type"] == "levels")
    pairs = [(a, b) for a, b in zip(here.questions, there.questions, strict=True) if a.names is not None]
    sides = [side for a, b in pairs for side in (_lone(a, b), _lone(b, a))]
    for counts in sides:
        if len(counts) > unit.max_rows or sum(counts) > unit.max_rows:
            raise Violation("one person has more lone texts, or more rows of them, than max_rows")
    scale = pairs[0][0].scale
    return max(sum(_reaches(scale, int(event["threshold"]), count) for count in counts) for counts in sides)


def _lone(mine: RecordedQuestion, theirs: RecordedQuestion) -> list[int]:
    """The numbers of rows of the texts that only the first table has."""
    other = set(theirs.names or ())
    return [int(n) for text, n in zip(mine.names or (), mine.truth, strict=True) if text not in other]


def _reaches(sigma: float, threshold: int, count: int) -> float:
    """The probability that a count with discrete Gaussian noise reaches the threshold, by its law."""
    reach = int(40 * sigma) + abs(threshold) + 2
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * sigma**2))
    return float(weights[noise >= threshold - count].sum() / weights.sum())


def drawn_check(unit: Unit, name: str, rows: Sequence[str], trials: int) -> Check:
    """The session's own selection on the frame, often: at least how probable it is that a lone text of one person is named."""
    rho = Fraction(unit.l2_squared, 2)  # noise of sigma 1
    privacy = Privacy(Budget(rho=rho, delta=SEEN_DELTA), unit, Cap("id"))
    frame = _frame([*_others(), *((text, "lone") for text in rows)])
    truth = open_counts(receive(frame, SCHEMA, privacy), SCHEMA)
    hits = 0
    for _ in range(trials):
        session = Session(SCHEMA, privacy, PrivateRows(truth, Draws.secure()))
        named = session.find_texts(0, Fraction(1), SEEN_DELTA, 100)
        hits += any(text.startswith("lone") for text in named)
    low = float(clopper_pearson(hits, trials, EACH)[0])
    return Check(
        "levels", f"drawn: lone rows of {name}, delta", describe(unit), float(SEEN_DELTA), low, trials
    )


def _different(number: int) -> list[str]:
    return [f"lone{place}" for place in range(number)]


def _others() -> list[tuple[str, str]]:
    """Texts and persons, a row each."""
    return [(text, f"{text}{place}") for text, number in OTHERS.items() for place in range(number)]


def _tables(unit: Unit) -> Iterator[pd.DataFrame]:
    """A table, and its neighbours: one person's rows come to it, or are others than they were, more of them than count."""
    number, others = unit.max_rows + EXTRA, _others()
    own = [["frequent"] * number, ["lone"] * number, _different(number), ["rare", *_different(number - 1)]]
    own += [["once"] * number, ["lone", "frequent"] * number]
    first: list[str] = [] if unit.relation == "add-remove" else own[0]
    for texts in (first, *own):
        yield _frame([*others, *((text, "person") for text in texts[:number])])


def _frame(rows: Sequence[tuple[str, str]]) -> pd.DataFrame:
    texts, persons = zip(*rows, strict=True)
    return pd.DataFrame({"text": texts, "c": 0, "id": persons})
