"""Eleven ways to break the promise, each planted in this process: what of them the audit of releases catches.

Of the same eleven the audit caught NNN before it compared what is shown, and audited `measure` itself.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcipher.curator import counts as count
from dpcipher.curator import measure
from dpcipher.evaluation.releases import release_checks
from dpcipher.methods import multinomial_dirichlet
from dpcipher.privacy import budget
from dpcipher.privacy.events import Spending
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request import request, session
from dpcipher.request.session import Counted, Session
from dpcipher.tables.query import Query

Plant = Callable[[pytest.MonkeyPatch], None]


def replacement_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A replaced row leaves one cell and enters another; one of the two is paid for."""
    patch.setattr(Unit, "l1", property(lambda unit: unit.max_rows))
    patch.setattr(Unit, "l2_squared", property(lambda unit: unit.max_rows**2))


def a_person_has_more_rows_than_count(patch: pytest.MonkeyPatch) -> None:
    """The limit of a person is not enforced."""
    right = count.limited_rows

    def wrong(batches: Any, schema: Any, cap: Any, max_rows: int, *texts: Any) -> Any:
        return right(batches, schema, cap, 1_000, *texts)

    patch.setattr(count, "limited_rows", wrong)


def the_cap_of_levels_ranks_true_counts(patch: pytest.MonkeyPatch) -> None:
    """Of more texts than may be named, those with the largest true counts stay."""

    def wrong(self: PartitionSelection, counts: Any, source: Any, most: int) -> tuple[str, ...]:
        texts = sorted(counts)
        true = np.array([counts[text] for text in texts], dtype=np.int64)
        noisy = source.add_named(texts, true, self.noise)
        passed = [
            (-int(counts[text]), text)
            for number, text in zip(noisy, texts, strict=True)
            if number >= self.threshold
        ]
        return tuple(sorted(text for _, text in sorted(passed)[:most]))

    patch.setattr(PartitionSelection, "named", wrong)


def sets_share_their_noise(patch: pytest.MonkeyPatch) -> None:
    """Every set of a release is a copy of the first."""
    right = Session.measure_all

    def wrong(self: Session, asked: Any, **options: Any) -> Any:
        tables = right(self, asked, **options)
        first = {table.query: table.values for table in tables if not table.set}
        return tuple(replace(table, values=first[table.query]) for table in tables)

    patch.setattr(Session, "measure_all", wrong)


def the_number_of_rows_is_told(patch: pytest.MonkeyPatch) -> None:
    """The exact number of rows stands in the statement, whatever the unit."""
    patch.setattr(Privacy, "tells_n_rows", property(lambda privacy: True))


def progress_tells_the_number_of_rows(patch: pytest.MonkeyPatch) -> None:
    """A line of progress for whoever looks at the terminal."""
    right, opening = measure.open_counts, measure.open_session

    def wrong(*given: Any, **options: Any) -> Any:
        counts = right(*given, **options)
        SAY[-1](f"{counts.n_rows} rows")
        return counts

    def opened(*given: Any, progress: Callable[[str], None] = lambda _: None, **options: Any) -> Any:
        SAY.append(progress)
        return opening(*given, progress=progress, **options)

    patch.setattr(measure, "open_counts", wrong)
    patch.setattr(measure, "open_session", opened)


SAY: list[Callable[[str], None]] = []


def every_step_of_a_person_takes_all_of_delta(patch: pytest.MonkeyPatch) -> None:
    """The rows that are drawn from a posterior fail as many times as a person has rows."""
    right = multinomial_dirichlet.probable_prior

    def wrong(n_rows: int, epsilon: Fraction, max_rows: int, *, cells: int, delta: Fraction) -> Fraction:
        whole = sum(math.exp(step * float(epsilon / max_rows)) for step in range(max_rows))
        return right(n_rows, epsilon, max_rows, cells=cells, delta=delta * Fraction(whole))

    patch.setattr(multinomial_dirichlet, "probable_prior", wrong)


def a_choice_is_too_sure(patch: pytest.MonkeyPatch) -> None:
    """The exponential mechanism without its factor of two."""
    right = session.choice_scale
    patch.setattr(session, "choice_scale", lambda share, sensitivity: right(share, sensitivity) / 2)


def a_warning_tells_of_an_empty_cell(patch: pytest.MonkeyPatch) -> None:
    """A hint that is given where a true count is zero."""
    right = Session.release

    def wrong(self: Session, tables: Any) -> Any:
        if self._source._counts.counts(tables[0].query.axes).min() == 0:
            warnings.warn("some cells are empty", stacklevel=2)
        return right(self, tables)

    patch.setattr(Session, "release", wrong)


def coarse_counts_have_no_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise is drawn and paid for, and what was counted is released."""
    right = Session.measure

    def wrong(self: Session, query: Query, share: Fraction, **options: Any) -> Any:
        table = right(self, query, share, **options)
        return replace(table, values=Counted(query).of(self._source._counts)) if query.groups else table

    patch.setattr(Session, "measure", wrong)


def every_set_takes_the_whole_budget(patch: pytest.MonkeyPatch) -> None:
    """Two sets cost twice what is charged."""
    right = request.table_shares
    patch.setattr(request, "table_shares", lambda workload, weights=None, sets=1: right(workload, weights, 1))
    patch.setattr(Spending, "debit", lambda self, share: None)


WRONG: list[Plant] = [
    replacement_is_forgotten,
    a_person_has_more_rows_than_count,
    the_cap_of_levels_ranks_true_counts,
    sets_share_their_noise,
    the_number_of_rows_is_told,
    progress_tells_the_number_of_rows,
    every_step_of_a_person_takes_all_of_delta,
    a_choice_is_too_sure,
    a_warning_tells_of_an_empty_cell,
    coarse_counts_have_no_noise,
    every_set_takes_the_whole_budget,
]


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some row of the audit of releases fails; the others of these tests show that none does without the bug."""
    remembered = (budget.noise_for, budget.cost)
    plant(monkeypatch)
    for function in remembered:
        function.cache_clear()
    failed = next((check for check in release_checks(np.random.default_rng(0)) if not check.passed), None)
    for function in remembered:
        function.cache_clear()
    assert failed is not None
