"""`dpcipher report`: a page about a release and its synthetic rows that may be published with them."""

from pathlib import Path

import click

import dpcipher as dc
from dpcipher.cli import options, output


@click.command("report", cls=options.Writer)
@click.argument("release", type=options.FILE)
@click.argument("synthetic", type=click.Path(path_type=Path))
@options.output("target", "Write the page here: one .html file.", endings=(".html", ".htm"))
@options.evidence
@click.option(
    "--rows-from",
    metavar="WORDS",
    help="Where rows without a mark came from; the page quotes it. Without, they are refused: they may be private.",
)
@options.as_json
def command(
    release: Path,
    synthetic: Path,
    target: Path,
    keys: tuple[Path, ...],
    ledger: Path | None,
    rows_from: str | None,
    force: bool,
    json_: bool,
) -> None:
    """Write a page about RELEASE and the SYNTHETIC rows made from it, for everybody to read.

    The page sees no private row: it shows the noisy tables with their margins, how well the synthetic rows match them, what may be concluded, and the
    certificate. It is one file that needs no network and no script, and it prints.

    Rows say which release they were drawn from: `synth` writes it into Parquet files, and beside others (synthetic.csv.mark). Rows of another release are
    refused, and so are rows without such a mark, or changed since, unless --rows-from says on whose word they are synthetic.

    It says "certified" only where a --key that you trust signed the release, or a --ledger at hand paid for it; else "as stated by the file".

    \b
    Example:
      dpcipher report people.release.parquet synthetic.csv -o report.html
      dpcipher report people.release.parquet synthetic.csv --key ada.pub -o report.html
    """
    with output.progress() as say:
        say("drawing the report")
        written = dc.report(
            release, synthetic, target, key=keys, ledger=ledger, rows_from=rows_from, force=force
        )
    size = written.stat().st_size
    output.show(f"Wrote    {written}: {size:,} bytes", {"report": str(written), "bytes": size}, as_json=json_)
