"""The public grey-box harness dp-recorder on dpcipher: every number handed to OpenDP is recorded on one table and replayed on its neighbours.

usage: PYTHONPATH=DP_RECORDER/src python -m pytest benchmarks/recorder/recorded.py     (needs dp-accounting, scikit-learn and tqdm)

`dpcipher.json` beside this file is its manifest: `git archive` of the project is the submission. The harness is Oblivious' (github ObliviousAI/dp-recorder);
nothing of our own audit is used but the tables. What it cannot see: the urn of the multinomial-Dirichlet draw, which adds no noise.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dp_recorder.auditing.audit_primitives import AuditMode, Auditor, audit_spec
from dp_recorder.auditing.metrics import dist_l2, dist_linf

import dpcipher as dc
from dpcipher.evaluation.subjects import BUDGETS, SUBJECTS, UNITS, Subject
from dpcipher.privacy.draws import Draws, OpenDPChooser, OpenDPNoise, split_like
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Unit
from dpcipher.request.session import Choice, Question, Session
from dpcipher.tables.measurement import Noise

DECLARED: ContextVar[Any] = ContextVar("what the library declares about the question it asks")
NEIGHBOURS = 12
SEEN = {"part": 1.0}  # which part of what is declared the harness is told


def l1(here: np.ndarray, there: np.ndarray) -> float:
    """dp-recorder's own prints the shapes of everything it compares."""
    return float(np.abs(here - there).sum())


@pytest.fixture(autouse=True)
def _instrumented(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP's samplers as primitives of dp-recorder, each with the sensitivity that the session declares for its question."""
    noisy, chosen = OpenDPNoise._noisy, OpenDPChooser._choose
    ask, measure_all, choose = Session.ask, Session.measure_all, Session.choose

    @audit_spec(kind="laplace", input_arg="counts", sensitivity_arg="sensitivity", metric_fn=l1)
    def laplace(counts: Any, sensitivity: float, scale: float) -> Any:
        return noisy(OpenDPNoise(), counts, Noise("laplace", scale))

    @audit_spec(kind="gaussian", input_arg="counts", sensitivity_arg="sensitivity", metric_fn=dist_l2)
    def gaussian(counts: Any, sensitivity: float, scale: float) -> Any:
        return noisy(OpenDPNoise(), counts, Noise("gaussian", scale))

    @audit_spec(kind="choice", input_arg="scores", sensitivity_arg="sensitivity", metric_fn=dist_linf)
    def choice(scores: Any, sensitivity: float, scale: float, k: int) -> Any:
        return chosen(OpenDPChooser(), scores, scale, k)

    def watched_noise(self: OpenDPNoise, counts: Any, mechanism: Noise, *, tables: int = 1) -> Any:
        declared = DECLARED.get()
        if mechanism.kind == "laplace":
            return laplace(counts, SEEN["part"] * float(tables * declared.l1), mechanism.scale)
        l2 = math.sqrt(tables * declared.l2_squared)
        return gaussian(counts, SEEN["part"] * l2, mechanism.scale)

    def watched_together(self: OpenDPNoise, tables: Any, mechanism: Noise) -> Any:
        """Tables that are handed to the sampler in one call: each moves by what one table moves."""
        joined = watched_noise(self, np.concatenate(tables), mechanism, tables=len(tables))
        return split_like(joined, tables)

    def watched_question(self: Session, question: Question, share: Any) -> Any:
        with declaring(question.sensitivity(self.unit, self.schema.on_grid().shape)):
            return ask(self, question, share)

    def watched_tables(self: Session, request: Any, **options: Any) -> Any:
        with declaring(Sensitivity.of_tables(self.unit)):
            return measure_all(self, request, **options)

    def watched_choice(self: Session, choice: Choice, *given: Any) -> Any:
        with declaring(choice.sensitivity(self.unit)):
            return choose(self, choice, *given)

    monkeypatch.setattr(OpenDPNoise, "_noisy", watched_noise)
    monkeypatch.setattr(OpenDPNoise, "_noisy_tables", watched_together)
    monkeypatch.setattr(
        OpenDPChooser, "_choose", lambda self, scores, scale, k: choice(scores, DECLARED.get(), scale, k)
    )
    monkeypatch.setattr(Session, "ask", watched_question)
    monkeypatch.setattr(Session, "measure_all", watched_tables)
    monkeypatch.setattr(Session, "choose", watched_choice)
    secure = Draws.secure()
    # What follows the answers is drawn alike in every run, so that only private rows could make a difference.
    monkeypatch.setattr(
        Draws,
        "secure",
        lambda: Draws(secure.noise, secure.chooser, secure.below, np.random.default_rng(0)),
    )


@contextmanager
def declaring(sensitivity: Any) -> Iterator[None]:
    token = DECLARED.set(sensitivity)
    try:
        yield
    finally:
        DECLARED.reset(token)


def replayed(run: Any, rows: pd.DataFrame, neighbours: list[pd.DataFrame]) -> int:
    """Record on the rows, replay on every neighbour, and hold each input against what was declared; how many questions there were."""
    auditor = Auditor()
    with auditor:
        run(rows)
    if not auditor.log:
        return 0
    for other in neighbours:
        auditor.set_replay()
        with auditor:
            run(other)
        assert auditor._cursor == len(auditor.log), "a neighbour was asked fewer questions"
        auditor.validate_records()
    assert auditor.mode is AuditMode.REPLAY
    return len(auditor.log)


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_every_synthesizer(subject: Subject, unit: Unit, budget: tuple[float, float | None]) -> None:
    """The same answers lead to the same questions, and one person moves no input by more than was declared."""
    try:
        method = subject.method(unit, budget)
    except dc.DpcipherError as error:
        pytest.skip(str(error))
    neighbours = list(subject.neighbours(unit))[:NEIGHBOURS]
    asked = replayed(lambda rows: method.fit(rows, subject.schema), subject.rows, neighbours)
    assert asked > 0 or subject.name == "uniform"


@pytest.mark.parametrize("workload", [1, 2, "auto"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_frame_of_mixed_cells(workload: int | str, relation: str) -> None:
    """From the frame a user hands in: cells of several types in one column, missing ones, and a person with other types than everyone else."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99, "bins": 5, "other": "nearest"},
                "code": {
                    "kind": "categorical",
                    "levels": ["a", "1", "rest"],
                    "other": "rest",
                    "missing": "level",
                },
                "day": {
                    "kind": "date",
                    "edges": ["2020-01-01", "2021-01-01", "2022-01-01"],
                    "other": "nearest",
                },
            }
        }
    )
    rows = pd.DataFrame(
        {
            "age": [3, 40, 60, 99] * 30,
            "code": ["a", 1, None, "x"] * 30,
            "day": ["2020-03-01", "2021-05-05"] * 60,
        }
    ).astype(object)
    odd = pd.DataFrame([[7.0, 1.0, pd.Timestamp("2021-07-01")]], columns=rows.columns).astype(object)
    if relation == "add-remove":
        neighbours = [pd.concat([rows, odd], ignore_index=True), rows.iloc[1:], rows.iloc[:-1]]
    else:
        neighbours = [pd.concat([rows.iloc[1:], odd], ignore_index=True)]

    def run(frame: pd.DataFrame) -> object:
        return dc.measure(frame, schema, workload=workload, epsilon=1.0, unit=relation)

    assert replayed(run, rows, neighbours) >= 1


def test_a_wrong_sensitivity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness is awake: declaring half of what one person changes fails."""
    monkeypatch.setitem(SEEN, "part", 0.5)
    rows = SUBJECTS[0].rows
    with pytest.raises(AssertionError, match="Dist"):
        replayed(
            lambda frame: dc.measure(frame, SUBJECTS[0].schema, epsilon=1.0, unit="add-remove"),
            rows,
            [rows.iloc[1:]],
        )
