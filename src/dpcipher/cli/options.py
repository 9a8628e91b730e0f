"""Options that several commands share, and how their values are parsed."""

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

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


class Table(click.ParamType[tuple[str, ...]]):
    """Column names joined by commas, each with its groups of levels in brackets where it has some."""

    name = "columns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split at commas outside of brackets: `age[0,18,65],state[north=NY|ME,south=TX|CA]`."""
        if isinstance(value, tuple):
            return value
        from dpcipher.errors import WorkloadError
        from dpcipher.schema.grouped import Grouped

        columns, groups = [], {}
        for part in re.split(r",(?![^\[\]]*\])", str(value)):
            name, bracket, inner = part.strip().partition("[")
            columns.append(name if bracket and inner.endswith("]") else part.strip())
            if bracket and inner.endswith("]"):
                groups[name] = _groups([level.strip() for level in inner[:-1].split(",")])
        try:
            return Grouped(columns, **groups) if groups else tuple(columns)
        except WorkloadError as wrong:
            self.fail(str(wrong), param, ctx)


def _groups(parts: list[str]) -> Any:
    """The first level of each run, lists of levels joined by |, or such lists by name."""
    if all("=" in part for part in parts):
        named = (part.partition("=") for part in parts)
        return {name: levels.split("|") for name, _, levels in named}
    return [part.split("|") for part in parts] if any("|" in part for part in parts) else parts


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


class TableFile(Pair):
    """TABLE=FILE: the first equals sign outside of brackets, which hold groups of levels."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split there."""
        parts = value if isinstance(value, tuple) else re.split(r"=(?![^\[\]]*\])", str(value), maxsplit=1)
        return (parts[0], parts[1]) if len(parts) == 2 else super().convert(value, param, ctx)


class OrderOrAuto(click.ParamType[int | str]):
    """An order, or the word that lets the tables be chosen."""

    name = "order|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """A whole number, or "auto"."""
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"({value}) must be an order such as 2, or auto", param, ctx)


class Target(click.ParamType[int | tuple[str, ...]]):
    """An order, or column names joined by commas."""

    name = "order|columns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[str, ...]:
        """A whole number, or the columns of one table."""
        text = str(value).strip()
        return int(text) if re.fullmatch(r"[+-]?\d{1,9}", text) else Attrs().convert(value, param, ctx)


FILE = click.Path(dir_okay=False, path_type=Path)


as_json = click.option("--json", "json_", is_flag=True, help="Print the result as JSON on stdout.")


def _together(*options: Decorator) -> Decorator:
    """Several options as one decorator, listed by `--help` in the order given."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# What a release is compared with: keys that the reader trusts, and a ledger.
evidence = _together(
    click.option(
        "--key",
        "keys",
        type=FILE,
        multiple=True,
        help="A file of public keys that you trust, a line each; repeat for more. A signature by any of them counts.",
    ),
    click.option("--ledger", type=FILE, help="The ledger that paid for the release, where it is at hand."),
)


# The names of `dpcipher.inference.regression`, which are needed before anything is loaded.
family = click.option(
    "--family",
    type=click.Choice(("logistic", "multinomial", "ordinal", "linear", "poisson")),
    help="The kind of model; by default logistic for two classes, linear for numbers, ordinal for levels that rank, multinomial for others.",
)


class Output(click.Option):
    """A file that a command writes, with the endings that its name may have."""

    def __init__(self, *arguments: Any, endings: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.endings = endings


class Writer(click.Command):
    """A command that writes files: none over an existing one without --force, and none over a file that it reads, before anything else is done."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        words = "Replace files that are there already; never one that is read."
        self.params.append(click.Option(["--force"], is_flag=True, help=words))

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse what would be destroyed, and run."""
        from dpcipher.files import check_output

        outputs = [option for option in self.params if isinstance(option, Output)]
        inputs = [
            each
            for option in self.params
            if not isinstance(option, Output)
            for each in _texts(ctx.params.get(option.name or ""))
        ]
        for option in outputs:
            target = ctx.params[option.name or ""]
            if target is not None:
                check_output(target, endings=option.endings, force=ctx.params["force"], inputs=inputs)
        return super().invoke(ctx)


def _texts(value: object) -> Iterator[str | Path]:
    """The texts and paths in the value of an option, any of which may name a file."""
    if isinstance(value, str | Path):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _texts(part)


def output(
    name: str,
    words: str,
    *,
    endings: tuple[str, ...] = (),
    folder: bool = False,
    default: Path | None = None,
) -> Decorator:
    """`-o`: where the result is written; required where there is no default."""
    kind: dict[str, Any] = {} if folder else {"cls": Output, "endings": endings}
    if default is not None:  # one that is None would make the option optional
        kind |= {"default": default, "show_default": True}
    return click.option(
        "-o",
        "--output",
        name,
        type=click.Path(file_okay=not folder, dir_okay=folder, path_type=Path),
        required=default is None,
        help=words,
        **kind,
    )


def _one_target(
    ctx: click.Context, param: click.Parameter, given: tuple[int | tuple[str, ...], ...]
) -> int | list[tuple[str, ...]] | None:
    """An order that stands alone, or a list of tables."""
    tables = [table for table in given if isinstance(table, tuple)]
    if len(tables) == len(given):
        return tables or None
    first = given[0]
    if len(given) == 1 and isinstance(first, int):
        return first
    raise click.BadParameter("must be one order, or tables such as --target age,income; not both", ctx, param)


def _by_column(
    ctx: click.Context, param: click.Parameter, given: tuple[tuple[str, str], ...]
) -> dict[str, float] | None:
    """The weight of each column that was named."""
    weights: dict[str, float] = {}
    for name, text in given:
        if name in weights:
            raise click.BadParameter(f"({name}) must be given once", ctx, param)
        weights[name] = float(Exact().convert(text, param, ctx))
    return weights or None


max_rows = click.option(
    "--max-rows", type=int, default=1, show_default=True, help="At most so many rows belong to one person."
)


# The privacy budget and its unit; budget and unit have no default, because each is a promise to somebody.
budget = _together(
    click.option(
        "--epsilon",
        type=Exact(),
        help="Pure epsilon, or the epsilon of (epsilon, delta). Parsed exactly.",
    ),
    click.option(
        "--delta",
        type=Exact(),
        help="Delta, with --epsilon: Gaussian noise; with --rho: for levels found in the rows.",
    ),
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
    max_rows,
)


# Which tables to measure, and with which noise.
workload = _together(
    click.option(
        "--workload",
        type=OrderOrAuto(),
        metavar="ORDER|auto",
        default=2,
        show_default=True,
        help="Measure all tables of so many columns; or auto: those that part of the budget finds worth it.",
    ),
    click.option(
        "--table",
        "tables",
        type=Table(),
        multiple=True,
        help="Measure this table instead, e.g. --table age,income, or with levels of age in groups --table 'age[0,18,65],income'; repeat for more.",
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
)


# How tables are chosen by `--workload auto`; the names are those of the library's own parameters.
choice = _together(
    click.option(
        "--max-order",
        type=int,
        help="With auto: tables of at most so many columns; by default any.",
    ),
    click.option(
        "--max-cells", type=int, help="With auto: tables of at most so many cells; by default 10,000."
    ),
    click.option(
        "--target",
        type=Target(),
        multiple=True,
        callback=_one_target,
        help="With auto: the tables whose error counts, as an order or e.g. --target age,income; repeat for more.",
    ),
    click.option(
        "--predict",
        metavar="COLUMN",
        help="With auto: instead of a target, a column that should be predicted well.",
    ),
    click.option(
        "--column-weight",
        "column_weights",
        type=Pair(),
        multiple=True,
        metavar="COLUMN=WEIGHT",
        callback=_by_column,
        help="With auto: how much a column matters, e.g. --column-weight income=2; by default 1. Repeat for more.",
    ),
)


def tables_or_workload(
    tables: Sequence[tuple[str, ...]], workload: int | str, request: dict[str, Any]
) -> Any:
    """What `--table` lists, else what `--workload` says; not tables and "auto". The options of auto are taken out of the request."""
    choice = {
        name: request.pop(name) for name in ("max_order", "max_cells", "target", "predict", "column_weights")
    }
    given = {name: value for name, value in choice.items() if value is not None}
    if tables and workload == "auto":
        raise click.UsageError(
            "--table names the tables and --workload auto chooses them: leave one out; "
            "--target says which tables the choice should serve"
        )
    if workload == "auto":
        from dpcipher.request.request import Auto

        return Auto(**given)
    if given:
        name = next(iter(given)).replace("weights", "weight").replace("_", "-")
        raise click.UsageError(f"--{name} is for --workload auto; leave it out, or let the tables be chosen")
    return list(tables) or workload
