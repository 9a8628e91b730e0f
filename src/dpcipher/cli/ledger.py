"""`dpcipher ledger`: the record of what was spent on one private table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpcipher as dc
from dpcipher.cli import options, output

if TYPE_CHECKING:
    from dpcipher.privacy.witness import Verdict


@click.group("ledger")
def command() -> None:
    """Create a ledger, show what was spent, and verify that it knows its releases.

    A ledger is one file per private table. `measure` charges it before it draws noise, and refuses to exceed its limit. The witness beside
    it (people.ledger.witness) notices a ledger that was cut, or replaced by an older copy: keep the two together.

    \b
    Example:
      dpcipher ledger create people.ledger --epsilon 3 --unit add-remove --max-rows 1 --name people
      dpcipher ledger show people.ledger
      dpcipher ledger verify people.ledger people.release.parquet
    """


@command.command("create")
@click.argument("path", type=options.FILE, metavar="LEDGER")
@options.budget
@click.option(
    "--name", metavar="NAME", default="", help="What you call the private table; by default the file's name."
)
@options.as_json
def create(path: Path, json_: bool, **limit: Any) -> None:
    """Create a ledger at LEDGER, with the most that may ever be spent on one private table.

    \b
    Example:
      dpcipher ledger create people.ledger --epsilon 3 --unit add-remove --max-rows 1 --name people
    """
    _show(dc.Ledger.create(path, **limit), json_)


@command.command("show")
@click.argument("path", type=options.FILE, metavar="LEDGER")
@options.as_json
def show(path: Path, json_: bool) -> None:
    """Verify the ledger at LEDGER, and show its limit, what was spent, how much is left, and how many more releases like the last one fit.

    \b
    Example:
      dpcipher ledger show people.ledger
    """
    _show(dc.Ledger.open(path), json_)


@command.command("verify")
@click.argument("path", type=options.FILE, metavar="LEDGER")
@click.argument("releases", type=options.FILE, nargs=-1, required=True, metavar="RELEASE...")
@options.as_json
@click.pass_context
def verify(ctx: click.Context, path: Path, releases: tuple[Path, ...], json_: bool) -> None:
    """Say of each RELEASE whether the LEDGER knows it.

    \b
    recorded        its charge is in the ledger, and so is its checksum
    ROLLED BACK     this ledger paid for it and does not know it: an older copy was put back
    ALTERED         its charge paid for a release with another checksum
    another ledger  it was charged elsewhere; no fault
    no ledger       unrecorded, or declared by its publisher; no fault

    The exit code is 1 if a release was rolled back or altered, or if the ledger is not what its witness saw.

    \b
    Example:
      dpcipher ledger verify people.ledger people.release.parquet
    """
    ledger = dc.Ledger(path)
    stated, objection = ledger.statement(witnessed=False), ledger.objection
    verdicts = [(file, _verdict(ledger, dc.Release.load(file))) for file in releases]
    sound = objection is None and not any(verdict.is_failure for _, verdict in verdicts)
    facts = {
        "ledger": {"id": stated.id, "name": stated.name, "path": str(path), "objection": objection},
        "releases": [
            {"release": str(file), "verdict": verdict.word, "meaning": verdict.meaning}
            for file, verdict in verdicts
        ],
        "sound": sound,
    }
    text = [f"Ledger   {stated.name} ({path})", *_table(verdicts)]
    if objection is not None:
        text += ["", f"Witness  {objection}"]
    output.show("\n".join(text), facts, as_json=json_)
    if not sound:
        ctx.exit(1)


def _verdict(ledger: "dc.Ledger", release: "dc.Release") -> "Verdict":
    return ledger.verify(release.statement.ledger, checksum=release.checksum)


def _table(verdicts: list[tuple[Path, "Verdict"]]) -> list[str]:
    """A line for each release, in columns."""
    width = max(len(str(file)) for file, _ in verdicts)
    return [f"  {file!s:<{width}}  {verdict.word:<14}  {verdict.meaning}" for file, verdict in verdicts]


def _show(ledger: "dc.Ledger", json_: bool) -> None:
    from dpcipher.privacy.shown import how_charges_add
    from dpcipher.privacy.witness import path_of

    stated = ledger.statement()
    lines = [
        f"Ledger   {stated.name} ({ledger.path})",
        f"Unit     {stated.unit.describe()}",
        f"Limit    {stated.limit.describe()}",
        f"Spent    {stated.spent.describe()}",
        f"Left     {stated.describe_left()}",
        *([f"Fits     {more}"] if (more := stated.describe_more()) else []),
        *([f"Sums     {sums}"] if (sums := how_charges_add(stated)) else []),
        f"Witness  {ledger.witness or f'none yet: the next charge writes {path_of(ledger.path)}'}",
    ]
    for entry in stated.entries:
        state = "released" if entry.checksum else "charged, release not recorded"
        words = [entry.time, entry.asked, f"{state} as {entry.file}" if entry.file else state, entry.label]
        lines.append(f"  {'  '.join(word for word in words if word)}")
    facts = {
        "id": stated.id,
        "name": stated.name,
        "path": str(ledger.path),
        "witness": None if ledger.witness is None else str(ledger.witness),
        "unit": stated.unit.as_dict(),
        "limit": stated.limit.as_dict(),
        "spent": stated.spent.as_dict(),
        "left": stated.remaining.as_dict(),
        "more_like_last": stated.more_like_last,
        "entries": [
            {
                "id": e.id,
                "cost": e.cost.as_dict(),
                "what": e.what,
                "time": e.time,
                "checksum": e.checksum,
                "file": e.file,
                "label": e.label,
            }
            for e in stated.entries
        ],
    }
    output.show("\n".join(lines), facts, as_json=json_)
