"""Two recorders of what methods ask, written apart: the one that users audit with, and the one of these tests."""

import pytest
import replaying

from dpcipher.evaluation.replay import compare_answers, record
from dpcipher.evaluation.subjects import BUDGETS, SUBJECTS, UNITS, Subject


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_costs_are_those_of_the_tests_own_recorder(subject: Subject, budget) -> None:
    """The recorder of users and the one of these tests were written apart and find the same true cost of every event."""
    unit = UNITS[1]
    method, other = subject.method(unit, budget), next(subject.neighbours(unit))
    here = record(method, subject.rows, subject.schema, seed=2)
    there = record(method, other, subject.schema, replay=here, seed=2)
    found = [cost for _, cost, _ in compare_answers(method, here, there)]
    tape = replaying.run_rows(method, subject.rows, subject.schema, seed=2)
    again = replaying.run_rows(method, other, subject.schema, seed=2, answers=tape[0].answers)
    known = [cost for _, cost, _ in replaying.costs(method, tape, again)]
    assert found == pytest.approx(known)
