"""`dpcipher demo`: the whole story on invented people."""

from pathlib import Path

import click

from dpcipher.cli import options, output


@click.command("demo")
@options.output("folder", "The folder to write into.", folder=True, default=Path("demo-out"))
@options.as_json
def command(folder: Path, json_: bool) -> None:
    """Run the whole story on invented people: schema, plan, ledger, release, synthetic rows, summary.

    \b
    Example:
      dpcipher demo -o demo-out
    """
    from dpcipher.demo.run import run_demo

    with output.progress() as say:
        run = run_demo(folder, say=say)
    output.show(run.text, run.to_dict(), as_json=json_)
