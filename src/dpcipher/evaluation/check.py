"""One row of an audit: a number against what is claimed; and the row of a run that is replayed on neighbours."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from dpcipher.evaluation.replay import Measurer, Violation, compare_answers, record
from dpcipher.methods import Synthesizer
from dpcipher.privacy.terms import Unit
from dpcipher.schema.schema import Schema

ALPHA = 1e-6  # the chance that a right installation fails, over all rows together
N_CHECKS = 300  # an upper bound on the number of rows, among which it is shared
EACH = ALPHA / N_CHECKS


@dataclass(frozen=True)
class Check:
    """One row of an audit; `trials` are draws or neighbours. A `violation` is a failure that no number expresses."""

    part: str
    what: str
    unit: str
    claimed: float
    estimate: float
    trials: int
    violation: str = ""

    @property
    def ratio(self) -> float:
        """The estimate over the claim."""
        return math.inf if self.violation else self.estimate / self.claimed

    @property
    def passed(self) -> bool:
        """Whether the estimate is within the claim."""
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


def replay_check(
    part: str,
    name: str,
    unit: Unit,
    method: Synthesizer | Measurer,
    tables: Sequence[pd.DataFrame],
    schema: Schema,
    seed: int,
) -> Check:
    """A run on the first table, replayed on the others: the question that comes nearest to its declared cost."""
    worst, trials = ("nothing", 0.0, 1.0), len(tables) - 1
    try:
        here = record(method, tables[0], schema, seed=seed)
        for other in tables[1:]:
            there = record(method, other, schema, replay=here, seed=seed)
            worst = max([worst, *compare_answers(method, here, there)], key=lambda row: row[1] / row[2])
    except Violation as violation:
        return Check(part, name, describe(unit), 1.0, math.inf, trials, str(violation))
    return Check(part, f"{name}: {worst[0]}", describe(unit), worst[2], worst[1], trials)
