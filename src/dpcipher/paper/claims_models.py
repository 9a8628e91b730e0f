"""The paper's claims about regressions in the first experiment: figures 4, 5 and 6."""

from math import log

import numpy as np

from dpcipher.paper.claims import Claim, judge, percents, series
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
from dpcipher.paper.simulated import POWERS, SIZES
from dpcipher.paper.summary import Inference, SimulatedSummary, cost

MWEMS = (MWEM_2, MWEM_3, CELLS_2, CELLS_3)
NOMINAL = 0.90


def model_claims(summary: SimulatedSummary) -> list[Claim]:
    """Everything the paper says about figures 4, 5 and 6."""
    view = _ModelNumbers(summary)
    return [
        view.bias(),
        view.coverage(),
        view.mwem_coverage(),
        view.rmse_three_way(),
        view.rmse_full(),
        view.rmse_mwem(),
        view.rmse_original(),
        view.rare_worst(),
        view.improves(),
        view.full_is_best(),
        view.lost_power(),
        view.odds(),
        view.odds_mwem(),
    ]


class _ModelNumbers:
    """Short names for the numbers of a summary; the regression is the one with ten parameters."""

    def __init__(self, summary: SimulatedSummary) -> None:
        self.summary = summary

    def one(self, contender: Contender, n: int, power: int) -> Inference:
        return self.summary.cards[n, power, contender.name].inference[0]

    def mean(self, contender: Contender, metric: str, n: int, power: int, *, normal: bool = True) -> float:
        """The mean over the ten parameters of the size of a metric."""
        value = float(np.abs(getattr(self.one(contender, n, power), metric)).mean())
        return value * (cost(contender) if normal else 1.0)

    def line(self, contender: Contender, metric: str, *, normal: bool = True, n: int = 200) -> list[float]:
        return [self.mean(contender, metric, n, power, normal=normal) for power in POWERS]

    def best(self, contender: Contender, n: int = 200) -> list[float]:
        return [self.one(contender, n, power).shares["Best"] for power in POWERS]

    def lowest(self, contender: Contender, n: int, power: int) -> float:
        return float(self.one(contender, n, power).coverage.min())

    def bias(self) -> Claim:
        lines = {one: self.line(one, "bias") for one in (CIPHER_2, CIPHER_3, FDH)}
        spread = max(max(column) / min(column) for column in zip(*lines.values(), strict=True))
        return Claim(
            "CIPHER 2-way, 3-way and FDH differ little in normalised bias",
            "figure 4",
            f"mean absolute bias × cost, n = 200: {'; '.join(f'{one.name} {series(line, 2)}' for one, line in lines.items())}; un-normalised {series(self.line(CIPHER_2, 'bias', normal=False), 2)} for 2-way",
            judge(spread <= 1.25),
            f"ours 2-way {series(self.line(OURS_2, 'bias'), 2)}",
        )

    def coverage(self) -> Claim:
        found = {
            one: [min(self.lowest(one, n, p) for n in SIZES) for p in POWERS]
            for one in (FDH, CIPHER_2, CIPHER_3)
        }
        ours = [min(self.lowest(one, n, p) for n in SIZES for one in (OURS_2, OURS_3)) for p in POWERS]
        average = [
            min(self.mean(one, "coverage", n, p, normal=False) for n in SIZES for one in found)
            for p in POWERS
        ]
        return Claim(
            "95 % intervals of CIPHER and FDH cover near-nominally at every ε and n",
            "figure 4",
            f"least coverage of any parameter, both n: {'; '.join(f'{one.name} {series(line, 2)}' for one, line in found.items())}; least mean over parameters {series(average, 2)}",
            judge(min(min(line) for line in found.values()) >= NOMINAL),
            f"least {series(ours, 2)}: shrinkage bias is not in the variance",
        )

    def mwem_coverage(self) -> Claim:
        found = {
            one: [min(self.lowest(one, n, p) for n in SIZES) for p in POWERS] for one in (MWEM_2, CELLS_2)
        }
        return Claim(
            "MWEM under-covers some parameters severely, especially at small ε",
            "figure 4",
            f"least coverage: tables {series(found[MWEM_2], 2)}; cells {series(found[CELLS_2], 2)}",
            judge(min(min(line) for line in found.values()) < 0.8),
        )

    def rmse_three_way(self) -> Claim:
        two, three = self.line(CIPHER_2, "rmse"), self.line(CIPHER_3, "rmse")
        plain = self.line(CIPHER_2, "rmse", normal=False), self.line(CIPHER_3, "rmse", normal=False)
        ours = self.line(OURS_2, "rmse"), self.line(OURS_3, "rmse")
        return Claim(
            "CIPHER 2-way has smaller normalised RMSE than CIPHER 3-way at every ε",
            "figure 4",
            f"2-way {series(two, 2)}; 3-way {series(three, 2)}; un-normalised {series(plain[0], 2)} and {series(plain[1], 2)}",
            judge(all(a < b for a, b in zip(two, three, strict=True))),
            f"{series(ours[0], 2)} and {series(ours[1], 2)}",
        )

    def rmse_full(self) -> Claim:
        two, full = self.line(CIPHER_2, "rmse"), self.line(FDH, "rmse")
        return Claim(
            "… and than FDH at small ε",
            "figure 4",
            f"FDH {series(full, 2)}; 2-way over FDH {series([a / b for a, b in zip(two, full, strict=True)], 2)}",
            judge(two[0] < full[0]),
            f"ours 2-way over FDH {series([a / b for a, b in zip(self.line(OURS_2, 'rmse'), full, strict=True)], 2)}; un-normalised {series([a / b for a, b in zip(self.line(OURS_2, 'rmse', normal=False), full, strict=True)], 2)}",
        )

    def rmse_mwem(self) -> Claim:
        small = [power for power in POWERS if power <= 0]

        def least(group: tuple[Contender, ...]) -> list[float]:
            return [min(self.mean(one, "rmse", 200, power) for one in group) for power in small]

        cells, tables, others = (
            least((CELLS_2, CELLS_3)),
            least((MWEM_2, MWEM_3)),
            least((FDH, CIPHER_2, CIPHER_3)),
        )
        return Claim(
            "MWEM has the smallest normalised RMSE for ε ≤ 1",
            "figure 4",
            f"ε = e⁻², e⁻¹, 1: cells {series(cells, 2)}, tables {series(tables, 2)}, best of the others {series(others, 2)}",
            judge(all(a < b for a, b in zip(cells, others, strict=True))),
            f"ours 2-way {series(self.line(OURS_2, 'rmse')[:3], 2)}",
            but="for single-cell queries, whose table is nearly uniform and its coefficients nearly 0",
        )

    def rmse_original(self) -> Claim:
        original = float(self.summary.originals[200][0].rmse.mean())

        def line(one: Contender) -> list[float]:
            return [value / original for value in self.line(one, "rmse", normal=False)]

        lines = [line(one) for one in (FDH, CIPHER_2, CIPHER_3)]
        falls = all(values == sorted(values, reverse=True) and values[-1] <= 2 for values in lines)
        return Claim(
            "the RMSE of CIPHER and FDH approaches the original's as ε grows",
            "figure 4",
            f"un-normalised RMSE over the original's {original:.2f}, n = 200: FDH {series(lines[0], 2)}; 2-way {series(lines[1], 2)}; 3-way {series(lines[2], 2)}",
            judge(falls),
            f"2-way {series(line(OURS_2), 2)}; 3-way {series(line(OURS_3), 2)}",
        )

    def rare_worst(self) -> Claim:
        def worst(group: tuple[Contender, ...]) -> float:
            return max(
                self.one(one, n, p).shares["Worst"] + self.one(one, n, p).shares["I-"]
                for one in group
                for n in SIZES
                for p in POWERS
            )

        return Claim(
            "the undesirable categories (Worst and I−) are the rarest for each method",
            "figure 5",
            f"at most {worst(PAPERS):.1%} together (FDH and CIPHER: {worst((FDH, CIPHER_2, CIPHER_3)):.1%})",
            judge(worst(PAPERS) < 0.05),
            f"at most {worst((OURS_2, OURS_3)):.1%}",
        )

    def improves(self) -> Claim:
        lines = {one: self.best(one) for one in (FDH, CIPHER_2, CIPHER_3, MWEM_2, CELLS_2)}
        gain = {one: line[-1] - line[0] for one, line in lines.items()}
        holds = min(gain[FDH], gain[CIPHER_2], gain[CIPHER_3]) > 2 * gain[CELLS_2]
        return Claim(
            "inference improves quickly with ε for CIPHER and FDH, slowly for MWEM",
            "figure 5",
            f"share of Best, n = 200: {'; '.join(f'{one.name} {percents(line)}' for one, line in lines.items())}",
            judge(holds),
            f"ours 2-way {percents(self.best(OURS_2))}",
            but="for single-cell queries; MWEM on tables improves too",
        )

    def full_is_best(self) -> Claim:
        gaps = [
            self.one(FDH, n, p).shares["Best"] - self.one(CIPHER_2, n, p).shares["Best"]
            for n in SIZES
            for p in POWERS
        ]
        ours = [
            self.one(FDH, n, p).shares["Best"] - self.one(OURS_2, n, p).shares["Best"]
            for n in SIZES
            for p in POWERS
        ]
        return Claim(
            "FDH preserves SSS best, closely followed by CIPHER",
            "figure 5",
            f"share of Best, FDH less CIPHER 2-way: {100 * min(gaps):+.0f} to {100 * max(gaps):+.0f} points",
            judge(min(gaps) > -0.02 and max(gaps) <= 0.10),
            f"FDH less ours 2-way: {100 * min(ours):+.0f} to {100 * max(ours):+.0f} points",
        )

    def lost_power(self) -> Claim:
        lost = [self.one(one, n, 2).shares["II+"] for one in (FDH, CIPHER_2, CIPHER_3) for n in SIZES]
        ours = [self.one(one, n, 2).shares["II+"] for one in (OURS_2, OURS_3) for n in SIZES]
        return Claim(
            "even at ε = e² a non-ignorable share loses its significance (II+)",
            "figure 5",
            f"{min(lost):.0%} to {max(lost):.0%}",
            judge(min(lost) > 0.05),
            f"{min(ours):.0%} to {max(ours):.0%}",
        )

    def odds(self) -> Claim:
        def line(one: Contender) -> list[float]:
            return [self.one(one, 200, p).log_odds - log(cost(one)) for p in POWERS]

        lines = {one: line(one) for one in (FDH, CIPHER_2, CIPHER_3)}
        plain = [
            self.one(CIPHER_3, 200, -2).log_odds,
            self.one(CIPHER_2, 200, -2).log_odds,
            self.one(FDH, 200, -2).log_odds,
        ]
        first = {one: values[0] for one, values in lines.items()}
        return Claim(
            "log-odds of Best are similar, CIPHER 3-way the best at small ε (normalised)",
            "figure 6",
            f"log(odds / cost), n = 200: {'; '.join(f'{one.name} {series(values, 2)}' for one, values in lines.items())}; un-normalised at e⁻², 3-way, 2-way, FDH: {series(plain, 2)}",
            judge(max(first, key=lambda one: first[one]) == CIPHER_3),
            f"ours 2-way {series(line(OURS_2), 2)}",
            but="(how odds are normalised is not printed)",
        )

    def odds_mwem(self) -> Claim:
        change = {one: [self.one(one, 200, p).log_odds for p in POWERS] for one in (MWEM_2, CELLS_2)}
        return Claim(
            "MWEM's odds do not improve as ε increases",
            "figure 6",
            f"log-odds, n = 200: tables {series(change[MWEM_2], 2)}; cells {series(change[CELLS_2], 2)}",
            judge(change[CELLS_2][-1] - change[CELLS_2][0] < 0.3),
            but="for single-cell queries only",
        )
