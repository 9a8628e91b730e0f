"""Ed25519 keys: a private one signs releases, and whoever relies on them pins the public one.

Both are PEM files that other tools read too: the private key PKCS #8, locked by a passphrase if there is one, the public key
SubjectPublicKeyInfo. A key's id is the start of the SHA-256 of its public key in DER, so that
`openssl pkey -pubin -in ada.pub -outform DER | sha256sum` shows it. The id names a key; what is trusted is the pinned key itself.
"""

import hashlib
import stat
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dpcipher.errors import MissingExtra, ParameterError, warn
from dpcipher.files import write_new

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PRIVATE, PUBLIC = ".key", ".pub"
ID_DIGITS = 32
_LONGEST = 10_000
_LOCKED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
# Ed25519 is the curve −x² + y² = 1 + d x² y² over the integers modulo P (RFC 8032, section 5.1).
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


@dataclass(frozen=True)
class PinnedKey:
    """A public key that somebody trusts; with `retired`, only for what it signed up to that day, by the signer's clock."""

    name: str
    id: str
    public: bytes
    retired: date | None = None

    def __post_init__(self) -> None:
        if not _is_sound(self.public):
            raise ParameterError(
                f"key ({self.name}) must be a public Ed25519 key that only one private key signs for: anybody can make signatures that "
                "this one accepts. Do not trust whoever sent it"
            )

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether the holder of the private key signed this message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def covers(self, time: datetime) -> bool:
        """Whether a signature of that time counts."""
        return self.retired is None or time.date() <= self.retired


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
    key = Ed25519PrivateKey.generate()
    lock: form.KeySerializationEncryption = form.NoEncryption()
    if passphrase is not None:
        lock = form.BestAvailableEncryption(passphrase.encode())
    public = key.public_key()
    _write(paths[0], key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock), mode=0o600)
    _write(
        paths[1],
        public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo),
        mode=0o644,
    )
    return *paths, key_id(public)


def pin(path: str | Path, *, retired: date | str | None = None) -> PinnedKey:
    """Trust the public key in a file; with `retired`, only what it signed up to that day."""
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = _read(Path(path), "public")
    try:
        key = form.load_pem_public_key(raw)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError(
            f"key ({path}) must be a public Ed25519 key in PEM form; `dpcipher release key NAME` writes one as NAME{PUBLIC}"
        )
    return PinnedKey(Path(path).name, key_id(key), key.public_bytes_raw(), _day(retired))


def read_private(path: str | Path, *, passphrase: str | None = None) -> "Ed25519PrivateKey":
    """The private key in a file, unlocked with its passphrase if it has one."""
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = _read(Path(path), "private")
    locked = raw.lstrip().startswith(_LOCKED)
    if locked and not passphrase:
        raise ParameterError(f"key ({path}) is locked; give its passphrase")
    try:
        key = form.load_pem_private_key(raw, (passphrase or "").encode() if locked else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        why = "could not be unlocked; check its passphrase" if locked else _not_private()
        raise ParameterError(f"key ({path}) {why}")
    _check_mode(Path(path))
    return key


def is_locked(path: str | Path) -> bool:
    """Whether a private key needs a passphrase."""
    return _read(Path(path), "private").lstrip().startswith(_LOCKED)


def key_id(key: "Ed25519PublicKey") -> str:
    """What a key is called: 32 hexadecimal digits."""
    from cryptography.hazmat.primitives import serialization as form

    der = key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()[:ID_DIGITS]


def _is_sound(public: bytes) -> bool:
    """Whether 32 bytes are the one encoding of a point that is not of small order (1, 2, 4 or 8).

    y is below P. The points of order 1, 2 and 4 have y = 1, −1 and 0. One of order 8 doubles to y = 0, so that x² = −y², and then the curve says
    d y⁴ + 2 y² = 1.
    """
    y = int.from_bytes(public, "little") & (2**255 - 1)
    small = y * (y**2 - 1) * (_D * y**4 + 2 * y**2 - 1) % _P == 0
    return len(public) == 32 and y < _P and not small


def _require() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise MissingExtra("sign", "cryptography") from None


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


def _not_private() -> str:
    return (
        f"must be a private Ed25519 key in PEM form; `dpcipher release key NAME` writes one as NAME{PRIVATE}"
    )


def _check_mode(path: Path) -> None:
    """Whoever can read the private key can sign in its holder's name."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(f"key ({path}) can be opened by others than its owner; run: chmod 600 {path}")


def _day(retired: date | str | None) -> date | None:
    if retired is None or isinstance(retired, date):
        return retired.date() if isinstance(retired, datetime) else retired
    try:
        return date.fromisoformat(retired)
    except ValueError:
        raise ParameterError(f"retired ({retired!r:.40}) must be a day such as 2026-12-31") from None
