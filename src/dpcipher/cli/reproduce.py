"""`dpcipher reproduce`: the paper's figures and tables beside ours. Seeded noise: NOT PRIVATE."""

from pathlib import Path

import click

from dpcipher.cli import options, output
from dpcipher.paper.reproduce import PARTS, reproduce


@click.command("reproduce")
@click.argument("what", metavar="storage|experiment1|experiment2|all", type=click.Choice([*PARTS, "all"]))
@click.option(
    "--repeats",
    type=int,
    default=1000,
    show_default=True,
    help="Repeats of experiment 1 for each n and epsilon; experiment 2 gets a tenth.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder with the bankruptcy data; by default the one that DPCIPHER_DATA names.",
)
@click.option("--workers", type=int, help="Processes to use; by default one for each core.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="The folder to write into; run again to go on after a kill.",
)
@options.as_json
def command(
    what: str, repeats: int, data: Path | None, workers: int | None, folder: Path, json_: bool
) -> None:
    """Reproduce the paper's figures and tables, and judge its claims. Noise is seeded: NOT PRIVATE.

    \b
    Examples:
      dpcipher reproduce storage
      dpcipher reproduce all --repeats 1000 --data data -o reproduction
    """
    with output.progress() as say:
        done = reproduce(what, folder, repeats=repeats, data=data, workers=workers, say=say)
    output.show(done.text, done.to_dict(), as_json=json_)
