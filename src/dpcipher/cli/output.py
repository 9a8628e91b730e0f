"""What commands print: results on stdout, progress on stderr."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click


def show(text: str, result: Mapping[str, Any], *, as_json: bool, stamp: str = "") -> None:
    """Print a result: for people, or as JSON for programs; with the stamp of what it is about, if it has one, first."""
    if stamp:
        result = {"curator_only": stamp, **result}
        text = text if text.startswith(stamp) else f"{stamp}\n{text}"
    click.echo(json.dumps(result, indent=2, ensure_ascii=False) if as_json else text)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says on stderr what is going on: a spinner on a terminal, plain lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: click.echo(f"{text} …", err=True)
        return
    with console.status("") as status:
        yield lambda text: status.update(f"{text} …")
