"""The paper's claims about the second experiment: figure 7 and table 2."""

from collections.abc import Sequence

from dpcipher.paper.bankruptcy import CELLS, CIPHER, FDH, MWEM, OURS, SETS
from dpcipher.paper.claims import UNDECIDABLE, Claim, judge, percents
from dpcipher.paper.contenders import Contender
from dpcipher.paper.panels import NAMES
from dpcipher.paper.simulated import POWERS
from dpcipher.paper.summary import PRINTED, BankruptcySummary

BAD = ("Worst", "II-", "I-")


def bankruptcy_claims(summary: BankruptcySummary) -> list[Claim]:
    """Everything the paper says about the bankruptcy data."""
    view = _BankruptcyNumbers(summary)
    return [
        view.rarely_bad(),
        view.full_is_best(),
        view.mwem_best(),
        view.cipher_wins(),
        view.full_wins(),
        view.mwem_guesses(),
        view.which_m(),
    ]


def svm_table(summary: BankruptcySummary) -> str:
    """Table 2 beside ours: mean accuracy in per cent (standard deviation over repeats)."""
    methods = (CIPHER, OURS, MWEM, CELLS, FDH)
    head = "| ε | " + " | ".join(f"{one.name}, m = {sets}" for sets in SETS for one in methods)
    lines = [head + " | printed: CIPHER | MWEM | FDH |", "|" + "---|" * (1 + 2 * len(methods) + 3)]
    for place, power in enumerate(POWERS):
        cards = [summary.cards[sets, power, one.name] for sets in SETS for one in methods]
        ours = " | ".join(f"{100 * card.accuracy:.1f} ({100 * card.accuracy_sd:.1f})" for card in cards)
        printed = " | ".join(f"{PRINTED[name][place]}" for name in ("CIPHER", "MWEM", "FDH"))
        lines.append(f"| {NAMES[power]} | {ours} | {printed} |")
    return "\n".join(lines) + "\n"


class _BankruptcyNumbers:
    """Short names for the numbers of a summary."""

    def __init__(self, summary: BankruptcySummary) -> None:
        self.summary = summary

    def accuracy(self, one: Contender, sets: int) -> list[float]:
        return [self.summary.cards[sets, power, one.name].accuracy for power in POWERS]

    def share(self, one: Contender, sets: int, *names: str) -> list[float]:
        return [
            sum(self.summary.cards[sets, power, one.name].shares[name] for name in names) for power in POWERS
        ]

    def rarely_bad(self) -> Claim:
        worst = {
            sets: max(max(self.share(one, sets, *BAD)) for one in (FDH, CIPHER, MWEM, CELLS)) for sets in SETS
        }
        ours = {sets: max(self.share(OURS, sets, *BAD)) for sets in SETS}
        return Claim(
            "bad estimates (Worst, II−, I−) have probability close to 0 for all methods",
            "figure 7",
            f"at most {worst[1]:.0%} (m = 1), {worst[5]:.0%} (m = 5)",
            judge(max(worst.values()) < 0.05),
            f"at most {ours[1]:.0%}, {ours[5]:.0%}",
        )

    def full_is_best(self) -> Claim:
        lines = {
            sets: {one: self.share(one, sets, "Best") for one in (FDH, CIPHER, MWEM, CELLS, OURS)}
            for sets in SETS
        }

        def leads(sets: int) -> bool:
            return all(
                lines[sets][FDH][p] >= max(lines[sets][one][p] for one in (CIPHER, MWEM, CELLS))
                for p in range(1, 5)
            )

        return Claim(
            "FDH lands in Best most often for ε ≥ e⁻¹",
            "figure 7",
            "; ".join(
                f"m = {sets}: FDH {percents(lines[sets][FDH])}, CIPHER {percents(lines[sets][CIPHER])}, MWEM {percents(lines[sets][MWEM])}"
                for sets in SETS
            ),
            judge(any(leads(sets) for sets in SETS)),
            "; ".join(f"m = {sets}: {percents(lines[sets][OURS])}" for sets in SETS),
            but=_where([sets for sets in SETS if leads(sets)]),
        )

    def mwem_best(self) -> Claim:
        lines = {sets: self.share(CELLS, sets, "Best") for sets in SETS}
        tables = {sets: self.share(MWEM, sets, "Best") for sets in SETS}
        holds = all(abs(line[0] - 0.5) < 0.15 and line[-1] - line[0] < 0.1 for line in lines.values())
        return Claim(
            "MWEM lands in Best about half the time and does not improve with ε",
            "figure 7",
            "; ".join(
                f"m = {sets}: cells {percents(lines[sets])}, tables {percents(tables[sets])}" for sets in SETS
            ),
            judge(holds),
            but="for single-cell queries",
        )

    def cipher_wins(self) -> Claim:
        def leads(one: Contender, sets: int) -> bool:
            rivals = (FDH, MWEM, CELLS)
            return all(
                self.accuracy(one, sets)[p] > max(self.accuracy(other, sets)[p] for other in rivals)
                for p in range(3)
            )

        return Claim(
            "CIPHER predicts best at ε ≤ 1, with roughly constant accuracy",
            "table 2",
            self._lines((CIPHER, FDH)) + "; printed: CIPHER 68 / 65 / 69, FDH 41 / 56 / 64",
            judge(any(leads(CIPHER, sets) for sets in SETS)),
            self._lines((OURS,)),
        )

    def _lines(self, methods: Sequence[Contender]) -> str:
        return "; ".join(
            f"m = {sets}: " + ", ".join(f"{one.name} {percents(self.accuracy(one, sets))}" for one in methods)
            for sets in SETS
        )

    def full_wins(self) -> Claim:
        holds = all(
            self.accuracy(FDH, sets)[p] > self.accuracy(CIPHER, sets)[p] for sets in SETS for p in (3, 4)
        )
        return Claim(
            "FDH predicts better than CIPHER at large ε (e, e²)",
            "table 2",
            "; ".join(
                f"m = {sets}: FDH {percents(self.accuracy(FDH, sets)[3:])}, CIPHER {percents(self.accuracy(CIPHER, sets)[3:])}"
                for sets in SETS
            ),
            judge(holds),
            "; ".join(f"m = {sets}: {percents(self.accuracy(OURS, sets)[3:])}" for sets in SETS),
        )

    def mwem_guesses(self) -> Claim:
        cells = [value for sets in SETS for value in self.accuracy(CELLS, sets)]
        return Claim(
            "MWEM stays near 50 % at every ε",
            "table 2",
            f"{self._lines((CELLS, MWEM))}; always saying the larger class: {self.summary.majority:.0%}; an SVM on the original rows: {self.summary.original:.0%}",
            judge(max(cells) < 0.65),
            but="for single-cell queries; below always saying the larger class",
        )

    def which_m(self) -> Claim:
        misfit = {
            sets: max(
                abs(100 * value - printed)
                for value, printed in zip(self.accuracy(FDH, sets), PRINTED["FDH"], strict=True)
            )
            for sets in SETS
        }
        return Claim(
            "the accuracies of table 2 themselves",
            "table 2",
            f"largest distance of our FDH from the printed one: {misfit[1]:.0f} points (m = 1), {misfit[5]:.0f} points (m = 5); m, the split, the SVM and the number of runs are not printed, nor any spread",
            UNDECIDABLE,
        )


def _where(sets: Sequence[int]) -> str:
    """For which numbers of sets something holds, where it is not all or none."""
    return f"for m = {sets[0]} only" if len(sets) == 1 else ""
