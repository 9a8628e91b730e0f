"""The paper's sentences about regressions in the first experiment: figures 4, 5 and 6. The regression is the one with ten parameters."""

import numpy as np

from dpcipher.inference.sss import CATEGORIES
from dpcipher.marginals.arrays import Floats
from dpcipher.paper.claims import Claim, Finding, Margins, every, percents, series
from dpcipher.paper.claims_tables import BOTH
from dpcipher.paper.contenders import FDH, Contender
from dpcipher.paper.replicates import exactly
from dpcipher.paper.view import LARGE, MIDDLE, SMALL, View

# "Not much difference": a quarter in bias, five points in coverage; "near-nominal" and "severe" in coverage of a 95 % interval.
LITTLE, POINTS, NEAR, SEVERE = 1.25, 0.05, 0.90, 0.80
# "Similar" odds are within a factor; "does not improve" is by less than this in log-odds.
ODDS, NO_GAIN = 1.5, 0.25
# One percentage point: bars in a figure that differ by less look the same.
POINT = 0.01


def _trio(view: View) -> list[Contender]:
    """CIPHER 2-way and 3-way, and FDH."""
    return [view.cipher(2), view.cipher(3), FDH]


def _line(values: Floats) -> tuple[float, ...]:
    """Replicated values by n and epsilon: the mean over n."""
    return tuple(float(value) for value in values[0].mean(axis=0))


def bias_similar(view: View) -> Finding:
    """The mean absolute normalised bias of the three methods is within a quarter at every n and epsilon."""
    bias = np.stack([view.mean(method, "bias") for method in _trio(view)])
    spread = bias.max(axis=0) / bias.min(axis=0)
    found = f"largest over smallest {series(_line(spread))}; needed: at most {LITTLE}"
    return Finding(Margins(LITTLE - spread).everywhere(), found, _line(spread), LITTLE)


def coverage_similar(view: View) -> Finding:
    """The mean coverage of the three methods differs by at most five points at every n and epsilon."""
    coverage = np.stack([view.mean(method, "coverage", normal=False) for method in _trio(view)])
    spread = coverage.max(axis=0) - coverage.min(axis=0)
    found = f"largest less smallest {percents(_line(spread))}; needed: at most 5 points"
    return Finding(Margins(POINTS - spread).everywhere(), found, _line(spread), POINTS)


def rmse_below_three_way(view: View) -> Finding:
    """CIPHER 2-way has the smaller normalised RMSE than CIPHER 3-way at every n and epsilon."""
    ratio = view.mean(view.cipher(2), "rmse") / view.mean(view.cipher(3), "rmse")
    return Finding(
        Margins(1 - ratio).everywhere(), f"ratio {series(_line(ratio))}; needed: below 1", _line(ratio), 1.0
    )


def rmse_below_fdh(view: View) -> Finding:
    """CIPHER 2-way has the smaller normalised RMSE than FDH at every epsilon below 1."""
    ratio = view.mean(view.cipher(2), "rmse") / view.mean(FDH, "rmse")
    found = f"ratio {series(_line(ratio))}; needed: below 1 at e⁻² and e⁻¹"
    return Finding(Margins(1 - ratio[:, :, SMALL]).everywhere(), found, _line(ratio), 1.0)


def coverage_nominal(view: View) -> Finding:
    """Every parameter of the three methods is covered at least 90 % of the time at every n and epsilon."""
    coverage = np.stack([view.parameters(method, "coverage") for method in _trio(view)], axis=1)
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
    found = f"mean shortfall {percents(_line(short))}; needed: more at ε < 1 than at ε > 1"
    return Finding(margins.everywhere(), found, _line(short))


def mwem_rmse(view: View) -> Finding:
    """A form of MWEM has the smallest normalised RMSE at e⁻², e⁻¹ and 1, at both n."""
    own = np.min([view.mean(view.mwem(order), "rmse") for order in (2, 3)], axis=0)
    others = np.min([view.mean(method, "rmse") for method in _trio(view)], axis=0)
    ratio = own / others
    found = f"ratio to the best other {series(_line(ratio))}; needed: below 1 up to ε = 1"
    return Finding(Margins(1 - ratio[:, :, :3]).everywhere(), found, _line(ratio), 1.0)


def rmse_approaches(view: View) -> Finding:
    """The RMSE of the three methods falls with every step of epsilon, to at most 1.5 times the original's."""
    original = np.stack([exactly(view.first.originals[n][0].rmse[0].mean()) for n in (200, 500)], axis=1)
    ratios = np.stack(
        [view.mean(method, "rmse", normal=False) / original[:, :, None] for method in _trio(view)], axis=1
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
    for method in _trio(view):
        for metric in ("bias", "rmse", "coverage"):
            values = view.mean(method, metric, normal=False)[:, 0]
            slack = 0.02 if metric == "coverage" else 0.1 * values[:, 1::2]
            before, here, after = values[:, 0:3:2], values[:, 1::2], values[:, 2::2]
            low, high = np.minimum(before, after), np.maximum(before, after)
            gaps.append(np.minimum(here - low, high - here) + slack)
    margins = Margins(np.stack(gaps, axis=1))
    return Finding(margins.everywhere(), f"between in {margins}; needed: all 18")


def rarest(view: View) -> Finding:
    """Worst and I− are the two rarest of the seven categories for every method, n and epsilon, but for a point."""
    gaps, worst = [], []
    others = [name for name in CATEGORIES if name not in ("Worst", "I-")]
    for method in view.papers:
        bad = np.max([view.share(method, name) for name in ("Worst", "I-")], axis=0)
        gaps.append(np.min([view.share(method, name) for name in others], axis=0) - bad + POINT)
        worst.append(bad[0].max(axis=0))
    margins = Margins(np.stack(gaps, axis=1))
    line = np.max(worst, axis=0)
    found = f"rarest in {margins} (method, n, ε); largest share {percents(line)}; needed: all 50"
    return Finding(margins.everywhere(), found, tuple(map(float, line)))


def _gain(view: View, method: Contender) -> Floats:
    best = view.share(method, "Best")
    return np.asarray(best[:, :, -1] - best[:, :, 0])


def improves(view: View) -> Finding:
    """From e⁻² to e² the share of Best grows for FDH and CIPHER by more than twice as much as for MWEM, at both n."""
    quick = np.min([_gain(view, method) for method in _trio(view)], axis=0)
    slow = np.max([_gain(view, view.mwem(order)) for order in (2, 3)], axis=0)
    found = f"least gain of FDH and CIPHER {percents(quick[0])}, largest of MWEM {percents(slow[0])} (n = 200 / 500); needed: twice"
    return Finding(Margins(quick - 2 * slow).everywhere(), found, _line(view.share(view.mwem(2), "Best")))


def fdh_leads(view: View) -> Finding:
    """FDH has the largest share of Best at every n and epsilon, but for a point."""
    full = view.share(FDH, "Best")
    lead = full - np.max([view.share(method, "Best") for method in view.papers[1:]], axis=0)
    found = f"FDH less the best other {percents(_line(lead))}; needed: not below −1 point"
    return Finding(Margins(lead + POINT).everywhere(), found, _line(lead), 0.0)


def _lead(view: View) -> Floats:
    return view.share(FDH, "Best") - view.share(view.cipher(2), "Best")


def leads_at_medium(view: View) -> Finding:
    """The lead of FDH over CIPHER 2-way in Best is larger on average over e⁻¹, 1 and e than at either end."""
    lead = _lead(view)
    margins = Margins(lead[:, :, MIDDLE].mean(axis=2) - np.maximum(lead[:, :, 0], lead[:, :, -1]))
    found = f"lead over CIPHER 2-way {percents(_line(lead))}; needed: more in the middle than at the ends"
    return Finding(margins.everywhere(), found, _line(lead))


def follows_closely(view: View) -> Finding:
    """CIPHER 2-way is at most ten points of Best behind FDH at every n and epsilon."""
    lead = _lead(view)
    found = f"behind FDH by {percents(_line(lead))}; needed: at most 10 points"
    return Finding(Margins(0.10 - lead).everywhere(), found, _line(lead), 0.10)


def power_lost(view: View) -> Finding:
    """More than 5 % of the estimates of the three methods lose their significance (II+) even at e², at both n."""
    lost = np.stack([view.share(method, "II+") for method in _trio(view)], axis=1)
    least = lost[0].min(axis=(0, 1))
    found = f"least share of II+ {percents(least)}; needed: above 5 % at e²"
    return Finding(Margins(lost[..., -1] - 0.05).everywhere(), found, tuple(map(float, least)), 0.05)


def sign_and_power_lost(view: View) -> Finding:
    """More than 5 % lose sign and significance (II−) at every epsilon below 1, for the three methods, at both n."""
    lost = np.stack([view.share(method, "II-") for method in _trio(view)], axis=1)
    least = lost[0].min(axis=(0, 1))
    found = f"least share of II− {percents(least)}; needed: above 5 % at ε < 1"
    return Finding(Margins(lost[..., SMALL] - 0.05).everywhere(), found, tuple(map(float, least)), 0.05)


def odds_similar(view: View) -> Finding:
    """The normalised odds of Best of the three methods are within a factor of 1.5 at every n and epsilon."""
    odds = np.stack([view.log_odds(method) for method in _trio(view)])
    spread = odds.max(axis=0) - odds.min(axis=0)
    found = f"largest over smallest odds {series(np.exp(_line(spread)))}; needed: at most {ODDS}"
    return Finding(
        Margins(np.log(ODDS) - spread).everywhere(), found, tuple(np.exp(_line(spread)).tolist()), ODDS
    )


def odds_three_way(view: View) -> Finding:
    """CIPHER 3-way has the largest normalised odds of Best at every epsilon below 1, at both n."""
    lead = view.log_odds(view.cipher(3)) - np.maximum(view.log_odds(view.cipher(2)), view.log_odds(FDH))
    found = f"log-odds less the better of the two {series(_line(lead))}; needed: above 0 at ε < 1"
    return Finding(Margins(lead[:, :, SMALL]).everywhere(), found, _line(lead), 0.0)


def odds_mwem_similar(view: View) -> Finding:
    """MWEM's normalised odds are within a factor of 1.5 of some of the three methods' at every epsilon below 1."""
    gaps = []
    for order in (2, 3):
        own = view.log_odds(view.mwem(order))
        gaps.append(np.min([np.abs(own - view.log_odds(method)) for method in _trio(view)], axis=0))
    gap = np.max(gaps, axis=0)
    found = f"odds apart by a factor of {series(np.exp(_line(gap)))}; needed: at most {ODDS} at ε < 1"
    return Finding(
        Margins(np.log(ODDS) - gap[:, :, SMALL]).everywhere(), found, tuple(np.exp(_line(gap)).tolist()), ODDS
    )


def odds_mwem_flat(view: View) -> Finding:
    """MWEM's log-odds of Best rise by at most .25 from e⁻² to e², at both n and both orders."""
    odds = np.stack([view.log_odds(view.mwem(order), normal=False) for order in (2, 3)], axis=1)
    rise = odds[..., -1] - odds[..., 0]
    found = f"log-odds rise by at most {rise[0].max():.2f}; needed: at most {NO_GAIN}"
    return Finding(Margins(NO_GAIN - rise).everywhere(), found, _line(odds[:, :, 0]))


COSTS = ("reading", "costs")
MODEL_CLAIMS = (
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
    Claim(
        "sss-rarest",
        "The undesirable cases (purple+blue bars) are the shortest among all the 7 scenarios for each method",
        "3.1, figure 5",
        "Worst and I− at most a point above every other category, five methods, every n and ε",
        rarest,
        BOTH,
    ),
    Claim(
        "sss-improve",
        "The inferences improve quickly for CIPHER and the FDH sanitization and rather slowly for MWEM as ε increases",
        "3.1, figure 5",
        "gain in Best from e⁻² to e² more than twice MWEM's, both n",
        improves,
        BOTH,
    ),
    Claim(
        "sss-fdh",
        "The FDH sanitization is the best performer in preserving SSS",
        "3.1, figure 5",
        "share of Best at most a point below any other method's at every n and ε",
        fdh_leads,
        BOTH,
    ),
    Claim(
        "sss-medium",
        "… especially for the medium valued ε",
        "3.1, figure 5",
        "lead over CIPHER 2-way larger on average over e⁻¹, 1, e than at e⁻² or e², both n",
        leads_at_medium,
        ("reading",),
    ),
    Claim(
        "sss-close",
        "… followed closely by CIPHER",
        "3.1, figure 5",
        "share of Best of CIPHER 2-way at most ten points below FDH's at every n and ε",
        follows_closely,
        ("reading",),
    ),
    Claim(
        "sss-power",
        "There are always non-ignorable proportions of II+ … when ε is as large as e²",
        "3.1, figure 5",
        "II+ above 5 % at e² for FDH and CIPHER, both n",
        power_lost,
        ("reading",),
    ),
    Claim(
        "sss-sign",
        "… (and II- when ε is small)",
        "3.1, figure 5",
        "II− above 5 % at both ε < 1 for FDH and CIPHER, both n",
        sign_and_power_lost,
        ("reading",),
    ),
    Claim(
        "odds",
        "Overall, the odds are similar for CIPHER 3-way, CIPHER 2-way, and the FDH sanitization",
        "3.1, figure 6",
        "odds of Best / cost within a factor of 1.5 at every n and ε",
        odds_similar,
        COSTS,
    ),
    Claim(
        "odds-three",
        "… with CIPHER 3-way being the best at small ε",
        "3.1, figure 6",
        "odds of Best / cost above CIPHER 2-way's and FDH's at both ε < 1, both n",
        odds_three_way,
        COSTS,
    ),
    Claim(
        "odds-mwem",
        "MWEM performs similarly as the other methods at small ε",
        "3.1, figure 6",
        "odds of Best / cost within a factor of 1.5 of some other method's at both ε < 1",
        odds_mwem_similar,
        ("reading", "mwem", "costs"),
    ),
    Claim(
        "odds-mwem-flat",
        "… but does not improve as ε increases",
        "3.1, figure 6",
        "log-odds of Best rise by at most .25 from e⁻² to e², both n, 2- and 3-way",
        odds_mwem_flat,
        ("mwem",),
    ),
)
