"""`dpcipher audit`: check this installation. Needs no private rows and spends nothing."""

from pathlib import Path

import click

import dpcipher as dc
from dpcipher.cli import options, output


@click.command("audit", cls=options.Writer)
@click.option(
    "--thorough", is_flag=True, help="Many more draws, and whole runs of every method: up to an hour."
)
@click.option(
    "--only",
    metavar="PART",
    help="One part: samplers, mechanisms, questions, releases, levels, methods, independence or, thorough, runs.",
)
@click.option(
    "--report",
    "path",
    cls=options.Output,
    endings=(".html", ".htm"),
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page, claimed against found, to this file.",
)
@options.as_json
def command(thorough: bool, only: str | None, path: Path | None, force: bool, json_: bool) -> None:
    """Check this installation: samplers, mechanisms, and every synthesizer on neighbouring tables.

    Takes a minute or two. A ratio above 1 means that something was found which privacy does not allow; then the exit code is 1. If everything is
    right, that has a chance of at most one in a million.

    \b
    Example:
      dpcipher audit --report audit.html
    """
    from dpcipher.evaluation.pages import audit_page
    from dpcipher.files import write_text

    with output.progress() as say:
        result = dc.audit(thorough=thorough, only=only, progress=say)
        if path is not None:
            write_text(path, audit_page(result), force=force)
    place = "" if path is None else f"\nWrote    {path}"
    output.show(f"{result}{place}", result.to_dict(), as_json=json_)
    if not result.passed:
        raise SystemExit(1)
