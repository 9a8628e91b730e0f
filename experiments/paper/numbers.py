"""The long rows of numbers below the figures, as tables in Markdown."""

import numpy as np

from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, models
from experiments.paper.claims import markdown_table
from experiments.paper.contenders import CIPHER, CONTENDERS, FDH, MWEM, OURS, ROUNDS, Contender
from experiments.paper.figures import RIVAL_NAMES
from experiments.paper.rivals import TIMED
from experiments.paper.simulated import NAMES, POWERS, SIZES
from experiments.paper.summary import PRINTED, BankruptcySummary, Inference, SimulatedSummary
from experiments.paper.view import cost

_EPSILONS = [f"ε = {NAMES[power]}" for power in POWERS]


def _three(values: Floats) -> str:
    return "/".join(f"{value:.3f}".lstrip("0") for value in values)


def _tvd(summary: SimulatedSummary, n: int, name: str) -> list[str]:
    return [_three(summary.cards[n, power, name].means["tvd"][0]) for power in POWERS]


def tvd_table(first: SimulatedSummary) -> str:
    """The mean TVD of 1-, 2- and 3-way tables, un-normalised."""
    lines = [[str(n), method.name, *_tvd(first, n, method.name)] for n in SIZES for method in CONTENDERS]
    caption = "Un-normalised mean TVD of 1/2/3-way tables (synthetic rows against original rows), m = 5:"
    return f"{caption}\n\n{markdown_table(['n', 'method', *_EPSILONS], lines)}"


def coverage_table(first: SimulatedSummary) -> str:
    """The mean coverage and width of the 95 % intervals of the ten parameters, by method."""
    methods = [FDH, *(CIPHER[2].read(reading) for reading in first.readings), OURS[2], *_of_pairs()]
    lines = []
    for n in SIZES:
        for method in methods:
            found = [first.cards[n, power, method.name].inference[0] for power in POWERS]
            lines.append([str(n), method.name, *map(_covered, found)])
        lines.append([str(n), models.NAME, *(_covered(first.models[n, power][0]) for power in POWERS)])
        lines.append([str(n), "original rows", *[_covered(first.originals[n][0])] * len(POWERS)])
    caption = (
        "Coverage of 95 % intervals, mean over the ten parameters (mean width), tables of pairs; methods with m = 5 sets of ε/5 each, "
        f"and models of one release at ε (on every {models.EVERY}th repeat):"
    )
    return f"{caption}\n\n{markdown_table(['n', 'method', *_EPSILONS], lines)}"


def _of_pairs() -> list[Contender]:
    return [forms[2] for forms in MWEM.values()]


def _covered(inference: Inference) -> str:
    return f"{np.nanmean(inference.coverage[0]):.0%} ({np.nanmean(inference.width[0]):.1f})"


def reading_table(first: SimulatedSummary) -> str:
    """The normalised TVD of pairs under every reading over FDH's."""
    lines = []
    for order in (2, 3):
        for reading in first.readings:
            method, cells = CIPHER[order].read(reading), []
            for power in POWERS:
                ratios = [
                    cost(method)
                    * first.cards[n, power, method.name].means["tvd"][0, 1]
                    / first.cards[n, power, FDH.name].means["tvd"][0, 1]
                    for n in SIZES
                ]
                cells.append(" and ".join(f"{ratio:.2f}" for ratio in ratios))
            lines.append([f"{order}-way", reading, *cells])
    caption = "Normalised TVD of pairs over FDH's by reading, n = 200 and 500:"
    return f"{caption}\n\n{markdown_table(['CIPHER', 'reading', *_EPSILONS], lines)}"


def random_table(first: SimulatedSummary) -> str:
    """In how many random populations the normalised TVD of pairs is below FDH's."""
    lines = []
    for method in [*(CIPHER[2].read(reading) for reading in first.readings), OURS[2]]:
        cells = []
        for power in POWERS:
            ratio = (
                cost(method) * first.random[power, method.name][:, 1] / first.random[power, FDH.name][:, 1]
            )
            cells.append(f"{np.sum(ratio < 1)} ({ratio.min():.2f}–{ratio.max():.2f})")
        lines.append([method.name, *cells])
    many = len(first.random[POWERS[0], FDH.name])
    caption = f"In how many of {many} random sets of coefficients the normalised TVD of pairs is below FDH's (range of the ratio), n = 200:"
    return f"{caption}\n\n{markdown_table(['method', *_EPSILONS], lines)}"


def rounds_table(first: SimulatedSummary) -> str:
    """The TVD of MWEM's own tables with every T, and the T that was tuned."""
    lines = []
    for form in MWEM:
        for order in (2, 3):
            method = MWEM[form][order]
            cells = []
            for power in POWERS:
                means = first.cards[SIZES[0], power, method.name].means
                after = [means[f"tvd after {rounds} rounds"][0, order - 1] for rounds in ROUNDS]
                cells.append(
                    f"{'/'.join(f'{v:.3f}'.lstrip('0') for v in after)} (T = {means['rounds'][0, 0]:.0f})"
                )
            lines.append([method.name, *cells])
    caption = f"TVD of MWEM's own tables after T = {', '.join(map(str, ROUNDS))} rounds, n = 200 (and the T that was tuned):"
    return f"{caption}\n\n{markdown_table(['method', *_EPSILONS], lines)}"


def rival_table(first: SimulatedSummary) -> str:
    """The methods of other papers: TVD as above, and the processor time of a fit."""
    lines = []
    for n in SIZES:
        for name in (*RIVAL_NAMES, TIMED.name):
            seconds = np.mean([first.cards[n, power, name].means["seconds"][0, 0] for power in POWERS])
            lines.append([str(n), name, *_tvd(first, n, name), f"{1000 * seconds:.1f}"])
    caption = "Methods that the paper names for future work or cites, un-normalised TVD as above, m = 5 fits with ε/5 each:"
    return f"{caption}\n\n{markdown_table(['n', 'method', *_EPSILONS, 'ms a fit'], lines)}"


def svm_table(summary: BankruptcySummary) -> str:
    """Table 2 beside ours: mean accuracy in per cent (standard deviation over repeats)."""
    names = [
        *(bankruptcy.CIPHER.read(reading).name for reading in summary.readings),
        bankruptcy.OURS.name,
        *(method.name for method in bankruptcy.MWEM.values()),
        bankruptcy.FDH.name,
        *RIVAL_NAMES,
    ]
    lines = [[f"{name}, printed", "?", *(f"{value}" for value in values)] for name, values in PRINTED.items()]
    for sets in bankruptcy.SETS:
        for name in names:
            cards = [summary.cards[sets, power, name] for power in POWERS]
            cells = [
                f"{100 * card.means['accuracy'][0]:.1f} ({100 * card.spread['accuracy'][0]:.1f})"
                for card in cards
            ]
            lines.append([name, str(sets), *cells])
    return markdown_table(["method", "m", *_EPSILONS], lines)
