"""Wrong commands as people type them: each is refused with a message, and nothing is lost, charged, quoted or left half-written.

The table is wrong_commands.txt: exit code, command, a piece of the message. {budget} and {ledger} stand for the sound options of `measure`.
"""

import os
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from messy_folder import build, digests

from dpcipher.cli import COMMANDS, main

SOUND = {"{budget}": "--epsilon 1 --unit add-remove", "{ledger}": "--ledger people.ledger"}
TABLE = [
    tuple(line.split(" | "))
    for line in (Path(__file__).parent / "wrong_commands.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.fixture(name="messy", scope="module")
def messy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all commands, which leave it as it is."""
    folder, before = tmp_path_factory.mktemp("curator"), Path.cwd()
    os.chdir(folder)
    try:
        build()
    finally:
        os.chdir(before)
    return folder


def test_the_table_is_of_every_command() -> None:
    """At least two hundred rows, none twice."""
    assert len(TABLE) >= 200
    assert len({command for _, command, _ in TABLE}) == len(TABLE)
    assert {command.split()[0] for _, command, _ in TABLE} >= set(COMMANDS)


@pytest.mark.parametrize(("code", "command", "message"), TABLE)
def test_a_wrong_command_is_refused_and_leaves_everything_as_it_was(
    messy: Path, monkeypatch: pytest.MonkeyPatch, code: str, command: str, message: str
) -> None:
    """Exit code and message; every file, folder and link as before, ledgers too, and no new one; no traceback, and no cell of a table."""
    monkeypatch.chdir(messy)
    before = digests(messy)
    words = command
    for name, options in SOUND.items():
        words = words.replace(name, options)
    refused = CliRunner().invoke(main, shlex.split(words))
    said = " ".join(refused.output.split())
    assert (refused.exit_code, message in said) == (int(code), True), said
    assert digests(messy) == before
    assert "Traceback" not in said
    assert "this is a bug" not in said
    assert "cretvalue" not in said
