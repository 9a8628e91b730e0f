"""`dpcipher schema`: the public facts about a table."""

import datetime
from pathlib import Path

import click

from dpcipher.cli import options, output
from dpcipher.curator.draft import draft as draft_schema
from dpcipher.schema.column import Column
from dpcipher.schema.schema import Schema

LONGEST_LABEL = 40


@click.group("schema")
def command() -> None:
    """Draft, check, sign and show the public schema.

    A schema says which columns a table has and which values they can take. It must be public knowledge: write it by hand, or draft it
    from the rows and have a person check and sign it.

    \b
    Example:
      dpcipher schema draft people.csv -o people.yaml
      dpcipher schema sign people.yaml --name "Ada Curator"
      dpcipher schema show people.yaml
    """


@command.command("draft")
@click.argument("data")
@options.output("target", "The schema file to write (.yaml or .json).")
@options.as_json
def draft(data: str, target: Path, json_: bool) -> None:
    """Draft a schema from the private rows in DATA, marked as drawn from them.

    The draft is as private as the rows: it lists their values. `measure` refuses it until a person has replaced what is not public
    knowledge and signed it.

    \b
    Example:
      dpcipher schema draft people.csv -o people.yaml
    """
    drafted = draft_schema(data)
    drafted.save(target)
    text = f"Wrote    {target}: a draft with {len(drafted.columns)} columns. CURATOR ONLY: it shows private values.\n"
    text += (
        f'Next     check every level and range in it, then: dpcipher schema sign {target} --name "Your Name"'
    )
    output.show(text, {"schema": str(target), "columns": list(drafted.names), "signed": False}, as_json=json_)


@command.command("check")
@click.argument("file", type=options.FILE)
@options.as_json
def check(file: Path, json_: bool) -> None:
    """Check that the schema in FILE is sound and may be used for a release.

    Exit code 1 says that it may not, and why.

    \b
    Example:
      dpcipher schema check people.yaml
    """
    schema = Schema.load(file)
    schema.require_signed()
    facts = {"schema": str(file), "columns": list(schema.names), "shape": list(schema.shape), "ready": True}
    output.show(f"{file}: sound, {len(schema.columns)} columns, ready for a release", facts, as_json=json_)


@command.command("sign")
@click.argument("file", type=options.FILE)
@click.option("--name", required=True, help="Your name: you say that nothing in the schema is private.")
@options.as_json
def sign(file: Path, name: str, json_: bool) -> None:
    """Sign the schema in FILE: a person's word that every level and range in it is public knowledge.

    The signature holds your name, the date and a hash of the schema. Any later edit voids it.

    \b
    Example:
      dpcipher schema sign people.yaml --name "Ada Curator"
    """
    signed = Schema.load(file).sign(name, datetime.date.today())
    signed.save(file)
    facts = {"schema": str(file), "name": name, "fingerprint": signed.fingerprint(), "signed": signed.signed}
    output.show(f"{file}: signed by {name}; any edit from now on voids it", facts, as_json=json_)


@command.command("show")
@click.argument("file", type=options.FILE)
@options.as_json
def show(file: Path, json_: bool) -> None:
    """Show the columns of the schema in FILE, their kinds and levels.

    \b
    Example:
      dpcipher schema show people.yaml
    """
    schema = Schema.load(file)
    width = max(len(name) for name in schema.names)
    lines = [line for column in schema.columns for line in _column_lines(column, width)]
    lines += [f"{name:<{width}}  compound of {', '.join(parts)}" for name, parts in schema.compounds.items()]
    output.show("\n".join([*lines, _state(schema)]), schema.to_dict(), as_json=json_)


def _column_lines(column: Column, width: int) -> list[str]:
    """A column with its levels, and under it what it is where the schema says so."""
    first = (
        f"{column.name:<{width}}  {column.kind:<11}  {column.size:>5} levels  {_some(column.shown_labels)}"
    )
    said = column.heading.removeprefix(column.name).removeprefix(": ").strip()
    words = ": ".join(text for text in (said, column.description) if text)
    return [first, *([f"{'':<{width}}  {words}"] if words else [])]


def _some(labels: tuple[str, ...], most: int = 6) -> str:
    """The first levels, and the last one, of many."""
    some = labels if len(labels) <= most else (*labels[: most - 2], "…", labels[-1])
    return ", ".join(label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL]}…" for label in some)


def _state(schema: Schema) -> str:
    if not schema.drawn_from_data:
        return "Declared by hand; ready for a release."
    return (
        "Drawn from data and signed."
        if schema.signed
        else "DRAWN FROM DATA, NOT SIGNED: a release refuses it."
    )
