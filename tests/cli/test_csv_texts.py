"""Synthetic rows as CSV files that a spreadsheet opens without running anything."""

from pathlib import Path

import pandas as pd
from command_line import Run, curators_folder, facts, runner  # noqa: F401

from dpcipher.release.release import Release
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

SCHEMA = Schema((column("rh", "categorical", levels=("+pos", "-neg")), column("n", "integer", min=-1, max=1)))


def test_texts_that_begin_like_formulas_are_quoted_unless_asked_not_to_be(folder: Path, run: Run) -> None:
    """A note on stderr, numbers as they are, and the report reads either file."""
    Release.from_tables({("rh", "n"): [[10, 20, 30], [5, 5, 5]]}, SCHEMA, scale=1.0).save("r.parquet")
    quoted = run("synth r.parquet -n 40 --seed 1 -o quoted.csv")
    assert quoted.exit_code == 0, quoted.output
    assert "Warning: quoted.csv: 40 texts that a spreadsheet would run as formulas" in quoted.stderr
    raw = run("synth r.parquet -n 40 --seed 1 --raw-text -o raw.csv")
    assert "Warning" not in raw.stderr
    frames = [pd.read_csv(name) for name in ("quoted.csv", "raw.csv")]
    assert frames[0]["rh"].str.startswith("'").all()
    assert frames[0]["rh"].str[1:].equals(frames[1]["rh"])
    assert frames[0]["n"].equals(frames[1]["n"])
    assert (frames[0]["n"] < 0).any()
    pages = []
    for name in ("quoted", "raw"):
        assert facts(run(f"report r.parquet {name}.csv -o {name}.html --json"))["bytes"] > 0
        pages.append(Path(f"{name}.html").read_bytes())
    assert pages[0] == pages[1]
