"""The paper's sentences about tables in the first experiment: TVD (figure 2), l∞ (figure 3), and what the abstract and discussion make of them."""

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Finding,
    Margins,
    every,
    ratio_line,
    series,
    span,
)
from experiments.paper.contenders import FDH, Contender
from experiments.paper.view import LARGE, SMALL, View

# "Similar" is within a tenth; "in general" and "overall" are more than half; a claim about all is more than nine tenths.
SIMILAR, MOST, NEARLY_ALL = 1.1, 0.5, 0.9
# "Minimal change": from the smallest to the largest epsilon by at most a quarter.
FLAT = 1.25


def _least(view: View, methods: list[Contender]) -> Floats:
    return np.asarray(np.min([view.tvd(method) for method in methods], axis=0))


def best_tvd(view: View) -> Finding:
    """CIPHER 2-way has the smallest normalised TVD."""
    own, others = view.tvd(view.cipher(2)), _least(view, [m for m in view.papers if m != view.cipher(2)])
    wins = Margins(others - own)
    return Finding(wins.more_than(MOST), f"smallest in {wins}; needed: 16", ratio_line(own / others), 1.0)


def best_tvd_small(view: View) -> Finding:
    """… at every epsilon below 1, averaged over the orders."""
    own, others = view.tvd(view.cipher(2)), _least(view, [m for m in view.papers if m != view.cipher(2)])
    ratio = own.mean(axis=-1) / others.mean(axis=-1)
    margins = Margins(1 - ratio[:, :, SMALL])
    found = f"ratio to the best other at ε < 1: {span(ratio[0, :, SMALL])}; needed: below 1"
    return Finding(margins.everywhere(), found, ratio_line(ratio), 1.0)


def _over_fdh(view: View, order: int = 2) -> Floats:
    return np.asarray(view.tvd(view.cipher(order)) / view.tvd(FDH))


def similar_at_large(view: View) -> Finding:
    """Normalised TVD within a tenth of FDH's at every epsilon above 1, or below."""
    ratio = _over_fdh(view)
    margins = Margins(SIMILAR - ratio[:, :, LARGE])
    found = f"ratio to FDH at ε > 1: {span(ratio[0, :, LARGE])}; needed: at most 1.1"
    return Finding(margins.everywhere(), found, ratio_line(ratio), SIMILAR)


def similar_overall(view: View) -> Finding:
    """Normalised TVD within a tenth of FDH's, or below, in more than nine tenths of all points."""
    ratio = _over_fdh(view)
    margins = Margins(SIMILAR - ratio)
    found = f"ratio at most 1.1 in {margins}, range {span(ratio[0])}; needed: 28"
    return Finding(margins.more_than(NEARLY_ALL), found, ratio_line(ratio), SIMILAR)


def _metric_ratios(view: View) -> dict[str, Floats]:
    own = view.cipher(2)
    return {
        "TVD": _over_fdh(view),
        "l∞": view.linf(own) / view.linf(FDH),
        "RMSE": view.mean(own, "rmse") / view.mean(FDH, "rmse"),
    }


def similar_on_all_metrics(view: View) -> Finding:
    """TVD, l∞ and RMSE, normalised, each within a tenth of FDH's or below in more than nine tenths of its points."""
    margins = {name: Margins(SIMILAR - ratio) for name, ratio in _metric_ratios(view).items()}
    found = "; ".join(f"{name} {margin}" for name, margin in margins.items())
    outcome = every(margin.more_than(NEARLY_ALL) for margin in margins.values())
    return Finding(
        outcome, f"at most 1.1: {found}; needed: nine tenths", ratio_line(_over_fdh(view)), SIMILAR
    )


def better_at_low_budget(view: View) -> Finding:
    """The normalised ratio to FDH is smaller below epsilon 1 than above, for TVD, l∞ and RMSE."""
    gaps = []
    for ratio in _metric_ratios(view).values():
        by_epsilon = np.log(ratio).reshape(*ratio.shape[:3], -1).mean(axis=(1, 3))
        gaps.append(by_epsilon[:, LARGE].mean(axis=1) - by_epsilon[:, SMALL].mean(axis=1))
    margins = Margins(np.stack(gaps, axis=1))
    change = series(np.exp(-margins.gap[0]))
    found = f"ratio at ε < 1 over ratio at ε > 1, TVD / l∞ / RMSE: {change}; needed: below 1"
    return Finding(margins.everywhere(), found, ratio_line(_over_fdh(view)))


def three_way_inferior(view: View) -> Finding:
    """CIPHER 3-way has the larger normalised TVD in more than nine tenths of all points."""
    ratio = view.tvd(view.cipher(3)) / view.tvd(view.cipher(2))
    margins = Margins(ratio - 1)
    plain = view.tvd(view.cipher(3), normal=False) / view.tvd(view.cipher(2), normal=False)
    found = f"larger in {margins} ({int(np.sum(plain[0] > 1))} un-normalised); needed: 28"
    return Finding(margins.more_than(NEARLY_ALL), found, ratio_line(ratio), 1.0)


def mwem_flat(view: View) -> Finding:
    """The TVD of MWEM falls by at most a quarter from the smallest to the largest epsilon."""
    lines = np.stack([view.tvd(view.mwem(order)) for order in (2, 3)], axis=2)
    fall = lines[:, :, :, 0] / lines[:, :, :, -1]
    line = view.tvd(view.mwem(2))
    found = f"falls by a factor of {span(fall[0])}; needed: at most {FLAT}"
    return Finding(Margins(FLAT - fall).everywhere(), found, ratio_line(line / line[:, :, -1:]), FLAT)


def better_than_mwem(view: View) -> Finding:
    """CIPHER 2-way has the smaller TVD than MWEM 2-way in more than nine tenths of all points."""
    ratio = view.tvd(view.cipher(2)) / view.tvd(view.mwem(2))
    margins = Margins(1 - ratio)
    found = f"smaller in {margins}, ratio {span(ratio[0])}; needed: 28"
    return Finding(margins.more_than(NEARLY_ALL), found, ratio_line(ratio), 1.0)


def linf_similar(view: View) -> Finding:
    """Normalised l∞ of CIPHER 2-way at most a tenth above FDH's everywhere, and below it at the smallest epsilon."""
    ratio = view.linf(view.cipher(2)) / view.linf(FDH)
    near, below = Margins(SIMILAR - ratio), Margins(1 - ratio[:, :, 0])
    found = (
        f"ratio to FDH {span(ratio[0])}, at e⁻² {span(ratio[0, :, 0])}; needed: at most 1.1, below 1 at e⁻²"
    )
    return Finding(every((near.everywhere(), below.everywhere())), found, ratio_line(ratio), SIMILAR)


def linf_three_way(view: View) -> Finding:
    """CIPHER 3-way has a larger normalised l∞ than CIPHER 2-way and FDH at every point."""
    ratio = view.linf(view.cipher(3)) / np.maximum(view.linf(view.cipher(2)), view.linf(FDH))
    margins = Margins(ratio - 1)
    return Finding(
        margins.everywhere(),
        f"ratio to the worse of the two {span(ratio[0])}; needed: above 1 in all 20",
        ratio_line(ratio),
        1.0,
    )


def _own_linf(view: View, key: str = "linf") -> Floats:
    """The l∞ of MWEM on the tables it was given, last axis the order (2, 3)."""
    return np.stack([view.score(view.mwem(order), key)[..., order - 2] for order in (2, 3)], axis=-1)


def _other_linf(view: View) -> Floats:
    others = (FDH, view.cipher(2), view.cipher(3))
    return np.asarray(np.min([view.linf(method, normal=False) for method in others], axis=0))


def linf_mwem(view: View) -> Finding:
    """At every point FDH or CIPHER has the smaller un-normalised l∞ on the very tables that MWEM is given."""
    ratio = _own_linf(view) / _other_linf(view)
    margins = Margins(ratio - 1)
    found = f"larger than the best of FDH and CIPHER in {margins}, ratio {span(ratio[0])}; needed: all 20"
    return Finding(margins.everywhere(), found, ratio_line(ratio), 1.0)


def linf_rounds(view: View) -> Finding:
    """With the best T in hindsight MWEM has an l∞ no larger than the best of FDH and CIPHER, at every point."""
    best = np.stack(
        [view.after(view.mwem(order), "linf")[..., order - 2].min(axis=1) for order in (2, 3)], axis=-1
    )
    ratio = best / _other_linf(view)
    margins = Margins(1 - ratio)
    found = f"best T: no larger in {margins}, ratio {span(ratio[0])}; needed: all 20"
    return Finding(margins.everywhere(), found, ratio_line(ratio), 1.0)


def same_at_500(view: View) -> Finding:
    """CIPHER 2-way against FDH, CIPHER 3-way and MWEM 2-way, normalised TVD and l∞: the same side at both n in nine tenths of the points."""
    own = view.cipher(2)
    both = []
    for other in (FDH, view.cipher(3), view.mwem(2)):
        for score in (view.tvd, view.linf):
            gap = score(own) - score(other)
            both.append(gap.reshape(*gap.shape[:2], -1))
    marks = Margins(np.concatenate(both, axis=2)).marks
    opposite, unsure = int(np.sum(marks[0] * marks[1] < 0)), int(np.sum(marks[0] * marks[1] == 0))
    allowed = (1 - NEARLY_ALL) * marks.shape[1]
    outcome = FAILS if opposite > allowed else HOLDS if opposite + unsure <= allowed else OPEN
    found = f"opposite sides in {opposite} of {marks.shape[1]} comparisons ({unsure} too close to tell); needed: at most {allowed:.0f}"
    return Finding(outcome, found)


BOTH = ("reading", "mwem")
TABLE_CLAIMS = (
    Claim(
        "best-tvd",
        "After the cost normalization, CIPHER 2-way performs the best overall",
        "3.1, figure 2",
        "normalised TVD smallest of FDH, CIPHER and MWEM (2- and 3-way) in more than half of the 30 points (n, ε, order)",
        best_tvd,
        BOTH,
    ),
    Claim(
        "best-tvd-small",
        "… especially for small ε",
        "3.1, figure 2",
        "normalised TVD, averaged over orders, below every other method's at both ε < 1 and both n",
        best_tvd_small,
        BOTH,
    ),
    Claim(
        "tvd-large",
        "… and delivers similar performances as the FDH sanitization at large ε",
        "3.1, figure 2",
        "normalised TVD at most 1.1 times FDH's at both ε > 1, both n, all orders",
        similar_at_large,
        ("reading",),
    ),
    Claim(
        "tvd-three",
        "CIPHER 3-way is inferior to CIPHER 2-way",
        "3.1, figure 2",
        "normalised TVD larger in more than nine tenths of the 30 points",
        three_way_inferior,
        ("reading",),
    ),
    Claim(
        "mwem-flat",
        "There is minimal change in the performance of MWEM procedures across ε",
        "3.1, figure 2",
        "TVD at e⁻² at most 1.25 times that at e², both n, 2- and 3-way, all orders",
        mwem_flat,
        ("mwem",),
    ),
    Claim(
        "mwem-tvd",
        "CIPHER outperforms MWEM in preserving original information",
        "abstract",
        "TVD of CIPHER 2-way below MWEM 2-way's in more than nine tenths of the 30 points",
        better_than_mwem,
        BOTH,
    ),
    Claim(
        "fdh-tvd",
        "… and has similar or superior cost-normalized utility to FDH sanitization at the same privacy budget",
        "abstract",
        "normalised TVD at most 1.1 times FDH's in more than nine tenths of the 30 points",
        similar_overall,
        ("reading",),
    ),
    Claim(
        "fdh-all",
        "CIPHER delivers similar or superior performances to the FDH sanitization … after taking into account the storage cost",
        "4",
        "normalised TVD (30 points), l∞ (20) and RMSE (10), each at most 1.1 times FDH's in more than nine tenths",
        similar_on_all_metrics,
        ("reading",),
    ),
    Claim(
        "fdh-low",
        "… especially at low privacy cost",
        "4",
        "the mean ratio to FDH is smaller at ε < 1 than at ε > 1, for TVD, l∞ and RMSE",
        better_at_low_budget,
        ("reading",),
    ),
    Claim(
        "linf-similar",
        "CIPHER 2-way and the FDH sanitizations are similar [in l∞] with the former slightly better at ε = e⁻²",
        "3.1, figure 3",
        "normalised l∞ at most 1.1 times FDH's in all 20 points (n, ε, Q₂ and Q₃), and below FDH's in the 4 at e⁻²",
        linf_similar,
        ("reading",),
    ),
    Claim(
        "linf-three",
        "CIPHER 3-way is second-tier behind CIPHER 2-way and the FDH sanitization",
        "3.1, figure 3",
        "normalised l∞ above both in all 20 points",
        linf_three_way,
        ("reading",),
    ),
    Claim(
        "linf-mwem",
        "The performance of MWEM does not seem to live up to the claim that it yields the optimal l∞ error",
        "3.1, figure 3",
        "un-normalised l∞ on its own tables above the best of FDH and CIPHER at every ε, both n, Q₂ and Q₃",
        linf_mwem,
        BOTH,
    ),
    Claim(
        "linf-rounds",
        "This could be due to the fact that T … was not optimized in a precise way",
        "3.1, figure 3",
        "with the best T in hindsight its l∞ is no larger than the best of FDH and CIPHER in all 20 points",
        linf_rounds,
        BOTH,
    ),
    Claim(
        "same-500",
        "The findings are similar at n = 500",
        "3.1, supplement",
        "CIPHER 2-way against FDH, CIPHER 3-way and MWEM 2-way in normalised TVD and l∞: the same side at both n in nine tenths of 75 comparisons",
        same_at_500,
        BOTH,
    ),
)
