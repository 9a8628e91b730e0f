"""Recorded questions and their replay: exact losses, and planted violations that must be named."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import dlaplace

from asking import Asked
from dpcipher.evaluation.evidence import additive_losses, answered_loss, choice_losses, losses
from dpcipher.evaluation.replay import RecordedQuestion, Violation, compare_answers, record
from dpcipher.evaluation.subjects import SUBJECTS, UNITS
from dpcipher.methods import FullHistogram
from dpcipher.methods.outcome import product_joint
from dpcipher.tables.measurement import Noise
from dpcipher.tables.query import Query

SUBJECT = next(subject for subject in SUBJECTS if subject.name == "full histogram")


def test_losses_of_laplace_noise_are_those_of_the_law() -> None:
    """Against scipy's discrete Laplace distribution, answer by answer, on both sides."""
    gap, scale = np.array([2, -1], dtype=np.int64), 1.7
    drawn = np.random.default_rng(0).integers(-6, 7, (50, 2))
    found = additive_losses("laplace", scale, drawn, gap, of_first=True)
    known = (dlaplace.logpmf(drawn, 1 / scale) - dlaplace.logpmf(drawn + gap, 1 / scale)).sum(axis=1)
    np.testing.assert_allclose(found, known)
    other = additive_losses("laplace", scale, drawn, gap, of_first=False)
    np.testing.assert_allclose(
        other, (dlaplace.logpmf(drawn - gap, 1 / scale) - dlaplace.logpmf(drawn, 1 / scale)).sum(axis=1)
    )


def test_losses_of_gaussian_noise_are_those_of_the_law() -> None:
    """Against the squares of the law's exponent."""
    gap, drawn = np.array([3], dtype=np.int64), np.arange(-5, 6)[:, None]
    found = additive_losses("gaussian", 2.0, drawn, gap, of_first=True)
    np.testing.assert_allclose(found, ((drawn[:, 0] + 3) ** 2 - drawn[:, 0] ** 2) / 8.0)


def test_losses_of_choices_are_those_of_every_order() -> None:
    """Two of four candidates: the loss of each ordered pair by enumeration, and all probabilities add up to one."""
    first, second = np.array([0.3, 1.0, -0.5, 0.0]), np.array([0.8, 0.5, -0.5, 0.5])

    def log_chance(scores: np.ndarray, order: tuple[int, ...]) -> float:
        total, left = 0.0, list(range(4))
        for place in order:
            total += scores[place] - np.log(np.exp(scores[left]).sum())
            left.remove(place)
        return total

    orders = list(permutations(range(4), 2))
    known = [log_chance(first, order) - log_chance(second, order) for order in orders]
    np.testing.assert_allclose(choice_losses(first, second, np.array(orders)), known)
    assert sum(np.exp(log_chance(first, order)) for order in orders) == pytest.approx(1)


def test_fresh_answers_have_mean_one_of_their_inverse_ratio() -> None:
    """The mean of exp(−loss) over answers from the first table is 1, whatever the questions: a check of law and sampler together."""
    rng = np.random.default_rng(3)
    here = [
        RecordedQuestion("laplace", np.array([5, 9, 2]), 3.0, None),
        RecordedQuestion("gaussian", np.array([4, 1]), 4.0, None),
        RecordedQuestion("choice", np.array([3, 1, 0]), 4.0, [0, 2]),
    ]
    there = [
        RecordedQuestion("laplace", np.array([6, 9, 1]), 3.0, None),
        RecordedQuestion("gaussian", np.array([4, 3]), 4.0, None),
        RecordedQuestion("choice", np.array([2, 2, 0]), 4.0, [0, 2]),
    ]
    mean = np.exp(-losses(here, there, 400_000, rng, of_first=True)).mean()
    assert mean == pytest.approx(1, abs=0.01)
    assert np.exp(losses(here, there, 400_000, rng, of_first=False)).mean() == pytest.approx(1, abs=0.01)


def test_the_loss_of_given_answers_is_antisymmetric() -> None:
    """A run replayed on its neighbour, and the same answers seen from the other side."""
    method = SUBJECT.method(UNITS[0])
    here = record(method, SUBJECT.rows, SUBJECT.schema, seed=4)
    there = record(method, next(SUBJECT.neighbours(UNITS[0])), SUBJECT.schema, replay=here, seed=4)
    loss = answered_loss(here.questions, there.questions)
    assert abs(loss) == pytest.approx(3.0)
    assert answered_loss(there.questions, here.questions) == pytest.approx(-loss)


@dataclass(frozen=True)
class TooLittle(FullHistogram):
    """Declares half of what one person changes."""

    def _learn(self, session):
        session.ask(Asked(lambda counts: 2 * counts.counts((0, 1)), 1, 1), Fraction(1, 2))
        return _uniform(session)


@dataclass(frozen=True)
class AsksMore(FullHistogram):
    """Asks once more where a cell holds many rows."""

    def _learn(self, session):
        session.measure(Query((0,)), Fraction(1, 4))
        if session._source._counts.counts((0, 1))[0, 0] > 90:
            session.measure(Query((1,)), Fraction(1, 4))
        return _uniform(session)


@dataclass(frozen=True)
class LooksAtScale(FullHistogram):
    """Spends a share that depends on the rows."""

    def _learn(self, session):
        share = Fraction(1, 2) if session._source._counts.counts((0, 1))[0, 0] > 90 else Fraction(1, 4)
        session.measure(Query((0, 1)), share)
        return _uniform(session)


def _uniform(session):
    """A joint that tells nothing."""
    one_way = [np.full(size, 1 / size) for size in session.schema.shape]
    return [product_joint(session, one_way, n_rows=10.0, engine="test")]


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (TooLittle, "one person changes it"),
        (AsksMore, "asked more|fewer"),
        (LooksAtScale, "kind, shape or scale"),
    ],
)
def test_planted_violations_are_named(method, names: str) -> None:
    """A sensitivity too small, a question that depends on rows, a scale that depends on rows."""
    wrong = method(3.0, unit="add-remove")
    rows = SUBJECT.rows
    more = pd.concat([rows, pd.DataFrame({"c0": [0], "c1": [0]})], ignore_index=True)
    here = record(wrong, rows, SUBJECT.schema, seed=1)
    with pytest.raises(Violation, match=names):
        compare_answers(wrong, here, record(wrong, more, SUBJECT.schema, replay=here, seed=1))


def test_a_file_is_recorded_as_its_frame(tmp_path) -> None:
    """The same questions from the CSV file that a user hands in."""
    path = tmp_path / "rows.csv"
    SUBJECT.rows.to_csv(path, index=False)
    method = SUBJECT.method(UNITS[0])
    frame, file = (record(method, data, SUBJECT.schema, seed=1) for data in (SUBJECT.rows, path))
    assert [question.truth.tolist() for question in frame.questions] == [
        q.truth.tolist() for q in file.questions
    ]
    assert Noise("laplace", frame.questions[0].scale).variance > 0
