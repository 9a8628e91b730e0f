"""Questions and choices that a test makes up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcipher.privacy.events import Sensitivity
from dpcipher.request.session import Choice, Question, TrueCounts


@dataclass(frozen=True, eq=False)
class Asked(Question):
    """Any vector of whole numbers, and how far one person is said to move it."""

    count: Callable[[TrueCounts], np.ndarray]
    l1: int
    l2_squared: int
    name: str = "made up"

    def words(self, schema: Any) -> str:
        """Its name."""
        return self.name

    def sensitivity(self, unit: Any, shape: Any) -> Sensitivity:
        """As said."""
        return Sensitivity(self.l1, self.l2_squared)

    def of(self, counts: TrueCounts) -> np.ndarray:
        """As counted."""
        return self.count(counts)

    def expected(self, rows: Any) -> np.ndarray:
        """Nothing."""
        return np.zeros(1)


@dataclass(frozen=True, eq=False)
class Scored(Choice):
    """Any scores, which one person is said to move by at most one."""

    count: Callable[[TrueCounts], np.ndarray]
    n_candidates: int = 3  # type: ignore[assignment,misc]
    name: str = "made up"

    def words(self, schema: Any) -> str:
        """Its name."""
        return self.name

    def sensitivity(self, unit: Any) -> int:
        """One."""
        return 1

    def of(self, counts: TrueCounts) -> np.ndarray:
        """As scored."""
        return self.count(counts)
