"""Keys and signatures through the command line: made, signed, verified and shown."""

import importlib.util
import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import PROMISE, Run, curators_folder, facts, measured_release, runner  # noqa: F401

from conftest import missing
from dpcipher.cli import main
from dpcipher.release.signature import is_locked

RELEASE = "people.release.parquet"


def needs_bcrypt() -> None:
    """Keys with a passphrase need it."""
    if importlib.util.find_spec("bcrypt") is None:
        missing("sign", "bcrypt is not installed")


@pytest.fixture(name="signed")
def signed_release(measured: Path, run: Run) -> Path:
    """A release with Ada's signature; Bob has a key too."""
    for name in ("ada", "bob"):
        assert run(f"release key {name}").exit_code == 0
    done = run(f"release sign {RELEASE} --key ada.key")
    assert done.exit_code == 0, done.output
    return measured


def test_the_story_of_a_signature(signed: Path, run: Run) -> None:
    """Whose key, over what, and what is thereby certified; the same as JSON."""
    done = run(f"release verify {RELEASE} --key ada.pub --ledger people.ledger")
    assert done.exit_code == 0, done.output
    assert "Signed   signed: by ada.pub (key " in done.stdout
    assert "over every byte of the file" in done.stdout
    assert "Ledger   recorded: its charge and its checksum are in this ledger" in done.stdout
    assert "Status   certified: noise by OpenDP" in done.stdout
    told = facts(run(f"release verify {RELEASE} --key ada.pub --ledger people.ledger --json"))
    assert told["verified"]
    assert [(check["by"], check["passed"]) for check in told["checks"]] == [("signature", True), ("ledger", True)]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--key bob.pub", "signed by an unknown key"),
        ("--key ada.pub --signature absent.sig", "not signed"),
    ],
)
def test_what_is_not_confirmed_exits_with_1(signed: Path, run: Run, words: str, said: str) -> None:
    """And is as stated by the file."""
    done = run(f"release verify {RELEASE} {words}")
    assert done.exit_code == 1
    assert f"Signed   {said}: " in done.stdout
    assert "Status   as stated by the file: " in done.stdout
    told = json.loads(run(f"release verify {RELEASE} {words} --json").stdout)
    assert (told["verified"], told["checks"][0]["word"]) == (False, said)


def test_several_keys_are_trusted_through_a_change(signed: Path, run: Run) -> None:
    """Both the old key and the new one, by two files or by one."""
    assert run(f"release verify {RELEASE} --key ada.pub --key bob.pub").exit_code == 0
    Path("trusted").write_text(Path("bob.pub").read_text() + Path("ada.pub").read_text())
    assert run(f"release verify {RELEASE} --key trusted").exit_code == 0
    refused = run(f"release sign {RELEASE} --key bob.key")
    assert refused.exit_code == 1
    assert "is there already, and nothing is overwritten unasked" in " ".join(refused.stderr.split())
    assert run(f"release sign {RELEASE} --key bob.key --force").exit_code == 0
    assert run(f"release verify {RELEASE} --key bob.pub").exit_code == 0


def test_an_altered_release_is_contradicted(signed: Path, run: Run) -> None:
    """A release of the same ledger in the place of the signed one."""
    words = ("measure", "people.csv", "people.yaml", *PROMISE, "--ledger", "people.ledger", "-o", RELEASE)
    assert run(*words, "--force").exit_code == 0
    done = run(f"release verify {RELEASE} --key ada.pub")
    assert done.exit_code == 1
    assert "Signed   ALTERED: this is not the file that ada.pub signed" in done.stdout
    assert "Status   contradicted: do not rely on this file" in done.stdout


def test_verify_needs_something_to_hold_it_against(signed: Path, run: Run) -> None:
    """Neither a key nor a ledger is wrong usage."""
    refused = run(f"release verify {RELEASE}")
    assert refused.exit_code == 2
    assert "give --key, a public key that you trust, or --ledger" in refused.stderr


def test_show_is_short_and_claims_nothing(signed: Path, run: Run) -> None:
    """What the file states, marked as such; with a key, what that confirms."""
    plain = run(f"release show {RELEASE}")
    assert plain.exit_code == 0, plain.output
    assert "Status   as stated by the file: noise by OpenDP" in plain.stdout
    assert "Signed   not verified: it names key " in plain.stdout
    assert "Budget   epsilon = 2" in plain.stdout
    assert "certified" not in plain.stdout
    assert len(plain.stdout.splitlines()) <= 12
    assert "Status   certified: " in run(f"release show {RELEASE} --key ada.pub").stdout
    told = facts(run(f"release show {RELEASE} --json"))
    assert (told["status"], told["checks"]) == ("as stated by the file", [])
    assert told["statement"]["budget"] == {"epsilon": "2"}
    Path(f"{RELEASE}.sig").write_text("{}")
    assert "Signed   damaged" in run(f"release show {RELEASE}").stdout
    Path(f"{RELEASE}.sig").unlink()
    assert "Signed   no\n" in run(f"release show {RELEASE}").stdout


def test_a_key_is_of_mode_0600_and_made_once(folder: Path, run: Run) -> None:
    """The same name again is refused."""
    told = facts(run("release key ada --json"))
    assert (told["private"], told["public"], told["locked"]) == ("ada.key", "ada.pub", False)
    assert stat.S_IMODE(Path("ada.key").stat().st_mode) == 0o600
    again = run("release key ada")
    assert again.exit_code == 1
    assert "exists already and is never overwritten" in " ".join(again.stderr.split())


def test_a_passphrase_comes_from_a_prompt_or_the_environment(
    measured: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for twice when the key is made and once when it signs; it is never printed."""
    needs_bcrypt()
    typed = CliRunner().invoke(main, ["release", "key", "ada", "--passphrase"], input="sesame\nsesame\n")
    assert typed.exit_code == 0, typed.output
    assert "locked by a passphrase" in typed.stdout
    words = ["release", "sign", RELEASE, "--key", "ada.key"]
    wrong = CliRunner().invoke(main, words, input="sesami\n")
    assert wrong.exit_code == 1
    assert "could not be unlocked" in " ".join(wrong.stderr.split())
    assert CliRunner().invoke(main, words, input="sesame\n").exit_code == 0
    monkeypatch.setenv("DPCIPHER_PASSPHRASE", "sesame")
    again = run(*words, "--force")
    assert again.exit_code == 0
    assert run("release key bob").exit_code == 0
    assert is_locked("bob.key")
    assert "sesam" not in typed.output + wrong.output + again.output


def test_a_report_says_certified_with_a_key(signed: Path, run: Run) -> None:
    """Without one, as stated by the file; with another's, the same and a warning."""
    assert run(f"synth {RELEASE} -n 50 --seed 1 -o s.csv").exit_code == 0
    for words, word in (("--key ada.pub", "certified"), ("--ledger people.ledger", "certified"), ("", "as stated by the file"), ("--key bob.pub", "as stated by the file")):  # fmt: skip
        done = run(f"report {RELEASE} s.csv -o r.html --force {words}")
        assert done.exit_code == 0, done.output
        assert f"<dt>Status</dt><dd>{word}</dd>" in Path("r.html").read_text(encoding="utf-8")
        assert ("signed by an unknown key" in done.stderr) == (words == "--key bob.pub")
