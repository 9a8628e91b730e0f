"""PrivBayes: a Bayesian network chosen privately, then its tables with noise (Zhang et al. 2014; 2017 for general domains).

A share β of the budget chooses the parents of each column by the exponential mechanism, the rest measures the tables. A table is measured only
if it is θ-useful: the mean count of a cell is at least θ times the scale of its noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcipher.errors import ParameterError
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.methods import scores
from dpcipher.methods.base import Synthesizer, check_between
from dpcipher.methods.outcome import (
    ROWS_SHARE,
    Total,
    drowned,
    first_total,
    network_joint,
    no_total,
)
from dpcipher.methods.scores import Pair, PairScores, degree_within, maximal_parents
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Query

MAX_CANDIDATES = 5_000
# No table above this, whatever the noise allows: every candidate of a step is counted.
MAX_TABLE_CELLS = 2**18


@dataclass(frozen=True)
class PrivBayes(Synthesizer):
    """A Bayesian network of bounded degree.

    `score` is "F" (binary columns only), "R" or "I" (which needs unit="replace"); by default F where all columns are binary and R
    elsewhere. `beta` is the share that chooses the network, `theta` the usefulness. The first column of the schema is the root; the
    source takes a random one. Where the number of rows is private, a tenth of the budget buys it.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.PrivBayes(epsilon=1.0, unit="add-remove").fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "PrivBayes"

    score: str | None = None
    beta: float = 0.3
    theta: float = 4.0

    def _check(self) -> None:
        check_between("beta", self.beta, 0, 1, 0.3)
        check_between("theta", self.theta, 0, math.inf, 4.0)
        if self.score not in (None, *scores.SCORES):
            raise ParameterError(f"score ({self.score!r}) must be 'I', 'F' or 'R'; try score='R'")

    @property
    def _needs_n_rows(self) -> bool:
        return self.score == "I"

    def check_schema(self, schema: Schema) -> None:
        """The score F is for binary columns."""
        if self.score == "F" and not _binary(schema):
            raise ParameterError("score ('F') must have columns of at most two levels; try score='R'")

    def _finest(self, schema: Schema) -> Fraction:
        beta = Fraction(repr(float(self.beta)))
        return (1 - ROWS_SHARE) * min(beta, 1 - beta) / len(schema.attrs)

    def _learn(self, session: Session) -> Sequence[Joint]:
        total = first_total(session) if len(session.schema.attrs) > 1 else no_total(session)
        plan = _plan(session, total, Fraction(repr(float(self.beta))), self.theta)
        nodes: list[Node] = []
        tables: list[Measurement] = []
        for axis, parents in self._choose(session, plan)[plan.free :]:
            noisy = session.measure(Query(tuple(sorted((axis, *parents)))), plan.table_share)
            total = total.with_table(noisy.values, noisy.noise.variance)
            # In the binary form the first tables are margins of the next one, so that one stands for all of them.
            whole = plan.free > 0 and not nodes
            nodes.append(_node(noisy, () if whole else parents))
            tables.append(noisy)
        network = Network(session.schema.shape, tuple(nodes))
        return [
            network_joint(
                session,
                network,
                n_rows=total.estimate,
                engine="privbayes",
                warnings=drowned(session.schema, tables),
            )
        ]

    def _choose(self, session: Session, plan: "_Plan") -> list[Pair]:
        """The greedy search: one column and its parents at a time, each by the exponential mechanism."""
        shape, score = session.schema.shape, self.score or ("F" if _binary(session.schema) else "R")
        pairs: list[Pair] = [(0, ())]
        while len(pairs) < len(shape):
            earlier = sorted(axis for axis, _ in pairs)
            candidates = plan.candidates(earlier, shape)
            pairs.append(
                candidates[0]
                if plan.choice_share == 0
                else _pick(session, candidates, score, plan.choice_share)
            )
        return pairs


@dataclass(frozen=True)
class _Plan:
    """How the budget is spent: shares of a choice and of a table, how large a table may be, how many parents."""

    choice_share: Fraction
    table_share: Fraction
    cells: float
    degree: int
    free: int

    def candidates(self, earlier: Sequence[int], shape: Sequence[int]) -> list[Pair]:
        """Every column that has no place yet, with every useful maximal set of parents."""
        rest = [axis for axis in range(len(shape)) if axis not in earlier]
        if self.choice_share == 0:
            return [(rest[0], ())]
        return [
            (axis, parents)
            for axis in rest
            for parents in maximal_parents(earlier, shape, max(1.0, self.cells / shape[axis]), self.degree)
        ]


def _plan(session: Session, total: Total, beta: Fraction, theta: float) -> _Plan:
    """Whether to choose parents at all, and how large the tables may be."""
    shape, left = session.schema.shape, session.left
    d = len(shape)
    if d > 1 and all(size <= 2 for size in shape):
        return _binary_plan(session, total, beta, theta)
    share = left * (1 - beta) / d
    cells = _useful_cells(session, total, share, theta)
    degree = degree_within(d, MAX_CANDIDATES)
    if degree == 0 or math.prod(sorted(shape)[:2]) > cells:
        # No pair of columns is useful, or there are too many to choose from: all of the budget measures one-way tables.
        return _Plan(Fraction(0), left / d, cells, 0, 0)
    return _Plan(left * beta / (d - 1), share, cells, degree, 0)


def _binary_plan(session: Session, total: Total, beta: Fraction, theta: float) -> _Plan:
    """The largest k such that the d−k tables of k+1 binary columns are θ-useful; the first k tables follow from the next."""
    d, left = len(session.schema.shape), session.left
    for k in range(degree_within(d, MAX_CANDIDATES), 0, -1):
        share = left * (1 - beta) / (d - k)
        if _useful_cells(session, total, share, theta) >= 2 ** (k + 1):
            return _Plan(left * beta / (d - 1), share, math.inf, k, k)
    return _Plan(Fraction(0), left / d, 1.0, 0, 0)


def _useful_cells(session: Session, total: Total, share: Fraction, theta: float) -> float:
    """The most cells with a mean count of θ noise scales; a Laplace scale is the standard deviation over √2."""
    least = max(theta * math.sqrt(session.noise(share).variance / 2), 1e-300)
    return min(MAX_TABLE_CELLS, total.rows / least)


def _pick(session: Session, candidates: Sequence[Pair], score: str, share: Fraction) -> Pair:
    shape = session.schema.shape
    binary = all(
        shape[axis] == 2 or math.prod(shape[p] for p in parents) == 2 for axis, parents in candidates
    )
    choice = PairScores("choice of parents", candidates, score, session.n_rows, binary)
    return candidates[session.choose(choice, 1, share)[0]]


def _node(noisy: Measurement, given: Axes) -> Node:
    """A noisy table as a node: its columns given some of them."""
    axes = noisy.query.axes
    own = tuple(a for a in axes if a not in given)
    counts = noisy.values.astype(float).transpose([axes.index(a) for a in (*given, *own)])
    return Node(own, given, conditional(counts, len(given)))


def _binary(schema: Schema) -> bool:
    return all(size <= 2 for size in schema.shape)
