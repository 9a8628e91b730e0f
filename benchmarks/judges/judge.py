"""Tools of others judge synthetic rows, ours and the peers': make the rows, let every judge score them, write results/judges.md.

usage: python benchmarks/judges/judge.py rows --tables demographic industry --methods ours opendp_MST --epsilons 1 5 10 --cap 900
       python benchmarks/judges/judge.py scores
       python benchmarks/judges/judge.py page
       python benchmarks/judges/judge.py --ours       our rows alone, made anew with the present source, scored, and the page written

Needs DPCIPHER_DATA, DPCIPHER_VENVS (environments.py makes them) and DPCIPHER_JUDGED, a folder for rows. Every step skips what is done.
"""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "peers"))

import numpy as np
import pyarrow as pa
from common import data_folder
from environments import python_of, versions
from jobs import (
    DELTA,
    JUDGES,
    METHODS,
    OURS,
    REFERENCE,
    ROWS,
    SCORES,
    Job,
    Line,
    folder,
    is_settled,
    job_of,
    read,
    record_rows,
    record_scores,
)
from page import write_judges
from run import PEERS, last_line, limited

import dpcipher as dc
from tables import NIST, PREDICTED, Table, load, write

HERE = Path(__file__).parent
EPSILONS = (1.0, 5.0, 10.0)
CAP = 900.0


def make_rows(job: Job, cap: float) -> Line:
    """Make the rows of a job; how it ended."""
    job.path.parent.mkdir(parents=True, exist_ok=True)
    if job.method == REFERENCE:
        return _binned(job)
    with tempfile.TemporaryDirectory() as scratch:
        return _ours(job, cap, Path(scratch)) if job.method in OURS else _peer(job, cap, Path(scratch))


def _binned(job: Job) -> Line:
    """The real rows through the schema and back: what the bins alone cost."""
    table = load(job.table)
    codes = table.schema.encode(pa.Table.from_pandas(table.rows, preserve_index=False))
    _decode(table, codes, job)
    return {"status": "ok", "cap": 0.0, "note": "not private"}


def _decode(table: Table, codes: np.ndarray, job: Job) -> None:
    write(table.schema.decode(codes.astype(np.int32), np.random.default_rng(job.seed)).to_pandas(), job.path)


def _ours(job: Job, cap: float, scratch: Path) -> Line:
    budget = [repr(job.epsilon), repr(DELTA), str(job.seed)]
    command = [sys.executable, str(HERE / "our_rows.py"), job.method, job.table, *budget, str(job.path)]
    return _ended(limited(command, cap=cap, log=scratch / "log.txt"), scratch, cap)


def _peer(job: Job, cap: float, scratch: Path) -> Line:
    """A peer gets the codes of our schema, and its codes become values through the same schema."""
    name, method = METHODS[job.method]
    peer, table = PEERS[name], load(job.table)
    codes = table.schema.encode(pa.Table.from_pandas(table.rows, preserve_index=False))
    plain = [f"c{axis}" for axis in range(codes.shape[1])]
    rows, domain, out = scratch / "rows.csv", scratch / "domain.json", scratch / "out.csv"
    np.savetxt(rows, codes, fmt="%d", delimiter=",", header=",".join(plain), comments="")
    domain.write_text(json.dumps(dict(zip(plain, table.schema.shape, strict=True))))
    given = [str(rows), str(domain), repr(job.epsilon), repr(DELTA), str(job.seed), str(out)]
    command = [peer.python, str(HERE.parent / "peers" / peer.script), method, *given]
    line = _ended(limited(command, cap=cap, log=scratch / "log.txt"), scratch, cap)
    if line["status"] == "ok":
        _decode(table, np.loadtxt(out, delimiter=",", skiprows=1, dtype=np.int64), job)
    return {**line, "version": peer.versions()}


def _ended(line: Line, scratch: Path, cap: float) -> Line:
    """The line of a process with what it said of itself, or with its last words where it failed."""
    said = last_line((scratch / "log.txt").read_text())
    if line["status"] == "ok":
        return {**line, **json.loads(said), "cap": cap}
    return {**line, "cap": cap, "note": said[:300] if line["status"] == "failed" else ""}


def context(name: str) -> Path:
    """A file that tells the judges about a table; written once, with its real rows beside it."""
    home = folder() / "tables"
    path = home / f"{name}.json"
    if path.exists():
        return path
    home.mkdir(parents=True, exist_ok=True)
    table = load(name)
    write(table.rows, home / f"{name}.csv")
    if table.held_out is not None:
        write(table.held_out, home / f"{name}-held-out.csv")
    cut = {c.name: c.kind == "integer" and c.name not in table.categories for c in table.schema.columns}
    told = {
        "rows": str(home / f"{name}.csv"),
        "held_out": str(home / f"{name}-held-out.csv"),
        "target": table.target,
        "positive": table.positive,
        "kinds": {column: "numerical" if number else "categorical" for column, number in cut.items()},
        "levels": {c.name: list(map(str, c.labels)) for c in table.schema.columns if not cut[c.name]},
        "excerpts": str(data_folder() / "sdnist" / "diverse_communities_data_excerpts"),
    }
    path.write_text(json.dumps(told))
    return path


def judge_rows(job: Job, judge: str) -> Line:
    """What one judge says of one file."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            python_of(judge),
            str(HERE / f"{judge}_judge.py"),
            str(job.path),
            str(context(job.table)),
            scratch,
        ]
        log = Path(scratch) / "log.txt"
        line = limited(command, cap=CAP, log=log)
        said = last_line(log.read_text())
    if line["status"] != "ok":
        return {"status": line["status"], "note": said[:300]}
    return {"status": "ok", "scores": json.loads(said)}


def rows_step(jobs: Sequence[Job], cap: float) -> None:
    """Make the rows that are not there yet."""
    for job in jobs:
        if is_settled(read(ROWS), job, cap):
            continue
        print("rows ", job, end=" … ", flush=True)
        line = make_rows(job, cap)
        record_rows(job, line)
        print(line["status"], line.get("cpu_seconds", ""), line.get("note", "")[:80], flush=True)


def scores_step(*, methods: Sequence[str] = (), judges: Sequence[str] = ()) -> None:
    """Let every judge score every file that it has not scored."""
    for line in read(ROWS):
        job = job_of(line)
        if line["status"] != "ok" or (methods and job.method not in methods):
            continue
        stamp = f"{line['source']} {job.path.stat().st_mtime_ns}"
        for judge, tables in JUDGES.items():
            done = (s["stamp"] for s in read(SCORES) if job_of(s) == job and s["judge"] == judge)
            if job.table not in tables or (judges and judge not in judges) or stamp in done:
                continue
            print("judge", judge, job, end=" … ", flush=True)
            said = judge_rows(job, judge)
            record_scores(job, judge, {"stamp": stamp, **said, "version": versions(judge)})
            print(said.get("scores", said), flush=True)


def grid(given: argparse.Namespace) -> list[Job]:
    """The jobs that the command line names: tables first, so that a page is whole early."""
    return [
        Job(table, method, epsilon, seed)
        for seed, epsilon, table, method in itertools.product(
            given.seeds, given.epsilons, given.tables, given.methods
        )
    ]


def our_grid() -> list[Job]:
    """Every job of ours: all feature sets at all budgets, the tables with a target at 1, and whatever else was recorded."""
    predicting = ("ours", "ours_predict") if "predict" in dc.Auto.__dataclass_fields__ else ("ours",)
    jobs = [Job(table, "ours", epsilon, 0) for epsilon in EPSILONS for table in NIST]
    jobs += [Job(table, method, 1.0, 0) for table in PREDICTED for method in predicting]
    return list(dict.fromkeys([*jobs, *(job_of(line) for line in read(ROWS) if line["method"] in OURS)]))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", nargs="?", choices=("rows", "scores", "page"))
    parser.add_argument("--ours", action="store_true", help="our rows alone: rows, scores and page")
    parser.add_argument("--tables", nargs="+", choices=(*NIST, *PREDICTED), default=(*NIST, *PREDICTED))
    parser.add_argument("--methods", nargs="+", choices=(*OURS, *METHODS, REFERENCE), default=["ours"])
    parser.add_argument("--judges", nargs="+", choices=JUDGES, default=list(JUDGES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--cap", type=float, default=CAP, help="processor seconds after which a job is stopped"
    )
    return parser.parse_args()


def main() -> None:
    given = options()
    if given.ours:
        rows_step(our_grid(), given.cap)
        scores_step(methods=OURS)
        write_judges()
    elif given.step == "rows":
        rows_step(grid(given), given.cap)
    elif given.step == "scores":
        scores_step(judges=given.judges)
    else:
        write_judges()


if __name__ == "__main__":
    main()
