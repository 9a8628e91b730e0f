"""What a file is that was given for another, such as a ledger for a table, by its first bytes; nothing of it is quoted."""

from pathlib import Path

_HEAD = 4096
_MAGIC = {
    b"PK\x03\x04": "a zip file, such as a saved joint (.npz) or a workbook; of a joint, `synth` makes rows",
    b"SQLite format 3\0": "a SQLite database",
    b"\x1f\x8b": "a gzipped file",
    b"%PDF": "a PDF file",
}


def foreign(path: Path) -> str:
    """What it is, in words; nothing where it begins as a Parquet file does, so that it may be a damaged release."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PAR1"):
        return ""
    if not head:
        return "empty"
    known = next((words for magic, words in _MAGIC.items() if head.startswith(magic)), None)
    return known or _text(head)


def _text(head: bytes) -> str:
    try:
        text = head.decode("utf-8", "strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        return "neither Parquet nor text"
    if "\0" in text:
        return "neither Parquet nor text"
    if text.startswith("{") and '"previous"' in text:
        return "a ledger"
    if text.startswith("{") and '"signature"' in text:
        return "a signature, which stands beside a release"
    if text.startswith(("-----BEGIN", "ssh-")):
        return "a key"
    if "columns:" in text or '"columns"' in text:
        return "a schema"
    if text.lstrip().startswith("<"):
        return "a page"
    return "a text file, such as CSV rows"
