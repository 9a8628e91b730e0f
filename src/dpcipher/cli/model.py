"""`dpcipher model`: a regression by formula, straight from a release. Post-processing: it costs no privacy."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.errors import ParameterError

if TYPE_CHECKING:
    from dpcipher.inference.cells import Missing
    from dpcipher.inference.regression import Family
    from dpcipher.inference.unmeasured import Unmeasured


def _orders(
    ctx: click.Context, param: click.Parameter, given: tuple[tuple[str, str], ...]
) -> dict[str, list[str]]:
    """The levels of each column that was named; one with a comma in it stands in quotes."""
    orders: dict[str, list[str]] = {}
    for name, text in given:
        if name in orders:
            raise click.BadParameter(f"({name}) must be given once", ctx, param)
        orders[name] = [level.strip() for level in next(csv.reader([text], skipinitialspace=True), [])]
    return orders


def _numbers(
    ctx: click.Context, param: click.Parameter, given: tuple[tuple[str, str], ...]
) -> dict[str, list[float]]:
    """The numbers for the bins of each column that was named."""
    return {
        name: [float(options.Exact().convert(text, param, ctx)) for text in texts]
        for name, texts in _orders(ctx, param, given).items()
    }


@click.command("model", cls=options.Writer)
@click.argument("release", type=options.FILE)
@click.argument("formula")
@options.family
@click.option("--level", type=float, default=0.95, show_default=True, help="The coverage of the intervals.")
@click.option(
    "--draws",
    type=int,
    help="So many draws of the joint distribution, by default 1,000 (400 beyond 4,000 cells); more make steadier intervals.",
)
@click.option("--seed", type=int, help="Repeat the same draws. They cost no privacy, so a seed is harmless.")
@click.option(
    "--levels",
    type=options.Pair(),
    multiple=True,
    metavar="COLUMN=LEVEL,…",
    callback=_orders,
    help="The order of a column's levels, the first being the reference, e.g. --levels sex=M,F; repeat for more. A level with a comma stands in double quotes.",
)
@click.option(
    "--values",
    type=options.Pair(),
    multiple=True,
    metavar="COLUMN=NUMBER,…",
    callback=_numbers,
    help="The numbers that stand for the bins of a column, by default their middles, e.g. --values age=25,35,45; repeat for more.",
)
@click.option(
    "--missing",
    type=click.Choice(["drop", "level"]),
    default="drop",
    show_default=True,
    help="Leave out rows with a missing value, or keep missing as a level of a category.",
)
@click.option(
    "--unmeasured",
    type=click.Choice(["open", "none"]),
    default="open",
    show_default=True,
    help="Leave interactions that no table shows open, or take them for none.",
)
@click.option(
    "-o",
    "--output",
    "target",
    cls=options.Output,
    type=options.FILE,
    help="Write the parameters here: .csv or .parquet.",
)
@click.option(
    "--report",
    cls=options.Output,
    endings=(".html", ".htm"),
    type=options.FILE,
    help="Write a page about the model here: one .html file.",
)
@click.option(
    "--details",
    is_flag=True,
    help="Print p-values, shares of noise and all notes in full, too wide for a screen.",
)
@options.as_json
def command(
    release: Path,
    formula: str,
    family: "Family | None",
    level: float,
    draws: int | None,
    seed: int | None,
    levels: dict[str, list[str]],
    values: dict[str, list[float]],
    missing: "Missing",
    unmeasured: "Unmeasured",
    target: Path | None,
    report: Path | None,
    details: bool,
    force: bool,
    json_: bool,
) -> None:
    """Fit the regression FORMULA to RELEASE, with intervals that hold the privacy noise and the sampling error.

    No rows are made: the model is fitted to draws of the joint distribution of its own columns, given all that the release says about them. Terms that rest on
    something the release does not show are marked.

    \b
    Example:
      dpcipher model people.release.parquet "income ~ age + region" --family ordinal --report model.html
      dpcipher model people.release.parquet "employed ~ sex + age" --levels sex=M,F --values age=25,35,45
    """
    import pyarrow as pa

    from dpcipher.inference.combine import checked_level
    from dpcipher.inference.shown import as_text, in_full, with_labels
    from dpcipher.io.write import check_writable, write_table
    from dpcipher.joint.joint import check_seed
    from dpcipher.pages.model import check_page, model_report
    from dpcipher.posteriors.requests import check_draws

    checked_level(level)
    if draws is not None:
        check_draws(draws)
    check_seed(seed)
    source = dc.Release.load(release)
    if target is not None:
        if target.suffix == ".html":
            raise ParameterError(
                f"output ({target.name}) must end in .csv or .parquet; a page about the model goes to --report {target.name}"
            )
        check_writable(target, force=force)
    if report is not None:
        check_page(source, report, force=force)
    with output.progress() as say:
        say("fitting")
        models = dc.fit_models(
            source,
            formula,
            family,
            levels=levels,
            draws=draws,
            seed=seed,
            missing=missing,
            values=values,
            unmeasured=unmeasured,
        )
        frame = models.to_frame(level)
        if target is not None:
            write_table(target, pa.Table.from_pandas(frame, preserve_index=False), force=force)
        if report is not None:
            say("drawing the page")
            model_report(models, source, report, level=level, force=force)
    files = "".join(f"\nWrote    {path}" for path in (target, report) if path is not None)
    named = with_labels(models, source.schema)
    text = in_full(named, level) if details else as_text(named, level, more="--details")
    output.show(text + files, models.to_dict(level), as_json=json_)
