"""`dpcipher measure`: the only command that reads private rows in order to publish something about them."""

import json
from pathlib import Path
from typing import Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.schema_file import load_schema
from dpcipher.files import PaidFor


@click.command("measure", cls=options.Writer)
@click.argument("data")
@click.argument("schema", type=options.FILE)
@options.output("path", "The release file to write (.parquet).", endings=(".parquet",))
@click.option(
    "--ledger",
    type=options.FILE,
    required=True,
    help="The ledger to charge. It must exist: see `ledger create`, or --create.",
)
@click.option(
    "--create",
    is_flag=True,
    help="Create the ledger, limited to this release; it must not exist yet.",
)
@options.budget
@options.workload
@options.choice
@click.option(
    "--weights",
    type=options.FILE,
    help="Split the budget by the weights in this file, written by `plan --json`.",
)
@click.option(
    "--person", metavar="COLUMN", help="The column that says whose row it is; --max-rows is then enforced."
)
@click.option(
    "--missing-person",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What becomes of rows that name nobody in --person.",
)
@click.option(
    "--n-rows-public",
    is_flag=True,
    help="Declare that the number of rows is public knowledge; presence is then not protected under add-remove.",
)
@click.option(
    "--name",
    metavar="NAME",
    default="",
    help="What you call the private table, in a ledger that --create makes.",
)
@click.option("--label", metavar="WORDS", default="", help="What you call this release, in the ledger.")
@options.as_json
def command(
    data: str,
    schema: Path,
    path: Path,
    tables: tuple[tuple[str, ...], ...],
    workload: int | str,
    weights: Path | None,
    force: bool,
    json_: bool,
    **request: Any,
) -> None:
    """Measure noisy tables of the private rows in DATA, under SCHEMA.

    DATA is a CSV or Parquet file, a folder of them, a quoted glob, or a table as in file.db::table. SCHEMA is a schema file, or an earlier release, whose schema is taken. The budget is charged to the ledger, durably, before any noise is
    drawn; there are no refunds. A refusal before that spends nothing. A ledger that does not exist is refused, so that a misspelt path opens no
    fresh budget. With --workload auto, part of the budget chooses the tables.

    \b
    Example:
      dpcipher measure people.csv people.yaml --epsilon 1 --unit add-remove --max-rows 1 \\
        --ledger people.ledger -o people.release.parquet
      dpcipher measure wide.csv wide.yaml --epsilon 1 --delta 1e-9 --unit add-remove --max-rows 1 \\
        --workload auto --target 2 --column-weight income=2 --ledger wide.ledger --create -o wide.release.parquet
      dpcipher measure people.csv people.yaml --epsilon 1 --delta 1e-9 --unit add-remove --max-rows 1 \\
        --workload auto --predict income --ledger people.ledger -o people.release.parquet
    """
    _check_order(data, schema)
    asked = options.tables_or_workload(tables, workload, request)
    target = PaidFor(path, force=force)
    with output.progress() as say:
        release = dc.measure(
            data,
            load_schema(schema),
            workload=asked,
            weights=None if weights is None else _read_weights(weights),
            save=target,
            force=force,
            progress=say,
            **request,
        )
    output.show(release_text(release, target.path), release_facts(release, target.path), as_json=json_)


def _check_order(data: str, schema: Path) -> None:
    """Say so where the two files seem to be swapped, by the endings of their names."""
    from dpcipher.schema.files import ENDINGS

    if Path(data).suffix in ENDINGS and schema.suffix not in ENDINGS:
        raise click.UsageError(
            f"DATA ({data}) has the name of a schema and SCHEMA ({schema}) has not: swap them, dpcipher measure {schema} {data} …"
        )


def _read_weights(path: Path) -> dict[tuple[str, ...], float]:
    """The weights in a plan that was printed with --json."""
    from dpcipher.schema.grouped import table_of_plain

    try:
        tables = json.loads(path.read_text(encoding="utf-8"))["tables"]
        return {table_of_plain(table): float(table["weight"]) for table in tables}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise click.BadParameter(
            f"({path}) must be a plan printed as JSON; try: dpcipher plan ... --json > plan.json",
            param_hint="--weights",
        ) from None


def release_text(release: "dc.Release", path: Path) -> str:
    """What a person should know about a release that was just written."""
    stated = f"Status   {release.statement.status}: {release.statement.meaning}"
    return "\n".join([f"Wrote    {path}", *release_lines(release), stated])


def release_lines(release: "dc.Release") -> list[str]:
    """Tables, noise, budget and unit of a release, a line each."""
    from dpcipher.drawing.card import counted
    from dpcipher.pages.choices import choice, found
    from dpcipher.pages.words import budget_text, noise_range
    from dpcipher.release.shown import found_ranges

    sets = "" if release.sets == 1 else f", {release.sets} independent sets"
    chosen, searched = choice(release), found(release)
    tables = [one for one in release.measurements if len(one.query.axes) > 1 or not one.query.groups]
    tables = [one for one in tables or release.measurements if one.query.axes]
    noise = sorted({table.noise.describe() for table in tables})
    scales = noise[0] if len(noise) == 1 else f"{noise[0]} and {len(noise) - 1} other scales"
    return [
        f"Tables   {len(release.workload)} over {counted(len(release.schema.attrs), 'column')}, {_cells(release):,} noisy cells{sets}",
        *([f"Found    {searched}"] if searched else []),
        *(f"Range    {text}" for text in found_ranges(release)),
        *([f"Chosen   {chosen}"] if chosen else []),
        f"Noise    {noise_range(release) if release.centred else scales}",
        f"Budget   {budget_text(release.statement)}",
        f"Unit     {release.statement.protection}",
        *([f"Counts   {release.statement.scope}"] if release.statement.scope else []),
    ]


def release_facts(release: "dc.Release", path: Path) -> dict[str, Any]:
    """The same as plain values."""
    from dpcipher.schema.grouped import Grouped, plain_table

    return {
        "release": str(path),
        "tables": [
            plain_table(attrs) if isinstance(attrs, Grouped) else list(attrs) for attrs in release.workload
        ],
        "n_cells": _cells(release),
        "sets": release.sets,
        "checksum": release.checksum,
        "selection": release.statement.certificate.get("selection"),
        "bins": release.statement.certificate.get("bins"),
        "levels": release.statement.certificate.get("levels"),
        "statement": release.statement.to_dict(),
    }


def _cells(release: "dc.Release") -> int:
    return sum(one.values.size for one in release.measurements)
