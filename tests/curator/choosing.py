"""Runs of the choice of tables on planted rows, with seeded draws."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import RowCounts
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import Auto
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.select import select
from dpcipher.tables.measurement import Measurement


@dataclass(frozen=True)
class Chosen:
    """The measured tables, and what the release says about how they were chosen."""

    tables: list[Measurement]
    note: dict[str, Any]


def run(
    codes: np.ndarray,
    shape: tuple[int, ...],
    auto: Auto = Auto(),  # noqa: B008 - a frozen value
    *,
    seed: int = 0,
    sets: int = 1,
    unit: Unit = Unit("add-remove"),  # noqa: B008
    public: bool = False,
    **budget: float,
) -> tuple[Session, Chosen]:
    """Choose tables of coded rows, columns c0, c1, …, with seeded draws."""
    session = Session(
        Schema.from_domain({f"c{place}": size for place, size in enumerate(shape)}),
        Privacy(Budget.parse(**budget), unit, n_rows_public=public),
        PrivateRows(RowCounts(codes.astype(np.int32), shape), Draws.seeded(seed)),
    )
    tables = select(session, auto, sets=sets)
    return session, Chosen(tables, session.remarks["selection"])


def shares(session: Session) -> dict[str, Fraction]:
    """The share of the charge that went to each thing asked."""
    found: dict[str, Fraction] = {}
    for event in session.statement().certificate["events"]:
        found[event["what"]] = found.get(event["what"], Fraction(0)) + Fraction(event["share"])
    return found


def columns(p: int, n_rows: int, levels: int, *same: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Independent columns, but for pairs of which the second is nine times in ten a copy of the first."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, (n_rows, p))
    for one, other in same:
        codes[:, other] = np.where(rng.random(n_rows) < 0.1, codes[:, other], codes[:, one])
    return codes
