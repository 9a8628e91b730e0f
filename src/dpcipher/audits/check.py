"""One row of an audit: what was found against what is claimed."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpcipher.privacy.terms import Unit

ALPHA = 1e-6  # the chance that a right installation fails, over all rows together
N_CHECKS = 300  # an upper bound on the number of rows, among which it is shared
EACH = ALPHA / N_CHECKS


@dataclass(frozen=True)
class Check:
    """One row of an audit; `trials` are draws or neighbours. A `violation` says what failed where no number can."""

    part: str
    what: str
    unit: str
    claimed: float
    estimate: float
    trials: int
    violation: str = ""

    @property
    def ratio(self) -> float:
        """What was found over what is claimed."""
        return math.inf if self.violation else self.estimate / self.claimed

    @property
    def passed(self) -> bool:
        """Whether no more was found than is claimed."""
        return self.ratio <= 1 + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {
            **asdict(self),
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "passed": self.passed,
        }


def describe(unit: Unit) -> str:
    """A unit in two words."""
    return unit.relation if unit.max_rows == 1 else f"{unit.relation}, {unit.max_rows} rows"
