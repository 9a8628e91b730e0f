"""How frequent a text must be to be found, where a schema leaves levels open: known before any row is read."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcipher.curator.discover import discovery_share, selection_for
from dpcipher.privacy.budget import Budget, show
from dpcipher.privacy.unit import Unit
from dpcipher.schema.schema import Schema

USUALLY = 0.95


@dataclass(frozen=True)
class LevelPlan:
    """What finding levels takes of the budget, and what it finds: a text of `half` rows every other time, of `usually` rows 19 times out of 20."""

    columns: tuple[str, ...]
    share: Fraction
    delta: Fraction
    threshold: int
    half: int
    usually: int

    def lines(self) -> list[str]:
        """For people."""
        names = ", ".join(self.columns)
        found = f"a text of {self.half:,} rows is found every other time, of {self.usually:,} rows 19 times out of 20"
        cost = f"{self.share} of the budget, and delta = {show(self.delta)} that a lone text shows"
        return [f"Levels   {names}: {found}; {cost}. Rarer texts become other."]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {
            **vars(self),
            "columns": list(self.columns),
            "share": str(self.share),
            "delta": str(self.delta),
        }


def level_plan(schema: Schema, budget: Budget, unit: Unit) -> LevelPlan | None:
    """What a release with this budget would find; None where the schema leaves no levels open. Refused as `measure` would."""
    chosen = selection_for(schema, budget, unit)
    if chosen is None:
        return None
    names = tuple(column.name for column in schema.columns if column.discovers)
    return LevelPlan(
        columns=names,
        share=discovery_share(schema),
        delta=chosen.delta * len(names),
        threshold=chosen.threshold,
        half=chosen.found_at(0.5),
        usually=chosen.found_at(USUALLY),
    )
