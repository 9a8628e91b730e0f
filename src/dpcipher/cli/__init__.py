"""The command line: one file a command, each a thin face of the library call of the same name.

To add a command, write `cli/<name>.py` with a click command called `command`, and add its line here, in the order of the flow.
"""

import json
import os
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from dpcipher.errors import DpcipherError, DpcipherWarning

COMMANDS = {
    "schema": "Draft, check, sign and show the public schema.",
    "plan": "Foresee cells, noise, error, memory and time. Reads no data.",
    "measure": "Measure noisy tables of private rows. Spends budget.",
    "synth": "Make synthetic rows from a release or from published tables.",
    "evaluate": "Score synthetic rows against private ones. Curator only.",
    "report": "Write a publishable page about a release and its rows.",
    "model": "Fit a regression to a release; intervals hold its noise.",
    "compare": "Compare methods on private rows. Curator only.",
    "release": "Make keys; sign, verify and show releases.",
    "ledger": "Create a ledger, show what was spent, verify releases.",
    "audit": "Check this installation: samplers, mechanisms, methods.",
    "demo": "Run the whole story on invented people.",
}
INTERRUPTED = 130  # as shells have it: 128 and the number of the signal
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class Flow(click.Group):
    """A group whose commands are modules, imported only when they are called, and listed in the order of the flow."""

    def __init__(self, *, modules: Mapping[str, str], **options: Any) -> None:
        super().__init__(context_settings={**HELP, "max_content_width": 110}, **options)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the flow."""
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from the module of that name."""
        if cmd_name not in self.modules:
            return None
        command = import_module(f"dpcipher.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # a slip of the developer, not of the user
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.modules.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember whether results are wanted as JSON, before any command has parsed its own options."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever fails becomes one message, never a traceback that could quote a private value. With --json also an object on stdout."""
        try:
            with _warnings_on_stderr():
                return super().invoke(ctx)
        except (click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except click.ClickException as error:
            raise _told(ctx, error, type(error).__name__) from None
        except KeyboardInterrupt:
            words = "Interrupted: files are whole or absent, and what was charged to a ledger stays charged"
            click.echo(f"\n{words}", err=True)
            _tell(ctx, "KeyboardInterrupt", words, INTERRUPTED)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except DpcipherError as error:
            message = as_typed(str(error), self._options(ctx))
            raise _told(ctx, click.ClickException(message), type(error).__name__) from None
        except Exception as error:
            message = _message(error)
            raise _told(ctx, click.ClickException(message), type(error).__name__) from None

    def _options(self, ctx: click.Context) -> dict[str, click.Option]:
        """The options of the command that was called, and of those below it, by the names that the library has for them."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        below = command.commands.values() if isinstance(command, click.Group) else ()
        each = (option for one in (command, *below) if one is not None for option in one.params)
        return {option.name: option for option in each if isinstance(option, click.Option) and option.name}


_JSON = "dpcipher.json"
# What the library advises, as in "try delta=1e-6" or "use engine='rows' or 'table'": a name and plain values, no call.
_ADVICE = re.compile(
    r"\b(try|[Uu]se|or|with|for) ([a-z_]+)=('?)(\w[\w+-]*(?:\.\w+)*)\3((?:(?:, | or |, or )'\w+')*)(?!\.?[\w('])"
)


def _message(error: Exception) -> str:
    """What a person is told of an error that is not ours; of a bug only where it showed."""
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or type(error).__name__}"
    if isinstance(error, MemoryError):
        return "not enough memory; `dpcipher plan` says how much is needed, smaller tables need less"
    return _unexpected(error)


def as_typed(message: str, options: Mapping[str, click.Option]) -> str:
    """A message of the library with the advice in it as a command takes it; names that are none of the options stay as they are.

    >>> as_typed("delta (None) must be given; try delta=1e-6", {"delta": click.Option(["--delta"])})
    'delta (None) must be given; try --delta 1e-6'
    >>> as_typed("try family='multinomial', 'ordinal' or 'linear'", {"family": click.Option(["--family"])})
    'try --family multinomial, ordinal or linear'
    """

    def typed(advice: re.Match[str]) -> str:
        before, name, _, value, others = advice.groups()
        if name not in options:
            return advice[0]
        word, more = max(options[name].opts, key=len), others.replace("'", "")
        return f"{before} {word}" if options[name].is_flag else f"{before} {word} {value}{more}"

    return _ADVICE.sub(typed, message)


def _told(ctx: click.Context, error: click.ClickException, kind: str) -> click.ClickException:
    _tell(ctx, kind, error.format_message(), error.exit_code)
    return error


def _tell(ctx: click.Context, kind: str, message: str, code: int) -> None:
    """The error as an object on stdout, for programs that asked for JSON; people read stderr."""
    if ctx.meta.get(_JSON):
        click.echo(json.dumps({"error": {"kind": kind, "message": message, "exit_code": code}}, indent=2))


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """The library's warnings as one line each, every time; other warnings as Python shows them."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, DpcipherWarning):
                click.echo(f"Warning: {message}", err=True)
            else:
                shown(message, category, *place, **options)

        warnings.showwarning = show
        warnings.simplefilter("always", DpcipherWarning)
        yield


def _unexpected(error: Exception) -> str:
    """Where a bug showed, without its message: that may quote private values."""
    if os.environ.get("DPCIPHER_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__} in {os.path.basename(place.filename)}, line {place.lineno}: this is a bug in dpcipher. "
        "Please report it. DPCIPHER_DEBUG=1 shows the details, which may quote private values"
    )


main = Flow(
    name="dpcipher",
    modules=COMMANDS,
    help="""Differentially private synthetic tables from low-order marginals.

    The commands follow the flow: a public schema, a plan, a release of noisy tables, synthetic rows. Only `measure` reads private
    rows to publish something about them; it charges a ledger first.

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.

    \b
    Example:
      dpcipher demo
    """,
)
click.version_option(package_name="dpcipher", message="dpcipher %(version)s")(main)
