"""The command tree: every command is listed, explained, shown by an example and documented."""

import re
from pathlib import Path

import click
import pytest

from dpcipher.cli import COMMANDS, main
from dpcipher.cli.reference import help_text, reference, walk

TREE = dict(walk())
LEAVES = {name: command for name, command in TREE.items() if not isinstance(command, click.Group)}
DOCS = Path(__file__).parents[2] / "docs"


def test_there_are_commands_to_check() -> None:
    """The walk finds the whole flow."""
    expected = {"schema draft", "schema check", "schema sign", "schema show", "plan", "measure", "synth"}
    expected |= {"ledger create", "ledger show", "ledger verify", "demo"}
    assert {f"dpcipher {name}" for name in expected} <= set(LEAVES)


@pytest.mark.parametrize("name", TREE)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    """Help starts with a sentence and shows a call of that very command."""
    shown = help_text(name, TREE[name])
    first = (TREE[name].help or "").strip().split("\n")[0]
    assert first.endswith((".", ":")) or "." in shown
    assert re.search("Examples?:", shown)
    assert f"\n    {name} " in shown or name == "dpcipher"


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_json_and_every_option_has_help(name: str) -> None:
    """Machine-readable results everywhere; no option without a word on it."""
    options = [parameter for parameter in LEAVES[name].params if isinstance(parameter, click.Option)]
    assert "--json" in [text for option in options for text in option.opts]
    assert [option.name for option in options if not option.help] == []


def test_the_reference_page_is_what_the_commands_say() -> None:
    """docs/cli.md is generated; `make reference` brings it up to date."""
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == reference()


def test_the_list_of_commands_is_the_registry_in_order() -> None:
    """`dpcipher --help` lists the flow from left to right without importing it."""
    context = click.Context(main)
    shown = help_text("dpcipher", main)
    places = [shown.index(line) for line in COMMANDS.values()]
    assert main.list_commands(context) == list(COMMANDS)
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["measure", "plan", "ledger create"])
def test_no_promise_has_a_silent_default(name: str) -> None:
    """What protects people is typed: the unit, and for `measure` the ledger and the output. One row a person is the default that `--help` shows."""
    needed = {"unit"} | ({"ledger", "path"} if name == "measure" else set())
    parameters = {parameter.name: parameter for parameter in LEAVES[f"dpcipher {name}"].params}
    assert needed <= {name for name, parameter in parameters.items() if parameter.required}
    assert (parameters["max_rows"].default, parameters["max_rows"].show_default) == (1, True)


def test_placeholders_name_what_is_asked_for() -> None:
    """No TEXT, PATH or bare NAME=VALUE: each says whether it is a column, a name, a file or a folder."""
    shown = re.findall(r"^  (?:-\w, )?--[\w-]+ ([A-Z=|]{3,})", reference(), flags=re.MULTILINE)
    assert len(shown) > 60
    assert not {"TEXT", "PATH", "NAME=VALUE"} & set(shown)
    compare = help_text("dpcipher compare", TREE["dpcipher compare"])
    assert "--methods NAMES" in compare
    assert "--epsilons NUMBERS" in compare
