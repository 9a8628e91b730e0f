"""The paper's sentences about the second experiment: figure 7 and table 2."""

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper.bankruptcy import FDH, SETS
from experiments.paper.claims import UNDECIDABLE, Claim, Finding, Margins, percents
from experiments.paper.contenders import Contender
from experiments.paper.summary import PRINTED
from experiments.paper.view import View

BAD = ("Worst", "II-", "I-")
# "About half" is 50 ± 5 per cent; "roughly constant" and "does not improve" are by at most five points.
HALF, POINTS = 0.50, 0.05


def _three(view: View) -> list[Contender]:
    return [FDH, view.second_cipher, view.second_mwem]


def _line(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values[0])


def bad_rare(view: View) -> Finding:
    """Worst, II− and I− together have at most 5 % for each method and epsilon."""
    share = np.stack([view.category(method, *BAD) for method in _three(view)], axis=1)
    worst = share[0].max(axis=0)
    found = f"largest share {percents(worst)}; needed: at most 5 %"
    return Finding(Margins(0.05 - share).everywhere(), found, tuple(map(float, worst)), 0.05)


def mostly_good(view: View) -> Finding:
    """Best and Neutral together have more than half for each method and epsilon."""
    share = np.stack([view.category(method, "Best", "Neutral") for method in _three(view)], axis=1)
    least = share[0].min(axis=0)
    found = f"least share {percents(least)}; needed: above 50 %"
    return Finding(Margins(share - 0.5).everywhere(), found, tuple(map(float, least)), 0.5)


def fdh_best(view: View) -> Finding:
    """FDH has the largest share of Best at every epsilon from e⁻¹."""
    full, *others = (view.category(method, "Best") for method in _three(view))
    lead = full - np.max(others, axis=0)
    found = f"FDH less the best other {percents(lead[0])}; needed: above 0 from e⁻¹"
    return Finding(Margins(lead[:, 1:]).everywhere(), found, _line(lead), 0.0)


def mwem_leads(view: View) -> Finding:
    """MWEM has the largest share of Best at e⁻² and e⁻¹."""
    own = view.category(view.second_mwem, "Best")
    lead = own - np.maximum(view.category(FDH, "Best"), view.category(view.second_cipher, "Best"))
    found = f"MWEM less the best other {percents(lead[0])}; needed: above 0 up to e⁻¹"
    return Finding(Margins(lead[:, :2]).everywhere(), found, _line(lead), 0.0)


def mwem_half(view: View) -> Finding:
    """MWEM's share of Best is 50 ± 5 % at e⁻² and e⁻¹."""
    own = view.category(view.second_mwem, "Best")
    gap = POINTS - np.abs(own[:, :2] - HALF)
    return Finding(
        Margins(gap).everywhere(),
        f"share of Best {percents(own[0])}; needed: 50 ± 5 % up to e⁻¹",
        _line(own),
        HALF,
    )


def mwem_flat(view: View) -> Finding:
    """MWEM's share of Best rises by at most five points from e⁻² to e²."""
    own = view.category(view.second_mwem, "Best")
    rise = own[:, -1] - own[:, 0]
    return Finding(
        Margins(POINTS - rise).everywhere(),
        f"rises by {100 * rise[0]:+.0f} points; needed: at most 5",
        _line(own),
    )


def cipher_predicts(view: View) -> Finding:
    """CIPHER has the largest accuracy at the three epsilons up to 1."""
    own = view.accuracy(view.second_cipher)
    lead = own - np.maximum(view.accuracy(FDH), view.accuracy(view.second_mwem))
    found = f"CIPHER {percents(own[0])}, less the best other {percents(lead[0])}; needed: above 0 up to ε = 1"
    return Finding(Margins(lead[:, :3]).everywhere(), found, _line(lead), 0.0)


def cipher_constant(view: View) -> Finding:
    """CIPHER's accuracy differs by at most five points among the three epsilons up to 1."""
    own = view.accuracy(view.second_cipher)
    spread = own[:, :3].max(axis=1) - own[:, :3].min(axis=1)
    found = (
        f"CIPHER {percents(own[0])}: {100 * spread[0]:.0f} points up to ε = 1; needed: at most 5 (printed: 4)"
    )
    return Finding(Margins(POINTS - spread).everywhere(), found, _line(own))


def fdh_predicts(view: View) -> Finding:
    """FDH has the larger accuracy than CIPHER at epsilon above e."""
    lead = view.accuracy(FDH) - view.accuracy(view.second_cipher)
    found = f"FDH less CIPHER {percents(lead[0])}; needed: above 0 at e²"
    return Finding(Margins(lead[:, -1:]).everywhere(), found, _line(lead), 0.0)


def mwem_predicts_half(view: View) -> Finding:
    """MWEM's accuracy is 50 ± 5 % at every epsilon."""
    own = view.accuracy(view.second_mwem)
    found = f"MWEM {percents(own[0])}; needed: 50 ± 5 %"
    return Finding(Margins(POINTS - np.abs(own - HALF)).everywhere(), found, _line(own), HALF)


def mwem_guesses(view: View) -> Finding:
    """MWEM's accuracy is at most 60 % at every epsilon."""
    own = view.accuracy(view.second_mwem)
    found = f"MWEM {percents(own[0])}, the larger class {view.second.majority:.0%}; needed: at most 60 %"
    return Finding(Margins(0.60 - own).everywhere(), found, _line(own), 0.60)


def printed_accuracies(view: View) -> Finding:
    """Not decidable: m, the split, the SVM and the number of runs are not printed, nor any spread."""
    gaps = [
        np.abs(
            100 * view.second.each(sets, FDH.name, lambda card: card.means["accuracy"])[0] - PRINTED["FDH"]
        ).max()
        for sets in SETS
    ]
    found = f"our FDH is at most {gaps[0]:.0f} (m = 1) or {gaps[1]:.0f} points (m = 5) from the printed one"
    return Finding(UNDECIDABLE, found)


ALL = ("reading", "mwem", "sets")
BANKRUPTCY_CLAIMS = (
    Claim(
        "bank-bad",
        "The probability that they produced a “bad” estimate (the worst, II-, and I- categories) is close to 0",
        "3.2, figure 7",
        "share at most 5 % for FDH, CIPHER and MWEM at every ε",
        bad_rare,
        ALL,
    ),
    Claim(
        "bank-mostly",
        "The estimates are mostly likely to land in the “best” or the “neutral” categories",
        "3.2, figure 7",
        "Best and Neutral together above 50 % for the three at every ε",
        mostly_good,
        ALL,
    ),
    Claim(
        "bank-fdh",
        "The FDH sanitization has the largest chance to produce estimates in the “best” category for ε ≥ e⁻¹",
        "3.2, figure 7",
        "share of Best above CIPHER's and MWEM's at the four ε ≥ e⁻¹",
        fdh_best,
        ALL,
    ),
    Claim(
        "bank-mwem-lead",
        "MWEM has slightly better chance landing in the “best” category when ε ≤ e⁻¹",
        "3.2, figure 7",
        "share of Best above FDH's and CIPHER's at e⁻² and e⁻¹",
        mwem_leads,
        ALL,
    ),
    Claim(
        "bank-mwem-half",
        "… (50%)",
        "3.2, figure 7",
        "share of Best 50 ± 5 % at e⁻² and e⁻¹",
        mwem_half,
        ("mwem", "sets"),
    ),
    Claim(
        "bank-mwem-flat",
        "… but does not improve as ε increases",
        "3.2, figure 7",
        "share of Best rises by at most five points from e⁻² to e²",
        mwem_flat,
        ("mwem", "sets"),
    ),
    Claim(
        "svm-cipher",
        "CIPHER is the obvious winner at ε ≤ 1 with significantly better prediction accuracy than the other two",
        "3.2, table 2",
        "mean accuracy above FDH's and MWEM's at the three ε ≤ 1",
        cipher_predicts,
        ALL,
    ),
    Claim(
        "svm-constant",
        "… and the accuracy is roughly constant",
        "3.2, table 2",
        "CIPHER's accuracies at ε ≤ 1 within five points",
        cipher_constant,
        ("reading", "sets"),
    ),
    Claim(
        "svm-fdh",
        "FDH is better than CIPHER at ε > e",
        "3.2, table 2",
        "mean accuracy above CIPHER's at e²",
        fdh_predicts,
        ("reading", "sets"),
    ),
    Claim(
        "svm-mwem",
        "The prediction accuracy remains ∼50% for MWEM across all examined ε values",
        "3.2, table 2",
        "50 ± 5 % at every ε",
        mwem_predicts_half,
        ("mwem", "sets"),
    ),
    Claim(
        "svm-guess",
        "… basically not much better than a random guess on the outcome",
        "3.2, table 2",
        "at most 60 % at every ε",
        mwem_guesses,
        ("mwem", "sets"),
    ),
    Claim(
        "svm-printed",
        "Table 2: the accuracies themselves",
        "3.2, table 2",
        "none: m, the split, the SVM, the number of runs and the spread are not printed",
        printed_accuracies,
    ),
)
