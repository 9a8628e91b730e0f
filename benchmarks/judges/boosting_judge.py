"""Train on synthetic rows, test on real rows that no method saw: scikit-learn's histogram gradient boosting. Runs in its own environment.

usage: python boosting_judge.py SYNTHETIC.csv CONTEXT.json SCRATCH_FOLDER    the last line printed is JSON

The area under the curve of one target on the held-out rows; settings are the package's defaults, with a fixed random state.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score


def features(path: str, context: dict) -> tuple[np.ndarray, np.ndarray]:
    """Predictors as numbers, categories as their place in the list of the schema, and whether the target is positive."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = []
    for name, kind in context["kinds"].items():
        if name == context["target"]:
            continue
        if kind == "numerical":
            columns.append(pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=float))
        else:
            place = {level: code for code, level in enumerate(context["levels"][name])}
            columns.append(rows[name].map(place).to_numpy(dtype=float))
    return np.stack(columns, axis=1), rows[context["target"]].isin(context["positive"]).to_numpy()


def main() -> None:
    synthetic, path, _ = sys.argv[1:]
    context = json.loads(Path(path).read_text())
    predictors, target = features(synthetic, context)
    tested, truth = features(context["held_out"], context)
    names = [name for name in context["kinds"] if name != context["target"]]
    # a category of more levels than the package takes (255) is left as a number
    listed = [len(context["levels"].get(name, ())) in range(1, 255) for name in names]
    model = HistGradientBoostingClassifier(categorical_features=listed, random_state=0)
    if target.all() or not target.any():
        print(json.dumps({"auc": 0.5}))
        return
    model.fit(predictors, target)
    print(json.dumps({"auc": float(roc_auc_score(truth, model.predict_proba(tested)[:, 1]))}))


if __name__ == "__main__":
    main()
