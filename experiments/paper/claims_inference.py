"""The paper's sentences about the regression in the first experiment, figure 4: the one with ten parameters."""

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper.claims import Claim, Finding, Margins, every, percents, series
from experiments.paper.claims_tables import BOTH
from experiments.paper.contenders import FDH, Contender
from experiments.paper.replicates import exactly
from experiments.paper.view import LARGE, SMALL, View

# "Not much difference": a quarter in bias, five points in coverage; "near-nominal" and "severe" in coverage of a 95 % interval.
LITTLE, POINTS, NEAR, SEVERE = 1.25, 0.05, 0.90, 0.80


def trio(view: View) -> list[Contender]:
    """CIPHER 2-way and 3-way, and FDH."""
    return [view.cipher(2), view.cipher(3), FDH]


def line_over_n(values: Floats) -> tuple[float, ...]:
    """Replicated values by n and epsilon: the mean over n."""
    return tuple(float(value) for value in values[0].mean(axis=0))


def bias_similar(view: View) -> Finding:
    """The mean absolute normalised bias of the three methods is within a quarter at every n and epsilon."""
    bias = np.stack([view.mean(method, "bias") for method in trio(view)])
    spread = bias.max(axis=0) / bias.min(axis=0)
    found = f"largest over smallest {series(line_over_n(spread))}; needed: at most {LITTLE}"
    return Finding(Margins(LITTLE - spread).everywhere(), found, line_over_n(spread), LITTLE)


def coverage_similar(view: View) -> Finding:
    """The mean coverage of the three methods differs by at most five points at every n and epsilon."""
    coverage = np.stack([view.mean(method, "coverage", normal=False) for method in trio(view)])
    spread = coverage.max(axis=0) - coverage.min(axis=0)
    found = f"largest less smallest {percents(line_over_n(spread))}; needed: at most 5 points"
    return Finding(Margins(POINTS - spread).everywhere(), found, line_over_n(spread), POINTS)


def rmse_below_three_way(view: View) -> Finding:
    """CIPHER 2-way has the smaller normalised RMSE than CIPHER 3-way at every n and epsilon."""
    ratio = view.mean(view.cipher(2), "rmse") / view.mean(view.cipher(3), "rmse")
    return Finding(
        Margins(1 - ratio).everywhere(),
        f"ratio {series(line_over_n(ratio))}; needed: below 1",
        line_over_n(ratio),
        1.0,
    )


def rmse_below_fdh(view: View) -> Finding:
    """CIPHER 2-way has the smaller normalised RMSE than FDH at every epsilon below 1."""
    ratio = view.mean(view.cipher(2), "rmse") / view.mean(FDH, "rmse")
    found = f"ratio {series(line_over_n(ratio))}; needed: below 1 at e⁻² and e⁻¹"
    return Finding(Margins(1 - ratio[:, :, SMALL]).everywhere(), found, line_over_n(ratio), 1.0)


def coverage_nominal(view: View) -> Finding:
    """Every parameter of the three methods is covered at least 90 % of the time at every n and epsilon."""
    coverage = np.stack([view.parameters(method, "coverage") for method in trio(view)], axis=1)
    margins = Margins(coverage - NEAR)
    least = coverage[0].min(axis=(0, 1, 3))
    found = f"least coverage of a parameter {percents(least)}; needed: at least 90 %"
    return Finding(margins.everywhere(), found, tuple(map(float, least)), NEAR)


def mwem_coverage(view: View) -> Finding:
    """Some parameter of MWEM is covered less than 80 % of the time."""
    coverage = np.stack([view.parameters(view.mwem(order), "coverage") for order in (2, 3)], axis=1)
    margins = Margins(SEVERE - coverage)
    least = coverage[0].min(axis=(0, 1, 3))
    found = f"least coverage of a parameter {percents(least)}; needed: one below 80 %"
    return Finding(margins.somewhere(), found, tuple(map(float, least)), SEVERE)


def mwem_coverage_small(view: View) -> Finding:
    """The mean shortfall of MWEM's coverage from 95 % is larger below epsilon 1 than above, at both n."""
    coverage = np.stack([view.parameters(view.mwem(order), "coverage") for order in (2, 3)], axis=1)
    short = np.maximum(0.95 - coverage, 0.0).mean(axis=(1, 4))
    margins = Margins(short[:, :, SMALL].mean(axis=2) - short[:, :, LARGE].mean(axis=2))
    found = f"mean shortfall {percents(line_over_n(short))}; needed: more at ε < 1 than at ε > 1"
    return Finding(margins.everywhere(), found, line_over_n(short))


def mwem_rmse(view: View) -> Finding:
    """A form of MWEM has the smallest normalised RMSE at e⁻², e⁻¹ and 1, at both n."""
    own = np.min([view.mean(view.mwem(order), "rmse") for order in (2, 3)], axis=0)
    others = np.min([view.mean(method, "rmse") for method in trio(view)], axis=0)
    ratio = own / others
    found = f"ratio to the best other {series(line_over_n(ratio))}; needed: below 1 up to ε = 1"
    return Finding(Margins(1 - ratio[:, :, :3]).everywhere(), found, line_over_n(ratio), 1.0)


def rmse_approaches(view: View) -> Finding:
    """The RMSE of the three methods falls with every step of epsilon, to at most 1.5 times the original's."""
    original = np.stack([exactly(view.first.originals[n][0].rmse[0].mean()) for n in (200, 500)], axis=1)
    ratios = np.stack(
        [view.mean(method, "rmse", normal=False) / original[:, :, None] for method in trio(view)], axis=1
    )
    falls, near = Margins(-np.diff(ratios, axis=3)), Margins(1.5 - ratios[..., -1])
    worst = ratios[0].max(axis=(0, 1))
    found = (
        f"RMSE over the original's, largest of the three: {series(worst)}; needed: falling, at most 1.5 at e²"
    )
    return Finding(every((falls.everywhere(), near.everywhere())), found, tuple(map(float, worst)), 1.5)


def in_between(view: View) -> Finding:
    """Bias, RMSE and mean coverage at e⁻¹ and e lie between their neighbours', but for a tenth (coverage: two points)."""
    gaps = []
    for method in trio(view):
        for metric in ("bias", "rmse", "coverage"):
            values = view.mean(method, metric, normal=False)[:, 0]
            slack = 0.02 if metric == "coverage" else 0.1 * values[:, 1::2]
            before, here, after = values[:, 0:3:2], values[:, 1::2], values[:, 2::2]
            low, high = np.minimum(before, after), np.maximum(before, after)
            gaps.append(np.minimum(here - low, high - here) + slack)
    margins = Margins(np.stack(gaps, axis=1))
    return Finding(margins.everywhere(), f"between in {margins}; needed: all 18")


INFERENCE_CLAIMS = (
    Claim(
        "bias",
        "There is not much difference among CIPHER 2-way, CIPHER 3-way, and the FDH sanitization in cost-normalized bias",
        "3.1, figure 4",
        "mean absolute bias × cost of the three within a quarter at every n and ε",
        bias_similar,
        ("reading",),
    ),
    Claim(
        "coverage-similar",
        "… or CP",
        "3.1, figure 4",
        "mean coverage of the three within five points at every n and ε",
        coverage_similar,
        ("reading",),
    ),
    Claim(
        "rmse-three",
        "CIPHER 2-way delivers better performance in terms of cost-normalized RMSE (smaller) at all ε compared to CIPHER 3-way",
        "3.1, figure 4",
        "mean RMSE × cost smaller at every n and ε",
        rmse_below_three_way,
        ("reading",),
    ),
    Claim(
        "rmse-fdh",
        "… and at small ε compared to the FDH sanitization",
        "3.1, figure 4",
        "mean RMSE × cost smaller at both ε < 1, both n",
        rmse_below_fdh,
        ("reading",),
    ),
    Claim(
        "coverage",
        "CIPHER and the FDH sanitization deliver near-nominal CP (95%) across all the examined ε and both n scenarios",
        "3.1, figure 4",
        "coverage of each of ten parameters at least 90 %, three methods, every n and ε",
        coverage_nominal,
        ("reading",),
    ),
    Claim(
        "mwem-coverage",
        "MWEM suffers severe under-coverage on some parameters",
        "3.1, figure 4",
        "coverage of some parameter below 80 % at some n and ε",
        mwem_coverage,
        ("mwem",),
    ),
    Claim(
        "mwem-coverage-small",
        "… especially at small ε",
        "3.1, figure 4",
        "mean shortfall from 95 % larger at ε < 1 than at ε > 1, both n",
        mwem_coverage_small,
        ("mwem",),
    ),
    Claim(
        "mwem-rmse",
        "MWEM has the smallest cost-normalized RMSE for ε ≤ 1",
        "3.1, figure 4",
        "mean RMSE × cost of MWEM (2- or 3-way) below FDH's and CIPHER's at the three ε ≤ 1, both n",
        mwem_rmse,
        BOTH,
    ),
    Claim(
        "rmse-approach",
        "The RMSE values for CIPHER and the FDH sanitization catch up quickly and approach the original values as ε increases",
        "3.1, figure 4",
        "un-normalised RMSE falls with every ε and is at most 1.5 times the original's at e², three methods, both n",
        rmse_approaches,
        ("reading",),
    ),
    Claim(
        "between",
        "Those at ε = e⁻¹ and e when n = 200 are in between",
        "3.1, supplement",
        "mean bias, RMSE and coverage of the three between their neighbours', but for a tenth (coverage: two points)",
        in_between,
        ("reading",),
    ),
)
