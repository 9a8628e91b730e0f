"""The jobs: one table, method, epsilon and seed each, whose synthetic rows lie in a folder outside the repository; and the record of them.

A line of results/judged_rows.jsonl says how the rows of a job came about, a line of results/judgements.jsonl what a judge said of them.
Both are kept between runs, so that a run that stopped goes on where it was. Rows of ours carry a fingerprint of the source they were
made with, and are made anew when it has changed.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common import RESULTS

import dpcipher
from tables import NIST, PREDICTED

ROWS, SCORES = RESULTS / "judged_rows.jsonl", RESULTS / "judgements.jsonl"
DELTA = 1e-9
OURS = ("ours", "ours_plain", "ours_predict")
METHODS = {  # the peer's adapter and the method it is asked for
    "opendp_MST": ("opendp_mbi", "MST"),
    "smartnoise_MST": ("smartnoise", "MST"),
    "dpmm_PrivBayes": ("dpmm", "PrivBayes"),
    "dpsynth_MST": ("dpsynth", "MST"),
    "dpsynth_SWIFT": ("dpsynth", "SWIFT"),
    "dpsynth_AIM": ("dpsynth", "AIM"),
    "smartnoise_AIM": ("smartnoise", "AIM"),
    "opendp_AIM": ("opendp_mbi", "AIM"),
    "dpmm_AIM": ("dpmm", "AIM"),
}
REFERENCE = (
    "binned"  # the real rows themselves, cut into the same bins and drawn within them: no privacy at all
)
JUDGES = {"sdnist": NIST, "sdmetrics": (*NIST, *PREDICTED), "boosting": PREDICTED}

Line = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    table: str
    method: str
    epsilon: float
    seed: int

    @property
    def path(self) -> Path:
        """Where its synthetic rows lie."""
        return folder() / "rows" / self.table / f"{self.method}-{self.epsilon:g}-{self.seed}.csv"

    @property
    def source(self) -> str:
        """What its rows depend on beside the job itself: our source, if they are ours."""
        return fingerprint() if self.method in OURS else ""


def folder() -> Path:
    """The folder of synthetic rows, named by the environment."""
    given = os.environ.get("DPCIPHER_JUDGED")
    if not given:
        raise SystemExit("set DPCIPHER_JUDGED to a folder for the synthetic rows, outside the repository")
    return Path(given)


@cache
def fingerprint() -> str:
    """Eight digits that change with any line of our source, or of the schemas it is given."""
    root, here = Path(dpcipher.__file__).parent, Path(__file__).parent
    digest = hashlib.sha256()
    for path in (
        *sorted(root.rglob("*.py")),
        *(here / f"{name}.py" for name in ("excerpt", "tables", "our_rows")),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def read(path: Path) -> list[Line]:
    """Every line of a record."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def job_of(line: Line) -> Job:
    """The job that a line is about."""
    return Job(line["table"], line["method"], line["epsilon"], line["seed"])


def replace(path: Path, key: Sequence[str], line: Line) -> None:
    """Write a line in the place of the one with the same key, or at the end; one process at a time."""
    with (folder() / f"{path.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = [old for old in read(path) if any(old[name] != line[name] for name in key)]
        scratch = path.with_suffix(".tmp")
        scratch.write_text("".join(json.dumps(old) + "\n" for old in [*kept, line]))
        scratch.replace(path)


def is_settled(lines: Iterable[Line], job: Job, cap: float) -> bool:
    """Whether a job needs no run: its rows are there and current, or it ended otherwise at this cap or a higher one."""
    line = next((line for line in lines if job_of(line) == job), None)
    if line is None or line["source"] != job.source:
        return False
    return (
        job.path.exists() if line["status"] == "ok" else line["status"] != "timed out" or line["cap"] >= cap
    )


def record_rows(job: Job, line: Line) -> None:
    """Keep how the rows of a job came about."""
    replace(ROWS, list(asdict(job)), {**asdict(job), "source": job.source, **line})


def record_scores(job: Job, judge: str, line: Line) -> None:
    """Keep what a judge said."""
    replace(SCORES, [*asdict(job), "judge"], {**asdict(job), "judge": judge, **line})
