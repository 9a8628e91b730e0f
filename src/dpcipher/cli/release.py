"""`dpcipher release`: keys, signatures, and what a release states."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.measure import release_facts, release_lines
from dpcipher.errors import ReleaseError

if TYPE_CHECKING:
    from dpcipher.release.signature import Verification

PASSPHRASE = "DPCIPHER_PASSPHRASE"  # the name of a variable, not a secret


@click.group("release")
def command() -> None:
    """Make keys; sign, verify and show releases.

    A release's checksum tells damage; a signature tells who answers for it. Publish the public key where people know you, and the
    signature beside the release.

    \b
    Example:
      dpcipher release key ada
      dpcipher release sign people.release.parquet --key ada.key
      dpcipher release verify people.release.parquet --key ada.pub
    """


@command.command("key")
@click.argument("name")
@click.option(
    "--passphrase",
    "locked",
    is_flag=True,
    help=f"Ask for a passphrase that locks the private key; or set {PASSPHRASE}.",
)
@options.as_json
def key(name: str, locked: bool, json_: bool) -> None:
    """Make a key pair: NAME.key, which signs and stays with you, and NAME.pub, for everybody.

    Nothing is overwritten. The private key is a file of mode 0600; a passphrase is asked for or read from the environment, never
    taken from the command line, where others could see it.

    \b
    Example:
      dpcipher release key ada
    """
    from dpcipher.release.signature import create_key

    passphrase = os.environ.get(PASSPHRASE) or None
    if locked and passphrase is None:
        passphrase = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    private, public, number = create_key(name, passphrase=passphrase)
    lock = "locked by a passphrase" if passphrase is not None else "without a passphrase"
    text = (
        f"Wrote    {private}: the private key, {lock}; keep it to yourself\n"
        f"Wrote    {public}: the public key, for everybody\n"
        f"Key      {number}"
    )
    facts = {"private": str(private), "public": str(public), "key": number, "locked": passphrase is not None}
    output.show(text, facts, as_json=json_)


@command.command("sign", cls=options.Writer)
@click.argument("release", type=options.FILE)
@click.option("--key", "private", type=options.FILE, required=True, help="Your private key (NAME.key).")
@click.option(
    "-o",
    "--output",
    "target",
    cls=options.Output,
    endings=(".sig",),
    type=options.FILE,
    help="The signature; by default RELEASE.sig.",
)
@options.as_json
def sign_(release: Path, private: Path, target: Path | None, force: bool, json_: bool) -> None:
    """Sign RELEASE: you answer for every byte of it.

    Sign what you have just measured, or what `dpcipher release verify --ledger` confirms. A locked key asks for its passphrase, unless
    DPCIPHER_PASSPHRASE holds it.

    \b
    Example:
      dpcipher release sign people.release.parquet --key ada.key
    """
    from dpcipher.release.signature import is_locked, read_signature, sign

    passphrase = None
    if is_locked(private):
        passphrase = os.environ.get(PASSPHRASE) or click.prompt("Passphrase", hide_input=True, err=True)
    written = sign(release, private, passphrase=passphrase, save=target, force=force)
    signature = read_signature(written)
    assert signature is not None  # it was written just now
    text = f"Wrote    {written}: signed with key {signature.signed.key}\n"
    text += "Next     publish it beside the release; readers check it with: dpcipher release verify"
    output.show(text, {"signature": str(written), "signed": asdict(signature.signed)}, as_json=json_)


@command.command("verify")
@click.argument("release", type=options.FILE)
@options.evidence
@click.option("--signature", type=options.FILE, help="The signature; by default RELEASE.sig.")
@options.as_json
@click.pass_context
def verify_(
    ctx: click.Context,
    release: Path,
    keys: tuple[Path, ...],
    ledger: Path | None,
    signature: Path | None,
    json_: bool,
) -> None:
    """Say who answers for RELEASE: a key that you trust, the ledger that paid for it, or nobody.

    \b
    signed                    a key that you named signed every byte of it
    signed by an unknown key  by none of the keys that you named
    not signed                there is no signature beside it
    ALTERED                   the release or its signature is not what was signed, or not what the ledger paid for
    recorded, ROLLED BACK …   what the ledger says, as in `dpcipher ledger verify`

    The exit code is 0 if everything that you named confirms it, else 1.

    \b
    Example:
      dpcipher release verify people.release.parquet --key ada.pub
      dpcipher release verify people.release.parquet --ledger people.ledger
    """
    from dpcipher.release.signature import verify

    if not keys and ledger is None:
        raise click.UsageError("give --key, a public key that you trust, or --ledger, or both")
    verification = verify(release, keys=keys, ledger=ledger, signature=signature)
    lines = [f"Release  {release}", *_checks(verification), _status(verification)]
    facts = {
        "release": str(release),
        "checksum": verification.release.checksum,
        **_verification_facts(verification),
        "verified": verification.passed,
    }
    output.show("\n".join(lines), facts, as_json=json_)
    if not verification.passed:
        ctx.exit(1)


@command.command("show")
@click.argument("release", type=options.FILE)
@options.evidence
@options.as_json
def show(
    release: Path,
    keys: tuple[Path, ...],
    ledger: Path | None,
    json_: bool,
) -> None:
    """Show what RELEASE states: tables, noise, budget, unit and status; and its signature.

    Without a key or a ledger nothing is verified, and it says so.

    \b
    Example:
      dpcipher release show people.release.parquet
    """
    from dpcipher.release.signature import Verification, verify

    asked = keys or ledger is not None
    verification = (
        verify(release, keys=keys, ledger=ledger) if asked else Verification(dc.Release.load(release))
    )
    shown, state = verification.release, _signature_state(release)
    lines = [
        f"Release  {release}",
        *release_lines(shown),
        f"Rows     {shown.n_rows:,} ({'public' if shown.statement.n_rows is not None else 'estimated'})",
        f"Made     {_made(shown)}",
        f"Checksum {shown.checksum}",
        f"Schema   {shown.schema.fingerprint()}",
        *(_checks(verification) if keys else [f"Signed   {state}", *_checks(verification)]),
        _status(verification),
    ]
    facts = {**release_facts(shown, release), "signature": state, **_verification_facts(verification)}
    output.show("\n".join(lines), facts, as_json=json_, stamp=shown.stamp)


def _made(release: "dc.Release") -> str:
    """When, and with which software."""
    software = ", ".join(f"{name} {version}" for name, version in release.statement.software.items())
    return (release.statement.created or "at a time not stated") + (f" with {software}" if software else "")


def _signature_state(release: Path) -> str:
    """What the signature beside a release says of itself, before it is verified."""
    from dpcipher.release.signature import read_signature, signature_path

    try:
        signature = read_signature(signature_path(release))
    except ReleaseError:
        return "damaged: the signature beside it cannot be read"
    if signature is None:
        return "no"
    return f"not verified: it names key {signature.signed.key}; name the key that you trust with --key"


def _checks(verification: "Verification") -> list[str]:
    heads = {"signature": "Signed", "ledger": "Ledger"}
    return [f"{heads[check.by]:<8} {check.word}: {check.meaning}" for check in verification.checks]


def _status(verification: "Verification") -> str:
    return f"Status   {verification.status}: {verification.meaning}"


def _verification_facts(verification: "Verification") -> dict[str, Any]:
    return {"status": verification.status, "checks": [asdict(check) for check in verification.checks]}
