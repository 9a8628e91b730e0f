"""`dpcipher schema`: the public facts about a table."""

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.schema_file import load_schema

if TYPE_CHECKING:
    from dpcipher.schema.codebooks.read import Form
    from dpcipher.schema.columns import Column

LONGEST_LABEL = 40
SCHEMAS = (".yaml", ".yml", ".json")


@click.group("schema")
def command() -> None:
    """Draft, import, check, sign, show and export the public schema.

    A schema says which columns a table has and which values they can take. It must be public knowledge: write it by hand, import it from a
    data dictionary, or draft it from the rows; what is imported or drafted has a person check and sign it.

    \b
    Example:
      dpcipher schema draft people.csv -o people.yaml
      dpcipher schema sign people.yaml --name "Ada Curator"
      dpcipher schema show people.yaml
    """


@command.command("draft", cls=options.Writer)
@click.argument("data")
@options.output("target", "The schema file to write (.yaml or .json).", endings=SCHEMAS)
@click.option(
    "--dictionary",
    type=options.FILE,
    help="A data dictionary: the columns that it describes are taken from there.",
)
@options.as_json
def draft(data: str, target: Path, dictionary: Path | None, force: bool, json_: bool) -> None:
    """Draft a schema from the private rows in DATA, marked as drawn from them.

    The draft is as private as the rows: it lists their values. `measure` refuses it until a person has replaced what is not public
    knowledge and signed it. Where a column seems to say whose row each is, the terminal alone is told about how many persons there are.

    \b
    Example:
      dpcipher schema draft people.csv -o people.yaml
    """
    from dpcipher.curator.check import describe_format
    from dpcipher.curator.draft import draft as draft_schema
    from dpcipher.schema.format import PLAIN

    drafted = draft_schema(data, dictionary=dictionary, tell=lambda words: click.echo(words, err=True))
    drafted.save(target, force=force)
    text = f"Wrote    {target}: a draft with {len(drafted.columns)} columns\n"
    if drafted.format != PLAIN:
        text += f"Read as  {describe_format(drafted.format.to_spec())}\n"
    left_out, notes = _left_out(drafted), drafted.provenance.notes
    text += "".join(f"{note}\n" for note in left_out)
    text += "Notes    in the file say what else to check\n" if len(notes) > len(left_out) else ""
    text += (
        f'Next     check every level and range in it, then: dpcipher schema sign {target} --name "Your Name"'
    )
    facts = {
        "schema": str(target),
        "columns": list(drafted.names),
        "notes": list(drafted.provenance.notes),
        "format": drafted.format.to_spec(),
        "signed": False,
    }
    output.show(text, facts, as_json=json_, stamp=drafted.stamp)


@command.command("import", cls=options.Writer)
@click.argument("dictionary", type=options.FILE)
@options.output("target", "The schema file to write (.yaml or .json).", endings=SCHEMAS)
@click.option(
    "--form",
    metavar="auto|frictionless|ddi|nist|sdv",
    default="auto",
    show_default=True,
    help="The format of the dictionary.",
)
@click.option("--table", metavar="NAME", help="Which table, where the dictionary has several.")
@click.option(
    "--open-ranges", is_flag=True, help="Take no minimum or maximum from it; measure finds them privately."
)
@options.as_json
def import_(
    dictionary: Path,
    target: Path,
    form: "Form",
    table: str | None,
    open_ranges: bool,
    force: bool,
    json_: bool,
) -> None:
    """Make a schema from the data dictionary in DICTIONARY: Frictionless, DDI Codebook, NIST or SDV.

    No rows are read. What the dictionary leaves open is written as `auto` or `discover`, which `measure` finds privately. A dictionary may have been computed
    from the rows, so a person must check and sign what it states; the notes in the schema say where each fact came from.

    \b
    Example:
      dpcipher schema import data_dictionary.json -o people.yaml
      dpcipher schema sign people.yaml --name "Ada Curator"
    """
    schema = dc.Schema.import_dictionary(dictionary, form=form, table=table, open_ranges=open_ranges)
    schema.save(target, force=force)
    lines = [
        f"Wrote    {target}: {len(schema.columns)} columns from {dictionary}",
        *_left_out(schema),
        _next(schema, target),
    ]
    facts = {
        "schema": str(target),
        "columns": list(schema.names),
        "notes": list(schema.provenance.notes),
        "format": schema.format.to_spec(),
        "needs_signature": schema.needs_signature,
    }
    output.show("\n".join(lines), facts, as_json=json_, stamp=schema.stamp)


def _left_out(schema: "dc.Schema") -> list[str]:
    """The notes about what is in the source and not in the schema."""
    return [note for note in schema.provenance.notes if note.startswith("left out")]


def _next(schema: "dc.Schema", target: Path) -> str:
    if not schema.needs_signature:
        return "Next     nothing in it could come from the rows: it is ready for a release"
    return f'Next     check that what it states is public, then: dpcipher schema sign {target} --name "Your Name"'


@command.command("export", cls=options.Writer)
@click.argument("file", metavar="SCHEMA", type=options.FILE)
@options.output(
    "target",
    "The file to write: a schema file (.yaml), or a Frictionless table schema (.json).",
    endings=SCHEMAS,
)
@options.as_json
def export(file: Path, target: Path, force: bool, json_: bool) -> None:
    """Write SCHEMA, a schema file or a release, as a schema file or as a Frictionless Table Schema.

    The schema of a release has the bins and levels that were found: written as .yaml, it is the schema to declare next year. Frictionless
    (.json) is for whoever gets the synthetic rows.

    \b
    Example:
      dpcipher schema export people.release.parquet -o people-found.yaml
      dpcipher schema export people.yaml -o people.schema.json
    """
    from dpcipher.files import write_text

    schema = load_schema(file)
    if target.suffix in (".yaml", ".yml"):
        schema.save(target, force=force)
        text = f"Wrote    {target}: a schema of {len(schema.columns)} columns"
        output.show(text, schema.to_dict(), as_json=json_, stamp=schema.stamp)
        return
    plain = schema.to_frictionless()
    mode = 0o600 if schema.stamp else 0o666
    write_text(target, json.dumps(plain, indent=2, ensure_ascii=False) + "\n", mode=mode, force=force)
    output.show(f"Wrote    {target}: a Frictionless table schema", plain, as_json=json_, stamp=schema.stamp)


@command.command("check")
@click.argument("file", metavar="SCHEMA", type=options.FILE)
@click.option("--data", metavar="DATA", help="Also compare with these private rows. CURATOR ONLY.")
@options.as_json
def check(file: Path, data: str | None, json_: bool) -> None:
    """Check that SCHEMA is sound and may be used for a release; with --data, that private rows fit it.

    Exit code 1 says that it may not be used or that rows would be refused, and why. With --data, every mismatch of every column is listed, with exact counts
    of private rows: CURATOR ONLY. Nothing is written. A schema that is changed after looking at that list was drawn from data, and needs a signature like a
    draft.

    \b
    Example:
      dpcipher schema check people.yaml
      dpcipher schema check people.yaml --data people.csv
    """
    schema = load_schema(file)
    if data is not None:
        _check_rows(schema, file, data, json_)
        return
    schema.require_signed()
    facts = {"schema": str(file), "columns": list(schema.names), "shape": list(schema.shape), "ready": True}
    output.show(f"{file}: sound, {len(schema.columns)} columns, ready for a release", facts, as_json=json_)


def _check_rows(schema: "dc.Schema", file: Path, data: str, json_: bool) -> None:
    from dpcipher.curator.check import check as check_rows

    found = check_rows(schema, data)
    output.show(str(found), {**found.to_dict(), "schema": str(file), "data": data}, as_json=json_)
    if not (found.fits and found.ready):
        raise click.exceptions.Exit(1)


@command.command("sign")
@click.argument("file", metavar="SCHEMA", type=options.FILE)
@click.option(
    "--name", metavar="NAME", required=True, help="Your name: you say that nothing in the schema is private."
)
@click.option(
    "--unchanged", is_flag=True, help="Sign a draft whose columns are as they were read off the rows."
)
@options.as_json
def sign(file: Path, name: str, unchanged: bool, json_: bool) -> None:
    """Sign SCHEMA: a person's word that every level and range in it is public knowledge.

    The signature holds your name, the date and a hash of the schema. Any later edit voids it. A draft whose columns nobody changed is asked about
    again; scripts say --unchanged. The notes of a draft are taken out.

    \b
    Example:
      dpcipher schema sign people.yaml --name "Ada Curator"
    """
    schema = dc.Schema.load(file)
    unchanged = unchanged or (schema.untouched and _meant())
    signed = schema.sign(name, datetime.date.today(), unchanged=unchanged)
    signed.save(file, force=True)
    facts = {"schema": str(file), "name": name, "fingerprint": signed.fingerprint(), "signed": signed.signed}
    output.show(f"{file}: signed by {name}; any edit from now on voids it", facts, as_json=json_)


def _meant() -> bool:
    """Whether somebody is there to ask, and says so."""
    question = "The columns are as they were drafted from the rows. Could every level and range have been written without looking at them?"
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        return False


@command.command("show")
@click.argument("file", metavar="SCHEMA", type=options.FILE)
@options.as_json
def show(file: Path, json_: bool) -> None:
    """Show the columns of SCHEMA, a schema file or a release: their kinds and levels.

    \b
    Example:
      dpcipher schema show people.yaml
      dpcipher schema show people.release.parquet
    """
    schema = load_schema(file)
    width = max(len(name) for name in schema.names)
    lines = [line for column in schema.columns for line in _column_lines(column, width)]
    lines += [f"Column {schema.person!r} of the table says whose row each is."] if schema.person else []
    output.show("\n".join([*lines, _state(schema)]), schema.to_dict(), as_json=json_, stamp=schema.stamp)


def _column_lines(column: "Column", width: int) -> list[str]:
    """A column with its levels, and under it what it is where the schema says so."""
    levels = (
        _open_levels(column) if column.is_open else f"{column.size:>5} levels  {_some(column.shown_labels)}"
    )
    first = f"{column.name:<{width}}  {column.kind:<11}  {levels}"
    said = column.heading.removeprefix(column.name).removeprefix(": ").strip()
    words = ": ".join(text for text in (said, column.description) if text)
    return [first, *([f"{'':<{width}}  {words}"] if words else [])]


def _open_levels(column: "Column") -> str:
    """What is still to be found, how much of it at most, and the levels that are there anyway."""
    from dpcipher.schema.open_bins import OpenBins
    from dpcipher.schema.open_levels import OpenLevels

    if isinstance(column, OpenBins):
        beside = column.shown_labels[column.ordered_levels :]
        text = f"bins: auto, at most {column.ordered_levels:,} from {column.min} to {column.max}"
        return text + (f", and {_some(beside)}" if beside else "")
    assert isinstance(column, OpenLevels)
    beside = tuple(label for label in column.shown_labels if label not in column.largest)
    return f"levels: discover, at most {column.most:,}, and {_some(beside)}"


def _some(labels: tuple[str, ...], most: int = 6) -> str:
    """The first levels, and the last one, of many."""
    some = labels if len(labels) <= most else (*labels[: most - 2], "…", labels[-1])
    # A level may hold the ends of lines, and spaces around it, which count.
    lines = (f'"{label}"' if label != label.strip() else " ".join(label.split()) for label in some)
    return ", ".join(label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL]}…" for label in lines)


def _state(schema: "dc.Schema") -> str:
    if not schema.needs_signature:
        return "Declared by hand; ready for a release."
    origin = "drawn from data" if schema.drawn_from_data else "imported from a dictionary"
    return (
        f"{origin.capitalize()} and signed."
        if schema.signed
        else f"{origin.upper()}, NOT SIGNED: a release refuses it."
    )
