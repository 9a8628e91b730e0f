"""`python -m experiments.paper`: the paper's figures and tables beside ours. Seeded noise: NOT PRIVATE."""

import json
from pathlib import Path

import click

from dpcipher.errors import DpcipherError
from experiments.paper.reproduce import PARTS, reproduce


@click.command("reproduce", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", type=click.Choice((*PARTS, "all")))
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
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="The folder to write into; run again to go on after a kill.",
)
@click.option("--json", "json_", is_flag=True, help="Print the verdicts as JSON.")
def main(
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
      python -m experiments.paper storage
      python -m experiments.paper all --repeats 1000 --data data -o reproduction
      python -m experiments.paper all --reading all --data data -o reproduction
    """
    try:
        done = reproduce(
            part,
            folder,
            repeats=repeats,
            second_repeats=second_repeats,
            reading=reading,
            data=data,
            workers=workers,
            say=lambda text: click.echo(text, err=True),
        )
    except DpcipherError as error:
        raise click.ClickException(str(error)) from None
    click.echo(json.dumps(done.to_dict(), indent=2, ensure_ascii=False) if json_ else done.text)


if __name__ == "__main__":
    main(prog_name="python -m experiments.paper")
