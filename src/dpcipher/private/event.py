"""What the door records of an answer, and how it measures a question."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Event:
    """One answer: what was asked, the share of the charge it took, and what its sampler says it cost."""

    what: str
    share: Fraction
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"what": self.what, "share": str(self.share), "cost": self.cost}


@dataclass(frozen=True)
class Stretch:
    """How much more one person changes a query than one table of counts: as factors of its L1 and its squared L2 distance."""

    l1: Fraction = Fraction(1)
    l2_squared: Fraction = Fraction(1)
