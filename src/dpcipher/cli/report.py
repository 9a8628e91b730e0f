"""`dpcipher report`: a page about a release and its synthetic rows that may be published with them."""

from pathlib import Path

import click

import dpcipher as dc
from dpcipher.cli import options, output


@click.command("report")
@click.argument("release", type=options.FILE)
@click.argument("synthetic", type=click.Path(path_type=Path))
@options.output("target", "Write the page here: one .html file.")
@options.evidence
@options.as_json
def command(
    release: Path,
    synthetic: Path,
    target: Path,
    keys: tuple[Path, ...],
    ledger: Path | None,
    json_: bool,
) -> None:
    """Write a page about RELEASE and the SYNTHETIC rows made from it, for everybody to read.

    The page sees no private row: it shows the noisy tables with their margins, how well the synthetic rows match them, what may be concluded, and the
    certificate. It is one file that needs no network and no script, and it prints.

    It says "certified" only where a --key that you trust signed the release, or a --ledger at hand paid for it; else "as stated by the file".

    \b
    Example:
      dpcipher report people.release.parquet synthetic.csv -o report.html
      dpcipher report people.release.parquet synthetic.csv --key ada.pub -o report.html
    """
    with output.progress() as say:
        say("drawing the report")
        written = dc.report(release, synthetic, target, key=keys, ledger=ledger)
    size = written.stat().st_size
    output.show(f"Wrote    {written}: {size:,} bytes", {"report": str(written), "bytes": size}, as_json=json_)
