"""The paper's sentences about sign and significance in the first experiment: figures 5 and 6."""

import numpy as np

from dpcipher.inference.sss import CATEGORIES
from dpcipher.tables.domain import Floats
from experiments.paper.claims import Claim, Finding, Margins, percents, series
from experiments.paper.claims_inference import line_over_n, trio
from experiments.paper.claims_tables import BOTH
from experiments.paper.contenders import FDH, Contender
from experiments.paper.view import MIDDLE, SMALL, View

# "Similar" odds are within a factor; "does not improve" is by less than this in log-odds.
ODDS, NO_GAIN = 1.5, 0.25
# One percentage point: bars in a figure that differ by less look the same.
POINT = 0.01


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
    quick = np.min([_gain(view, method) for method in trio(view)], axis=0)
    slow = np.max([_gain(view, view.mwem(order)) for order in (2, 3)], axis=0)
    found = f"least gain of FDH and CIPHER {percents(quick[0])}, largest of MWEM {percents(slow[0])} (n = 200 / 500); needed: twice"
    return Finding(
        Margins(quick - 2 * slow).everywhere(), found, line_over_n(view.share(view.mwem(2), "Best"))
    )


def fdh_leads(view: View) -> Finding:
    """FDH has the largest share of Best at every n and epsilon, but for a point."""
    full = view.share(FDH, "Best")
    lead = full - np.max([view.share(method, "Best") for method in view.papers[1:]], axis=0)
    found = f"FDH less the best other {percents(line_over_n(lead))}; needed: not below −1 point"
    return Finding(Margins(lead + POINT).everywhere(), found, line_over_n(lead), 0.0)


def _lead(view: View) -> Floats:
    return view.share(FDH, "Best") - view.share(view.cipher(2), "Best")


def leads_at_medium(view: View) -> Finding:
    """The lead of FDH over CIPHER 2-way in Best is larger on average over e⁻¹, 1 and e than at either end."""
    lead = _lead(view)
    margins = Margins(lead[:, :, MIDDLE].mean(axis=2) - np.maximum(lead[:, :, 0], lead[:, :, -1]))
    found = (
        f"lead over CIPHER 2-way {percents(line_over_n(lead))}; needed: more in the middle than at the ends"
    )
    return Finding(margins.everywhere(), found, line_over_n(lead))


def follows_closely(view: View) -> Finding:
    """CIPHER 2-way is at most ten points of Best behind FDH at every n and epsilon."""
    lead = _lead(view)
    found = f"behind FDH by {percents(line_over_n(lead))}; needed: at most 10 points"
    return Finding(Margins(0.10 - lead).everywhere(), found, line_over_n(lead), 0.10)


def power_lost(view: View) -> Finding:
    """More than 5 % of the estimates of the three methods lose their significance (II+) even at e², at both n."""
    lost = np.stack([view.share(method, "II+") for method in trio(view)], axis=1)
    least = lost[0].min(axis=(0, 1))
    found = f"least share of II+ {percents(least)}; needed: above 5 % at e²"
    return Finding(Margins(lost[..., -1] - 0.05).everywhere(), found, tuple(map(float, least)), 0.05)


def sign_and_power_lost(view: View) -> Finding:
    """More than 5 % lose sign and significance (II−) at every epsilon below 1, for the three methods, at both n."""
    lost = np.stack([view.share(method, "II-") for method in trio(view)], axis=1)
    least = lost[0].min(axis=(0, 1))
    found = f"least share of II− {percents(least)}; needed: above 5 % at ε < 1"
    return Finding(Margins(lost[..., SMALL] - 0.05).everywhere(), found, tuple(map(float, least)), 0.05)


def odds_similar(view: View) -> Finding:
    """The normalised odds of Best of the three methods are within a factor of 1.5 at every n and epsilon."""
    odds = np.stack([view.log_odds(method) for method in trio(view)])
    spread = odds.max(axis=0) - odds.min(axis=0)
    found = f"largest over smallest odds {series(np.exp(line_over_n(spread)))}; needed: at most {ODDS}"
    return Finding(
        Margins(np.log(ODDS) - spread).everywhere(), found, tuple(np.exp(line_over_n(spread)).tolist()), ODDS
    )


def odds_three_way(view: View) -> Finding:
    """CIPHER 3-way has the largest normalised odds of Best at every epsilon below 1, at both n."""
    lead = view.log_odds(view.cipher(3)) - np.maximum(view.log_odds(view.cipher(2)), view.log_odds(FDH))
    found = f"log-odds less the better of the two {series(line_over_n(lead))}; needed: above 0 at ε < 1"
    return Finding(Margins(lead[:, :, SMALL]).everywhere(), found, line_over_n(lead), 0.0)


def odds_mwem_similar(view: View) -> Finding:
    """MWEM's normalised odds are within a factor of 1.5 of some of the three methods' at every epsilon below 1."""
    gaps = []
    for order in (2, 3):
        own = view.log_odds(view.mwem(order))
        gaps.append(np.min([np.abs(own - view.log_odds(method)) for method in trio(view)], axis=0))
    gap = np.max(gaps, axis=0)
    found = f"odds apart by a factor of {series(np.exp(line_over_n(gap)))}; needed: at most {ODDS} at ε < 1"
    return Finding(
        Margins(np.log(ODDS) - gap[:, :, SMALL]).everywhere(),
        found,
        tuple(np.exp(line_over_n(gap)).tolist()),
        ODDS,
    )


def odds_mwem_flat(view: View) -> Finding:
    """MWEM's log-odds of Best rise by at most .25 from e⁻² to e², at both n and both orders."""
    odds = np.stack([view.log_odds(view.mwem(order), normal=False) for order in (2, 3)], axis=1)
    rise = odds[..., -1] - odds[..., 0]
    found = f"log-odds rise by at most {rise[0].max():.2f}; needed: at most {NO_GAIN}"
    return Finding(Margins(NO_GAIN - rise).everywhere(), found, line_over_n(odds[:, :, 0]))


COSTS = ("reading", "costs")
SIGNIFICANCE_CLAIMS = (
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
