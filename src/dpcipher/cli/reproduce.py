"""`dpcipher reproduce`: the paper's figures and tables beside ours. Seeded noise: NOT PRIVATE."""

from pathlib import Path

import click

from dpcipher.cli import options, output


@click.command("reproduce")
@click.argument("part", type=click.Choice(("storage", "experiment1", "experiment2", "all")))
@click.option(
    "--repeats",
    type=int,
    default=1000,
    show_default=True,
    help="Repeats of experiment 1 for each n and epsilon; experiment 2 gets a tenth.",
)
@click.option(
    "--second-repeats", type=int, help="Repeats of experiment 2 for each m and epsilon, if not a tenth."
)
@click.option(
    "--reading",
    multiple=True,
    default=["literal"],
    metavar="literal|all|NAME",
    help="How the paper's algorithm is read: literally (always), also as named (may be repeated), or in all ways.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder with the bankruptcy data; by default the one that DPCIPHER_DATA names.",
)
@click.option("--workers", type=int, help="Processes to use; by default one for each core.")
@options.output(
    "folder",
    "The folder to write into; run again to go on after a kill.",
    folder=True,
    default=Path("reproduction"),
)
@options.as_json
def command(
    part: str,
    repeats: int,
    second_repeats: int | None,
    reading: tuple[str, ...],
    data: Path | None,
    workers: int | None,
    folder: Path,
    json_: bool,
) -> None:
    """Reproduce the paper's figures and tables, and judge its claims. Noise is seeded: NOT PRIVATE.

    \b
    Examples:
      dpcipher reproduce storage
      dpcipher reproduce all --repeats 1000 --data data -o reproduction
      dpcipher reproduce all --reading all --data data -o reproduction
    """
    from dpcipher.paper.reproduce import reproduce

    with output.progress() as say:
        reproduction = reproduce(
            part,
            folder,
            repeats=repeats,
            second_repeats=second_repeats,
            reading=reading,
            data=data,
            workers=workers,
            say=say,
        )
    output.show(reproduction.text, reproduction.to_dict(), as_json=json_)
