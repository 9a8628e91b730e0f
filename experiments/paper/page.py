"""The page of a reproduction: `page.md`, filled with the verdicts and the numbers of a run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpcipher.files import write_text
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy
from experiments.paper.blocks import NAMES, ORIGINAL, STAMP
from experiments.paper.judge import HOLDS, PARTS, Finding, Verdict, counts, in_words
from experiments.paper.population import COEFFICIENTS, SEED
from experiments.paper.quantities import PRINTED, Condition, cost
from experiments.paper.results import Scores
from experiments.paper.simulated import (
    CIPHER,
    FDH,
    MWEM,
    OURS,
    POPULATIONS,
    RIVAL_EVERY,
    RIVAL_NAMES,
    RIVALS,
    SIZES,
    after,
)
from experiments.paper.stacks import LITERAL, ROUNDS, SWEPT, read

LINK = "reproduction"
_EPSILONS = [f"ε = {name}" for name in NAMES.values()]


def write_page(
    folder: Path,
    judged: Mapping[str, Sequence[Verdict]],
    *,
    first: Scores | None,
    second: Scores | None,
) -> Path:
    """Write reproduction.md; the figures are in the folder `reproduction` beside it."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    verdicts = [verdict for part in judged.values() for verdict in part]
    readings = (first or second).readings if first or second else (LITERAL,)  # type: ignore[union-attr]
    text = environment.get_template("page.md").render(
        stamp=STAMP,
        storage="storage" in judged,
        first=first,
        second=second,
        n_sentences=len(verdicts),
        counts=_counted(verdicts),
        parts={PARTS[part]: verdict_table(here) for part, here in judged.items()},
        readings="; ".join(f"`{name}` ({SWEPT[name]})" for name in readings),
        seed=SEED,
        coefficients=COEFFICIENTS,
        populations=POPULATIONS,
        rival_every=RIVAL_EVERY,
        separated=_separated(first) if first else "",
        tables=first_tables(first) if first else [],
        svm=svm_table(second) if second else "",
        accuracy=_accuracies(second) if second else {},
    )
    return write_text(folder / "reproduction.md", re.sub(r"(\d)%", r"\1 %", text), force=True)


def _counted(verdicts: Sequence[Verdict]) -> str:
    results, arithmetic = counts(verdicts), counts(verdicts, arithmetic=True)
    rows = [(name, str(number), str(arithmetic[name])) for name, number in results.items()]
    return markdown_table(["verdict", "results", "arithmetic"], rows)


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with its heads.

    >>> print(markdown_table(["n", "error"], [["200", ".1"]]), end="")
    | n | error |
    |---|---|
    | 200 | .1 |
    """
    rows = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n" for cells in (heads, *lines)
    ]
    return rows[0] + "|" + "---|" * len(heads) + "\n" + "".join(rows[1:])


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """A sentence, its rule and what was found a row."""
    heads = ["the paper says", "rule", "literal reading", "verdict", "other readings", "our engine"]
    return markdown_table(heads, map(_row, verdicts))


def _row(verdict: Verdict) -> list[str]:
    claim = verdict.claim
    literal = {in_words(where): _told(finding) for where, finding in verdict.literal.items()}
    ours = {in_words(where): finding.outcome for where, finding in verdict.ours.items()}
    others = {}
    if len({where.reading for where in verdict.findings}) > 1:
        others = {in_words(where): _over_readings(verdict, where) for where in verdict.literal}
    says = f"{claim.says} *({claim.where})*"
    return [says, claim.words, _together(literal), f"**{verdict.kind}**", _together(others), _together(ours)]


def _told(finding: Finding) -> str:
    return f"{finding.outcome}: {finding.found}"


def _together(told: Mapping[str, str]) -> str:
    """What is told of every column, those that agree together."""
    columns: dict[str, list[str]] = {}
    for column, text in told.items():
        columns.setdefault(text, []).append(column)
    if len(columns) < 2:
        return next(iter(columns), "—")
    return "<br>".join(f"*{'; '.join(names)}* {text}" for text, names in columns.items())


def _over_readings(verdict: Verdict, literal: Condition) -> str:
    """In how many readings the sentence holds, and which differ from the literal one."""
    outcomes = verdict.column(literal.choices)
    flips = [f"`{reading}`" for reading, outcome in outcomes.items() if outcome != outcomes[literal.reading]]
    differing = f"other than literal: {', '.join(flips)}" if flips else "none differs"
    return f"holds in {list(outcomes.values()).count(HOLDS)} of {len(outcomes)}; {differing}"


def _separated(first: Scores) -> str:
    shares = first.means[CIPHER[2], "separated"][0, 0, :, 0]
    return ", ".join(f"{share:.0%} (ε = {name})" for name, share in zip(NAMES.values(), shares, strict=True))


def _accuracies(second: Scores) -> dict[str, float]:
    return {key: float(second.means[ORIGINAL, key][0].mean()) for key in ("accuracy", "majority")}


def first_tables(first: Scores) -> list[str]:
    """The long rows of numbers below the figures of the first experiment."""

    def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *last: str) -> str:
        return f"{caption}\n\n{markdown_table([*heads, *_EPSILONS, *last], rows)}"

    def tvd(name: str, n: int) -> list[str]:
        return ["/".join(map(_three, orders)) for orders in first.means[name, "tvd"][0, n]]

    def covered(name: str, n: int) -> list[str]:
        each = zip(first.means[name, "coverage"][0, n], first.means[name, "width"][0, n], strict=True)
        return [f"{np.nanmean(coverage):.0%} ({np.nanmean(width):.1f})" for coverage, width in each]

    def over_fdh(name: str) -> Floats:
        pairs = first.means[name, "tvd"][0, ..., 1] / first.means[FDH, "tvd"][0, ..., 1]
        return cost(name) * pairs

    def below(name: str) -> list[str]:
        ratios = cost(name) * first.random[name][..., 1] / first.random[FDH][..., 1]
        return [f"{np.sum(ratio < 1)} ({ratio.min():.2f}–{ratio.max():.2f})" for ratio in ratios.T]

    def rounds(name: str, order: int) -> list[str]:
        each = [first.means[after(name, t), "tvd"][0, 0, :, order - 1] for t in ROUNDS]
        tuned = first.means[name, "rounds"][0, 0, :, 0]
        return [
            f"{'/'.join(map(_three, row))} (T = {t:.0f})"
            for row, t in zip(np.array(each).T, tuned, strict=True)
        ]

    def milliseconds(name: str, n: int) -> str:
        return f"{1000 * first.means[name, 'seconds'][0, n].mean():.1f}"

    sizes = list(enumerate(map(str, SIZES)))
    forms = [name for orders in MWEM.values() for name in orders.values()]
    of_pairs = [read(CIPHER[2], reading) for reading in first.readings] + [OURS[2]]
    mwem_pairs = [orders[2] for orders in MWEM.values()]
    return [
        table(
            "Un-normalised mean TVD of 1/2/3-way tables (synthetic rows against original rows), m = 5:",
            ["n", "method"],
            (
                [n, name, *tvd(name, k)]
                for k, n in sizes
                for name in (FDH, *CIPHER.values(), *OURS.values(), *forms)
            ),
        ),
        table(
            "Coverage of 95 % intervals, mean over the ten parameters (mean width), tables of pairs, m = 5 sets of ε/5 each:",
            ["n", "method"],
            (
                [n, name, *covered(name, k)]
                for k, n in sizes
                for name in (FDH, *of_pairs, *mwem_pairs, ORIGINAL)
            ),
        ),
        table(
            "TVD × cost of pairs over FDH's by reading, n = 200 and 500:",
            ["CIPHER", "reading"],
            (
                [
                    f"{k}-way",
                    reading,
                    *(f"{a:.2f} and {b:.2f}" for a, b in over_fdh(read(CIPHER[k], reading)).T),
                ]
                for k in (2, 3)
                for reading in first.readings
            ),
        ),
        table(
            f"In how many of {len(first.random[FDH])} random sets of coefficients TVD × cost of pairs is below FDH's (range of the ratio), n = 200:",
            ["method"],
            ([name, *below(name)] for name in of_pairs),
        ),
        table(
            f"TVD of MWEM's own tables after T = {', '.join(map(str, ROUNDS))} rounds, n = 200 (and the T that was tuned):",
            ["method"],
            ([MWEM[form][k], *rounds(MWEM[form][k], k)] for form in MWEM for k in (2, 3)),
        ),
        table(
            "Methods that the paper names for future work or cites, un-normalised TVD as above, m = 5 fits with ε/5 each:",
            ["n", "method"],
            ([n, name, *tvd(name, k), milliseconds(name, k)] for k, n in sizes for name in RIVALS),
            "ms a fit",
        ),
    ]


def _three(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def svm_table(second: Scores) -> str:
    """Table 2 beside ours: mean accuracy in per cent (standard deviation over repeats)."""
    readings = [read(bankruptcy.CIPHER, reading) for reading in second.readings]
    names = [*readings, bankruptcy.OURS, *bankruptcy.MWEM.values(), FDH, *RIVAL_NAMES]
    rows = [[f"{name}, printed", "?", *map(str, values)] for name, values in PRINTED.items()]
    for place, sets in enumerate(bankruptcy.SETS):
        for name in names:
            where = (place, slice(None), 0)
            means, spread = second.means[name, "accuracy"][0][where], second.spread[name, "accuracy"][where]
            cells = [f"{100 * m:.1f} ({100 * s:.1f})" for m, s in zip(means, spread, strict=True)]
            rows.append([name, str(sets), *cells])
    return markdown_table(["method", "m", *_EPSILONS], rows)
