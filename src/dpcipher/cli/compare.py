"""`dpcipher compare`: methods against one another on private rows. What it prints is for the curator alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.schema_file import load_schema


@click.command("compare")
@click.argument("data")
@click.argument("schema", type=options.FILE)
@click.option(
    "--methods",
    metavar="NAMES",
    type=options.Attrs(),
    default="cipher,full-histogram,mwem,priv-bayes,independent,uniform",
    show_default=True,
    help="Methods joined by commas, out of cipher, full-histogram, mwem, priv-bayes, fourier, multinomial-dirichlet, modips, junction-tree, "
    "independent, uniform.",
)
@click.option(
    "--epsilons",
    metavar="NUMBERS",
    type=options.Attrs(),
    default="0.1,1,10",
    show_default=True,
    help="Epsilons joined by commas.",
)
@click.option(
    "--repeats", type=int, default=10, show_default=True, help="How often each is fitted, with other noise."
)
@click.option(
    "--unit",
    required=True,
    metavar="add-remove|replace",
    help="What one person may change, for every method alike.",
)
@options.max_rows
@click.option(
    "--person",
    metavar="COLUMN",
    help="The column that says whose row it is; methods learn from at most --max-rows of each.",
)
@click.option("--delta", type=options.Exact(), help="Compare with Gaussian noise at this delta.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The seed of all noise: results can be repeated."
)
@click.option("--workers", type=int, help="Processes to use; by default one for each core.")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write page and scores into this folder (of report.html: the folder report), mode 0700; run again to go on after a kill.",
)
@options.as_json
def command(
    data: str,
    schema: Path,
    epsilons: tuple[str, ...],
    delta: options.Typed | None,
    target: Path | None,
    json_: bool,
    **request: Any,
) -> None:
    """Compare methods on the private rows in DATA. CURATOR ONLY.

    SCHEMA is their public schema, or a release, which holds one.

    Every method is fitted at every epsilon, several times, with seeded noise; synthetic rows are scored against the private ones. Nothing is charged
    and nothing of it may be published.

    \b
    Example:
      dpcipher compare people.csv people.yaml --methods cipher,mwem,uniform --epsilons 0.1,1 \\
        --repeats 20 --unit add-remove -o curator-only/report.html
    """
    from dpcipher.drawing.curator_only import check_folder
    from dpcipher.evaluation.compare import JOURNAL, NUMBERS, PAGE
    from dpcipher.files import check_output

    folder, page = target, PAGE
    if target is not None and target.suffix == ".html":
        folder, page = target.with_suffix(""), target.name
    if folder is not None:
        check_folder(folder)
        resumed = (folder / JOURNAL).exists()  # whose page and scores are written anew
        for name in (NUMBERS, page):
            check_output(folder / name, force=resumed)
    number = options.Exact()
    with bar() as advance:
        comparison = dc.compare(
            data,
            load_schema(schema),
            epsilons=[float(number.convert(epsilon, None, None)) for epsilon in epsilons],
            delta=None if delta is None else float(delta),
            out=folder,
            progress=advance,
            **request,
        )
    text = str(comparison)
    if folder is not None:
        text += f"\n\nWrote    {comparison.write_page(folder, page, force=True)} (folder of mode 0700)"
    output.show(text, comparison.to_dict(), as_json=json_)


@contextmanager
def bar() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr; on anything but a terminal, a line for every tenth."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield (
            lambda done, total: (
                click.echo(f"{done} of {total} fits …", err=True) if _tenth(done, total) else None
            )
        )
        return
    columns = (TextColumn("fits"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("fits", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _tenth(done: int, total: int) -> bool:
    return done == total or done * 10 // max(total, 1) > (done - 1) * 10 // max(total, 1)
