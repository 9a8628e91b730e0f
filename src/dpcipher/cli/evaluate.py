"""`dpcipher evaluate`: synthetic rows against private ones. What it prints is for the curator alone."""

from pathlib import Path
from typing import Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.schema_file import load_schema


@click.command("evaluate", cls=options.Writer)
@click.argument("private", type=click.Path(path_type=Path))
@click.argument("schema", type=options.FILE)
@click.argument("synthetic", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--order",
    "orders",
    type=int,
    multiple=True,
    help="Compare tables of so many columns; repeat for more. By default 1, 2, 3.",
)
@click.option("--limit", type=int, help="Compare at most so many tables of each order, chosen by --seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which tables and rows a sample takes.")
@click.option(
    "--holdout",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Private rows that the release was not made from, to test a classifier on.",
)
@click.option("--predict", metavar="COLUMN", help="The column that the classifier predicts; with --holdout.")
@click.option(
    "--model",
    "formula",
    metavar="FORMULA",
    help="Also fit this model on both sides, e.g. 'employed ~ age + school', for its SSS assessment.",
)
@options.family
@click.option(
    "--person",
    metavar="COLUMN",
    help="The column that said whose row it is: tells the error of leaving out rows beyond --max-rows from that of noise.",
)
@options.max_rows
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the curator's report into this folder of its own.",
)
@options.as_json
def command(
    private: Path,
    schema: Path,
    synthetic: tuple[Path, ...],
    orders: tuple[int, ...],
    predict: str | None,
    folder: Path | None,
    force: bool,
    json_: bool,
    **request: Any,
) -> None:
    """Score SYNTHETIC rows against PRIVATE rows. CURATOR ONLY.

    SCHEMA is the public schema of both, or the release that the synthetic rows come from.

    Several SYNTHETIC files are m sets: scores are averaged over them, and a model is combined. The result is computed from private rows and is not
    protected, so the report goes to a folder that only you can open, never beside a release or a publishable report.

    \b
    Example:
      dpcipher evaluate people.csv people.yaml synthetic.csv --report curator-only
    """
    from dpcipher.drawing.curator_only import check_folder
    from dpcipher.evaluation.pages import NUMBERS, PAGE, curator_report
    from dpcipher.files import check_output

    public, sets = load_schema(schema), list(synthetic)
    if folder is not None:
        check_folder(folder)
        for name in (NUMBERS, PAGE):
            check_output(folder / name, force=force)
    with output.progress() as say:
        say("comparing tables")
        scores = dc.evaluate(private, sets, public, orders=orders or None, predict=predict, **request)
        if folder is not None:
            say("drawing the curator's report")
            curator_report(scores, private, sets, public, folder, force=force)
    place = "" if folder is None else f"\nWrote    {folder} (mode 0700)"
    output.show(f"{scores}{place}", scores.to_dict(), as_json=json_)
