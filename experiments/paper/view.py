"""What was measured, as one condition sees it: which reading CIPHER has, which form MWEM, which m, which costs."""

from dataclasses import dataclass

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy
from experiments.paper.claims import OURS as OUR_ENGINE
from experiments.paper.claims import Condition
from experiments.paper.contenders import CIPHER, FDH, MWEM, OURS, ROUNDS, Contender
from experiments.paper.population import SHAPE
from experiments.paper.storage import full_cells, parameters
from experiments.paper.summary import BankruptcySummary, SimulatedSummary

# Places of epsilon: "small" is every epsilon below 1, "large" every one above.
SMALL, MIDDLE, LARGE = slice(0, 2), slice(1, 4), slice(3, 5)
# The text of the paper exchanges the costs of the pairs and the triples.
_SWAPPED = {2: 3, 3: 2}


def cost(method: Contender, costs: str = "as meant", *, normal: bool = True) -> float:
    """The paper's cost of a method as a share of the full table: parameters over cells; 1 where nothing is to be normalised."""
    if not normal or method.kind == "FDH":
        return 1.0
    order = _SWAPPED.get(method.order, method.order) if costs == "as printed" else method.order
    return parameters(SHAPE, order) / full_cells(SHAPE)


@dataclass(frozen=True)
class View:
    """The scores of a run under one condition. All are replicated; in the first experiment by n and epsilon, in the second by epsilon."""

    condition: Condition
    simulated: SimulatedSummary | None = None
    bankruptcy: BankruptcySummary | None = None

    @property
    def first(self) -> SimulatedSummary:
        """The first experiment."""
        if self.simulated is None:
            raise ParameterError("experiment1 must have been run for this claim")
        return self.simulated

    @property
    def second(self) -> BankruptcySummary:
        """The second experiment."""
        if self.bankruptcy is None:
            raise ParameterError("experiment2 must have been run for this claim")
        return self.bankruptcy

    def cipher(self, order: int) -> Contender:
        """CIPHER under this reading, or our engine in its place."""
        if self.condition.reading == OUR_ENGINE:
            return OURS[order]
        return CIPHER[order].read(self.condition.reading)

    def mwem(self, order: int) -> Contender:
        """MWEM in this form."""
        return MWEM[self.condition["mwem"]][order]

    @property
    def papers(self) -> list[Contender]:
        """The methods that the paper compares: FDH, CIPHER and MWEM of two orders."""
        return [FDH, self.cipher(2), self.cipher(3), self.mwem(2), self.mwem(3)]

    def tvd(self, method: Contender, *, normal: bool = True) -> Floats:
        """The mean TVD, last axis the order (1, 2, 3)."""
        return self._mean(method, "tvd") * self._cost(method, normal)

    def linf(self, method: Contender, *, normal: bool = True) -> Floats:
        """The largest error of a cell, last axis the order (2, 3)."""
        return self._mean(method, "linf") * self._cost(method, normal)

    def score(self, method: Contender, name: str) -> Floats:
        """Another mean over the repeats."""
        return self._mean(method, name)

    def after(self, method: Contender, name: str) -> Floats:
        """A distance of MWEM after each number of rounds: the first axis after the replicates."""
        lines = [self._mean(method, f"{name} after {rounds} rounds") for rounds in ROUNDS]
        return np.stack(lines, axis=1)

    def parameters(self, method: Contender, metric: str) -> Floats:
        """A metric of the regression with ten parameters, last axis the parameter."""
        return self.first.each(method.name, lambda card: getattr(card.inference[0], metric))

    def mean(self, method: Contender, metric: str, *, normal: bool = True) -> Floats:
        """The mean size of a metric over the ten parameters."""
        sizes = np.abs(self.parameters(method, metric)).mean(axis=-1)
        return np.asarray(sizes * self._cost(method, normal))

    def share(self, method: Contender, *categories: str) -> Floats:
        """The share of some SSS categories together."""
        return self.first.each(
            method.name, lambda card: sum(card.inference[0].shares[name] for name in categories)
        )

    def log_odds(self, method: Contender, *, normal: bool = True) -> Floats:
        """The log-odds of Best; more is better, so that the cost divides the odds."""
        odds = self.first.each(method.name, lambda card: card.inference[0].log_odds)
        return np.asarray(odds - np.log(self._cost(method, normal)))

    def _mean(self, method: Contender, key: str) -> Floats:
        return self.first.each(method.name, lambda card: card.means[key])

    def _cost(self, method: Contender, normal: bool) -> float:
        return cost(method, self.condition["costs"], normal=normal)

    @property
    def second_cipher(self) -> Contender:
        """CIPHER of the second experiment, or our engine in its place."""
        if self.condition.reading == OUR_ENGINE:
            return bankruptcy.OURS
        return bankruptcy.CIPHER.read(self.condition.reading)

    @property
    def second_mwem(self) -> Contender:
        """MWEM of the second experiment."""
        return bankruptcy.MWEM[self.condition["mwem"]]

    def category(self, method: Contender, *categories: str) -> Floats:
        """The share of some SSS categories together, second experiment."""
        return self.second.each(
            self._sets,
            method.name,
            lambda card: sum(card.inference[0].shares[name] for name in categories),
        )

    def accuracy(self, method: Contender) -> Floats:
        """The mean accuracy of the SVM."""
        return self.second.each(self._sets, method.name, lambda card: card.means["accuracy"])

    @property
    def _sets(self) -> int:
        return int(self.condition["sets"])
