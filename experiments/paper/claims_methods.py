"""The paper's sentences about CIPHER as a method, its costs and its limit, and about methods that it cites."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np

from dpcipher.engines.paper import Paper, solve_paper
from dpcipher.tables.domain import Floats
from experiments.paper.claims import (
    FAILS,
    HOLDS,
    OURS,
    UNDECIDABLE,
    Claim,
    Finding,
    Margins,
    every,
    ratio_line,
    series,
)
from experiments.paper.claims_tables import BOTH, MOST
from experiments.paper.contenders import CIPHER, FDH, Contender, margins, tvd
from experiments.paper.population import POPULATION, SHAPE
from experiments.paper.readings import RIDGES
from experiments.paper.rivals import RIVALS, TIMED
from experiments.paper.simulated import FEWER_SETS, POWERS, SETS, SIZES
from experiments.paper.view import View

# "Relatively insensitive": by at most a quarter.
LITTLE = 1.25
_PAIRS = tuple(combinations(range(len(SHAPE)), 2))


def _line(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values[0].mean(axis=0))


def ridge(view: View) -> Finding:
    """The 2-way TVD under λ = 10⁻⁴, 10⁻³ and 10⁻² is within a quarter at every n and epsilon."""
    if not set(RIDGES) <= set(view.first.readings):
        return Finding(UNDECIDABLE, "needs the readings with other λ: --reading all")
    lines = np.stack([view.tvd(CIPHER[2].read(name))[..., 1] for name in RIDGES])
    spread = lines[:3].max(axis=0) / lines[:3].min(axis=0)
    wide = lines.max(axis=0) / lines.min(axis=0)
    found = f"largest over smallest TVD {series(_line(spread))} (with λ = .1 too: {series(_line(wide))}); needed: at most {LITTLE}"
    return Finding(Margins(LITTLE - spread).everywhere(), found, _line(spread), LITTLE)


def averaging(view: View) -> Finding:
    """The one-way margins of the result are less than half as far from the average of the noisy tables' own as those are."""
    if view.condition.reading == OURS:
        return Finding(HOLDS, "reconciled by inverse variance before anything else")
    gaps = view.score(view.cipher(2), "averaging")
    ratio = gaps[..., 0] / gaps[..., 1]
    found = f"distance from the average over the noisy tables' own {series(_line(ratio))}; needed: below .5 (one table as it is: 1)"
    return Finding(Margins(0.5 - ratio).everywhere(), found, _line(ratio), 0.5)


def several_sets(view: View) -> Finding:
    """For the same budget, some m above 1 gives CIPHER 2-way a smaller RMSE than m = 1, in more than half of (n, epsilon)."""

    def rmse(sets: int) -> Floats:
        name = CIPHER[2].name if sets == SETS else f"{CIPHER[2].name}, m = {sets}"
        return np.asarray(view.first.each(name, lambda card: card.inference[0].rmse).mean(axis=-1))

    one, more = rmse(1), np.stack([rmse(sets) for sets in (*FEWER_SETS[1:], SETS)])
    ratio = more.min(axis=0) / one
    each = "; ".join(
        f"m = {sets}: {series(_line(line / one))}"
        for sets, line in zip((*FEWER_SETS[1:], SETS), more, strict=True)
    )
    return Finding(
        Margins(1 - ratio).more_than(MOST),
        f"RMSE over that of m = 1: {each}; needed: below 1 in 6 of 10",
        _line(ratio),
        1.0,
    )


def _seconds(view: View, name: str) -> Floats:
    """The mean processor seconds of a fit in each experiment that was run."""
    means = [view.first.each(name, lambda card: card.means["seconds"])[..., 0].mean(axis=(1, 2))]
    if view.bankruptcy is not None:
        means.append(view.second.each(1, name, lambda card: card.means["seconds"]).mean(axis=1))
    return np.stack(means, axis=1)


def _cheaper(view: View, other: str) -> Finding:
    own, theirs = _seconds(view, TIMED.name), _seconds(view, other)
    found = f"milliseconds a fit, experiments 1 / 2: CIPHER {series(1000 * own[0], 1)}, {other} {series(1000 * theirs[0], 1)}; needed: less in both"
    return Finding(Margins(theirs - own).everywhere(), found)


def cheaper_than_fourier(view: View) -> Finding:
    """A fit of CIPHER takes less processor time than one of the Fourier method in both experiments."""
    return _cheaper(view, "Fourier 2-way")


def cheaper_than_junction_tree(view: View) -> Finding:
    """… than one of the junction tree."""
    return _cheaper(view, "junction tree")


def cheap(view: View) -> Finding:
    """A fit of CIPHER takes less than a second in both experiments."""
    own = _seconds(view, TIMED.name)
    return Finding(
        Margins(1 - own).everywhere(),
        f"milliseconds a fit, experiments 1 / 2: {series(1000 * own[0], 1)}; needed: below 1000",
    )


def _rival_tvd(view: View, name: str) -> Floats:
    return view.first.each(name, lambda card: card.means["tvd"])


def dirichlet_worse(view: View) -> Finding:
    """Multinomial–Dirichlet has the larger TVD than FDH and modips at every n, epsilon and order."""
    full = np.moveaxis(
        np.array([[view.first.thinned[n, power, "FDH"].means["tvd"] for power in POWERS] for n in SIZES]),
        2,
        0,
    )
    ratio = _rival_tvd(view, "Multinomial–Dirichlet") / np.maximum(full, _rival_tvd(view, "modips"))
    margins = Margins(ratio - 1)
    found = f"TVD over the worse of the two {series(ratio_line(ratio))}, larger in {margins}; needed: all 30"
    return Finding(margins.everywhere(), found, ratio_line(ratio), 1.0)


def simple_wins(view: View) -> Finding:
    """At n = 500 and every epsilon above 1 no other method has a smaller un-normalised TVD than FDH."""
    full = view.tvd(FDH, normal=False)
    names = [name for name in RIVALS if name not in (TIMED.name, "modips", "Multinomial–Dirichlet")]
    others = [view.tvd(method, normal=False) for method in view.papers[1:]]
    least = np.min([*others, *(_rival_tvd(view, name) for name in names)], axis=0)
    ratio = least / full
    found = f"best other over FDH, n = 500: {series(ratio[0, 1].mean(axis=-1))}; needed: at least 1 at ε > 1"
    return Finding(
        Margins(ratio[:, 1:, 3:] - 1).everywhere(), found, tuple(ratio[0, 1].mean(axis=-1).tolist()), 1.0
    )


def better_on_all_metrics(view: View) -> Finding:
    """CIPHER 2-way is better than MWEM 2-way at more than half of the points of every metric."""
    own, other = view.cipher(2), view.mwem(2)
    gaps = {
        "TVD": view.tvd(other) - view.tvd(own),
        "l∞": view.linf(other) - view.linf(own),
        "bias": np.abs(view.parameters(other, "bias")) - np.abs(view.parameters(own, "bias")),
        "RMSE": view.mean(other, "rmse") - view.mean(own, "rmse"),
        "coverage": _shortfall(view, other) - _shortfall(view, own),
        "Best": view.share(own, "Best") - view.share(other, "Best"),
    }
    if view.bankruptcy is not None and view.condition.reading in (OURS, *view.second.readings):
        gaps["Best (2)"] = view.category(view.second_cipher, "Best") - view.category(view.second_mwem, "Best")
        gaps["accuracy (2)"] = view.accuracy(view.second_cipher) - view.accuracy(view.second_mwem)
    marks = {name: Margins(gap) for name, gap in gaps.items()}
    found = "; ".join(f"{name} {margin.sure}/{margin.marks.size}" for name, margin in marks.items())
    outcome = every(margin.more_than(MOST) for margin in marks.values())
    return Finding(outcome, f"better in: {found}; needed: more than half of each")


def _shortfall(view: View, method: Contender) -> Floats:
    return np.abs(view.parameters(method, "coverage") - 0.95)


@cache
def _noiseless(lam: float) -> float:
    """The largest error of a cell of a pair when CIPHER solves the exact pairs of the population."""
    tables = [(axes, margins(POPULATION.joint[None], axes)[0], 0.0) for axes in _PAIRS]
    joint = solve_paper(SHAPE, tables, Paper(lam=lam, target="last"))[0]
    return float(tvd(POPULATION.joint[None], joint[None], [2])[0, 0])


def shrinkage(view: View) -> Finding:
    """Without any noise the pairs of CIPHER's result are wrong, and the more so the larger λ is."""
    errors = np.array([_noiseless(lam) for lam in (1e-4, 1e-3, 1e-2, 1e-1)])
    outcome = HOLDS if np.all(np.diff(errors) > 0) else FAILS
    return Finding(outcome, f"TVD of exact pairs, λ = 10⁻⁴ … 10⁻¹: {series(errors, 4)}; needed: rising")


def by_argument(reason: str) -> Callable[[View], Finding]:
    """A judge for what follows without a run."""
    return lambda view: Finding(HOLDS, reason)


METHOD_CLAIMS = (
    Claim(
        "private",
        "The CIPHER algorithm satisfies ε-DP",
        "2.2, claim 1",
        "sequential composition of m|Q| accesses with ε/(m|Q|) each",
        by_argument("with scale m|Q|/ε; the printed scale ε/(m|Q|) is its inverse"),
        (),
    ),
    Claim(
        "post",
        "She may apply CIPHER to generate individual-level data … without incurring additional privacy costs",
        "1.2",
        "post-processing",
        by_argument("the algorithm reads noisy tables alone"),
        (),
    ),
    Claim(
        "consistent",
        "CIPHER can automatically correct the inconsistency across the marginals of the same variable",
        "1.2",
        "the result is one joint distribution",
        by_argument("its margins agree with one another whatever the tables said"),
        (),
    ),
    Claim(
        "averaging",
        "The inconsistency is automatically averaged out for CIPHER when solving the linear equation set",
        "2.2",
        "one-way margins of the result less than half as far (TVD) from the average of the noisy tables' own margins as those are from it, every n and ε",
        averaging,
        ("reading",),
    ),
    Claim(
        "sets",
        "The precision gained by averaging over m sets of synthetic data could outweigh the additional noises introduced from releasing multiple sets than a single set",
        "2.2",
        "RMSE of CIPHER 2-way (literal) with the best of m = 2, 3, 5 below that with m = 1, same budget, in more than half of (n, ε)",
        several_sets,
        (),
    ),
    Claim(
        "ridge",
        "The solutions are relatively insensitive to λ … as long as λ is relatively small",
        "2.2",
        "2-way TVD under λ = 10⁻⁴, 10⁻³, 10⁻² within a quarter at every n and ε",
        ridge,
        (),
    ),
    Claim(
        "cheap",
        "The computational cost for solving the equation set is expected to be low",
        "1.2",
        "less than a second a fit in both experiments",
        cheap,
        (),
    ),
    Claim(
        "cost-fourier",
        "Compared to [Fourier], CIPHER is less costly computationally",
        "1.3",
        "mean processor time of a fit, this package's implementations, smaller in both experiments",
        cheaper_than_fourier,
        (),
    ),
    Claim(
        "cost-tree",
        "Compared to [attribute clusters], CIPHER is less costly computationally",
        "1.3",
        "mean processor time of a fit, this package's implementations, smaller in both experiments",
        cheaper_than_junction_tree,
        (),
    ),
    Claim(
        "dirichlet",
        "[Multinomial-Dirichlet] has worse performance than the FDH sanitization … and the modips approach at the same privacy budget",
        "1.3 (cited)",
        "TVD above both in all 30 points of experiment 1",
        dirichlet_worse,
        (),
    ),
    Claim(
        "simple",
        "More complex algorithms are unlikely to beat a simpler … algorithm such as FDH … when n, ε, or p is large",
        "3 (cited)",
        "at n = 500 and both ε > 1 no CIPHER, MWEM, PrivBayes, Fourier or junction tree has a smaller un-normalised TVD",
        simple_wins,
        BOTH,
    ),
    Claim(
        "mwem-all",
        "CIPHER in general delivers significantly better results on all the examined metrics than MWEM",
        "4",
        "CIPHER 2-way better at more than half of the points of every metric: TVD, l∞, bias, RMSE, coverage, Best; in experiment 2 Best and accuracy",
        better_on_all_metrics,
        BOTH,
    ),
    Claim(
        "shrinkage",
        "For CIPHER, it is the shrinkage bias brought by the l2 regularization",
        "4",
        "TVD of the exact pairs of the population rises with λ, without any noise",
        shrinkage,
        (),
    ),
)
