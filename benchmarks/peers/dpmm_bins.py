"""The edges that dpmm's PrivTree finds, column by column. Runs in dpmm's own environment (Python 3.11 and `pip install dpmm`).

usage: python dpmm_bins.py, with a job in JSON on every line of its input; on every line of its output the edges of a job

A job holds `epsilon` for each column and `columns`: {name: {values, lower, upper}}. The number of bins is left to dpmm.
"""

import json
import sys
from typing import Any

import numpy as np
from dpmm.processing.binners import PrivTreeBinner


def edges_of(job: dict[str, Any]) -> dict[str, list[float]]:
    edges = {}
    for name, column in job["columns"].items():
        binner = PrivTreeBinner(
            n_bins="auto", epsilon=job["epsilon"], lower=column["lower"], upper=column["upper"]
        )
        binner.fit(np.array(column["values"], dtype=float))
        edges[name] = [float(edge) for edge in binner.bins]
    return edges


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(edges_of(json.loads(line))), flush=True)
