"""The edges that dpmm's PrivTree finds, column by column. Runs in dpmm's own environment (Python 3.11 and `pip install dpmm`).

usage: python dpmm_bins.py JOB.json OUT.json

JOB.json holds `epsilon` for each column and `columns`: {name: {values, lower, upper}}. The number of bins is left to dpmm.
"""

import json
import sys
from pathlib import Path

import numpy as np
from dpmm.processing.binners import PrivTreeBinner


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    edges = {}
    for name, column in job["columns"].items():
        binner = PrivTreeBinner(
            n_bins="auto", epsilon=job["epsilon"], lower=column["lower"], upper=column["upper"]
        )
        binner.fit(np.array(column["values"], dtype=float))
        edges[name] = [float(edge) for edge in binner.bins]
    Path(sys.argv[2]).write_text(json.dumps(edges))


if __name__ == "__main__":
    main()
