"""Options that several commands share, and the types of what people type."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?|[+-]?\d{1,40}/\d{1,40}")


class Typed(Fraction):
    """A number exactly as it was typed: 0.1 is 1/10, and messages show `0.1`."""

    text: str

    def __new__(cls, text: str) -> Self:
        """The exact value of a decimal or a fraction."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


class Exact(click.ParamType[Typed]):
    """A decimal or a fraction, kept exact."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Typed:
        """Parse text; refuse nan, inf and words."""
        text = str(value).strip()
        if not _NUMBER.fullmatch(text) or text.endswith("/0"):
            self.fail(f"({value}) must be a finite number; try 1, 0.5, 1e-6 or 1/3", param, ctx)
        return Typed(text)


class Attrs(click.ParamType[tuple[str, ...]]):
    """Column names joined by commas."""

    name = "columns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split at commas."""
        return value if isinstance(value, tuple) else tuple(part.strip() for part in str(value).split(","))


class Pair(click.ParamType[tuple[str, str]]):
    """NAME=VALUE."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first equals sign."""
        if isinstance(value, tuple):
            return value
        name, equals, rest = str(value).partition("=")
        if not equals or not name:
            self.fail(f"({value}) must have the form NAME=VALUE", param, ctx)
        return name, rest


FILE = click.Path(dir_okay=False, path_type=Path)


def as_json(function: Function) -> Function:
    """`--json`: print the result as JSON on stdout."""
    return click.option("--json", "json_", is_flag=True, help="Print the result as JSON on stdout.")(function)


def budget(function: Function) -> Function:
    """The privacy budget and its unit; none of them has a default, because each is a promise to somebody."""
    options = [
        click.option(
            "--epsilon",
            type=Exact(),
            help="Pure epsilon, or the epsilon of (epsilon, delta). Parsed exactly.",
        ),
        click.option("--delta", type=Exact(), help="Delta, with --epsilon: Gaussian noise."),
        click.option(
            "--rho",
            type=Exact(),
            help="Rho of zero-concentrated privacy, instead of epsilon: Gaussian noise.",
        ),
        click.option(
            "--unit",
            required=True,
            metavar="add-remove|replace",
            help="What one person may change: rows are added or removed, or replaced.",
        ),
        click.option(
            "--max-rows", type=int, required=True, help="At most so many rows belong to one person."
        ),
    ]
    return _stack(options, function)


def workload(function: Function) -> Function:
    """Which tables to measure, and with which noise."""
    options = [
        click.option(
            "--workload",
            type=int,
            default=2,
            show_default=True,
            help="Measure all tables of so many columns.",
        ),
        click.option(
            "--table",
            "tables",
            type=Attrs(),
            multiple=True,
            help="Measure this table instead, e.g. --table age,income; repeat for more.",
        ),
        click.option(
            "--mechanism", metavar="laplace|gaussian", help="The noise; by default what the budget implies."
        ),
        click.option(
            "--sets",
            type=int,
            default=1,
            show_default=True,
            help="So many independent noisy copies; each gets its share.",
        ),
    ]
    return _stack(options, function)


def _stack(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function
