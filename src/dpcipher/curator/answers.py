"""Private rows as the source of a session: their counts are held here, and leave with noise alone."""

import datetime
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.counts import CountedTables, CountSource, Tally
from dpcipher.errors import Progress
from dpcipher.privacy.budget import Moved
from dpcipher.privacy.draws import CELLS_AT_ONCE, Draws, draw_posterior_counts
from dpcipher.privacy.ledger import Account
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.records import Charge
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement, Status, software
from dpcipher.request.request import Request
from dpcipher.request.session import Choice, Question, Recoding, Session, Source
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts
from dpcipher.tables.measurement import Noise


class PrivateRows(Source):
    """Counts of private rows, the noise that they leave with, and the charge that pays for it."""

    def __init__(
        self,
        counts: CountSource,
        draws: Draws,
        *,
        charge: Charge | None = None,
        account: Account = Account(),  # noqa: B008 - a frozen value
        kind: str = "pandas",
    ) -> None:
        self._counts, self._draws, self._charge, self._account = counts, draws, charge, account
        self.kind, self.rng = kind, draws.rng
        self.by = "privacy map of opendp" if draws.is_private else "none: seeded noise"

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The true number of rows: a session tells it only where it is public."""
        return self._counts.n_rows

    def cost(self, noise: Noise, moved: Moved) -> float:
        """What the sampler says."""
        return self._draws.noise.certificate(noise, moved)

    def choice_cost(self, scale: float, sensitivity: int, *, zcdp: bool, k: int) -> float:
        """What the chooser says."""
        return self._draws.chooser.certificate(scale, sensitivity, zcdp=zcdp, k=k)

    def answer(self, question: Question, noise: Noise) -> Counts:
        """Counted, with fresh noise on every number."""
        return self._draws.noise.add(np.asarray(question.of(self._counts), dtype=np.int64), noise)

    def answers(
        self, questions: Sequence[Question], noises: Sequence[Noise], progress: Progress
    ) -> list[Counts]:
        """The same of many, which are handed to the sampler together; a question that is asked again is counted once."""
        counted: dict[int, Counts] = {}
        for question in questions:
            if id(question) not in counted:
                counted[id(question)] = question.of(self._counts)
        tables = [counted[id(question)] for question in questions]
        cells = sum(counts.size for counts in tables)
        return self._draws.noise.add_many(
            tables,
            noises,
            progress=lambda done: (
                progress(f"drawing noise: {done / cells:.0%} of {cells:,} cells")
                if cells > CELLS_AT_ONCE
                else None
            ),
        )

    def choose(self, choice: Choice, scale: float, k: int) -> list[int]:
        """The exponential mechanism on the true scores."""
        return choice.rounds(self._draws.chooser, choice.of(self._counts), scale, k)

    def named_texts(self, axis: int, chosen: PartitionSelection, most: int) -> tuple[str, ...]:
        """Those whose noisy number of rows reaches the threshold."""
        return chosen.named(self._counts.text_counts(axis), self._draws.noise, most)

    def draw_rows(
        self, axes: Axes, prior: Fraction, n_rows: int, possible: NDArray[np.bool_] | None
    ) -> Counts:
        """An urn of the true counts and the prior."""
        counts = self._counts.counts(axes)
        weights = counts * prior.denominator + prior.numerator
        if possible is not None:
            weights = np.where(possible, weights, 0)
        drawn = draw_posterior_counts(weights.reshape(-1), prior.denominator, n_rows, self._draws.below)
        return drawn.reshape(counts.shape)

    def expect(self, tables: Sequence[Axes]) -> None:
        """Where rows must be counted for them, that is done together."""
        self._counts.expect(tables)

    def recode(self, old: Schema, new: Schema, codes: Recoding) -> None:
        """Every row by itself; texts by their private dictionaries."""
        texts = {
            axis: dictionary.recoding(new.column(old.attrs[axis]))
            for axis, dictionary in self._counts.texts.items()
        }
        self._counts = self._counts.recoded({**codes, **texts}, new.on_grid().shape)

    def statement(self, privacy: Privacy, n_rows: int | None, certificate: Mapping[str, Any]) -> Statement:
        """Who drew, who charged, and what the sampler says of it."""
        status: Status = "unrecorded" if self._charge is None else "certified"
        return Statement(
            status=status if self._draws.is_private else "NOT PRIVATE",
            n_rows=n_rows,
            **privacy.stated(),
            certificate=certificate,
            ledger={} if self._charge is None else self._charge.as_dict(),
            software=software(),
            created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        )

    def close(self, checksum: str, file: str) -> None:
        """Mark the charge in the ledger."""
        self._account.mark_released(self._charge, checksum, file=file)


def release_of(tally: Tally, request: Request, draws: Draws) -> Release:
    """The release of counts that are at hand: the seam for experiments and rehearsals, no ledger involved."""
    source = PrivateRows(CountedTables(tally, request.axes), draws)
    opened = Session(request.schema, request.privacy, source)
    return opened.release(opened.measure_all(request))
