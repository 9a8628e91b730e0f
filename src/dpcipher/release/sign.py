"""Signed releases: who answers for a file, and for what it states.

A release's own checksum tells damage; anybody can compute it anew. A signature stands beside the release (`people.parquet.sig`) and
binds the SHA-256 of the file's bytes, the release's checksum and its schema's fingerprint to a key and a time. `verify` holds a release
against keys that its reader has pinned, against a ledger, or both; what neither confirms is stated by the file and by nobody else.

A signature file is accepted in the one form that `sign` writes, byte for byte, so that none of its bytes can be changed.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dpcipher.errors import NotPrivate, ParameterError, ReleaseError
from dpcipher.files import check_output, write_text
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.witness import RECORDED
from dpcipher.release.keys import ID_DIGITS, PinnedKey, key_id, pin, read_private
from dpcipher.release.release import Release
from dpcipher.schema.plain import read_json

SUFFIX = ".sig"
VERSION = 1
FORMAT = "dpcipher release signature"
_LONGEST = 4_000
_FORMS = {
    "file": r"[0-9a-f]{64}",
    "release": r"[0-9a-f]{64}",
    "schema": r"[0-9a-f]{64}",
    "key": rf"[0-9a-f]{{{ID_DIGITS}}}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
}

Key = str | Path | PinnedKey


@dataclass(frozen=True)
class Signed:
    """What is signed: the file's bytes, the release and the schema by their hashes; by which key, and when by the signer's clock."""

    file: str
    release: str
    schema: str
    key: str
    time: str

    def __post_init__(self) -> None:
        for name, form in _FORMS.items():
            if not re.fullmatch(form, getattr(self, name), re.ASCII):
                raise ValueError(f"{name} is not of its form")
        datetime.fromisoformat(self.time)

    @property
    def message(self) -> bytes:
        """The bytes that the signature is over: a line that says what this is, and the facts as JSON, sorted and without spaces."""
        facts = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return f"{FORMAT} {VERSION}\n{facts}".encode("ascii")


@dataclass(frozen=True)
class Signature:
    """What was signed, and the 64 bytes that only the key's holder could make of it."""

    signed: Signed
    value: bytes

    def to_text(self) -> str:
        """The signature file."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "signed": asdict(self.signed),
            "signature": self.value.hex(),
        }
        return json.dumps(plain, indent=2) + "\n"

    @classmethod
    def from_text(cls, raw: bytes) -> "Signature":
        """Read a signature file; anything but the exact form that is written is a ValueError."""
        plain: Any = read_json(raw)
        try:
            signature = cls(Signed(**plain["signed"]), bytes.fromhex(plain["signature"]))
        except (KeyError, TypeError) as wrong:
            raise ValueError("it is no signature of a release") from wrong
        if signature.to_text().encode("ascii") != raw:
            raise ValueError("it is not in the form that dpcipher writes")
        return signature


@dataclass(frozen=True)
class Check:
    """One thing that a release was held against, in a word and in a sentence."""

    by: Literal["signature", "ledger"]
    word: str
    meaning: str
    passed: bool = False

    @property
    def refutes(self) -> bool:
        """Whether the release cannot be what it says, rather than merely not being confirmed."""
        return self.word in ("ALTERED", "ROLLED BACK")


@dataclass(frozen=True)
class Standing:
    """Who answers for what a release states: the checks that were asked for."""

    release: Release
    checks: tuple[Check, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything that the release was held against confirms it."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def refuted(self) -> bool:
        """Whether anything says that the release was altered, or its ledger put back."""
        return any(check.refutes for check in self.checks)

    @property
    def confirmed(self) -> bool:
        """Whether a pinned key or a ledger confirms the release, and nothing refutes it."""
        return any(check.passed for check in self.checks) and not self.refuted

    @property
    def status(self) -> str:
        """The status in a few words: `certified` only where a pinned key or a ledger confirms it."""
        if self.refuted:
            return "refuted"
        stated = self.release.statement.status
        if self.confirmed:
            return stated
        return "as stated by the file" if stated == "certified" else f"{stated}, as stated by the file"

    @property
    def meaning(self) -> str:
        """What the status means."""
        if self.refuted:
            return "do not rely on this file; ask its publisher for a fresh copy"
        return self.release.statement.meaning


def sign(
    path: str | Path,
    key: str | Path,
    *,
    passphrase: str | None = None,
    save: str | Path | None = None,
    force: bool = False,
) -> Path:
    """Sign the release at `path` with a private key; the signature is written to `path`.sig or to `save`, and its path returned.

    A signature that is there already is kept unless `force` is set.
    """
    private = read_private(key, passphrase=passphrase)
    release = Release.load(path)
    if not release.statement.may_be_released:
        raise NotPrivate(f"release ({path}) is stamped {release.statement.status}; nobody should sign it")
    time = datetime.now(UTC).isoformat(timespec="seconds")
    signed = Signed(
        _sha256(Path(path)),
        release.checksum,
        release.schema.fingerprint(),
        key_id(private.public_key()),
        time,
    )
    text = Signature(signed, private.sign(signed.message)).to_text()
    target = signature_path(path) if save is None else Path(save)
    return _write(check_output(target, endings=(SUFFIX,), force=force, inputs=(path, key)), text, force=force)


def verify(
    release: Release | str | Path,
    *,
    keys: Key | Iterable[Key] = (),
    ledger: Ledger | str | Path | None = None,
    signature: str | Path | None = None,
) -> Standing:
    """Hold a release against public keys that you trust, against a ledger, or both.

    `keys` are files or pinned keys (`dpcipher.release.keys.pin`); a signature by any of them counts. The signature is looked for at the
    release's path with .sig, or at `signature`. A damaged release is a `ReleaseError`; everything else is in the checks.
    """
    pinned = pinned_keys(keys)
    if not pinned and ledger is None:
        raise ParameterError("keys (none) must name a public key that you trust; or give a ledger")
    loaded = release if isinstance(release, Release) else Release.load(release)
    checks = []
    if pinned:
        if isinstance(release, Release):
            raise ParameterError(
                "release (in memory) must be given as the path of its file: a signature is over the bytes of the file"
            )
        checks.append(_check_signature(Path(release), loaded, pinned, signature))
    if ledger is not None:
        checks.append(_check_ledger(loaded, ledger if isinstance(ledger, Ledger) else Ledger(ledger)))
    return Standing(loaded, tuple(checks))


def signature_path(release: str | Path) -> Path:
    """Where the signature of a release stands.

    >>> signature_path("people.parquet").name
    'people.parquet.sig'
    """
    path = Path(release)
    return path.with_name(path.name + SUFFIX)


def read_signature(path: str | Path) -> Signature | None:
    """The signature in a file, or None where there is no such file; a ReleaseError if it is damaged. It says nothing until it is verified."""
    place = Path(path)
    if not place.is_file():
        return None
    try:
        with place.open("rb") as file:
            return Signature.from_text(file.read(_LONGEST))
    except OSError as error:
        raise ReleaseError(f"signature ({place}) cannot be read: {error.strerror}") from None
    except ValueError as wrong:
        raise ReleaseError(
            f"signature ({place}) is damaged: {wrong!s:.100}. Get a fresh copy from the publisher"
        ) from None


def pinned_keys(keys: Key | Iterable[Key]) -> tuple[PinnedKey, ...]:
    """The keys of some files."""
    listed = [keys] if isinstance(keys, str | Path | PinnedKey) else keys
    return tuple(key if isinstance(key, PinnedKey) else pin(key) for key in listed)


def _check_signature(
    path: Path, release: Release, keys: Sequence[PinnedKey], given: str | Path | None
) -> Check:
    """What a signature file says of a release. The key comes first: what an unknown key signed is worth nothing."""
    place = signature_path(path) if given is None else Path(given)
    try:
        signature = read_signature(place)
    except ReleaseError as wrong:
        return Check("signature", "ALTERED", str(wrong))
    if signature is None:
        return Check("signature", "not signed", f"there is no signature at {place}")
    signed = signature.signed
    key = next((key for key in keys if key.id == signed.key), None)
    if key is None:
        return Check("signature", "signed by an unknown key", f"key {signed.key} is none of those you pinned")
    if not key.signed(signed.message, signature.value):
        return Check("signature", "ALTERED", f"the signature at {place} was not made by {key.name}")
    # The bytes are read anew, but the release in memory is bound by its own checksum: a file swapped in between changes one or the other.
    found = (_sha256(path), release.checksum, release.schema.fingerprint())
    if found != (signed.file, signed.release, signed.schema):
        return Check("signature", "ALTERED", f"this is not the file that {key.name} signed at {signed.time}")
    if not key.covers(datetime.fromisoformat(signed.time)):
        return Check(
            "signature",
            "signed by a retired key",
            f"{key.name} was retired {key.retired}, before {signed.time}",
        )
    meaning = f"by {key.name} (key {key.id}) at {signed.time}, over every byte of the file: tables, statement and schema"
    return Check("signature", "signed", meaning, passed=True)


def _check_ledger(release: Release, ledger: Ledger) -> Check:
    """What a ledger says of a release. It confirms one whose checksum it holds, and as long as its own witness does not object."""
    verdict, objection = (
        ledger.verify(release.statement.ledger, checksum=release.checksum),
        ledger.objection,
    )
    if objection is not None and not verdict.is_failure:
        return Check("ledger", "not the ledger its witness saw", objection)
    return Check("ledger", verdict.word, verdict.meaning, passed=verdict == RECORDED)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReleaseError(f"release file ({path}) cannot be read: {error.strerror}") from None


def _write(path: Path, text: str, *, force: bool) -> Path:
    try:
        return write_text(path, text, force=force)
    except OSError as error:
        raise ReleaseError(
            f"signature ({path}) cannot be written: {error.strerror}; choose another place"
        ) from None
