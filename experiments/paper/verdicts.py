"""Every sentence of the paper that states a result, judged; and the table that a person reads."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.paper.claims import (
    CONDITIONAL,
    CONFIRMED,
    HOLDS,
    OPEN,
    REFUTED,
    UNDECIDABLE,
    Claim,
    Condition,
    Finding,
    Verdict,
    judge,
    markdown_table,
)
from experiments.paper.claims_bankruptcy import BANKRUPTCY_CLAIMS
from experiments.paper.claims_inference import INFERENCE_CLAIMS
from experiments.paper.claims_methods import METHOD_CLAIMS
from experiments.paper.claims_mwem import MWEM_CLAIMS
from experiments.paper.claims_significance import SIGNIFICANCE_CLAIMS
from experiments.paper.claims_tables import TABLE_CLAIMS
from experiments.paper.readings import LITERAL
from experiments.paper.sparks import draw_spark
from experiments.paper.storage import STORAGE_CLAIMS
from experiments.paper.summary import BankruptcySummary, SimulatedSummary
from experiments.paper.view import View

STORAGE, TABLES, MODELS, METHODS, BANKRUPTCY = (
    "Storage",
    "Tables of the simulated data (figures 2 and 3)",
    "Regressions on the simulated data (figures 4, 5 and 6)",
    "The methods themselves",
    "The bankruptcy data (figure 7 and table 2)",
)
CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    STORAGE: STORAGE_CLAIMS,
    TABLES: TABLE_CLAIMS,
    MODELS: (*INFERENCE_CLAIMS, *SIGNIFICANCE_CLAIMS),
    METHODS: (*METHOD_CLAIMS, *MWEM_CLAIMS),
    BANKRUPTCY: BANKRUPTCY_CLAIMS,
}

Judged = Mapping[str, tuple[Verdict, ...]]


def judge_all(
    *, storage: bool, first: SimulatedSummary | None, second: BankruptcySummary | None
) -> dict[str, tuple[Verdict, ...]]:
    """The verdicts by part of the paper, of what was run."""
    run = {STORAGE: storage, BANKRUPTCY: second is not None}
    judged = {}
    for title, claims in CLAIMS.items():
        if run.get(title, first is not None):
            summary = second if title == BANKRUPTCY else first
            readings = summary.readings if summary else (LITERAL,)
            judged[title] = tuple(
                judge(claim, lambda where: View(where, first, second), readings) for claim in claims
            )
    return judged


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many sentences are confirmed whatever is left open, under some conditions, and under none."""
    count = Counter(_class(verdict) for verdict in verdicts)
    return {name: count[name] for name in _CLASSES}


LITERALLY, PARTLY, ELSEWHERE = (
    "confirmed literally, not under every reading",
    "confirmed under some choices only",
    "confirmed only under other readings",
)
_CLASSES = (CONFIRMED, LITERALLY, PARTLY, ELSEWHERE, REFUTED, OPEN, UNDECIDABLE)


def _class(verdict: Verdict) -> str:
    if verdict.status != CONDITIONAL:
        return verdict.status
    literal = {finding.outcome for finding in verdict.literal.values()}
    if literal == {HOLDS}:
        return LITERALLY
    return PARTLY if HOLDS in literal else ELSEWHERE


def verdict_table(verdicts: Sequence[Verdict], folder: Path, link: str) -> str:
    """One sentence, its number pair and a small plot a row; the plots go to `folder`, which the page calls `link`."""
    heads = [
        "the paper says",
        "literal reading: found; needed",
        "verdict",
        "other readings",
        "our engine",
        "by ε",
    ]
    return markdown_table(heads, [_row(verdict, folder, link) for verdict in verdicts])


def _row(verdict: Verdict, folder: Path, link: str) -> list[str]:
    spark = draw_spark(verdict, folder)
    plot = f"![{verdict.claim.key}]({link}/{spark})" if spark else "—"
    says = f"{verdict.claim.says} *({verdict.claim.where})*"
    return [
        says,
        _columns(verdict.literal),
        f"**{_class(verdict)}**",
        _others(verdict),
        _short(verdict.ours),
        plot,
    ]


def _columns(findings: Mapping[Condition, Finding]) -> str:
    """The findings of every column, those that agree together."""
    together: dict[tuple[str, str], list[str]] = {}
    for where, finding in findings.items():
        together.setdefault((finding.outcome, finding.found), []).append(where.column)
    if len(together) == 1:
        ((outcome, found),) = together
        return f"{outcome}: {found}"
    return "<br>".join(
        f"*{'; '.join(columns)}* {outcome}: {found}" for (outcome, found), columns in together.items()
    )


def _short(findings: Mapping[Condition, Finding]) -> str:
    """The outcomes alone, with their columns where they differ."""
    if not findings:
        return "—"
    outcomes = {finding.outcome for finding in findings.values()}
    if len(outcomes) == 1:
        return outcomes.pop()
    return "<br>".join(f"*{where.column}* {finding.outcome}" for where, finding in findings.items())


def _others(verdict: Verdict) -> str:
    """In how many readings the sentence holds, and which differ from the literal one; column by column where that differs."""
    if len(verdict.readings) < 2:
        return "—"
    told = {where.column: _over_readings(verdict, where) for where in verdict.literal}
    if len(set(told.values())) == 1:
        return next(iter(told.values()))
    return "<br>".join(f"*{column}* {text}" for column, text in told.items())


def _over_readings(verdict: Verdict, literal: Condition) -> str:
    """The readings of one column."""
    outcomes = {
        where.reading: finding.outcome
        for where, finding in verdict.findings.items()
        if where.choices == literal.choices
    }
    flips = [reading for reading, outcome in outcomes.items() if outcome != outcomes[literal.reading]]
    holding = sum(outcome == HOLDS for outcome in outcomes.values())
    named = ", ".join(f"`{reading}`" for reading in flips)
    differing = f"other than literal: {named}" if flips else "none differs"
    return f"holds in {holding} of {len(outcomes)}; {differing}"


def rule_table(verdicts: Sequence[Verdict]) -> str:
    """The rule of every sentence, and what it was judged under."""
    lines = [
        (verdict.claim.key, verdict.claim.rule, ", ".join(verdict.claim.over) or "—") for verdict in verdicts
    ]
    return markdown_table(["sentence", "rule", "judged under every"], lines)
