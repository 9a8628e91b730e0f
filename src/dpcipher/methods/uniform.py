"""The uniform table: what a method must beat. It asks for the number of rows and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcipher.curator.session import Door
from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer
from dpcipher.methods.network import product_joint, uniform


@dataclass(frozen=True)
class Uniform(Synthesizer):
    """Every cell equally likely; the budget buys the number of rows where that is private."""

    title: ClassVar[str] = "uniform"

    def _learn(self, door: Door) -> Sequence[Joint]:
        n_rows = door.total(Fraction(1))[0] if door.n_rows is None else door.n_rows
        return [product_joint(door, uniform(door.schema.shape), n_rows=n_rows, engine="uniform")]
