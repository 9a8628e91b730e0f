"""A release in words, from what it states itself: plain ones for readers who have never heard of differential privacy, and a certificate for specialists."""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from dpcipher.drawing.card import counted
from dpcipher.drawing.html import facts, folded, paragraphs, rows, table
from dpcipher.pages.choices import choice, found, found_bins, found_levels
from dpcipher.privacy.budget import Budget
from dpcipher.release.release import Release
from dpcipher.release.signature import Verification
from dpcipher.release.statement import Statement
from dpcipher.schema.grouped import said, table_of
from dpcipher.tables.query import Query

# The delta at which a zero-concentrated budget is described as (epsilon, delta) in words; it changes nothing that was spent.
SPOKEN_DELTA = Fraction(1, 10**6)
MOST_TABLES = 500
NOT_STATED = "not stated by the publisher"


def lead(release: Release, n_synthetic: int) -> str:
    """The first sentence of a page: what was released, and under which budget."""
    budget = budget_symbols(release.statement)
    under = "" if budget == NOT_STATED else f" under a privacy budget of {budget}"
    number = "one table" if len(release.workload) == 1 else f"{len(release.workload):,} tables"
    return (
        f"{number.capitalize()} of noisy counts of {len(release.schema.attrs):,} columns, released{under}, and {n_synthetic:,} synthetic rows made from them: "
        "what was released, and how far to trust it."
    )


def budget_symbols(statement: Statement) -> str:
    """The budget as short as a formula."""
    if not statement.budget:
        return NOT_STATED
    budget = Budget.from_dict(dict(statement.budget))
    values = {"ε": budget.epsilon, "ρ": budget.rho, "δ": budget.delta}
    return ", ".join(
        f"{name}\u00a0=\u00a0{float(value):.4g}" for name, value in values.items() if value is not None
    )


def summary(release: Release, n_synthetic: int) -> list[str]:
    """What was measured, and what the synthetic rows were made from."""
    schema, tables = release.schema, len(release.workload)
    total, variance = release.reconciled.total, release.reconciled.total_variance
    size = (
        f"exactly {rows(total)} rows, a number that is public"
        if variance == 0
        else f"about {rows(total)} rows (give or take {rows(2 * math.sqrt(variance))})"
    )
    number, sets = ("one table" if tables == 1 else f"{tables} tables"), release.sets
    limited = release.statement.counted.removeprefix("of ")
    counting = f", counting {limited}," if limited else ""
    copies = "" if sets == 1 else f" Each was measured {sets} times, with fresh noise every time."
    return [
        f"A private table has {size}{counting} and {len(schema.attrs)} columns. Nobody outside may see its rows. Instead, "
        f"{number} of counts were taken from it, and random noise was added to every count before anybody saw it.{copies}",
        f"The {n_synthetic:,} synthetic rows that go with this page were made from those noisy counts alone. No synthetic row is "
        "a person: rows are drawn from a distribution that fits the counts.",
    ]


def protection(release: Release) -> list[str]:
    """Who is protected, and how strongly."""
    statement = release.statement
    if statement.guarantee is None or not statement.unit:
        return [
            "The publisher of these tables declared how much noise they carry, but not under which promise it was drawn. "
            "What the noise protects, and whom, is not known here and not certified."
        ]
    presence = statement.unit["relation"] == "add-remove" and not statement.tells_presence
    return [
        statement.protection,
        _strength(
            statement.guarantee, without="without those rows" if presence else "with other values in them"
        ),
        *found_bins(release),
        *found_levels(statement),
    ]


def _strength(budget: Budget, *, without: str) -> str:
    """The budget, and by how much one person can change what is seen."""
    if budget.rho is None:
        epsilon, delta = budget.epsilon_at(budget.delta or Fraction(0)), budget.delta
    else:
        delta = max(SPOKEN_DELTA, 2 * budget.failure)
        epsilon = budget.epsilon_at(delta)
    factor = math.exp(min(float(epsilon), 700.0))
    exception = "" if delta is None else f", except with a chance of at most {float(delta):.1g}"
    return (
        f"The budget is {budget.describe()}. In words: whatever is seen in this release is at most {factor:,.3g} times as likely, or as "
        f"unlikely, as it would have been {without}{exception}. What holds of many people can be learnt from it all the same, and may be held against one of them."
    )


def noise(release: Release) -> list[str]:
    """How large the noise is, and the typical margin of tables of one, two, … columns."""
    margins = [f"in {_tables(order)} ±{rows(margin)} rows" for order, margin in _margins(release).items()]
    return [
        f"Every count carries {noise_range(release)}. Tables overlap, so the same number was often measured more than once; the "
        f"estimates on this page combine all of them (generalised least squares). Their margins, marked ±, hold the true count{of_rows(release)} in "
        f"about 19 cases out of 20. {release.statement.scope}".rstrip(),
        f"Typical margins of one count: {'; '.join(margins)}.",
        *(
            [
                f"Levels are in groups in {counted(in_groups, 'table')}, which narrows the margins of sums over many levels."
            ]
            if (in_groups := len({one.query for one in release.measurements if one.query.groups}))
            else []
        ),
    ]


def of_rows(release: Release) -> str:
    """Of which rows the counts are, after a word; nothing where none was left out."""
    return f" {release.statement.counted}" if release.statement.counted else ""


def noise_range(release: Release) -> str:
    """The noise of all tables in a phrase: its kind, and its standard deviation in rows from the least to the most."""
    tables = [one for one in release.measurements if one.query.axes]
    noisy = [one for one in tables if not one.exact]
    if not noisy:
        return "no noise"
    kinds, same = sorted({one.noise.kind.capitalize() for one in noisy}), {one.noise for one in noisy}
    spreads = [math.sqrt(one.in_rows()[1]) for one in noisy]
    exact = len(tables) - len(noisy)
    but = f" ({exact:,} of {len(tables):,} tables are exact)" if exact else ""
    least, most = (rows(end) for end in (min(spreads), max(spreads)))
    if len(same) == 1 and not release.centred:
        return f"{same.pop().describe()} (a standard deviation of {least} rows){but}"
    return f"discrete {' or '.join(kinds)} noise with standard deviations from {least} to {most} rows, by table{but}"


def _tables(order: int) -> str:
    return "single columns" if order == 1 else f"tables of {order} columns"


def _margins(release: Release, most: int = 200) -> dict[int, float]:
    """The median 95 % margin by order: of up to `most` single columns, and of up to `most` larger measured tables."""
    single = [(attr,) for attr in release.schema.attrs]
    larger = [attrs for attrs in release.workload if len(attrs) > 1]
    margins: dict[int, list[float]] = {}
    for attrs in [*single[:most], *larger[:most]]:
        margins.setdefault(len(attrs), []).append(
            1.96 * float(np.median(np.asarray(release.std_error(attrs), dtype=float)))
        )
    return {order: float(np.median(margins[order])) for order in sorted(margins)}


def conclusions(release: Release) -> tuple[list[str], list[str]]:
    """What the noise allows to conclude, and what it does not."""
    margins = _margins(release)
    widest = max(margins)
    single, wide, tables = margins[1], margins[widest], _tables(widest)
    may = [
        f"Read any count on this page as an estimate with its margin. In single columns, counts above about {rows(single)} are "
        "clearly more than zero.",
        f"Compare two levels of a column when their counts differ by more than about {rows(1.5 * single)}.",
        f"Use measured {tables}: a cell above about {rows(wide)} is real, as is a difference between two cells above "
        f"{rows(1.5 * wide)}.",
        "Use the synthetic rows to write and test programs, to explore, and to teach.",
    ]
    may_not = [
        "Say anything about a particular person, or that a synthetic row stands for one.",
        f"Trust small groups: in {tables}, a count below about {rows(wide)} may well be nothing but noise.",
        "Read exact structure into columns that were never measured together: there the synthetic rows show what a model makes of "
        "the measured tables, and no margin covers the model's error.",
        "Report a p-value or a confidence interval computed from one synthetic file as if its rows were data: it leaves out the noise. "
        "Use the margins of the release, or several independently made sets and the rule for combining them.",
    ]
    return may, may_not


def certificate(release: Release, verification: Verification | None = None) -> str:
    """Facts for specialists, on whose word they are, and the list of measured tables."""
    statement, known = release.statement, verification or Verification(release)
    stated = {
        "Status": f"{known.status}: {known.meaning}",
        "On whose word": evidence(known),
        "Protected unit": _unit(statement),
        "Budget": budget_text(statement),
        "Noise": noise_range(release),
        "Privacy loss, by the sampler's own privacy map": _loss(statement.certificate),
        **({"Found privately": search} if (search := found(release)) else {}),
        **({"Choice of tables": chosen} if (chosen := choice(release)) else {}),
        **({"Counts": release.statement.counted} if release.statement.counted else {}),
        "Sets": f"{release.sets} independent sanitization(s) of the same tables",
        "Rows": f"public{', as the curator declared' if statement.tells_presence else ''}"
        if statement.n_rows is not None
        else "private; the number on this page is estimated from the noisy tables",
        "Ledger": _plain(statement.ledger) or "none",
        "Software": _plain(statement.software) or "not stated",
        "Created": statement.created or "not stated",
        "Checksum of the release (SHA-256)": release.checksum,
        "Fingerprint of the schema (SHA-256)": release.schema.fingerprint(),
    }
    check = (
        "To check that a release file is the one described here, load it and compare its checksum: "
        "dpcipher.Release.load(path).checksum. To check who answers for it, compare it with the publisher's public key: "
        "dpcipher release verify."
    )
    return (
        facts(stated)
        + paragraphs([check])
        + folded(f"All {len(release.workload):,} measured tables", _measured(release))
    )


def evidence(verification: Verification) -> str:
    """What confirms the facts of a release, or that nothing does."""
    if not verification.checks:
        return "the file's own; no signature and no ledger was checked here"
    # What failed is said in its word alone: its sentence is for whoever asked, and may name folders.
    said = "; ".join(
        f"{check.by}: {check.word}{f', {check.meaning}' if check.passed else ''}"
        for check in verification.checks
    )
    return said if verification.confirmed else f"the file's own ({said})"


def _measured(release: Release) -> str:
    noise: dict[Query, list[str]] = {}
    for one in release.measurements:
        if one.set == 0 and one.query.axes and isinstance(one.query, Query):
            noise.setdefault(one.query.plain(), []).append(f"{math.sqrt(one.in_rows()[1]):,.4g}")
    shape = release.schema.shape
    lines = [
        (
            said(table_of(release.schema, query)),
            f"{math.prod(query.shape(shape)):,}",
            ", again ".join(spreads),
        )
        for query, spreads in islice(noise.items(), MOST_TABLES)
    ]
    return table(["table", "cells", "standard deviation of the noise"], lines)


def _unit(statement: Statement) -> str:
    if not statement.unit:
        return NOT_STATED
    relation, max_rows = statement.unit["relation"], statement.unit["max_rows"]
    return f"{relation}, at most {max_rows} row(s) per person. {statement.protection}"


def budget_text(statement: Statement) -> str:
    """The budget in words; a publisher's tables come without one."""
    return Budget.from_dict(dict(statement.budget)).describe() if statement.budget else NOT_STATED


def _loss(certificate: Mapping[str, Any]) -> str:
    if not certificate:
        return "none"
    failing = f", delta = {float(Fraction(certificate['delta'])):.6g}" if "delta" in certificate else ""
    return f"{certificate['measure']} = {certificate['total']:.6g}{failing} in all; {certificate['by']}"


def _plain(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
