"""The quality and diagnostic reports of sdmetrics on one synthetic file. Runs in its own environment.

usage: python sdmetrics_judge.py SYNTHETIC.csv CONTEXT.json SCRATCH_FOLDER    the last line printed is JSON

All scores are 0 to 1, 1 is best: the overall quality and its two parts (shapes of columns, trends of pairs), and the diagnostic score.
"""

import json
import sys
import warnings
from pathlib import Path

import pandas as pd
from sdmetrics.reports.single_table import DiagnosticReport, QualityReport


def read(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Rows with numbers where the schema has numbers (N is no number) and texts elsewhere."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)[list(kinds)]
    for name, kind in kinds.items():
        if kind == "numerical":
            rows[name] = pd.to_numeric(rows[name], errors="coerce")
    return rows


def main() -> None:
    synthetic, context, _ = sys.argv[1:]
    given = json.loads(Path(context).read_text())
    real, rows = (read(path, given["kinds"]) for path in (given["rows"], synthetic))
    metadata = {"columns": {name: {"sdtype": kind} for name, kind in given["kinds"].items()}}
    scores: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quality, diagnostic = QualityReport(), DiagnosticReport()
        quality.generate(real, rows, metadata, verbose=False)
        diagnostic.generate(real, rows, metadata, verbose=False)
    scores["quality"] = float(quality.get_score())
    parts = quality.get_properties()
    scores |= {
        name.lower().replace("column ", ""): float(score)
        for name, score in zip(parts["Property"], parts["Score"], strict=True)
    }
    scores["diagnostic"] = float(diagnostic.get_score())
    print("\n" + json.dumps(scores))


if __name__ == "__main__":
    main()
