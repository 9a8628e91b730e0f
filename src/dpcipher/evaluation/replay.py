"""Record what is asked of one table, and replay the same answers on its neighbour: then compare the questions, and all that is shown.

If the answers are the same, everything else must be the same: the questions, in the same order and at the same scales; the release, the
certificate and the joint; progress, warnings and errors. What differs is the truth behind each question, and by no more than was declared. Tables of a
release must be answers that were recorded, each of them once. Recording starts where a user starts: at `fit` or `measure`, with a frame or file.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import DpcipherError
from dpcipher.methods import Synthesizer
from dpcipher.methods.base import Fitted
from dpcipher.privacy.budget import Budget, Moved
from dpcipher.privacy.draws import (
    Chooser,
    Draws,
    NoiseSource,
    OpenDPChooser,
    OpenDPNoise,
    SeededChooser,
    SeededNoise,
    split_like,
)
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Noise

Kind = Literal["laplace", "gaussian", "choice"]
_UNNAMED = -(2**62)  # a noisy count that reaches no threshold
ROUNDING = 1 + 1e-9  # costs in a certificate are floats, rounded up


class Violation(DpcipherError):
    """Something that privacy rests on does not hold; the message says what."""


@dataclass(frozen=True)
class RecordedQuestion:
    """True numbers that met a mechanism, the scale of its noise, and the answer. Private: it never leaves an audit.

    Where texts were counted, `names` are those texts: two tables may have different ones.
    """

    kind: Kind
    truth: Counts
    scale: float
    answer: Any
    names: tuple[str, ...] | None = None
    tables: int = 1

    @property
    def rounds(self) -> int:
        """How many candidates a choice chose, or how many tables were handed to the sampler together."""
        return len(self.answer) if self.kind == "choice" else self.tables

    def gap(self, other: "RecordedQuestion") -> Counts:
        """How much more this table has than the other; of texts, those that both have."""
        if self.names is None or other.names is None:
            return np.asarray(self.truth - other.truth)
        places = {text: place for place, text in enumerate(other.names)}
        pairs = [(mine, places[text]) for mine, text in enumerate(self.names) if text in places]
        return np.array([self.truth[mine] - other.truth[theirs] for mine, theirs in pairs], dtype=np.int64)

    def cost(self, other: "RecordedQuestion", *, zcdp: bool) -> float:
        """The privacy loss of the answer between two tables, at most: epsilon, or rho."""
        gap = np.abs(self.gap(other)).astype(np.float64)
        if self.kind == "gaussian":
            return float((gap**2).sum() / (2 * self.scale**2))
        if self.kind == "laplace":
            return float(gap.sum() / self.scale)
        each = 2 * float(gap.max(initial=0)) / self.scale
        return self.rounds * (each**2 / 8 if zcdp else each)

    def range(self, other: "RecordedQuestion", *, zcdp: bool) -> float:
        """The cost, where a choice counts only as far as its scores move apart: if all move alike, it costs nothing."""
        if self.kind != "choice":
            return self.cost(other, zcdp=zcdp)
        each = float(np.ptp(self.truth - other.truth)) / self.scale
        return self.rounds * (each**2 / 8 if zcdp else each)


class Measurer(Protocol):
    """A maker of releases under a budget, which is audited beside synthesizers."""

    @property
    def budget(self) -> Budget:
        """The whole budget."""

    def measure(self, data: Any, schema: Schema, progress: Callable[[str], None]) -> Release:
        """The release; `progress` takes messages."""


@dataclass
class Transcript:
    """The questions of one run in their order, the certificate's events, the schema it came to, and all else that it `shows`.

    `bounds` are those of the whole numbers that an urn asked for.
    """

    questions: list[RecordedQuestion] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    replayed: Sequence[RecordedQuestion] | None = None
    schema: str = ""
    shows: dict[str, Any] = field(default_factory=dict)
    bounds: list[int] = field(default_factory=list)

    def below(self, bound: int) -> int:
        """A place in the middle; an audit checks the law of such draws by itself."""
        self.bounds.append(bound)
        return bound // 2

    def ask(self, kind: Kind, truth: Counts, scale: float, draw: Any, *, tables: int = 1) -> Any:
        """Note a question; its answer is drawn, or that of the run that is replayed."""
        if self.replayed is None:
            answer = draw()
        else:
            self._follow(kind, truth, scale)
            answer = self.replayed[len(self.questions)].answer
        copy = np.array(truth, dtype=np.int64)
        self.questions.append(RecordedQuestion(kind, copy, scale, answer, tables=tables))
        return answer

    def ask_named(
        self, names: Sequence[str], truth: Counts, mechanism: Noise, draw: Callable[[], Counts]
    ) -> Counts:
        """Note a question about texts. Texts that the replayed run lacks get no answer that could name them: that they are not named is the event.

        What becomes of lone texts is another question, which an audit answers by itself.
        """
        if self.replayed is None:
            answer = draw()
        else:
            known = self._next()
            if known.names is None or (known.kind, known.scale) != (mechanism.kind, mechanism.scale):
                raise Violation(
                    f"question {len(self.questions) + 1} changed its kind or scale on a neighbour"
                )
            said = dict(zip(known.names, known.answer, strict=True))
            answer = np.array([said.get(text, _UNNAMED) for text in names], dtype=np.int64)
        assert mechanism.kind != "none"
        copy = np.array(truth, dtype=np.int64)
        self.questions.append(RecordedQuestion(mechanism.kind, copy, mechanism.scale, answer, tuple(names)))
        return answer

    def _next(self) -> RecordedQuestion:
        """The recorded question whose turn it is."""
        assert self.replayed is not None
        if len(self.questions) == len(self.replayed):
            raise Violation(
                "a neighbour was asked more questions: the number of questions depends on private rows"
            )
        return self.replayed[len(self.questions)]

    def _follow(self, kind: Kind, truth: Counts, scale: float) -> None:
        """Refuse a question that the recorded run did not ask."""
        known = self._next()
        if (kind, scale, truth.shape) != (known.kind, known.scale, known.truth.shape):
            raise Violation(
                f"question {len(self.questions) + 1} ({known.kind}) changed its kind, shape or scale on a neighbour: it depends on private rows"
            )


class _TapedNoise(NoiseSource):
    """Noise whose questions are recorded; stamped NOT PRIVATE, since the recording holds the truth."""

    is_private = False

    def __init__(self, transcript: Transcript, inner: NoiseSource) -> None:
        self._transcript, self._inner = transcript, inner

    def _noisy(self, counts: Counts, mechanism: Noise) -> Counts:
        if mechanism.kind == "none":
            raise Violation("true counts were asked for without noise")
        return np.asarray(
            self._transcript.ask(
                mechanism.kind, counts, mechanism.scale, lambda: self._inner.add(counts, mechanism)
            )
        )

    def _noisy_tables(self, tables: Sequence[Counts], mechanism: Noise) -> list[Counts]:
        """Noise for several tables at once: one question, which stands for all of them."""
        if mechanism.kind == "none":
            raise Violation("true counts were asked for without noise")
        answers = self._transcript.ask(
            mechanism.kind,
            np.concatenate(tables),
            mechanism.scale,
            lambda: np.concatenate(self._inner.add_many(tables, [mechanism] * len(tables))),
            tables=len(tables),
        )
        return split_like(answers, tables)

    def add_named(self, names: Sequence[str], counts: Counts, mechanism: Noise) -> Counts:
        """Noise for counts of texts."""
        return self._transcript.ask_named(
            names, counts, mechanism, lambda: self._inner.add_named(names, counts, mechanism)
        )

    def certificate(self, mechanism: Noise, moved: Moved) -> float:
        """The certificate of the sampler."""
        return self._inner.certificate(mechanism, moved)


class _TapedChooser(Chooser):
    """Choices whose scores are recorded."""

    is_private = False

    def __init__(self, transcript: Transcript, inner: Chooser) -> None:
        self._transcript, self._inner = transcript, inner

    def _choose(self, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        return list(
            self._transcript.ask("choice", scores, scale, lambda: self._inner.choose_many(scores, scale, k))
        )

    def _rho(self, scale: float, sensitivity: int, k: int) -> float:
        return self._inner._rho(scale, sensitivity, k)


def record(
    method: Synthesizer | Measurer,
    data: Any,
    schema: Schema,
    *,
    replay: Transcript | None = None,
    seed: int | None = None,
) -> Transcript:
    """Run a method on a frame or file and record its questions, and what it shows; with `replay`, give that run's answers.

    Noise is drawn by the installed sampler, or, with a seed, by its repeatable stand-in. Post-processing has a fixed seed, so that two runs with
    the same answers do the same. What is made meanwhile is stamped NOT PRIVATE.
    """
    transcript = Transcript(replayed=None if replay is None else replay.questions)
    noise, chooser = (
        (OpenDPNoise(), OpenDPChooser())
        if seed is None
        else (SeededNoise(seed), SeededChooser(np.random.default_rng(seed + 1)))
    )
    draws = Draws(
        _TapedNoise(transcript, noise),
        _TapedChooser(transcript, chooser),
        transcript.below,
        np.random.default_rng(0),
    )
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught, _drawing(draws):
        warnings.simplefilter("always")
        try:
            result = (
                method.fit(data, schema)
                if isinstance(method, Synthesizer)
                else method.measure(data, schema, lines.append)
            )
        except DpcipherError as error:
            if replay is None or isinstance(error, Violation):
                raise
            raise Violation("a neighbour is refused where the first table was not") from error
    if replay is not None and len(transcript.questions) != len(replay.questions):
        raise Violation(
            "a neighbour was asked fewer questions: the number of questions depends on private rows"
        )
    _note(transcript, result)
    transcript.shows |= {
        "progress": lines,
        "a warning": [(warning.category.__name__, str(warning.message)) for warning in caught],
    }
    return transcript


@contextmanager
def _drawing(draws: Draws) -> Iterator[None]:
    """Let every session that opens meanwhile draw from these."""
    secure = vars(Draws)["secure"]
    Draws.secure = classmethod(lambda _: draws)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Draws.secure = secure  # type: ignore[method-assign]


def _note(transcript: Transcript, result: Release | Fitted) -> None:
    """Note what came of a run; a table of its release that is no recorded answer, or one that stands in another table too, is a Violation."""
    release, joints = (result, ()) if isinstance(result, Release) else (result.release, result.joints)
    statement = result.statement.to_dict() | {"created": "", "ledger": {}}
    transcript.events = statement["certificate"]["events"]
    transcript.schema = (result if isinstance(result, Release) else joints[0]).schema.fingerprint()
    transcript.shows["the certificate"] = statement
    if not transcript.bounds:  # a joint of rows from an urn is itself the answer
        transcript.shows["the joint"] = [
            (joint.n_rows, {name: array.tobytes() for name, array in joint.core.to_arrays().items()})
            for joint in joints
        ]
    if release is None:
        return
    transcript.shows["the release"] = [
        (one.noise, one.set, one.values.tolist()) for one in release.measurements
    ]
    left = [
        np.asarray(question.answer).astype(np.int64).tobytes()
        for question in transcript.questions
        if question.kind != "choice"
    ]
    for one in release.measurements:
        if not one.exact:
            _take(one.values.astype(np.int64).tobytes(), left)


def _take(counts: bytes, answers: list[bytes]) -> None:
    """Take counts out of the answers that hold them, in whole cells."""
    for place, answer in enumerate(answers):
        start = answer.find(counts)
        while start % 8 and start > 0:
            start = answer.find(counts, start + 1)
        if start >= 0:
            answers[place : place + 1] = [answer[:start], answer[start + len(counts) :]]
            return
    raise Violation(
        "a table of the release is not an answer of its own: it has no noise, or that of another table"
    )


def compare_answers(
    method: Synthesizer | Measurer, here: Transcript, there: Transcript
) -> list[tuple[str, float, float]]:
    """Each event with its true cost between the two runs and its declared cost; a Violation where the true cost is larger.

    Events are matched with their questions in order: a choice of k tables stands for k rounds, asked at once or one by one; an event of several
    tables for all of them, which may have been handed to the sampler together.
    """
    if here.schema != there.schema:
        raise Violation("the schema of the answer depends on private rows beyond the noisy answers")
    for part, shown in here.shows.items():
        if shown != there.shows.get(part):
            raise Violation(f"{part} depends on private rows beyond the answers")
    zcdp = method.budget.kind != "pure"
    pairs = iter(zip(here.questions, there.questions, strict=True))
    rows = []
    for event in here.events:
        if event["type"] == "posterior":  # drawn from an urn, not asked: its law is audited by itself
            continue
        cost, left = 0.0, _answers(event)
        while left > 0:
            mine, theirs = next(pairs)
            cost += mine.cost(theirs, zcdp=zcdp)
            left -= mine.rounds
        if cost > event["cost"] * ROUNDING:
            raise Violation(
                f"{event['what']}: one person changes it by {cost:.6g}, and {event['cost']:.6g} was declared"
            )
        rows.append((str(event["what"]), cost, float(event["cost"])))
    if next(pairs, None) is not None:
        raise Violation("an answer was drawn that no event of the certificate declares")
    if sum(declared for _, _, declared in rows) > float(method.budget.amount) * ROUNDING:
        raise Violation("the events of the certificate cost more than the budget")
    return rows


def _answers(event: dict[str, Any]) -> int:
    """How many answers an event stands for."""
    if event["type"] == "choice":
        return int(event["rounds"])
    return int(event.get("tables", 1)) * int(event.get("sets", 1))
