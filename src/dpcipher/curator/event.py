"""What a certificate is made of: one typed event for every answer, and how far one person can move what was asked."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar


@dataclass(frozen=True)
class Sensitivity:
    """How far one person moves a query, as factors of the L1 and the squared L2 distance of one table of counts."""

    l1: Fraction = Fraction(1)
    l2_squared: Fraction = Fraction(1)

    def factor(self, *, zcdp: bool) -> Fraction:
        """By how much it costs more than a table: rho grows with the squared L2 distance, pure epsilon with L1."""
        return self.l2_squared if zcdp else self.l1


@dataclass(frozen=True)
class Event:
    """One answer: what was asked in words, the share of the charge it took, and what its sampler says it cost.

    The fields that a type adds are the facts it states beside that.
    """

    type: ClassVar[str]

    what: str
    share: Fraction
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the certificate, fractions as text."""
        own = {field.name: getattr(self, field.name) for field in fields(self)[3:]}
        facts = {name: str(value) if isinstance(value, Fraction) else value for name, value in own.items()}
        return {"type": self.type, "what": self.what, **facts, "share": str(self.share), "cost": self.cost}


@dataclass(frozen=True)
class TablesMeasured(Event):
    """Noise on every cell of some tables, in each of some independent sets."""

    type: ClassVar[str] = "tables"

    tables: int = 1
    sets: int = 1


@dataclass(frozen=True)
class QueryAnswered(Event):
    """Noise on any vector of whole numbers; one person moves it by so many times a table of counts."""

    type: ClassVar[str] = "query"

    l1: Fraction = Fraction(1)
    l2_squared: Fraction = Fraction(1)


@dataclass(frozen=True)
class CentredMeasured(QueryAnswered):
    """Noise on every cell of a centred table."""

    type: ClassVar[str] = "centred"


@dataclass(frozen=True)
class CandidatesChosen(Event):
    """Rounds of the exponential mechanism; one person moves a score by at most the sensitivity."""

    type: ClassVar[str] = "choice"

    candidates: int = 1
    rounds: int = 1
    sensitivity: int = 1


@dataclass(frozen=True)
class LevelsFound(Event):
    """Texts whose noisy count reached the threshold; with a probability of at most delta one that a single person has is among them."""

    type: ClassVar[str] = "levels"

    delta: Fraction = Fraction(0)
    threshold: int = 0


@dataclass(frozen=True)
class RowsDrawn(Event):
    """Rows from the posterior of the full table."""

    type: ClassVar[str] = "posterior"

    n_rows: int = 0


@dataclass(frozen=True)
class RowsProbablyDrawn(RowsDrawn):
    """Rows from the posterior of the full table that, with a probability of at most delta, tell more of a person than their cost."""

    delta: Fraction = Fraction(0)
