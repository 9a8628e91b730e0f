"""How the tables of a release were chosen, in words: from what the release itself states."""

from dpcipher.release.release import Release


def chosen(release: Release) -> str:
    """How many tables were chosen out of how many, and what the choice cost; empty where the tables were given."""
    note = release.statement.certificate.get("selection")
    if not note:
        return ""
    if not note["rounds"]:
        return "single columns alone; there was nothing else to choose, or the noise hid it"
    tables = sum(len(attrs) > 1 for attrs in release.workload)
    looked = note["shortlist"]
    shortlist = "" if looked == note["candidates"] else f" (after a shortlist of {looked:,})"
    return (
        f"{tables:,} of {note['candidates']:,} candidate tables{shortlist}; "
        f"{note['share']} of the budget went to the choice"
    )
