"""Where the whole table is small: fit the joint itself to the noisy tables, weighted by evidence.

Shrinking table by table does not know that all tables come from one non-negative joint, which at small budgets is worth much. So the
joint p is fitted too, to the noisy tables written as A p = b with noise of one variance v on every equation:

    minimise  ½ |A p − b|² + tau · KL(p ‖ q)        which is solved by        p = q · exp(Aᵀ λ) / Z,

with q the product of the denoised one-way tables. As tau falls, p goes from independence to max-entropy's fit of the same noisy tables.
With C = A Cov_p Aᵀ, the fits are weighted by the evidence −½|A p − b|²/v − tau·KL/v − ½ log det(1 + C/tau) of the prior that the penalty
stands for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log, prod

import numpy as np
from scipy.linalg.lapack import dposv

from dpcipher.release.reconcile import Reconciled
from dpcipher.tables.domain import Axes, Floats
from dpcipher.tables.query import Query
from dpcipher.tables.raking import CALL

# One Newton step costs equations² · cells operations; beyond this, tables are many and large and shrinking them does as well.
LARGEST_STEP = 1e8
TAUS: Floats = np.logspace(1, -6, 8)
NEWTON_STEPS = 40
TOO_FAR = 4.0  # squared noise deviations per equation by which the weakest penalty may bias the fit
TRACE = 0.02  # share of the uniform table in q, so that no cell is excluded


@dataclass(frozen=True)
class JointFit:
    """The fitted joint, and the least-squares fit of a joint without any penalty.

    `noise_left` is the share of the noise that the non-negativity of the latter lets through.
    """

    joint: Floats
    nearest: Floats
    noise_left: float


@dataclass(frozen=True)
class Equations:
    """The measured tables as independent equations on the joint, `matrix @ p = right`, each with noise of variance `noise`."""

    matrix: Floats
    right: Floats
    noise: float


@dataclass(frozen=True)
class State:
    """The joint p = q · exp(Aᵀ λ) / Z of some multipliers λ, its mean A p, and log Z."""

    equations: Equations
    multipliers: Floats
    joint: Floats
    mean: Floats
    log_total: float

    @classmethod
    def of(cls, equations: Equations, base: Floats, multipliers: Floats) -> "State":
        """The joint of some multipliers; `base` is log q."""
        exponent = base + multipliers.dot(equations.matrix)
        top = float(exponent.max())
        weights = np.exp(exponent - top)
        total = float(weights.sum())
        joint = weights / total
        return cls(equations, multipliers, joint, equations.matrix.dot(joint), top + log(total))

    @cached_property
    def curvature(self) -> Floats:
        """C = A Cov_p Aᵀ."""
        half = self.equations.matrix * np.sqrt(self.joint)  # times itself: the symmetric product costs half
        return np.asarray(half @ half.T - self.mean[:, None] * self.mean)

    def dual(self, tau: float) -> float:
        """tau/2·|λ|² + log Z − λ·b, the function of λ that the fit at tau minimises; smooth and convex."""
        size, reached = self.multipliers.dot(self.multipliers), self.multipliers.dot(self.equations.right)
        return 0.5 * tau * float(size) + self.log_total - float(reached)


@dataclass(frozen=True)
class Path:
    """The fits as tau falls, one row or number each: joints, misfits in units of the noise, degrees of freedom, log evidence."""

    joints: Floats
    misfit: Floats
    freedom: Floats
    evidence: Floats


def fit_joint(reconciled: Reconciled, one_way: Mapping[int, Floats]) -> JointFit | None:
    """Fit the joint around independence with the given one-way tables; None where the table is too large, partly known or one cell.

    None also where the tables are so exact that even the weakest penalty moves the joint beyond their noise.
    """
    equations = _equations(reconciled)
    if equations is None:
        return None
    path = _path(equations, _independent(one_way))
    if _bias(path) > TOO_FAR * len(equations.right):
        return None
    joint = _weights(path) @ path.joints
    passed = float(path.freedom[-1]) / max(len(equations.right), 1)
    shape = reconciled.shape
    return JointFit(joint.reshape(shape), path.joints[-1].reshape(shape), passed)


def _bias(path: Path) -> float:
    """How much of the last misfit is the penalty's doing: that part falls with tau², what no joint can have does not."""
    return float(path.misfit[-2] - path.misfit[-1]) / float((TAUS[-2] / TAUS[-1]) ** 2 - 1)


def _equations(reconciled: Reconciled) -> Equations | None:
    """The tables, one after another, scaled to the noise of the noisiest with every level."""
    sources = sorted(reconciled.in_counts(), key=lambda one: bool(one.query.groups))
    seen = [one.counts.ravel() for one in sources]
    cells, rows = prod(reconciled.shape), sum(map(len, seen))
    noise = max(one.variance for one in sources if not one.query.groups)
    exact = any(one.variance == 0 for one in sources)
    if cells == 1 or reconciled.domain.zeros or exact or rows**2 * cells > LARGEST_STEP:
        return None
    scales = tuple((noise / one.variance) ** 0.5 for one in sources)
    centre, turn, matrix = _design(reconciled.shape, tuple(one.query.plain() for one in sources), scales)
    scaled = np.concatenate([counts * scale for counts, scale in zip(seen, scales, strict=True)])
    return Equations(matrix, (scaled / reconciled.total - centre) @ turn, noise / reconciled.total**2)


@lru_cache(maxsize=8)
def _design(
    shape: tuple[int, ...], tables: tuple[Query, ...], scales: tuple[float, ...]
) -> tuple[Floats, Floats, Floats]:
    """The 0/1 equations of all tables, centred on the uniform joint and turned into as many as there are independent ones."""
    numbers = np.indices(shape).reshape(len(shape), -1)
    places = []  # of each cell of the joint in each table, and how many cells there are
    for query in tables:
        levels = [
            numbers[axis] if groups is None else np.array(groups.of)[numbers[axis]]
            for axis, groups in query.columns
        ]
        sizes = query.shape(shape)
        places.append((np.ravel_multi_index(tuple(levels), sizes), prod(sizes)))
    whole = np.concatenate(
        [
            scale * (np.arange(size)[:, None] == place)
            for (place, size), scale in zip(places, scales, strict=True)
        ]
    )
    centre = whole.mean(axis=1)
    values, vectors = np.linalg.eigh((whole - centre[:, None]) @ (whole - centre[:, None]).T)
    turn = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    matrix = turn.T @ (whole - centre[:, None])
    for kept in (centre, turn, matrix):
        kept.setflags(write=False)  # everybody gets the same arrays
    return centre, turn, matrix


def _independent(one_way: Mapping[int, Floats]) -> Floats:
    """The product of the one-way tables, with a trace of the uniform table."""
    product = np.ones(())
    for axis in sorted(one_way):
        product = np.multiply.outer(product, one_way[axis] / one_way[axis].sum())
    return (1 - TRACE) * product.ravel() + TRACE / product.size


def _path(equations: Equations, start: Floats) -> Path:
    """The fits as tau falls, each from the last."""
    base = np.log(start)
    states = [State.of(equations, base, np.zeros(len(equations.right)))]
    for tau in TAUS:
        states.append(_newton(states[-1], base, float(tau)))
    return _judged(equations, states[1:])


def _judged(equations: Equations, states: Sequence[State]) -> Path:
    """The fits with what weighing them needs."""
    spread = np.maximum(np.linalg.eigvalsh(np.array([one.curvature for one in states])), 0.0)
    multipliers, means = (
        np.array([one.multipliers for one in states]),
        np.array([one.mean for one in states]),
    )
    misfit = ((means - equations.right) ** 2).sum(axis=1) / equations.noise
    divergence = (multipliers * means).sum(axis=1) - [one.log_total for one in states]
    occam = np.log1p(spread / TAUS[:, None]).sum(axis=1)
    evidence = -0.5 * misfit - TAUS / equations.noise * divergence - 0.5 * occam
    freedom = (spread / (spread + TAUS[:, None])).sum(axis=1)
    return Path(np.array([one.joint for one in states]), misfit, freedom, evidence)


def _weights(path: Path) -> Floats:
    """Of the fits of a path, by evidence."""
    weights = np.exp(path.evidence - path.evidence.max())
    return np.asarray(weights / weights.sum())


def _newton(state: State, base: Floats, tau: float) -> State:
    """Minimise the dual at tau by Newton steps, halved until they gain."""
    equations, value = state.equations, state.dual(tau)
    ridge = tau * np.eye(len(equations.right))
    for _ in range(NEWTON_STEPS):
        slope = tau * state.multipliers + state.mean - equations.right
        step = -_solve(state.curvature + ridge, slope)
        gain = -float(slope.dot(step))
        if gain < 1e-9 * equations.noise:
            break
        length = 1.0
        while length > 1e-6:
            trial = State.of(equations, base, state.multipliers + length * step)
            lower = trial.dual(tau)
            if lower <= value - 1e-4 * length * gain:
                break
            length /= 2
        state, value = trial, lower
    return state


def _solve(matrix: Floats, right: Floats) -> Floats:
    """The solution of a positive definite system by Cholesky; by elimination where rounding has made it something else."""
    _, solution, failed = dposv(matrix, right)
    return np.asarray(np.linalg.solve(matrix, right) if failed else solution)


def work(shape: tuple[int, ...], tables: Sequence[Axes]) -> tuple[float, int]:
    """Operations (passes over one number) and peak bytes of about four Newton steps for each tau; nothing where the table is too large."""
    cells, rows = prod(shape), sum(prod(shape[axis] for axis in axes) for axes in tables)
    step = rows**2 * cells
    return (0.0, 0) if step > LARGEST_STEP else (270 * CALL + 0.16 * step, 24 * rows * cells + 64 * rows**2)
