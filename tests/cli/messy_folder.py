"""A folder as curators have it after some weeks: rows, schemas, ledgers, releases, keys, and files that are broken or not what their names say.

Not a conftest.py, so that `import conftest` means the one above all folders.
"""

import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from dpcipher.cli import main

SCHEMA = """\
columns:
  sex: {kind: categorical, levels: [F, M]}
  age: {kind: integer, min: 0, max: 99, bins: 4}
  smoker: {kind: boolean, missing: level}
"""
OPEN = SCHEMA.replace("min: 0, max: 99, bins: 4", "min: 0, max: 99, bins: auto")
HUGE = '{"a": 1000000, "b": 1000000}'
LINES = "sex,age,smoker\nF,30,true\nM,40,false\n"
TEXTS = {
    "people.docx": "not rows",
    "notes.txt": "call Ada about the release\n",
    "people.yaml": SCHEMA,
    "misspelt.yaml": SCHEMA.replace("kind: integer", "kind: intger"),
    "junk.yaml": "columns: [}",
    "junk.json": "{",
    "open.yaml": OPEN,
    "huge.json": HUGE,
    "dictionary.json": '{"fields": [{"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}}]}',
    "empty.csv": "",
    "header.csv": "sex,age,smoker\n",
    "ragged.csv": LINES + "F,secretvalue\n",
    "twice.csv": "sex,age,age,smoker\nF,30,30,true\n",
    "semicolons.csv": LINES.replace(",", ";"),
    "missing.csv": "sex,smoker\nF,true\n",
    "unknown.csv": LINES + "secretvalue,30,true\n",
    "words.csv": LINES + "F,secretvalue,true\n",
    "others.csv": "town,price\nsecretvalue,3\n",
    "taken-1.csv": "somebody else's\n",
    "page.html": "<p>somebody else's</p>\n",
    "table.csv": "sex,age,count\nF,0..24,5\n",
}


def build() -> None:
    """Make it in the working directory."""
    for name, text in TEXTS.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("latin.csv").write_bytes((LINES + "s\xe9cretvalue,30,true\n").encode("latin-1"))
    Path("utf16.csv").write_bytes(LINES.encode("utf-16"))
    Path("junk.csv").write_bytes(np.random.default_rng(1).bytes(2_000))
    Path("junk.parquet").write_bytes(b"PAR1" + np.random.default_rng(2).bytes(2_000) + b"PAR1")
    people = _people()
    people.to_csv("people.csv", index=False)
    people.to_parquet("people.parquet")
    people.iloc[:0].to_parquet("header.parquet")
    with sqlite3.connect("book.sqlite") as book:
        people.to_sql("people", book, index=False)
    book.close()
    for name in ("folder", "emptyfolder", "public", "out.parquet"):
        Path(name).mkdir()
    shutil.copy("people.csv", "folder/people.csv")
    shutil.copy("notes.txt", "folder/notes.txt")
    _releases()
    _links()


def _people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.integers(0, 100, 400)
    smoker = np.where(age < 20, None, rng.random(400) < age / 150)
    return pd.DataFrame({"sex": rng.choice(["F", "M"], 400), "age": age, "smoker": smoker})


def _releases() -> None:
    for words in (
        "ledger create people.ledger --epsilon 10 --unit add-remove",
        "ledger create small.ledger --epsilon 0.1 --unit add-remove",
        "ledger create replace.ledger --epsilon 10 --unit replace",
        "ledger create rho.ledger --rho 0.001 --unit add-remove",
        "measure people.csv people.yaml --epsilon 1 --unit add-remove --ledger people.ledger -o release.parquet",
        "measure people.csv people.yaml --epsilon 1 --unit add-remove --ledger other.ledger --create -o other.parquet",
        "schema draft people.csv -o draft.yaml",
        "schema draft people.csv -o edited.yaml",
        "schema sign edited.yaml --name Ada --unchanged",
        "synth release.parquet -n 300 --seed 1 --save-joint joint.npz -o synthetic.csv",
        "synth release.parquet -n 300 --seed 1 -o synthetic.parquet",
        "synth other.parquet -n 300 --seed 1 -o other-rows.csv",
        "evaluate people.csv people.yaml synthetic.csv --report curator",
        "release key ada",
        "release key bob",
        "release sign release.parquet --key ada.key",
    ):
        done = CliRunner().invoke(main, words.split())
        assert done.exit_code == 0, (words, done.output)
    signed = Path("edited.yaml").read_text(encoding="utf-8")
    assert "levels: [F, M]" in signed
    Path("edited.yaml").write_text(signed.replace("levels: [F, M]", "levels: [F, M, X]"), encoding="utf-8")
    plan = CliRunner().invoke(
        main, ["plan", "people.yaml", "--epsilon", "1", "--unit", "add-remove", "--json"]
    )
    Path("plan.json").write_text(plan.stdout, encoding="utf-8")
    whole = Path("release.parquet").read_bytes()
    Path("cut.parquet").write_bytes(whole[:-100])
    shutil.copy("release.parquet.sig", "altered.parquet.sig")
    shutil.copy("other.parquet", "altered.parquet")
    shutil.copy("people.ledger", "cut.ledger")
    shutil.copy("people.ledger.witness", "cut.ledger.witness")
    Path("cut.ledger").write_bytes(Path("cut.ledger").read_bytes()[:-40])
    shutil.copy("release.parquet", "public/release.parquet")


def _links() -> None:
    os.symlink("people.parquet", "soft.parquet")
    os.link("people.parquet", "hard.parquet")
    os.symlink("release.parquet", "link.parquet")
    os.symlink("synthetic.csv", "linked.html")
    os.symlink("absent.parquet", "dangling.parquet")


def digests(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file, folder and link, with its mode and what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (0, os.readlink(path))
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            found[str(path.relative_to(folder))] = (path.stat().st_mode, content)
    return found
