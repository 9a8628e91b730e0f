"""The simulated tables of the paper's first experiment: 2×2×3×3, from a sequence of multinomial logits.

    V1;   V2 | V1;   V3 | V1, V2;   V4 | V1, V2, V3        main effects only, level 0 the reference

The paper does not print its coefficients. Ours are draws from N(0, 1), rounded to one decimal. The table is the definition; the
seed behind it is the second half of the paper's arXiv number (the first half gives pairs of levels with an expected count of 1 at
n = 200, which would leave the regressions of the original data separated). The experiment is repeated over random coefficients.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ParameterError
from dpcipher.inference.design import one_hot
from dpcipher.inference.glm import fit_logit
from dpcipher.tables.domain import Counts, Floats

Rows = tuple[tuple[float, ...], ...]

SHAPE = (2, 2, 3, 3)
SEED = 5671
# One row for each level but the first; columns: constant, then the dummies of all earlier variables.
COEFFICIENTS: tuple[Rows, ...] = (
    ((1.2,),),
    ((0.3, -0.1),),
    ((0.0, -1.5, -0.2), (1.0, -0.5, 0.0)),
    ((0.3, 0.0, -0.8, -0.5, 2.1), (0.4, -1.1, -0.2, 0.1, 0.9)),
)


@dataclass(frozen=True)
class Population:
    """A distribution over the four variables, given by the coefficients of each variable on the earlier ones."""

    coefficients: tuple[Rows, ...]

    def __post_init__(self) -> None:
        if [np.shape(rows) for rows in self.coefficients] != sizes():
            raise ParameterError(f"coefficients must be four tables of the shapes {sizes()}")

    @cached_property
    def joint(self) -> Floats:
        """The probability of every cell."""
        table = np.ones(())
        for axis, rows in enumerate(self.coefficients):
            scores = design(SHAPE[:axis]) @ np.array([[0.0] * len(rows[0]), *rows]).T
            chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            table = table[..., None] * chances.reshape(*SHAPE[:axis], SHAPE[axis])
        return table

    def draw(self, n_rows: int, repeats: int, rng: np.random.Generator) -> Counts:
        """Tables of counts of `repeats` independent data sets."""
        return rng.multinomial(n_rows, self.joint.ravel(), size=repeats).reshape(repeats, *SHAPE)


@dataclass(frozen=True)
class Regression:
    """The regression of one variable on the main effects of the others, from tables of counts."""

    name: str
    outcome: int

    @cached_property
    def x(self) -> Floats:
        """The design: one row for each cell of the other variables."""
        return design(tuple(size for axis, size in enumerate(SHAPE) if axis != self.outcome))

    @property
    def size(self) -> int:
        """How many parameters it has."""
        return int(self.x.shape[1]) * (SHAPE[self.outcome] - 1)

    def grouped(self, counts: NDArray[np.generic]) -> Floats:
        """Tables of counts as designs by outcomes, along the first axis."""
        moved = np.moveaxis(counts, self.outcome + 1, -1)
        return moved.reshape(len(counts), len(self.x), -1).astype(float)

    def truth(self, population: Population) -> Floats:
        """The parameters of the population: of the best such model, where the model does not hold exactly."""
        return fit_logit(self.x, 1e6 * self.grouped(population.joint[None])[0]).coefficients.ravel()


# "A multinomial logit with a binary outcome" of "10 parameters" cannot be: ten parameters need an outcome with three levels.
REGRESSIONS = (
    Regression("three-level outcome, 10 parameters", 3),
    Regression("binary outcome, 6 parameters", 0),
)


def design(shape: tuple[int, ...]) -> Floats:
    """A constant and a dummy for each level but the first of each variable, one row for each cell."""
    return np.asarray(one_hot(np.argwhere(np.ones(shape)), shape).toarray())


def sizes() -> list[tuple[int, int]]:
    """The shapes of the four tables of coefficients."""
    return [(size - 1, 1 + sum(s - 1 for s in SHAPE[:axis])) for axis, size in enumerate(SHAPE)]


def random_coefficients(seed: int) -> tuple[Rows, ...]:
    """Coefficients from N(0, 1), rounded to one decimal."""
    rng = np.random.default_rng(seed)
    return tuple(tuple(map(tuple, rng.normal(size=size).round(1).tolist())) for size in sizes())


POPULATION = Population(COEFFICIENTS)
