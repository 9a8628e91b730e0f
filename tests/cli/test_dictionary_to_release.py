"""The raw ACS excerpt: from its dictionary to a release, one command each; only the rules of the documentation are written by hand."""

import json
import os
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest
from click.testing import CliRunner

from dpcipher.cli import main
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

DATA = Path(os.environ.get("DPCIPHER_DATA", "")) / "nist_ma2019"
PAGE = Path(__file__).parents[2] / "docs" / "dictionaries.md"
RULES = dedent("    rules:" + PAGE.read_text(encoding="utf-8").split("    rules:")[1].split("\n\n")[0]) + "\n"
BUDGET = ["--epsilon", "1", "--delta", "1e-9", "--unit", "add-remove"]


def run(*args: str) -> str:
    """One command, which must succeed."""
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.skipif(not (DATA / "ma2019.csv").exists(), reason="needs DPCIPHER_DATA with nist_ma2019")
def test_from_the_dictionary_to_a_release(tmp_path, monkeypatch):
    """24 raw columns: import, sign, measure, synth; bins and industry codes are found privately, N comes back as N."""
    monkeypatch.chdir(tmp_path)
    run("schema", "import", str(DATA / "data_dictionary.json"), "-o", "ma.yaml")
    with open("ma.yaml", "a", encoding="utf-8") as schema:
        schema.write(RULES)
    run("schema", "sign", "ma.yaml", "--name", "Ada Curator")
    run("measure", str(DATA / "ma2019.csv"), "ma.yaml", *BUDGET, "--workload", "1", "--ledger", "ma.ledger", "--create", "-o", "ma.parquet")  # fmt: skip
    run("synth", "ma.parquet", "-o", "rows.csv")
    declared, used = Schema.load("ma.yaml"), Release.load("ma.parquet").schema
    assert len(declared.columns) == len(used.columns) == 24
    assert used.signed
    assert not used.is_open
    assert {"AGEP", "PINCP", "DENSITY", "POVPIP", "INDP"} <= {c.name for c in declared.columns if c.is_open}
    private, rows = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (DATA / "ma2019.csv", "rows.csv"))  # fmt: skip
    assert sorted(rows.columns) == sorted(private.columns)
    for name in ("MSP", "PINCP", "EDU"):
        assert abs((rows[name] == "N").mean() - (private[name] == "N").mean()) < 0.05
    assert pd.to_numeric(rows["PINCP"].replace("N", None)).dropna().between(-9000, 1341000).all()
    assert set(rows["INDP"]) & set(private["INDP"])
    for name, years in (("MSP", 15), ("EDU", 3), ("PINCP", 15), ("DREM", 5)):  # what the rules say
        assert ((rows["AGEP"].astype(int) < years) == (rows[name] == "N")).all()
    assert (rows["INDP_CAT"][rows["AGEP"].astype(int) < 16] == "N").all()
    top = used.column("POVPIP")
    assert "income above 5 x poverty line" in top.shown_labels


def test_types_alone_become_a_release_without_a_signature(tmp_path, monkeypatch):
    """SDV metadata states nothing about values: import, then measure; every range and level is found privately."""
    monkeypatch.chdir(tmp_path)
    columns = {"key": {"sdtype": "id"}, "town": {"sdtype": "categorical"}, "rent": {"sdtype": "numerical"}, "pets": {"sdtype": "boolean"}}  # fmt: skip
    Path("meta.json").write_text(json.dumps({"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns}))
    frame = pd.DataFrame({
        "key": range(4000),
        "town": ["Ulm", "Bern", "Graz", "Lyon"] * 1000,
        "rent": [100.0 + 7 * (i % 150) for i in range(4000)],
        "pets": [True, False] * 2000,
    })  # fmt: skip
    frame.to_csv("homes.csv", index=False)
    assert "ready for a release" in run("schema", "import", "meta.json", "-o", "homes.yaml")
    run("measure", "homes.csv", "homes.yaml", *BUDGET, "--workload", "1", "--ledger", "homes.ledger", "--create", "-o", "homes.parquet")  # fmt: skip
    used = Release.load("homes.parquet").schema
    assert used.names == ("town", "rent", "pets")
    assert {"Ulm", "Bern", "Graz", "Lyon"} <= set(used.column("town").labels)
