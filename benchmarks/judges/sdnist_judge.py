"""NIST's SDNist on one synthetic file: the metrics of its report, called as its report calls them, without its plots. Runs in its own environment.

usage: python sdnist_judge.py SYNTHETIC.csv CONTEXT.json SCRATCH_FOLDER    the last line printed is JSON

CONTEXT.json names the folder of the excerpt in SDNist's layout (`excerpts`). k_marginal is 0 to 1000, 1000 is best; propensity is the mean
square error of a tree that tells the two apart, 0 is best; inconsistent is the percentage of rows that break at least one of NIST's rules;
slope is how far the regression of income decile on education is off, over all persons and on average over eight groups of race and sex;
matched is the percentage of the target's unique rows that appear among the synthetic ones.
"""

import json
import sys
from pathlib import Path

SYNTHETIC, CONTEXT, SCRATCH = sys.argv[1:]
sys.argv = sys.argv[:1]  # the package reads the command line when it is imported

import matplotlib  # noqa: E402

matplotlib.use("Agg")

from sdnist.report import Dataset  # noqa: E402 - first: its modules import each other in a circle  # isort: skip
from sdnist.load import TestDatasetName  # noqa: E402
from sdnist.metrics.inconsistency import Inconsistencies, ic_types  # noqa: E402
from sdnist.metrics.kmarginal import KMarginal  # noqa: E402
from sdnist.metrics.propensity import PropensityMSE  # noqa: E402
from sdnist.metrics.regression import LinearRegressionMetric  # noqa: E402
from sdnist.metrics.unique_exact_matches import unique_exact_matches  # noqa: E402
from sdnist.utils import SimpleLogger, df_filter, to_num  # noqa: E402

RACES = {"white": [1], "black": [2], "asian": [6], "native": [3, 4, 5, 7]}


def k_marginal(data: Dataset) -> float:
    groups = data.config["k_marginal"]["group_features"]
    return float(KMarginal(data.d_target_data, data.d_synthetic_data, groups).compute_score())


def propensity(data: Dataset, folder: Path) -> float:
    metric = PropensityMSE(data.t_target_data, data.t_synthetic_data, folder, data.features)
    return float(metric.compute_score())


def inconsistent(data: Dataset, folder: Path) -> dict[str, float]:
    """Percentages of rows with an inconsistency, of any kind and of each."""
    metric = Inconsistencies(data.c_synthetic_data, folder)
    metric.compute()
    broken = {
        name: {
            row
            for rule in metric.report_data[name]["inconsistencies"]
            for row in rule["inconsistent_data_indexes"]
        }
        for name in ("age", "work", "housing")
    }
    broken["any"] = set().union(*broken.values())
    return {name: 100 * len(rows) / len(data.c_synthetic_data) for name, rows in broken.items()}


def slopes(data: Dataset, folder: Path) -> dict[str, float]:
    """How far the slope of the regression is off; empty where the columns are not there."""
    names = ["EDU", "PINCP_DECILE", "RAC1P", "SEX"]
    if not set(names) <= set(data.features):
        return {}
    real, synthetic = (to_num(rows[names].copy()) for rows in (data.target_data, data.c_synthetic_data))
    dictionary = {name: data.data_dict[name] for name in names[:2]}

    def off(filters: list[list[object]]) -> float:
        pair = (df_filter(rows, filters) for rows in (real, synthetic))
        metric = LinearRegressionMetric(*pair, dictionary, folder / "regression")
        metric.compute()
        return abs(metric.t_slope - metric.s_slope)

    groups = [[["RAC1P", race], ["SEX", [sex]]] for race in RACES.values() for sex in (1, 2)]
    return {"all": off([]), "groups": sum(map(off, groups)) / len(groups)}


def main() -> None:
    excerpts, folder = Path(json.loads(Path(CONTEXT).read_text())["excerpts"]), Path(SCRATCH)
    folder.mkdir(parents=True, exist_ok=True)
    assert len(ic_types) == 26  # the rules that benchmarks/judges/excerpt.py was written against
    data = Dataset(Path(SYNTHETIC), SimpleLogger(), TestDatasetName.ma2019, excerpts, False)
    _, percent, *_ = unique_exact_matches(data.c_target_data, data.c_synthetic_data)
    scores = {
        "k_marginal": k_marginal(data),
        "propensity": propensity(data, folder),
        "inconsistent": inconsistent(data, folder),
        "slope": slopes(data, folder),
        "matched": float(percent),
    }
    print("\n" + json.dumps(scores))


if __name__ == "__main__":
    main()
