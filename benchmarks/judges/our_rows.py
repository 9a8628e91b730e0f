"""Our rows of one judged table, through the public interface (the last line printed is JSON, as that of the peers' adapters).

usage: python our_rows.py METHOD TABLE EPSILON DELTA SEED OUT.csv

METHOD: ours; ours_plain, which is not told the rules among columns; ours_predict, which is told what column is to be predicted
"""

import dataclasses
import json
import resource
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import dpcipher as dc
from tables import load, write


def main() -> None:
    method, name, epsilon, delta, seed, out = sys.argv[1:]
    table = load(name)
    schema = dataclasses.replace(table.schema, zeros=()) if method == "ours_plain" else table.schema
    workload = dc.Auto(predict=table.target) if method == "ours_predict" else "auto"
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ledger: nothing is released
        cipher = dc.Cipher(float(epsilon), delta=float(delta), unit="add-remove", workload=workload)
        fitted = cipher.fit(table.rows, schema)
        rows = fitted.sample(len(table.rows), seed=int(seed))
    seconds = time.perf_counter() - started
    write(rows, Path(out))
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": round(used.ru_maxrss / 1024),
        "note": "add-remove; the number of rows is estimated; noise of a release, which cannot be seeded",
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
