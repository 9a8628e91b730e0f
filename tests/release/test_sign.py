"""Signed releases: what a signature is over, held against OpenSSL; and that nothing but the signed file passes."""

import base64
import hashlib
import importlib.util
import json
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from conftest import missing
from dpcipher.cli import main
from dpcipher.curator.measure import measure
from dpcipher.errors import (
    DpcipherWarning,
    FileExists,
    MissingExtra,
    NotPrivate,
    ParameterError,
    ReleaseError,
)
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.release.signature import (
    Verification,
    create_key,
    is_locked,
    read_private,
    read_signature,
    sign,
    signature_path,
    trust_key,
    trusted_keys,
    verify,
)
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 3, "b": 2})
ROWS = pd.DataFrame({"a": np.arange(60) % 3, "b": np.arange(60) % 2})


def needs_bcrypt() -> None:
    """Keys with a passphrase need it."""
    if importlib.util.find_spec("bcrypt") is None:
        missing("sign", "bcrypt is not installed")


@pytest.fixture(scope="module", name="made")
def signed_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, its ledger, keys of Ada and Bob, and Ada's signature; nobody writes into it."""
    folder = tmp_path_factory.mktemp("signed")
    ledger = Ledger.create(folder / "people.ledger", epsilon=5, unit="add-remove")
    measure(ROWS, SCHEMA, epsilon=1, unit="add-remove", ledger=ledger, save=folder / "people.parquet")
    for name in ("ada", "bob"):
        create_key(folder / name)
    sign(folder / "people.parquet", folder / "ada.key")
    return folder


@pytest.fixture(name="folder")
def copied_folder(made: Path, tmp_path: Path) -> Path:
    """The same to spoil."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def signature_word(folder: Path, *keys: str) -> str:
    """What is said of the signature when it is held against these keys."""
    return verify(folder / "people.parquet", keys=[folder / key for key in keys]).checks[0].word


def message(folder: Path) -> tuple[bytes, bytes]:
    """What was signed and the signature, put together by the words of the documentation alone."""
    plain = json.loads((folder / "people.parquet.sig").read_text())
    facts = json.dumps(plain["signed"], sort_keys=True, separators=(",", ":"))
    return b"dpcipher release signature 1\n" + facts.encode(), bytes.fromhex(plain["signature"])


def test_a_signed_release_is_certified_by_the_trusted_key(made: Path) -> None:
    """Who signed, which key, and that everything asked for confirms it."""
    verification = verify(made / "people.parquet", keys=[made / "bob.pub", made / "ada.pub"])
    assert (verification.passed, verification.status) == (True, "certified")
    assert verification.checks[0].word == "signed"
    assert f"by ada.pub (key {trusted_keys(made / 'ada.pub')[0].id})" in verification.checks[0].meaning
    assert verification.release.checksum == Release.load(made / "people.parquet").checksum


def test_the_signature_is_over_file_release_and_schema(made: Path) -> None:
    """Each hash computed anew, and the signature checked with the primitive alone."""
    signature = read_signature(signature_path(made / "people.parquet"))
    assert signature is not None
    raw, release = (made / "people.parquet").read_bytes(), Release.load(made / "people.parquet")
    assert signature.signed.file == hashlib.sha256(raw).hexdigest()
    assert (signature.signed.release, signature.signed.schema) == (release.checksum, SCHEMA.fingerprint())
    public = serialization.load_ssh_public_key((made / "ada.pub").read_bytes())
    assert isinstance(public, ed25519.Ed25519PublicKey)
    words, value = message(made)
    public.verify(value, words)
    with pytest.raises(InvalidSignature):
        public.verify(value, words + b" ")


def pem(public: Path) -> str:
    """A public key as OpenSSL reads it."""
    key = serialization.load_ssh_public_key(public.read_bytes())
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def program(name: str) -> str:
    """A program of the system, or the test is left out."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def test_openssl_agrees(made: Path, tmp_path: Path) -> None:
    """OpenSSL accepts the signature with our public key, and refuses it with another."""
    words, value = message(made)
    (tmp_path / "message").write_bytes(words)
    (tmp_path / "value").write_bytes(value)
    call = [program("openssl"), "pkeyutl", "-verify", "-pubin", "-rawin", "-in", tmp_path / "message"]
    call += ["-sigfile", tmp_path / "value", "-inkey"]
    codes = []
    for name in ("ada.pub", "bob.pub"):
        (tmp_path / name).write_text(pem(made / name))
        codes.append(
            subprocess.run([*call, tmp_path / name], capture_output=True, timeout=60).returncode == 0
        )
    assert codes == [True, False]


def test_openssh_reads_our_keys(folder: Path) -> None:
    """It computes the same id, and the same public key from the private one."""
    keygen = program("ssh-keygen")
    shown = subprocess.run(
        [keygen, "-l", "-f", folder / "ada.pub"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split()[1:] == [trusted_keys(folder / "ada.pub")[0].id, "ada", "(ED25519)"]
    again = subprocess.run(
        [keygen, "-y", "-f", folder / "ada.key"], capture_output=True, text=True, check=True
    )
    assert again.stdout.split()[:2] == (folder / "ada.pub").read_text().split()[:2]


@pytest.mark.parametrize("secret", ["", "a long secret"], ids=["open", "locked"])
def test_a_key_of_openssh_signs_too(folder: Path, secret: str) -> None:
    """Keys are those that people have: one made by ssh-keygen is as good, with a passphrase too."""
    if secret:
        needs_bcrypt()
    made = folder / "id_ed25519"
    words = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", secret, "-C", "eve@example.org", "-f", made]
    subprocess.run(words, check=True, timeout=60)
    assert is_locked(made) == bool(secret)
    sign(folder / "people.parquet", made, passphrase=secret or None, force=True)
    assert signature_word(folder, "id_ed25519.pub") == "signed"


def test_a_file_may_hold_several_keys(folder: Path) -> None:
    """A line each, with comments; the key that signed is called by its own comment."""
    lines = [(folder / f"{name}.pub").read_text().strip() for name in ("bob", "ada")]
    (folder / "trusted").write_text("# whom we trust\n\n" + "\r\n".join(lines) + "\n")
    check = verify(folder / "people.parquet", keys=folder / "trusted").checks[0]
    assert (check.word, check.passed) == ("signed", True)
    assert check.meaning.startswith("by ada (key SHA256:")
    assert verify(folder / "people.parquet", keys=trust_key(lines[1])).passed
    assert not verify(folder / "people.parquet", keys=trust_key(lines[0])).passed
    (folder / "trusted").write_text(f"{lines[0]}\nssh-rsa AAAA carol\n{lines[1]}\n")
    with pytest.raises(ParameterError, match=r"trusted, line 2\) must be a public Ed25519 key"):
        trusted_keys(folder / "trusted")


def test_a_signature_by_a_key_that_is_not_trusted_is_by_an_unknown_key(made: Path) -> None:
    """It is no forgery, and it confirms nothing."""
    verification = verify(made / "people.parquet", keys=made / "bob.pub")
    assert verification.checks[0].word == "signed by an unknown key"
    assert (verification.passed, verification.contradicted) == (False, False)
    assert verification.status == "as stated by the file"


def test_an_unsigned_release_is_as_stated_by_the_file(folder: Path) -> None:
    """Also where nothing was asked."""
    (folder / "people.parquet.sig").unlink()
    assert signature_word(folder, "ada.pub") == "not signed"
    assert Verification(Release.load(folder / "people.parquet")).status == "as stated by the file"
    assert not Verification(Release.load(folder / "people.parquet")).passed


@pytest.mark.parametrize("bit", [0, 5])
def test_every_byte_of_a_signature_counts(folder: Path, bit: int) -> None:
    """Flip one bit of each byte in turn; bit 5 turns a to A, which most hexadecimal readers let pass."""
    path = folder / "people.parquet.sig"
    whole = path.read_bytes()
    passed = []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        if verify(folder / "people.parquet", keys=folder / "ada.pub").passed:
            passed.append(place)
    assert passed == []
    for other in (b"", whole[:-1], whole + b"\n", whole.replace(b"\n", b"\r\n")):
        path.write_bytes(other)
        assert signature_word(folder, "ada.pub") == "ALTERED"


def test_every_byte_of_a_release_counts(folder: Path) -> None:
    """Flip a bit of every seventh byte: the file is refused as damaged, or as another than was signed."""
    path = folder / "people.parquet"
    whole, key, passed, altered = path.read_bytes(), trusted_keys(folder / "ada.pub"), [], 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            verification = verify(path, keys=key)
        except ReleaseError:
            continue
        altered += verification.contradicted
        if not verification.contradicted:
            passed.append(place)
    assert passed == []
    assert (
        altered > 0
    )  # labels and Parquet's own bytes are outside the release's checksum, and inside the signature


def test_a_release_with_other_counts_and_a_right_checksum_is_contradicted(folder: Path) -> None:
    """Whoever edits counts computes the checksum anew: the file loads, and both signature and ledger say no."""
    path = folder / "people.parquet"
    release = Release.load(path)
    counts = release.measurements[0].values.copy()
    counts.flat[0] += 10
    Release(release.schema, (replace(release.measurements[0], values=counts), *release.measurements[1:]), release.statement).save(path, force=True)  # fmt: skip
    verification = verify(path, keys=folder / "ada.pub", ledger=folder / "people.ledger")
    assert [check.word for check in verification.checks] == ["ALTERED", "ALTERED"]
    assert verification.status == "contradicted"


def test_a_signature_of_another_release_is_contradicted(folder: Path) -> None:
    """Both are Ada's, but each signature is for one file."""
    measure(ROWS, SCHEMA, epsilon=1, unit="add-remove", save=folder / "other.parquet")
    sign(folder / "other.parquet", folder / "ada.key")
    verification = verify(
        folder / "people.parquet", keys=folder / "ada.pub", signature=folder / "other.parquet.sig"
    )
    assert verification.checks[0].word == "ALTERED"


def test_a_signature_under_a_borrowed_key_id_is_contradicted(folder: Path) -> None:
    """Bob signs and writes Ada's key id into it."""
    path = folder / "people.parquet.sig"
    plain = json.loads(path.read_text())
    words, _ = message(folder)
    plain["signature"] = read_private(folder / "bob.key").sign(words).hex()
    path.write_text(json.dumps(plain, indent=2) + "\n")
    assert signature_word(folder, "ada.pub") == "ALTERED"
    assert signature_word(folder, "ada.pub", "bob.pub") == "ALTERED"


def test_rotation(folder: Path) -> None:
    """What the old key signed passes while both are trusted; signed anew, the new key alone will do."""
    create_key(folder / "ada-2")
    assert signature_word(folder, "ada.pub", "ada-2.pub") == "signed"
    assert signature_word(folder, "ada-2.pub") == "signed by an unknown key"
    sign(folder / "people.parquet", folder / "ada-2.key", force=True)
    assert signature_word(folder, "ada-2.pub") == "signed"


def test_a_ledger_confirms_what_it_recorded_and_nothing_else(folder: Path) -> None:
    """Recorded with its checksum: certified. Of another ledger, or of none: as stated."""
    path = folder / "people.parquet"
    assert verify(path, ledger=folder / "people.ledger").status == "certified"
    assert verify(Release.load(path), ledger=Ledger.open(folder / "people.ledger")).passed
    other = Ledger.create(folder / "other.ledger", epsilon=5, unit="add-remove")
    assert verify(path, ledger=other).checks[0].word == "another ledger"
    assert verify(path, ledger=other).status == "as stated by the file"
    free = measure(ROWS, SCHEMA, epsilon=1, unit="add-remove")
    assert verify(free, ledger=other).status == "unrecorded, as stated by the file"


def test_a_charge_without_a_checksum_confirms_nothing(folder: Path) -> None:
    """Where the ledger never learnt which release a charge paid for, any could claim it."""
    ledger = folder / "people.ledger"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]))
    (folder / "people.ledger.witness").unlink()
    verification = verify(folder / "people.parquet", ledger=ledger)
    assert (verification.checks[0].word, verification.passed) == ("recorded", False)
    assert verification.status == "as stated by the file"


def test_a_ledger_that_its_witness_disowns_confirms_nothing(folder: Path) -> None:
    """A ledger that is shorter than its witness saw it is not asked to certify."""
    ledger = Ledger(folder / "people.ledger")
    before = ledger.path.read_bytes()
    measure(ROWS, SCHEMA, epsilon=1, unit="add-remove", ledger=ledger)
    ledger.path.write_bytes(before)
    verification = verify(folder / "people.parquet", ledger=ledger)
    assert (verification.checks[0].word, verification.passed) == ("not the ledger its witness saw", False)


def test_a_signed_release_that_no_ledger_recorded_is_not_certified(folder: Path) -> None:
    """A signature says who answers for a file; it does not make its statement a better one."""
    measure(ROWS, SCHEMA, epsilon=1, unit="add-remove", save=folder / "free.parquet")
    sign(folder / "free.parquet", folder / "ada.key")
    verification = verify(folder / "free.parquet", keys=folder / "ada.pub")
    assert (verification.passed, verification.status) == (True, "unrecorded")


def test_keys_are_private_from_the_start_and_never_overwritten(tmp_path: Path) -> None:
    """Mode 0600; a second pair of that name is refused, also where only one of the two files is there."""
    private, public, number = create_key(tmp_path / "ada")
    kept = private.read_bytes()
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert trusted_keys(public)[0].id == number
    for gone in (None, private, public):
        if gone is not None:
            gone.rename(tmp_path / "aside")
        with pytest.raises(ParameterError, match="exists already and is never overwritten"):
            create_key(tmp_path / "ada")
        if gone is not None:
            (tmp_path / "aside").rename(gone)
    assert private.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ada.key", "ada.pub"]


def test_a_locked_key_opens_with_its_passphrase_alone(folder: Path) -> None:
    """Another one, or none, is refused with a message that does not repeat it."""
    needs_bcrypt()
    create_key(folder / "eve", passphrase="a long secret")
    assert is_locked(folder / "eve.key")
    assert not is_locked(folder / "ada.key")
    with pytest.raises(ParameterError, match="is locked; give its passphrase"):
        sign(folder / "people.parquet", folder / "eve.key", force=True)
    with pytest.raises(ParameterError, match="could not be unlocked; check its passphrase") as refused:
        sign(folder / "people.parquet", folder / "eve.key", passphrase="a wrong one", force=True)
    assert "wrong one" not in str(refused.value)
    sign(folder / "people.parquet", folder / "eve.key", passphrase="a long secret", force=True)
    assert signature_word(folder, "eve.pub") == "signed"
    with pytest.raises(ParameterError, match="at least one character"):
        create_key(folder / "mallory", passphrase="")


def test_a_private_key_that_others_can_read_warns(folder: Path) -> None:
    """It still signs."""
    (folder / "ada.key").chmod(0o644)
    with pytest.warns(DpcipherWarning, match="chmod 600"):
        sign(folder / "people.parquet", folder / "ada.key", force=True)
    assert signature_word(folder, "ada.pub") == "signed"


def test_what_is_no_key_is_refused(folder: Path) -> None:
    """Absent and empty files, other files, keys of another kind, and the public where the private belongs."""
    curve = ec.generate_private_key(ec.SECP256R1())
    openssh = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / "curve.pub").write_bytes(curve.public_key().public_bytes(*openssh))
    (folder / "pem.pub").write_text(pem(folder / "ada.pub"))
    (folder / "empty.pub").write_text("# nobody\n")
    (folder / "short.pub").write_text((folder / "ada.pub").read_text()[:60])
    for name in ("curve.pub", "pem.pub", "empty.pub", "short.pub", "people.parquet", "ada.key"):
        with pytest.raises(ParameterError, match="must be a public Ed25519 key of OpenSSH"):
            trusted_keys(folder / name)
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    (folder / "curve.key").write_bytes(curve.private_bytes(*private))
    for name in ("ada.pub", "curve.key", "people.parquet"):
        with pytest.raises(ParameterError, match="must be a private Ed25519 key of OpenSSH"):
            sign(folder / "people.parquet", folder / name)
    with pytest.raises(ParameterError, match="No such file or directory; check the path"):
        trusted_keys(folder / "absent.pub")


P, D = 2**255 - 19, -121665 * pow(121666, -1, 2**255 - 19)
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the large subgroup of the curve
Point = tuple[int, int]


def add(first: Point, second: Point) -> Point:
    """The sum of two points (RFC 8032, section 5.1.4, affine)."""
    (x, y), (u, v) = first, second
    product = D * x * u * y * v
    return (x * v + u * y) * pow(1 + product, -1, P) % P, (y * v + x * u) * pow(1 - product, -1, P) % P


def times(number: int, point: Point) -> Point:
    """The point added to itself so often."""
    out = (0, 1)
    for bit in bin(number)[2:]:
        out = add(out, out)
        out = add(out, point) if bit == "1" else out
    return out


def some_point(y: int) -> Point | None:
    """A point with this y, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(square, (P + 3) // 8, P)
    root = root if root * root % P == square else root * pow(2, (P - 1) // 4, P) % P
    return (root, y) if root * root % P == square else None


def points_of_small_order() -> set[Point]:
    """What is left of points when the large subgroup is multiplied away: all eight, and each added to itself eight times is nothing."""
    found = {times(ORDER, point) for point in map(some_point, range(2, 60)) if point is not None}
    found |= {(-x % P, y) for x, y in found}
    assert len(found) == 8
    assert all(times(8, point) == (0, 1) for point in found)
    return found


def weak_encodings() -> list[bytes]:
    """All 32 bytes that stand for those points, with y beyond P and with a sign where x is 0 too."""
    texts = set()
    for x, y in points_of_small_order():
        signs = {0, 1} if x == 0 else {x & 1}
        texts |= {
            (value | sign << 255).to_bytes(32, "little")
            for value in (y, y + P)
            if value < 2**255
            for sign in signs
        }
    assert len(texts) == 14
    return sorted(texts)


def public_file(path: Path, public: bytes) -> Path:
    """A public key as a line of OpenSSH, whatever point it stands for."""
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + public
    path.write_text(f"ssh-ed25519 {base64.b64encode(blob).decode()} weak\n")
    return path


def test_a_key_that_anybody_signs_for_is_refused(made: Path, tmp_path: Path) -> None:
    """R = the identity and S = 0 are a signature of every message under the key of order 1; such keys are never trusted, in the library and the command."""
    identity = (1).to_bytes(32, "little")
    ed25519.Ed25519PublicKey.from_public_bytes(identity).verify(
        identity + bytes(32), b"whatever"
    )  # accepted: no error
    beyond = [value.to_bytes(32, "little") for value in range(P, 2**255)]
    for public in (*weak_encodings(), *beyond):
        path = public_file(tmp_path / "weak.pub", public)
        with pytest.raises(ParameterError, match=r"key \(.*weak.pub.*\) must be a public Ed25519 key"):
            trusted_keys(path)
    verified = CliRunner().invoke(
        main, ["release", "verify", str(made / "people.parquet"), "--key", str(path)]
    )
    assert verified.exit_code == 1
    assert "must be a public Ed25519 key" in verified.output


def test_keys_that_are_made_are_accepted(tmp_path: Path) -> None:
    """None of two hundred is taken for a weak one."""
    for _ in range(200):
        public = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        assert trusted_keys(public_file(tmp_path / "good.pub", public))[0].public == public


def test_wrong_requests_are_refused(folder: Path) -> None:
    """Nothing to hold it against, a release without a file, a signature that is there already."""
    path = folder / "people.parquet"
    with pytest.raises(ParameterError, match="must name a public key that you trust; or give a ledger"):
        verify(path)
    with pytest.raises(ParameterError, match="must be given as the path of its file"):
        verify(Release.load(path), keys=folder / "ada.pub")
    with pytest.raises(FileExists, match="is there already, and nothing is overwritten unasked"):
        sign(path, folder / "ada.key")
    with pytest.raises(ReleaseError, match="is no release: it is a key"):
        sign(folder / "ada.pub", folder / "ada.key")


def test_nobody_signs_what_is_stamped_not_private(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a release cannot be saved, but a file may be forged."""
    release = Release.load(folder / "people.parquet")
    seeded = replace(release, statement=replace(release.statement, status="NOT PRIVATE"))
    monkeypatch.setattr(Release, "load", classmethod(lambda cls, path: seeded))
    with pytest.raises(NotPrivate, match="nobody should sign it"):
        sign(folder / "people.parquet", folder / "ada.key", force=True)


def test_without_the_extra_the_message_names_the_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing and verifying by key need it; verifying by ledger does not."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for attempt in (
        lambda: create_key(folder / "new"),
        lambda: trusted_keys(folder / "ada.pub"),
        lambda: sign(folder / "people.parquet", folder / "ada.key"),
    ):
        with pytest.raises(MissingExtra, match=r"run: pip install 'dpcipher\[sign\]'"):
            attempt()
    assert verify(folder / "people.parquet", ledger=folder / "people.ledger").passed
