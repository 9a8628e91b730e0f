"""Hamiltonian Monte Carlo over a stack of chains: every chain takes the same steps at once, in coordinates whitened beforehand.

Neal (2011); the step size is adapted by dual averaging (Hoffman & Gelman 2014) to the mean acceptance of all chains, and the length of a
trajectory is drawn anew each time, so that no direction comes back to where it started.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcipher.tables.domain import Floats

Target = Callable[[Floats], tuple[Floats, Floats]]

WANTED, SURER = 0.8, 0.9  # the mean acceptance, and that of long trajectories
# The mean length of a trajectory: a quarter of the period of white coordinates, and somewhat more where some directions are wider than they should be.
QUARTER, LONGER = 0.5 * np.pi, 0.7 * np.pi
FURTHER = 2 * np.pi
# Leaps of a trajectory at most, of these lengths and of the longest: where steps must be short, more of them are needed to get anywhere.
MOST_LEAPS, MORE_LEAPS = 64, 256
# A trajectory that gains this much energy has left the curve it should follow.
DIVERGED = 1000.0
_STEPS = (-7.0, 0.3)  # the least and the largest logarithm of a step


@dataclass(frozen=True)
class Whitening:
    """Points are centre + root·w: `root` is a matrix, or one for every chain."""

    centre: Floats
    root: Floats

    @classmethod
    def of(cls, centre: Floats, precision: Floats) -> "Whitening":
        """Coordinates in which a normal law of this precision (or one for every chain) is white."""
        lower = np.linalg.cholesky(precision)
        return cls(centre, np.ascontiguousarray(np.linalg.inv(lower).swapaxes(-1, -2)))

    def point(self, white: Floats) -> Floats:
        """From white coordinates to those of the target."""
        if self.root.ndim == 3:
            return np.asarray(self.centre + np.einsum("cij,cj->ci", self.root, white))
        return np.asarray(self.centre + white @ self.root.T)

    def white(self, points: Floats) -> Floats:
        """The way back, with one matrix for all."""
        return np.asarray(np.linalg.solve(self.root, (points - self.centre).T).T)

    def slope(self, gradient: Floats) -> Floats:
        """A gradient in white coordinates."""
        if self.root.ndim == 3:
            return np.asarray(np.einsum("cij,ci->cj", self.root, gradient))
        return np.asarray(gradient @ self.root)


class Curved(Protocol):
    """A target that knows its curvature."""

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential of every point, and its gradient."""

    def whitening(self, point: Floats) -> Whitening:
        """Coordinates around a point that are white for the curvature there."""


class StepSize:
    """Dual averaging of the logarithm of the step: one for all chains, or one for each."""

    def __init__(self, start: Floats, wanted: float = WANTED) -> None:
        self.step, self.wanted, self._anchor = start, wanted, np.log(4 * start)
        self._gap, self._mean, self._count = np.zeros_like(start), np.log(start), 0

    def learn(self, chances: Floats) -> None:
        """Take notice of how likely each trajectory was to be accepted."""
        acceptance = chances if len(self.step) > 1 else chances.mean(keepdims=True)
        self._count += 1
        share = 1 / (self._count + 10)
        self._gap = (1 - share) * self._gap + share * (self.wanted - acceptance)
        log_step = self._anchor - self._gap * self._count**0.5 / 0.05
        weight = self._count**-0.75
        self._mean = weight * log_step + (1 - weight) * self._mean
        self.step = np.exp(np.clip(log_step, *_STEPS))

    def settle(self) -> None:
        """Keep the mean of what was learnt."""
        self.step = np.exp(np.clip(self._mean, *_STEPS))


@dataclass(frozen=True)
class Run:
    """What chains went through: points (iterations by chains by numbers), potentials, energies, acceptance, divergences."""

    points: Floats
    potentials: Floats
    energies: Floats
    acceptance: float
    divergences: int

    def followed_by(self, other: "Run") -> "Run":
        """Both runs as one."""
        share = len(self.points) / (len(self.points) + len(other.points))
        return Run(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.potentials, other.potentials]),
            np.concatenate([self.energies, other.energies]),
            share * self.acceptance + (1 - share) * other.acceptance,
            self.divergences + other.divergences,
        )


class Chains:
    """A stack of chains and where they are. `step` holds one number, or one for each chain where every chain has its own target."""

    def __init__(
        self,
        target: Target,
        whitening: Whitening,
        white: Floats,
        rng: np.random.Generator,
        *,
        step: Floats,
        length: float = LONGER,
    ) -> None:
        self.target, self.whitening, self.rng, self.length = target, whitening, rng, length
        self._most_leaps = MOST_LEAPS if length <= LONGER else MORE_LEAPS
        self.white, self.stepping = white, StepSize(step, WANTED if length <= LONGER else SURER)
        self._value, self._slope = self._at(white)

    def within(self, whitening: Whitening) -> "Chains":
        """The same chains in other coordinates."""
        white = whitening.white(self.points)
        return Chains(self.target, whitening, white, self.rng, step=self.stepping.step, length=self.length)

    def further(self) -> "Chains":
        """The same chains with long trajectories of shorter steps: slower, and surer to get away from where they are."""
        return Chains(
            self.target, self.whitening, self.white, self.rng, step=self.stepping.step, length=FURTHER
        )

    @property
    def points(self) -> Floats:
        """Where the chains are, in coordinates of the target."""
        return self.whitening.point(self.white)

    def _at(self, white: Floats) -> tuple[Floats, Floats]:
        value, gradient = self.target(self.whitening.point(white))
        slope = self.whitening.slope(gradient)
        if not np.isfinite(
            value
        ).all():  # a trajectory that has left the world is refused, and must not stop the others
            value, slope = np.where(np.isfinite(value), value, np.inf), np.nan_to_num(slope)
        return value, slope

    def move(self) -> tuple[Floats, Floats, int]:
        """One trajectory of every chain: the chance that each is accepted, the energy before, and how many diverged."""
        momentum = self.rng.normal(size=self.white.shape)
        energy = self._value + 0.5 * (momentum**2).sum(axis=1)
        # Every chain has a jitter of its own: where one step is too long for a narrow place, a shorter one comes soon.
        step = (self.stepping.step * self.rng.uniform(0.5, 1.2, len(self.white)))[:, None]
        leaps = int(
            np.clip(
                round(self.length * self.rng.uniform(0.6, 1.4) / float(np.median(step))), 1, self._most_leaps
            )
        )
        with np.errstate(
            over="ignore", invalid="ignore", divide="ignore"
        ):  # where a trajectory leaves the world
            white, value, slope, momentum = self._leap(momentum, step, leaps)
            gain = value + 0.5 * (momentum**2).sum(axis=1) - energy
        gain = np.where(np.isfinite(gain), gain, np.inf)
        chance = np.exp(-np.maximum(gain, 0))
        take = self.rng.random(len(chance)) < chance
        self.white = np.where(take[:, None], white, self.white)
        self._value = np.where(take, value, self._value)
        self._slope = np.where(take[:, None], slope, self._slope)
        return chance, energy, int((gain > DIVERGED).sum())

    def _leap(self, momentum: Floats, step: Floats, leaps: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Where the chains come to with this momentum after so many steps: places, potentials, slopes, momentum."""
        white, value, slope = self.white, self._value, self._slope
        for _ in range(leaps):
            momentum = momentum - 0.5 * step * slope
            white = white + step * momentum
            value, slope = self._at(white)
            momentum = momentum - 0.5 * step * slope
        return white, value, slope, momentum

    def adapt(self, iterations: int) -> Floats:
        """Iterations that only adapt the step; the points of the second half."""
        visited = []
        for number in range(iterations):
            chance, _, _ = self.move()
            self.stepping.learn(chance)
            if number >= iterations // 2:
                visited.append(self.points)
        self.stepping.settle()
        return np.array(visited)

    def run(self, iterations: int) -> Run:
        """Iterations that count."""
        points, values, energies, chances, diverged = [], [], [], [], 0
        for _ in range(iterations):
            chance, energy, lost = self.move()
            points.append(self.points)
            values.append(self._value)
            energies.append(energy)
            chances.append(chance.mean())
            diverged += lost
        return Run(np.array(points), np.array(values), np.array(energies), float(np.mean(chances)), diverged)
