"""Ed25519 keys of OpenSSH, as `ssh-keygen -t ed25519` makes them: a private one signs releases, and whoever relies on them trusts the public one.

A public key is one line, `ssh-ed25519 AAAA… comment`; a file of trusted keys holds such lines. A key's id is what `ssh-keygen -l -f ada.pub` shows. It names
a key; what is trusted is the key itself.
"""

import base64
import hashlib
import stat
from binascii import Error as NotBase64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpcipher.errors import MissingExtra, ParameterError, warn
from dpcipher.files import write_new

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PRIVATE, PUBLIC = ".key", ".pub"
KIND = "ssh-ed25519"
_HEAD = b"\0\0\0\x0b" + KIND.encode() + b"\0\0\0\x20"  # of the 32 bytes of a public key
_LONGEST = 100_000
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
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    locked = is_locked(path)
    if locked and not passphrase:
        raise ParameterError(f"key ({path}) is locked; give its passphrase")
    if locked:
        _require("bcrypt")
    text = _read(Path(path), "private")
    try:
        key = load_ssh_private_key(text, (passphrase or "").encode() if locked else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        why = (
            "could not be unlocked; check its passphrase"
            if locked
            else "must be a private Ed25519 key of OpenSSH; "
        )
        make = (
            ""
            if locked
            else f"`ssh-keygen -t ed25519` and `dpcipher release key NAME` write one, the latter as NAME{PRIVATE}"
        )
        raise ParameterError(f"key ({path}) {why}{make}")
    if Path(path).stat().st_mode & (
        stat.S_IRWXG | stat.S_IRWXO
    ):  # whoever can read it can sign in its holder's name
        warn(f"key ({path}) can be opened by others than its owner; run: chmod 600 {path}")
    return key


def is_locked(path: str | Path) -> bool:
    """Whether a private key needs a passphrase."""
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    text = _read(Path(path), "private")
    try:
        load_ssh_private_key(text, None)
    except TypeError:  # it is locked, and no passphrase was given
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return False


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
            return file.read(_LONGEST)
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
