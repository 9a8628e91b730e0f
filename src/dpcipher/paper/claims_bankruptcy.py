"""The paper's claims about the second experiment: figure 7 and table 2."""

from collections.abc import Iterator, Mapping

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.paper.bankruptcy import CELLS, CIPHER, FDH, MWEM, OURS, SETS
from dpcipher.paper.claims import UNDECIDABLE, Claim, judge, markdown_table, percents
from dpcipher.paper.simulated import NAMES, POWERS
from dpcipher.paper.summary import PRINTED, BankruptcySummary

BAD = ("Worst", "II-", "I-")
RIVALS = (CIPHER, MWEM, CELLS)


def bankruptcy_claims(summary: BankruptcySummary) -> list[Claim]:
    """Everything the paper says about the bankruptcy data."""
    return [*_regression(summary), *_prediction(summary)]


def svm_table(summary: BankruptcySummary) -> str:
    """Table 2 beside ours: mean accuracy in per cent (standard deviation over repeats)."""
    columns = [(sets, method) for sets in SETS for method in (CIPHER, OURS, MWEM, CELLS, FDH)]
    heads = [
        "ε",
        *(f"{method.name}, m = {sets}" for sets, method in columns),
        "printed: CIPHER",
        "MWEM",
        "FDH",
    ]
    lines = []
    for place, power in enumerate(POWERS):
        cards = [summary.cards[sets, power, method.name] for sets, method in columns]
        ours = [f"{100 * card.accuracy:.1f} ({100 * card.accuracy_sd:.1f})" for card in cards]
        printed = [f"{PRINTED[name][place]}" for name in ("CIPHER", "MWEM", "FDH")]
        lines.append([NAMES[power], *ours, *printed])
    return markdown_table(heads, lines)


def _regression(summary: BankruptcySummary) -> Iterator[Claim]:
    worst = np.max([summary.share(method, *BAD) for method in (FDH, *RIVALS)], axis=(0, 2))
    ours = summary.share(OURS, *BAD).max(axis=1)
    yield Claim(
        "bad estimates (Worst, II−, I−) have probability close to 0 for all methods",
        "figure 7",
        f"at most {worst[0]:.0%} (m = 1), {worst[1]:.0%} (m = 5)",
        judge(worst.max() < 0.05),
        f"at most {ours[0]:.0%}, {ours[1]:.0%}",
    )
    best = {method: summary.share(method, "Best") for method in (FDH, OURS, *RIVALS)}
    leads = (best[FDH] >= np.max([best[method] for method in RIVALS], axis=0))[:, 1:].all(axis=1)
    yield Claim(
        "FDH lands in Best most often for ε ≥ e⁻¹",
        "figure 7",
        _by_m({method.name: best[method] for method in (FDH, CIPHER, MWEM)}),
        judge(leads.any()),
        _by_m({"": best[OURS]}),
        but=f"for m = {SETS[int(leads.argmax())]} only" if leads.sum() == 1 else "",
    )
    cells = best[CELLS]
    yield Claim(
        "MWEM lands in Best about half the time and does not improve with ε",
        "figure 7",
        _by_m({"cells": cells, "tables": best[MWEM]}),
        judge(np.all(abs(cells[:, 0] - 0.5) < 0.15) and np.all(cells[:, -1] - cells[:, 0] < 0.1)),
        but="for single-cell queries",
    )


def _prediction(summary: BankruptcySummary) -> Iterator[Claim]:
    right = {method: summary.accuracy(method) for method in (FDH, OURS, *RIVALS)}
    cipher, full, ours, mwem, cells = (right[method] for method in (CIPHER, FDH, OURS, MWEM, CELLS))
    others = np.max([full, mwem, cells], axis=0)
    yield Claim(
        "CIPHER predicts best at ε ≤ 1, with roughly constant accuracy",
        "table 2",
        _by_m({"CIPHER": cipher, "FDH": full}) + "; printed: CIPHER 68 / 65 / 69, FDH 41 / 56 / 64",
        judge((cipher > others)[:, :3].all(axis=1).any()),
        _by_m({"ours": ours}),
    )
    yield Claim(
        "FDH predicts better than CIPHER at large ε (e, e²)",
        "table 2",
        _by_m({"FDH": full[:, 3:], "CIPHER": cipher[:, 3:]}),
        judge(np.all(full[:, 3:] > cipher[:, 3:])),
        _by_m({"": ours[:, 3:]}),
    )
    yield Claim(
        "MWEM stays near 50 % at every ε",
        "table 2",
        f"{_by_m({'MWEM, cells': cells, 'MWEM': mwem})}; always saying the larger class: {summary.majority:.0%}; an SVM on the original rows: {summary.original:.0%}",
        judge(cells.max() < 0.65),
        but="for single-cell queries; below always saying the larger class",
    )
    misfit = np.abs(100 * full - PRINTED["FDH"]).max(axis=1)
    yield Claim(
        "the accuracies of table 2 themselves",
        "table 2",
        f"largest distance of our FDH from the printed one: {misfit[0]:.0f} points (m = 1), {misfit[1]:.0f} points (m = 5); m, the split, the SVM and the number of runs are not printed, nor any spread",
        UNDECIDABLE,
    )


def _by_m(shares: Mapping[str, Floats]) -> str:
    """Shares by name (m by epsilon) as whole per cents, one m after the other."""
    return "; ".join(
        f"m = {sets}: "
        + ", ".join(f"{name} {percents(share[place])}".strip() for name, share in shares.items())
        for place, sets in enumerate(SETS)
    )
