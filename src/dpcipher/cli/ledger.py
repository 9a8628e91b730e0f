"""`dpcipher ledger`: the record of what was spent on one private table."""

from pathlib import Path
from typing import Any

import click

from dpcipher.cli import options, output
from dpcipher.privacy.ledger import Ledger


@click.group("ledger")
def command() -> None:
    """Create a ledger and show what was spent.

    A ledger is one file per private table. `measure` charges it before it draws noise, and refuses to exceed its limit.

    \b
    Example:
      dpcipher ledger create people.ledger --epsilon 3 --unit add-remove --max-rows 1 --name people
      dpcipher ledger show people.ledger
    """


@command.command("create")
@click.argument("path", type=options.FILE)
@options.budget
@click.option("--name", default="", help="What you call the private table; by default the file's name.")
@options.as_json
def create(path: Path, json_: bool, **limit: Any) -> None:
    """Create a ledger at PATH, with the most that may ever be spent on one private table.

    \b
    Example:
      dpcipher ledger create people.ledger --epsilon 3 --unit add-remove --max-rows 1 --name people
    """
    _show(Ledger.create(path, **limit), json_)


@command.command("show")
@click.argument("path", type=options.FILE)
@options.as_json
def show(path: Path, json_: bool) -> None:
    """Verify the ledger at PATH, and show its limit, what was spent and what is left.

    \b
    Example:
      dpcipher ledger show people.ledger
    """
    _show(Ledger.open(path), json_)


def _show(ledger: Ledger, json_: bool) -> None:
    said = ledger.statement()
    lines = [
        f"Ledger   {said.name} ({ledger.path})",
        f"Unit     {said.unit.describe()}",
        f"Limit    {said.limit.describe()}",
        f"Spent    {said.spent.describe()}",
        f"Left     {said.remaining.describe()}",
    ]
    for entry in said.entries:
        state = "released" if entry.checksum else "charged, release not recorded"
        lines.append(f"  {entry.time}  {entry.cost.describe()}  {state}")
    facts = {
        "name": said.name,
        "path": str(ledger.path),
        "unit": said.unit.as_dict(),
        "limit": said.limit.as_dict(),
        "spent": said.spent.as_dict(),
        "left": said.remaining.as_dict(),
        "entries": [
            {"id": e.id, "cost": e.cost.as_dict(), "what": e.what, "time": e.time, "checksum": e.checksum}
            for e in said.entries
        ],
    }
    output.show("\n".join(lines), facts, as_json=json_)
