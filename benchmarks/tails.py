"""Where values of the last bin lie: the exponential tail of `schema/inside_bins.py` against tails that may be heavier: `python benchmarks/tails.py [repeats=8]`.

Columns of many shapes are generated and cut at halves while a noisy count is large, as a search would, and their noisy bins say where the values of the last bin should be. The error is the
area between the true and the assumed distribution inside that bin. Three rules with a generalised Pareto tail stand beside the rule of now.
"""

import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
from common import Floats, markdown, write_page
from scipy.optimize import minimize

from dpcipher.schema.inside_bins import Spread

Law = Callable[[Floats], Floats]
Rng = np.random.Generator
# Rows, noise of a count, and the count from which a bin is halved.
SETTINGS = ((7_600, 25, 500), (45_000, 40, 2_000), (45_000, 8, 800))
POINTS, MOST_HALVES, LEAST_BINS, SHAPE_SD, TOP = 4_000, 14, 5, 0.25, 0.1
COLUMNS: dict[str, tuple[Callable[[Rng, int], Floats], tuple[float, float]]] = {
    "lognormal, σ = .8": (lambda rng, n: np.exp(10.4 + 0.8 * rng.normal(size=n)), (0, 2e6)),
    "lognormal, σ = 1.1": (lambda rng, n: np.exp(10.4 + 1.1 * rng.normal(size=n)), (0, 2e6)),
    "durations": (lambda rng, n: np.exp(5.2 + 0.9 * rng.normal(size=n)), (0, 5e3)),
    "balances": (lambda rng, n: 450 * np.sinh(np.abs(0.35 + 1.1 * rng.normal(size=n))), (0, 1.1e5)),
    "gamma, shape 2": (lambda rng, n: rng.gamma(2, 30, n), (0, 1e3)),
    "gamma, shape 5.5": (lambda rng, n: rng.gamma(5.5, 4.2, n), (0, 100)),
    "exponential": (lambda rng, n: rng.exponential(200, n), (0, 5e3)),
    "Weibull, shape .6": (lambda rng, n: 200 * rng.weibull(0.6, n), (0, 2e4)),
    "Pareto, index 2": (lambda rng, n: 500 * rng.pareto(2, n), (0, 1e5)),
    "Pareto, index 3": (lambda rng, n: 500 * rng.pareto(3, n), (0, 1e5)),
    "numbers of calls": (
        lambda rng, n: _mixed(rng, 0.06, 5 + rng.exponential(6, n), rng.geometric(0.55, n)),
        (1, 65),
    ),
    "geometric": (lambda rng, n: rng.geometric(0.1, n) + 0.999 * rng.random(n), (0, 1e3)),
    "half normal": (lambda rng, n: 100 * np.abs(rng.normal(size=n)), (0, 1e3)),
    "uniform": (lambda rng, n: rng.uniform(0, 700, n), (0, 1e3)),
    "two exponentials": (
        lambda rng, n: _mixed(rng, 0.1, rng.exponential(500, n), rng.exponential(60, n)),
        (0, 5e3),
    ),
}


def _mixed(rng: Rng, share: float, some: Floats, others: Floats) -> Floats:
    return np.where(rng.random(len(some)) < share, some, others) + 0.999 * rng.random(len(some))


def cut(values: Floats, bounds: tuple[float, float], least: float, noise: float, rng: Rng) -> Floats:
    """Edges of halves that were halved again while their noisy counts were large."""

    def starts(low: float, high: float, halves: int) -> Iterator[float]:
        count = ((values >= low) & (values < high)).sum() + noise * rng.normal()
        if count < least or halves == MOST_HALVES:
            yield low
            return
        middle = (low + high) / 2
        yield from starts(low, middle, halves + 1)
        yield from starts(middle, high, halves + 1)

    return np.array([*starts(*bounds, 0), bounds[1]], dtype=float)


# Rules: edges and masses of bins in, the distribution inside the last bin out


def exponential(edges: Floats, masses: Floats) -> Law | None:
    """As `Spread` has it; None where its tail is a cubic."""
    spread, last = Spread.smooth(edges, masses, single=1e-9), len(masses) - 1
    if spread.decay[last] == 0:
        return None
    width = edges[-1] - edges[-2]
    return lambda points: spread._below(np.full(len(points), last), (points - edges[-2]) / width)


def pareto(shape: float, scale: float, low: float, high: float) -> Law:
    """A generalised Pareto law from `low` on, cut off at `high`."""

    def below(points: Floats) -> Floats:
        gaps = np.asarray(points) - low
        if abs(shape) < 1e-6:
            return -np.expm1(-gaps / scale)
        return 1 - np.maximum(1 + shape * gaps / scale, 1e-12) ** (-1 / shape)

    return lambda points: below(points) / below(np.array([high]))


def through_three(edges: Floats, masses: Floats) -> Law | None:
    """The mean excess grows along a straight line through the last three bins."""
    after = np.cumsum(masses[::-1])[::-1][-3:]
    first, second = (
        math.log(after[i] / after[i + 1]) / np.diff(edges)[i - 3] if after[i + 1] > 0 else 0 for i in (0, 1)
    )
    if first <= 0 or second <= 0:
        return None
    middles = ((edges[-4] + edges[-3]) / 2, (edges[-3] + edges[-2]) / 2)
    shape = min(max((1 / second - 1 / first) / (middles[1] - middles[0]), 0.0), 0.5)
    return pareto(shape, 1 / second + shape * (edges[-2] - middles[1]), edges[-2], edges[-1])


def over_threshold(edges: Floats, masses: Floats) -> Law | None:
    """The law of most likely shape and scale for the bins of the upper tenth, with a prior of the shape."""
    after = np.cumsum(masses[::-1])[::-1] / masses.sum()
    start = min(max(int(np.searchsorted(-after, -TOP)) - 1, 0), len(masses) - 4)
    gaps, weights = edges[start:] - edges[start], 200 * masses[start:] / masses[start:].sum()
    mean = float(weights @ (gaps[1:] + gaps[:-1])) / 2 / weights.sum()

    def misfit(guess: Floats) -> float:
        law = pareto(guess[0], mean * math.exp(guess[1]), 0.0, gaps[-1])
        chances = np.maximum(np.diff(law(gaps)), 1e-12)
        prior = 0.5 * (guess[0] / SHAPE_SD) ** 2 + 0.5 * (guess[1] / 3) ** 2
        return prior - float(weights @ np.log(chances))

    options = {"maxiter": 200, "xatol": 1e-3, "fatol": 1e-3}
    shape, size = minimize(misfit, [0.1, -0.3], method="Nelder-Mead", options=options).x
    scale = mean * math.exp(size) + shape * gaps[-2]
    return pareto(shape, scale, edges[-2], edges[-1]) if scale > 0 else None


def judged(edges: Floats, masses: Floats) -> Law | None:
    """The last one where, with the last bins joined, it divides them clearly better than the exponential tail does."""
    misses = np.zeros(2)
    for joined in (1, 2, 3):
        if len(masses) - joined < LEAST_BINS:
            break
        wide = np.concatenate([edges[: -joined - 1], edges[-1:]])
        known = np.concatenate([masses[: -joined - 1], [masses[-joined - 1 :].sum()]])
        laws = exponential(wide, known), over_threshold(wide, known)
        if laws[0] is not None and laws[1] is not None:
            true = np.cumsum(masses[-joined - 1 : -1]) / masses[-joined - 1 :].sum()
            misses += [np.abs(law(edges[-joined - 1 : -1]) - true).sum() for law in laws if law is not None]
    return over_threshold(edges, masses) if misses[1] < 0.7 * misses[0] else None


RULES = {
    "through three bins": through_three,
    "over a threshold": over_threshold,
    "over a threshold, judged": judged,
}


def area(values: Floats, edges: Floats, law: Law) -> float:
    """Between the true and the assumed distribution inside the last bin."""
    points = np.linspace(*edges[-2:], POINTS + 1)
    middles = (points[1:] + points[:-1]) / 2
    true = np.searchsorted(np.sort(values), middles) / len(values)
    return float(np.abs(law(middles) - true).sum() * (points[1] - points[0]))


def errors(name: str, setting: tuple[int, float, float], rng: Rng) -> list[float] | None:
    """The error of the exponential tail and of each rule on one column; None where its last bin has no such tail."""
    (draw, bounds), (n, noise, least) = COLUMNS[name], setting
    values = np.clip(draw(rng, n), bounds[0], np.nextafter(bounds[1], 0))
    edges = cut(values, bounds, least, noise, rng)
    masses = np.maximum(np.histogram(values, edges)[0] + 0.5 * noise * rng.normal(size=len(edges) - 1), 0)
    while (
        len(masses) > LEAST_BINS and masses[-1] < 2 * noise
    ):  # an end in which rows are not clearly there is one bin
        edges, masses = np.delete(edges, -2), np.append(masses[:-2], masses[-2:].sum())
    inside, now = values[values >= edges[-2]], exponential(edges, masses)
    if now is None or len(inside) < 3 or len(masses) < LEAST_BINS:
        return None
    laws = [rule(edges, masses) or now for rule in RULES.values()]
    return [area(inside, edges, law) for law in (now, *laws)]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    rng, lines, ratios = np.random.default_rng(5), [], []
    for name in COLUMNS:
        for setting in SETTINGS:
            found = [one for _ in range(repeats) if (one := errors(name, setting, rng)) is not None]
            if found:
                mean = np.mean(found, axis=0)
                ratios.append(mean[1:] / mean[0])
                lines.append([name, f"{setting[0]:,}", setting[1], *(f"{ratio:.2f}" for ratio in ratios[-1])])
    logs = np.log(ratios)
    for word, total in (("mean", np.exp(logs.mean(axis=0))), ("worst", np.exp(logs.max(axis=0)))):
        lines.append([f"**{word}**", "", "", *(f"**{ratio:.2f}**" for ratio in total)])
    note = (
        f"Error in the last bin over that of the exponential tail, which is what `bins` have ({repeats} columns each; those whose last bin has no such tail are left out). *Through three bins*: the mean "
        "excess along a line through them. *Over a threshold*: shape and scale of most likelihood for the upper tenth, with a prior of the shape. *Judged*: that, where it divides the last bins, joined, clearly better."
    )
    write_page(
        "tails",
        "Tails of the last bin",
        f"python benchmarks/tails.py {repeats}",
        [note, markdown(["column", "rows", "noise", *RULES], lines), READING],
    )


READING = """Heavy tails, and very light ones, are followed better by a generalised Pareto law over a threshold. Mixtures, whose upper tenth is steeper than their tail, are followed up to ten times worse, and nobody knows beforehand which a column is; three noisy bins say next to nothing about a shape. Where the bins
themselves must tell, they mostly cannot: the judged rule lowers the error of the last bin by a twentieth on average, which is not worth its place. The exponential tail stays."""

if __name__ == "__main__":
    main()
