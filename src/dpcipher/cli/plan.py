"""`dpcipher plan`: what a release would cost and how good it would be."""

from pathlib import Path
from typing import Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.schema_file import load_schema


@click.command("plan")
@click.argument("schema", type=options.FILE)
@options.budget
@options.workload
@options.choice
@click.option("--person", metavar="COLUMN", help="The column that will say whose row it is.")
@click.option("--n-rows-public", is_flag=True, help="Plan with the number of rows declared public.")
@click.option("--n-rows", type=int, help="Roughly how many rows there are, from public knowledge.")
@options.as_json
def command(
    schema: Path, tables: tuple[tuple[str, ...], ...], workload: int | str, json_: bool, **request: Any
) -> None:
    """Foresee cells, noise, error, memory and time of a release of SCHEMA.

    No data is read and nothing is spent. The same options given to `measure` make that release. With --json the result also holds the
    budget weights that `measure --weights` takes. With --workload auto it says how the tables would be chosen, and whether that pays.

    \b
    Example:
      dpcipher plan people.yaml --epsilon 1 --unit add-remove --max-rows 1 --n-rows 5000
    """
    asked = options.tables_or_workload(tables, workload, request)
    with output.progress() as say:
        say("planning")
        foreseen = dc.plan(load_schema(schema), workload=asked, **request)
    output.show(str(foreseen), foreseen.to_dict(), as_json=json_)
