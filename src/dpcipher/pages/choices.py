"""What a part of the budget chose or found, in words: tables, bins and levels."""

from collections.abc import Mapping
from fractions import Fraction

from dpcipher.privacy.budget import percent
from dpcipher.release.release import Release
from dpcipher.release.shown import found_ranges
from dpcipher.release.statement import Statement


def choice(release: Release) -> str:
    """How many tables were chosen out of how many, and what the choice cost; empty where the tables were given."""
    selection = release.statement.certificate.get("selection")
    if not selection:
        return ""
    tables = sum(len(attrs) > 1 for attrs in release.workload)
    if not tables:
        return "single columns alone; there was nothing else to choose, or the noise hid it"
    candidates, listed = selection["candidates"], selection["shortlist"]
    if not selection["rounds"]:
        how = ", by their size and the noise alone"
    else:
        how = "" if listed == candidates else f" (after a shortlist of {listed:,})"
    return f"{tables:,} of {candidates:,} candidate tables{how}; {_percent(selection['share'])} of the budget went to the choice"


def found(release: Release) -> str:
    """How many bins and levels were found in which columns, and what the search cost; empty where all were declared."""
    certificate = release.statement.certificate
    bins = certificate.get("bins", {"share": "0", "found": {}})
    events = [event for event in certificate.get("events", ()) if event.get("type") == "levels"]
    parts = {
        "bins": (bins["found"], [bins["share"]]),
        "levels": (certificate.get("levels", {}), [event["share"] for event in events]),
    }
    return "; ".join(
        f"{what} of {_numbered(release, numbers)}, for {_percent(*shares)} of the budget"
        for what, (numbers, shares) in parts.items()
        if numbers
    )


def found_bins(release: Release) -> list[str]:
    """Whose bins are no public knowledge but a noisy answer, and out of which budget."""
    bins = release.statement.certificate.get("bins", {"found": {}})
    if not bins["found"]:
        return []
    return [
        f"Where bins begin and end was found privately in {_numbered(release, bins['found'])}: from noisy counts, for "
        f"{_percent(bins['share'])} of the same budget.",
        *(f"Between which ends: {text[0].lower()}{text[1:]}" for text in found_ranges(release)),
    ]


def found_levels(statement: Statement) -> list[str]:
    """Which texts were published because many people have them, and what keeps others from it."""
    return [
        f"The {event['what']} were found in the rows: a text was named only if its count, with noise, reached {event['threshold']:,}. One that a "
        f"single person has is named with a chance of at most {float(Fraction(event['delta'])):.1g}."
        for event in statement.certificate.get("events", ())
        if event.get("type") == "levels" and {"delta", "threshold"} <= set(event)
    ]


def _numbered(release: Release, numbers: Mapping[str, int]) -> str:
    """Columns of the release, each with a number."""
    return ", ".join(
        f"{name} ({number:,})" for name, number in numbers.items() if name in release.schema.names
    )


def _percent(*shares: str) -> str:
    """Shares of the budget together in percent; as they stand where they are no numbers to add up, as in a file that somebody forged.

    >>> _percent("1/20"), _percent("1/30", "1/30"), _percent("1/0")
    ('5 %', '6.67 %', '1/0')
    """
    try:
        return percent(sum(map(Fraction, shares)))
    except (ValueError, ArithmeticError):  # too long, above all floats, or nothing below the line
        return " + ".join(shares)
