"""The installed program: exit codes, streams, closed pipes and interrupts."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import curators_folder  # noqa: F401

from dpcipher.cli import Flow

PROGRAM = [sys.executable, "-m", "dpcipher"]


def spawn(*words: str, **options: object) -> subprocess.Popen[str]:
    """Start the program with both streams captured."""
    return subprocess.Popen(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_exit_codes_and_streams(folder: Path) -> None:
    """0, 1 and 2; results on stdout, everything else on stderr."""
    done = subprocess.run(
        [*PROGRAM, "schema", "show", "people.yaml", "--json"], capture_output=True, text=True
    )
    refused = subprocess.run([*PROGRAM, "ledger", "show", "absent"], capture_output=True, text=True)
    wrong = subprocess.run([*PROGRAM, "measure"], capture_output=True, text=True)
    assert (done.returncode, refused.returncode, wrong.returncode) == (0, 1, 2)
    assert json.loads(done.stdout)["columns"][0]["name"] == "sex"
    assert (done.stderr, refused.stdout, wrong.stdout) == ("", "", "")
    assert refused.stderr.startswith("Error: ledger (absent)")


def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    """As in `dpcipher schema show people.yaml | head -0`."""
    process = spawn("schema", "show", "people.yaml")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) in (0, 1)
    assert said == ""


def test_an_interrupt_ends_with_a_word(folder: Path) -> None:
    """Ctrl-C while rows are being counted: no traceback, exit code 130, nothing charged after it was said that nothing was."""
    Path("pipe.csv").write_text("sex,age,smoker\n" + "F,5,true\n" * 2_000_000)
    before = Path("people.ledger").read_bytes()
    words = "measure pipe.csv people.yaml --epsilon 1 --unit add-remove --max-rows 1 --ledger people.ledger -o r.parquet"
    process = spawn(*words.split())
    assert process.stderr is not None
    assert process.stderr.readline() == "counting …\n"
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Interrupted" in said
    assert "Traceback" not in said
    assert Path("people.ledger").read_bytes() == before


def test_a_bug_is_reported_without_quoting_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of an unforeseen exception may hold a private value, so it is not shown."""

    class Broken(Flow):
        def get_command(self, ctx: object, cmd_name: str) -> None:
            raise RuntimeError("could not convert 'Jane Doe'")

    monkeypatch.delenv("DPCIPHER_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        Broken(name="x", modules={"y": "z"}).main(["y"])
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert "unexpected RuntimeError in test_process.py" in said
    assert "Jane" not in said
