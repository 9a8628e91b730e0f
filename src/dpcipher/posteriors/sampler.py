"""Run the chains, judge them, and refuse what cannot be stood behind."""

import time
from dataclasses import dataclass, replace

import numpy as np

from dpcipher.errors import SolveError
from dpcipher.posteriors.diagnostics import effective_size, energy_share, r_hat
from dpcipher.posteriors.hamiltonian import Chains, Curved, Run, Whitening
from dpcipher.tables.domain import Floats

# What a run must show. Vehtari et al. ask for 1.01 of chains of thousands; the R-hat of short chains that have converged scatters more.
LARGEST_R_HAT = 1.05
LEAST_EFFECTIVE = 100
LEAST_ENERGY = 0.2
MOST_DIVERGED = 0.02
LEAST_ACCEPTANCE = 0.4
LEAST_ITERATIONS, WARM_UP = 120, 35
# How far from the mode chains start, in its own standard deviations: further out, a chain may begin where no step is short enough.
START = 0.3
ATTEMPTS, EXTENSIONS = 3, 6
# Points of a short chain depend on one another: so many of them count as one when spreads are told from chance.
ALIKE = 2


@dataclass(frozen=True)
class SamplerReport:
    """How the sampler ended: the facts on which its draws were accepted.

    `r_hat` and `ess` are the worst over all coefficients and the potential; `energy` is the E-BFMI. Where draws come from two `runs`, cells and pairs, each figure
    is that of the run in which it is worse, and both passed.
    """

    chains: int
    iterations: int
    acceptance: float
    divergences: int
    r_hat: float
    ess: float
    energy: float
    attempts: int = 1
    seconds: float = 0.0
    runs: int = 1

    def and_then(self, other: "SamplerReport") -> "SamplerReport":
        """The worse of two runs in everything: draws that come from both are as good as that."""
        return SamplerReport(
            chains=min(self.chains, other.chains),
            iterations=min(self.iterations, other.iterations),
            acceptance=min(self.acceptance, other.acceptance),
            divergences=self.divergences + other.divergences,
            r_hat=max(self.r_hat, other.r_hat),
            ess=min(self.ess, other.ess),
            energy=min(self.energy, other.energy),
            attempts=max(self.attempts, other.attempts),
            seconds=self.seconds + other.seconds,
            runs=self.runs + other.runs,
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """What keeps the draws from being trusted; nothing if they can be."""
        checks = {
            f"R-hat is {self.r_hat:.3f}, above {LARGEST_R_HAT}": self.r_hat <= LARGEST_R_HAT,
            f"the draws are worth {self.ess:.0f} independent ones, fewer than {LEAST_EFFECTIVE}": self.ess
            >= LEAST_EFFECTIVE,
            f"the energy moves too little (E-BFMI {self.energy:.2f}, below {LEAST_ENERGY})": self.energy
            >= LEAST_ENERGY,
            f"{self.divergences} trajectories diverged": self.divergences
            <= MOST_DIVERGED * self.chains * self.iterations,
            f"only {self.acceptance:.0%} of the trajectories were accepted": self.acceptance
            >= LEAST_ACCEPTANCE,
        }
        return tuple(text for text, passed in checks.items() if not passed)

    @property
    def facts(self) -> str:
        """What the draws were accepted on: the same for the same seed, as the time that it took is not."""
        both = "" if self.runs == 1 else f"the worse of {self.runs} runs, of cells and of pairs: "
        return (
            f"{both}{self.chains} chains of {self.iterations}: R-hat at most {self.r_hat:.3f}, at least {self.ess:.0f} effective draws, "
            f"acceptance {self.acceptance:.2f}, {self.divergences} divergences, E-BFMI {self.energy:.2f}"
        )

    def __str__(self) -> str:
        return f"{self.facts}, {self.seconds:.1f} s"


@dataclass(frozen=True)
class Sampled:
    """Draws from chains that passed, and the report."""

    points: Floats
    report: SamplerReport


def sample(target: Curved, start: Floats, *, draws: int, chains: int, rng: np.random.Generator) -> Sampled:
    """Draws from a target: chains that fail their checks learn from where they have been, go on, take longer trajectories, or are refused."""
    started, iterations = time.process_time(), max(LEAST_ITERATIONS, -(-3 * draws // chains))
    white = START * rng.normal(size=(chains, start.shape[-1]))
    moving = Chains(target, target.whitening(start), white, rng, step=np.array([0.3]))
    for attempt in range(1, ATTEMPTS + 1):
        moving = _warmed_up(moving if attempt == 1 else moving.further(), target, WARM_UP * attempt)
        run = moving.run(iterations)
        report = judge(run)
        if report.faults:
            moving = _with_lesson(moving, run)
            run = moving.run(iterations)
            report = judge(run)
        for _ in range(EXTENSIONS):
            if not report.faults:
                break
            run = run.followed_by(moving.run(iterations // 2))
            report = judge(run)
        if not report.faults:
            report = replace(report, attempts=attempt, seconds=time.process_time() - started)
            return Sampled(_thinned(run, draws, rng), report)
    raise SolveError(
        f"the posterior could not be sampled reliably: {'; '.join(report.faults)}. Name fewer columns, or columns of fewer levels, or leave "
        "out added interactions; where tables contradict one another, check their scale. More budget in the next release would help too"
    )


def _warmed_up(moving: Chains, target: Curved, iterations: int) -> Chains:
    """Chains with a step, and coordinates, learnt on the way: the curvature where they came to, then the spread that it does not show."""
    visited = moving.adapt(iterations)
    moving = moving.within(target.whitening(_flat(visited).mean(axis=0)))
    visited = moving.adapt(iterations)
    moving = moving.within(_stretched(moving.whitening, _flat(visited)))
    moving.adapt(iterations // 2)
    return moving


def _with_lesson(moving: Chains, run: Run) -> Chains:
    """Chains in coordinates that a whole run has shown, many times as many points as those of the way there: slow directions become short ones."""
    moving = moving.within(_stretched(moving.whitening, _flat(run.points)))
    moving.adapt(WARM_UP // 2)
    return moving


def judge(run: Run) -> SamplerReport:
    """The facts about a run."""
    values = np.concatenate([run.points, run.potentials[..., None]], axis=2)
    return SamplerReport(
        chains=run.points.shape[1],
        iterations=len(run.points),
        acceptance=run.acceptance,
        divergences=run.divergences,
        r_hat=float(r_hat(values).max()),
        ess=float(effective_size(values).min()),
        energy=energy_share(run.energies),
    )


def _stretched(whitening: Whitening, points: Floats) -> Whitening:
    """Coordinates around these points, longer along the directions in which they spread more than white ones would by chance.

    The covariance of n white points of d numbers has eigenvalues up to (1 + √(d/n))² (Marchenko and Pastur 1967); what is above that is no chance.
    """
    white = whitening.white(points)
    spread, axes = np.linalg.eigh(np.cov(white.T).reshape(white.shape[1], -1))
    by_chance = (1 + (ALIKE * white.shape[1] / len(white)) ** 0.5) ** 2
    longer = np.sqrt(np.where(spread > by_chance, spread, 1.0))
    return Whitening(points.mean(axis=0), whitening.root @ (axes * longer) @ axes.T)


def _flat(visited: Floats) -> Floats:
    """The points of all chains as one list."""
    return visited.reshape(-1, visited.shape[-1])


def _thinned(run: Run, draws: int, rng: np.random.Generator) -> Floats:
    """As many draws as asked for, evenly spread over iterations and chains, in random order."""
    flat = _flat(run.points)
    kept = np.linspace(0, len(flat), draws, endpoint=False).astype(int)
    return np.asarray(flat[rng.permutation(kept)])
