"""The command reference, written from the commands' own help: `python -m dpcipher.cli.reference`."""

from collections.abc import Iterator

import click

from dpcipher.cli import HELP, main

WIDTH = 100
HEAD = """\
# Commands

Written by `make reference` from the commands' own help; a test fails when it is out of date. Results go to stdout, progress and errors to
stderr. `--json` prints the result as JSON. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.
"""


def walk(command: click.Command = main, name: str = "dpcipher") -> Iterator[tuple[str, click.Command]]:
    """Every command and group below `command`, with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            assert subcommand is not None  # list_commands names only what get_command finds
            yield from walk(subcommand, f"{name} {child}")


def help_text(name: str, command: click.Command) -> str:
    """What `name --help` prints, at a fixed width."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, **HELP)
    return command.get_help(context).replace("\b", "").strip()


def reference() -> str:
    """The whole page."""
    parts = [f"## {name}\n\n```text\n{help_text(name, command)}\n```\n" for name, command in walk()]
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    click.echo(reference(), nl=False)
