"""The paper's claims about regressions in the first experiment: figures 4, 5 and 6."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.paper.claims import Claim, judge, percents, series, spread
from dpcipher.paper.contenders import (
    CELLS_2,
    CELLS_3,
    CIPHER_2,
    CIPHER_3,
    FDH,
    MWEM_2,
    MWEM_3,
    OURS_2,
    OURS_3,
    PAPERS,
    Contender,
)
from dpcipher.paper.summary import SimulatedSummary, cost

# "Near-nominal" in these verdicts.
NOMINAL = 0.90


def model_claims(summary: SimulatedSummary) -> list[Claim]:
    """Everything the paper says about figures 4, 5 and 6; the regression is the one with ten parameters."""
    return [
        *_bias_and_coverage(summary),
        *_rmse(summary),
        *_significance(summary),
        *_log_odds(summary),
    ]


def _two(values: Sequence[float] | Floats) -> str:
    return series(values, 2)


def _named(lines: Mapping[Contender, Floats], write: Callable[[Floats], str] = _two) -> str:
    return "; ".join(f"{method.name} {write(line)}" for method, line in lines.items())


def _bias_and_coverage(summary: SimulatedSummary) -> Iterator[Claim]:
    bias = {method: summary.mean(method, "bias") for method in (CIPHER_2, CIPHER_3, FDH)}
    yield Claim(
        "CIPHER 2-way, 3-way and FDH differ little in normalised bias",
        "figure 4",
        f"mean absolute bias × cost, n = 200: {_named(bias)}; un-normalised {_two(summary.mean(CIPHER_2, 'bias', normal=False))} for 2-way",
        judge(spread(list(bias.values())) <= 1.25),
        f"ours 2-way {_two(summary.mean(OURS_2, 'bias'))}",
    )

    def least(*methods: Contender) -> Floats:
        """The least coverage of any parameter at any n, by epsilon."""
        return np.asarray(
            np.min([summary.parameters(method, "coverage").min(axis=(0, 2)) for method in methods], axis=0)
        )

    covered = {method: least(method) for method in (FDH, CIPHER_2, CIPHER_3)}
    average = [summary.parameters(method, "coverage").mean(axis=2).min(axis=0) for method in covered]
    yield Claim(
        "95 % intervals of CIPHER and FDH cover near-nominally at every ε and n",
        "figure 4",
        f"least coverage of any parameter, both n: {_named(covered)}; least mean over parameters {_two(np.min(average, axis=0))}",
        judge(least(*covered).min() >= NOMINAL),
        f"least {_two(least(OURS_2, OURS_3))}: shrinkage bias is not in the variance",
    )
    yield Claim(
        "MWEM under-covers some parameters severely, especially at small ε",
        "figure 4",
        f"least coverage: tables {_two(least(MWEM_2))}; cells {_two(least(CELLS_2))}",
        judge(least(MWEM_2, CELLS_2).min() < 0.8),
    )


def _rmse(summary: SimulatedSummary) -> Iterator[Claim]:
    two, three, full, ours = (summary.mean(method, "rmse") for method in (CIPHER_2, CIPHER_3, FDH, OURS_2))
    plain_two, plain_three, plain_ours = (
        summary.mean(method, "rmse", normal=False) for method in (CIPHER_2, CIPHER_3, OURS_2)
    )
    yield Claim(
        "CIPHER 2-way has smaller normalised RMSE than CIPHER 3-way at every ε",
        "figure 4",
        f"2-way {_two(two)}; 3-way {_two(three)}; un-normalised {_two(plain_two)} and {_two(plain_three)}",
        judge(np.all(two < three)),
        f"{_two(ours)} and {_two(summary.mean(OURS_3, 'rmse'))}",
    )
    yield Claim(
        "… and than FDH at small ε",
        "figure 4",
        f"FDH {_two(full)}; 2-way over FDH {_two(two / full)}",
        judge(two[0] < full[0]),
        f"ours 2-way over FDH {_two(ours / full)}; un-normalised {_two(plain_ours / full)}",
    )

    def least(*methods: Contender) -> Floats:
        """The least normalised RMSE of several methods at ε = e⁻², e⁻¹ and 1."""
        return np.asarray(np.min([summary.mean(method, "rmse")[:3] for method in methods], axis=0))

    cells, tables = least(CELLS_2, CELLS_3), least(MWEM_2, MWEM_3)
    others = least(FDH, CIPHER_2, CIPHER_3)
    yield Claim(
        "MWEM has the smallest normalised RMSE for ε ≤ 1",
        "figure 4",
        f"ε = e⁻², e⁻¹, 1: cells {_two(cells)}, tables {_two(tables)}, best of the others {_two(others)}",
        judge(np.all(cells < others)),
        f"ours 2-way {_two(ours[:3])}",
        but="for single-cell queries, whose table is nearly uniform and its coefficients nearly 0",
    )
    original = float(summary.originals[200][0].rmse.mean())
    full, two, three, ours, ours_three = (
        summary.mean(method, "rmse", normal=False) / original
        for method in (FDH, CIPHER_2, CIPHER_3, OURS_2, OURS_3)
    )
    yield Claim(
        "the RMSE of CIPHER and FDH approaches the original's as ε grows",
        "figure 4",
        f"un-normalised RMSE over the original's {original:.2f}, n = 200: FDH {_two(full)}; 2-way {_two(two)}; 3-way {_two(three)}",
        judge(all(np.all(np.diff(ratio) <= 0) and ratio[-1] <= 2 for ratio in (full, two, three))),
        f"2-way {_two(ours)}; 3-way {_two(ours_three)}",
    )


def _significance(summary: SimulatedSummary) -> Iterator[Claim]:
    def worst(*methods: Contender) -> float:
        return max(float(summary.share(method, "Worst", "I-").max()) for method in methods)

    yield Claim(
        "the undesirable categories (Worst and I−) are the rarest for each method",
        "figure 5",
        f"at most {worst(*PAPERS):.1%} together (FDH and CIPHER: {worst(FDH, CIPHER_2, CIPHER_3):.1%})",
        judge(worst(*PAPERS) < 0.05),
        f"at most {worst(OURS_2, OURS_3):.1%}",
    )
    best = {method: summary.share(method, "Best")[0] for method in (FDH, CIPHER_2, CIPHER_3, MWEM_2, CELLS_2)}
    gain = {method: line[-1] - line[0] for method, line in best.items()}
    yield Claim(
        "inference improves quickly with ε for CIPHER and FDH, slowly for MWEM",
        "figure 5",
        f"share of Best, n = 200: {_named(best, percents)}",
        judge(min(gain[FDH], gain[CIPHER_2], gain[CIPHER_3]) > 2 * gain[CELLS_2]),
        f"ours 2-way {percents(summary.share(OURS_2, 'Best')[0])}",
        but="for single-cell queries; MWEM on tables improves too",
    )
    gap, ours_gap = (
        summary.share(FDH, "Best") - summary.share(method, "Best") for method in (CIPHER_2, OURS_2)
    )
    yield Claim(
        "FDH preserves SSS best, closely followed by CIPHER",
        "figure 5",
        f"share of Best, FDH less CIPHER 2-way: {100 * gap.min():+.0f} to {100 * gap.max():+.0f} points",
        judge(gap.min() > -0.02 and gap.max() <= 0.10),
        f"FDH less ours 2-way: {100 * ours_gap.min():+.0f} to {100 * ours_gap.max():+.0f} points",
    )

    def lost(*methods: Contender) -> Floats:
        return np.array([summary.share(method, "II+")[:, -1] for method in methods])

    lost_power, ours_lost = lost(FDH, CIPHER_2, CIPHER_3), lost(OURS_2, OURS_3)
    yield Claim(
        "even at ε = e² a non-ignorable share loses its significance (II+)",
        "figure 5",
        f"{lost_power.min():.0%} to {lost_power.max():.0%}",
        judge(lost_power.min() > 0.05),
        f"{ours_lost.min():.0%} to {ours_lost.max():.0%}",
    )


def _log_odds(summary: SimulatedSummary) -> Iterator[Claim]:
    odds = {method: summary.log_odds(method) - log(cost(method)) for method in (FDH, CIPHER_2, CIPHER_3)}
    plain = [summary.log_odds(method)[0] for method in (CIPHER_3, CIPHER_2, FDH)]
    yield Claim(
        "log-odds of Best are similar, CIPHER 3-way the best at small ε (normalised)",
        "figure 6",
        f"log(odds / cost), n = 200: {_named(odds)}; un-normalised at e⁻², 3-way, 2-way, FDH: {_two(plain)}",
        judge(max(odds, key=lambda method: float(odds[method][0])) == CIPHER_3),
        f"ours 2-way {_two(summary.log_odds(OURS_2) - log(cost(OURS_2)))}",
        but="(how odds are normalised is not printed)",
    )
    tables, cells = summary.log_odds(MWEM_2), summary.log_odds(CELLS_2)
    yield Claim(
        "MWEM's odds do not improve as ε increases",
        "figure 6",
        f"log-odds, n = 200: tables {_two(tables)}; cells {_two(cells)}",
        judge(cells[-1] - cells[0] < 0.3),
        but="for single-cell queries only",
    )
