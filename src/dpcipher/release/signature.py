"""Signed releases: who answers for a file, and for what it states.

A release's own checksum tells damage; anybody can compute it anew. A signature stands beside the release (`people.parquet.sig`) and
binds the SHA-256 of the file's bytes, the release's checksum and its schema's fingerprint to a key and a time. `verify` compares a release
with keys that its reader trusts, with a ledger, or both; what neither confirms is stated by the file and by nobody else.
A signature file is accepted in the one form that `sign` writes, byte for byte, so that none of its bytes can be changed.

Keys are Ed25519 keys of OpenSSH, as `ssh-keygen -t ed25519` makes them: a private one signs releases, and whoever relies on them trusts the public one.
A public key is one line, `ssh-ed25519 AAAA… comment`; a file of trusted keys holds such lines. A key's id is what `ssh-keygen -l -f ada.pub` shows. It names
a key; what is trusted is the key itself.
"""

import base64
import hashlib
import json
import re
import stat
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from dpcipher.errors import MissingExtra, NotPrivate, ParameterError, ReleaseError, warn
from dpcipher.files import check_output, write_new, write_text
from dpcipher.files.codec import Rule, decode
from dpcipher.files.json import read_json
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.witness import RECORDED
from dpcipher.release.release import Release

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SUFFIX, PRIVATE, PUBLIC = ".sig", ".key", ".pub"
FORMAT: Literal["dpcipher release signature 1"] = "dpcipher release signature 1"
KIND = "ssh-ed25519"
_HEAD = b"\0\0\0\x0b" + KIND.encode() + b"\0\0\0\x20"  # of the 32 bytes of a public key
_LONGEST_SIGNATURE, _LONGEST_KEY = 4_000, 100_000
# Ed25519 is the curve −x² + y² = 1 + d x² y² over the integers modulo P (RFC 8032, section 5.1).
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


@dataclass(frozen=True)
class TrustedKey:
    """A public key that somebody trusts, and what it is called."""

    name: str
    public: bytes

    def __post_init__(self) -> None:
        if not _is_sound(self.public):
            raise ParameterError(
                f"key ({self.name}) must be a public Ed25519 key that only one private key signs for: anybody can make signatures that "
                "this one accepts. Do not trust whoever sent it"
            )

    @property
    def id(self) -> str:
        """What the key is called everywhere."""
        return key_id(self.public)

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether the holder of the private key signed this message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


Key = str | Path | TrustedKey


@dataclass(frozen=True)
class Signed:
    """What is signed: the file's bytes, the release and the schema by their hashes; by which key, and when by the signer's clock."""

    file: str
    release: str
    schema: str
    key: str
    time: str

    @property
    def message(self) -> bytes:
        """The bytes that the signature is over: a line that says what this is, and the facts as JSON, sorted and without spaces."""
        return f"{FORMAT}\n{json.dumps(asdict(self), sort_keys=True, separators=(',', ':'))}".encode()


@dataclass(frozen=True)
class Signature:
    """What was signed, and the 64 bytes, in hexadecimal digits, that only the key's holder could make of it."""

    format: Literal["dpcipher release signature 1"]
    signed: Signed
    signature: Annotated[
        str, Rule("must be 128 hexadecimal digits", lambda text: re.fullmatch("[0-9a-f]{128}", text))
    ]

    def to_text(self) -> str:
        """The signature file."""
        return json.dumps(asdict(self), indent=2) + "\n"


@dataclass(frozen=True)
class Check:
    """One thing that a release was compared with, in a word and in a sentence."""

    by: Literal["signature", "ledger"]
    word: str
    meaning: str
    passed: bool = False

    @property
    def contradicts(self) -> bool:
        """Whether the release cannot be what it says, rather than merely not being confirmed."""
        return self.word in ("ALTERED", "ROLLED BACK")


@dataclass(frozen=True)
class Verification:
    """Who answers for what a release states: the checks that were asked for."""

    release: Release
    checks: tuple[Check, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything that the release was compared with confirms it."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def contradicted(self) -> bool:
        """Whether anything says that the release was altered, or its ledger put back."""
        return any(check.contradicts for check in self.checks)

    @property
    def confirmed(self) -> bool:
        """Whether a trusted key or a ledger confirms the release, and nothing contradicts it."""
        return any(check.passed for check in self.checks) and not self.contradicted

    @property
    def status(self) -> str:
        """The status in a few words: `certified` only where a trusted key or a ledger confirms it."""
        if self.contradicted:
            return "contradicted"
        stated = self.release.statement.status
        if self.confirmed:
            return stated
        return "as stated by the file" if stated == "certified" else f"{stated}, as stated by the file"

    @property
    def meaning(self) -> str:
        """What the status means."""
        if self.contradicted:
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
    signed = Signed(
        *_hashes(Path(path), release),
        key_id(private.public_key().public_bytes_raw()),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    text = Signature(FORMAT, signed, private.sign(signed.message).hex()).to_text()
    target = signature_path(path) if save is None else Path(save)
    check_output(target, endings=(SUFFIX,), force=force, inputs=(path, key))
    try:
        return write_text(target, text, force=force)
    except OSError as error:
        raise ReleaseError(
            f"signature ({target}) cannot be written: {error.strerror}; choose another place"
        ) from None


def verify(
    release: Release | str | Path,
    *,
    keys: Key | Iterable[Key] = (),
    ledger: Ledger | str | Path | None = None,
    signature: str | Path | None = None,
) -> Verification:
    """Compare a release with public keys that you trust, with a ledger, or both.

    `keys` are files of public keys, or keys that were read (`dpcipher.release.signature.trust_key`); a signature by any of them counts. The signature
    is looked for at the release's path with .sig, or at `signature`. A damaged release is a `ReleaseError`; everything else is in the checks.
    """
    trusted = trusted_keys(keys)
    if not trusted and ledger is None:
        raise ParameterError("keys (none) must name a public key that you trust; or give a ledger")
    loaded = release if isinstance(release, Release) else Release.load(release)
    checks = []
    if trusted:
        if isinstance(release, Release):
            raise ParameterError(
                "release (in memory) must be given as the path of its file: a signature is over the bytes of the file"
            )
        checks.append(_check_signature(Path(release), loaded, trusted, signature))
    if ledger is not None:
        checks.append(_check_ledger(loaded, ledger if isinstance(ledger, Ledger) else Ledger(ledger)))
    return Verification(loaded, tuple(checks))


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
            raw = file.read(_LONGEST_SIGNATURE)
        signature: Signature = decode(Signature, read_json(raw), "it")
        if signature.to_text().encode() != raw:
            raise ValueError("it is not in the form that dpcipher writes")
    except OSError as error:
        raise ReleaseError(f"signature ({place}) cannot be read: {error.strerror}") from None
    except ValueError as wrong:
        raise ReleaseError(
            f"signature ({place}) is damaged: {wrong!s:.100}. Get a fresh copy from the publisher"
        ) from None
    return signature


def _check_signature(
    path: Path, release: Release, keys: Sequence[TrustedKey], given: str | Path | None
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
        return Check(
            "signature", "signed by an unknown key", f"key {signed.key:.60} is none of those that you trust"
        )
    if not key.signed(signed.message, bytes.fromhex(signature.signature)):
        return Check("signature", "ALTERED", f"the signature at {place} was not made by {key.name}")
    # The bytes are read anew, but the release in memory is bound by its own checksum: a file swapped in between changes one or the other.
    if _hashes(path, release) != (signed.file, signed.release, signed.schema):
        return Check("signature", "ALTERED", f"this is not the file that {key.name} signed at {signed.time}")
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


def _hashes(path: Path, release: Release) -> tuple[str, str, str]:
    """What a signature is over: the bytes of the file, the release, and its schema."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReleaseError(f"release file ({path}) cannot be read: {error.strerror}") from None
    return digest, release.checksum, release.schema.fingerprint()


def create_key(name: str | Path, *, passphrase: str | None = None) -> tuple[Path, Path, str]:
    """Make a key pair: NAME.key (mode 0600) and NAME.pub; the two paths, and the key's id. Nothing is ever overwritten."""
    _require()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if passphrase == "":
        raise ParameterError("passphrase (empty) must have at least one character; leave it out for none")
    paths = Path(f"{name}{PRIVATE}"), Path(f"{name}{PUBLIC}")
    for path in paths:
        if path.exists() or path.is_symlink():
            raise _exists(path)
    lock: form.KeySerializationEncryption = form.NoEncryption()
    if passphrase is not None:
        _require("bcrypt")
        lock = form.BestAvailableEncryption(passphrase.encode())
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    line = f"{KIND} {base64.b64encode(_HEAD + public).decode()} {Path(name).name}\n"
    _write(paths[0], key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, lock), mode=0o600)
    _write(paths[1], line.encode(), mode=0o644)
    return *paths, key_id(public)


def trust_key(line: str, name: str = "", *, where: str = "") -> TrustedKey:
    """Trust the public key in a line of text, under a name; by default its comment. `where` the line was found is all that is said of a wrong one."""
    words = line.split(maxsplit=2)
    try:
        blob = base64.b64decode(words[1], validate=True) if words[0] == KIND else b""
    except (LookupError, NotBase64, ValueError):
        blob = b""
    if not blob.startswith(_HEAD) or len(blob) != len(_HEAD) + 32:
        raise ParameterError(
            f"key ({where or f'{line!r:.60}'}) must be a public Ed25519 key of OpenSSH, a line such as {KIND} AAAA… ada; "
            f"`ssh-keygen -t ed25519` and `dpcipher release key NAME` write one as NAME{PUBLIC}"
        )
    return TrustedKey(name or " ".join(words[2:]) or "a key without a name", blob[len(_HEAD) :])


def trusted_keys(keys: str | Path | TrustedKey | Iterable[str | Path | TrustedKey]) -> tuple[TrustedKey, ...]:
    """The public keys of some files; a file may hold several, a line each, and lines that begin with #."""
    trusted = list[TrustedKey]()
    for key in [keys] if isinstance(keys, str | Path | TrustedKey) else keys:
        if isinstance(key, TrustedKey):
            trusted.append(key)
            continue
        _require()
        text = _read(Path(key), "public").decode("utf-8", "replace")
        lines = {
            n: line for n, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"
        } or {1: ""}
        name = Path(key).name if len(lines) == 1 else ""
        trusted += [trust_key(line, name, where=f"{key}, line {n}") for n, line in lines.items()]
    return tuple(trusted)


def read_private(path: str | Path, *, passphrase: str | None = None) -> "Ed25519PrivateKey":
    """The private key in a file, unlocked with its passphrase if it has one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    locked, key = is_locked(path), None
    if locked and not passphrase:
        raise ParameterError(f"key ({path}) is locked; give its passphrase")
    if locked:
        _require("bcrypt")
    with suppress(TypeError):
        key = _load(path, (passphrase or "").encode() if locked else None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(
            f"key ({path}) could not be unlocked; check its passphrase"
            if locked
            else f"key ({path}) must be a private Ed25519 key of OpenSSH; `ssh-keygen -t ed25519` and "
            f"`dpcipher release key NAME` write one, the latter as NAME{PRIVATE}"
        )
    if Path(path).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):  # whoever reads it can sign as its holder
        warn(f"key ({path}) can be opened by others than its owner; run: chmod 600 {path}")
    return key


def is_locked(path: str | Path) -> bool:
    """Whether a private key needs a passphrase."""
    try:
        _load(path, None)
    except TypeError:  # it is locked, and no passphrase was given
        return True
    return False


def _load(path: str | Path, passphrase: bytes | None) -> object:
    """A private key of OpenSSH; None where the file holds none, or it cannot be unlocked."""
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    text = _read(Path(path), "private")
    try:
        return load_ssh_private_key(text, passphrase)
    except (ValueError, UnsupportedAlgorithm):
        return None


def key_id(public: bytes) -> str:
    """What a key is called: SHA256: and 43 characters, as OpenSSH shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(_HEAD + public).digest()).decode().rstrip("=")


def _is_sound(public: bytes) -> bool:
    """Whether 32 bytes are the one encoding of a point that is not of small order (1, 2, 4 or 8).

    y is below P. The points of order 1, 2 and 4 have y = 1, −1 and 0. One of order 8 doubles to y = 0, so that x² = −y², and then the curve says
    d y⁴ + 2 y² = 1.
    """
    y = int.from_bytes(public, "little") & (2**255 - 1)
    small = y * (y**2 - 1) * (_D * y**4 + 2 * y**2 - 1) % _P == 0
    return len(public) == 32 and y < _P and not small


def _require(needs: str = "cryptography") -> None:
    try:
        __import__(needs)
    except ImportError:
        raise MissingExtra("sign", needs) from None


def _read(path: Path, kind: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_KEY)
    except OSError as error:
        raise ParameterError(
            f"key ({path}) must be a {kind} key file that can be read: {error.strerror}; check the path"
        ) from None


def _write(path: Path, data: bytes, *, mode: int) -> None:
    try:
        write_new(path, data, mode=mode)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise ParameterError(
            f"key ({path}) cannot be written: {error.strerror}; choose another place"
        ) from None


def _exists(path: Path) -> ParameterError:
    return ParameterError(
        f"key ({path}) exists already and is never overwritten: what it signed needs it. Choose another name"
    )
