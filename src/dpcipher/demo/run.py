"""The whole workflow in one function: schema, plan, ledger, release, synthetic rows, summary."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpcipher.curator.measure import measure
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.drawing.curator_only import PUBLISHABLE
from dpcipher.drawing.html import facts, page, paragraphs, table
from dpcipher.engines.solve import solve
from dpcipher.errors import ParameterError
from dpcipher.files import write_text
from dpcipher.joint.joint import Joint
from dpcipher.pages import words
from dpcipher.pages.report import cards, columns, pairs
from dpcipher.planning.plan import Plan, plan
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.witness import path_of
from dpcipher.release.release import Release
from dpcipher.release.signature import verify
from dpcipher.schema.schema import Schema

EPSILON = 1.0
LIMIT = 3.0
UNIT = "add-remove"
NAME = "people of the demo"
MOST_PAIRS, MOST_ROWS = 6, 8
FILES = {
    "people.csv": "the private table (invented here); stays with the curator",
    "people.yaml": "the public schema",
    "people.ledger": "what was spent; stays with the curator",
    "people.ledger.witness": "notices a ledger that is cut or put back; stays beside it",
    "people.release.parquet": "noisy tables and how they were made; can be published",
    "synthetic.csv": "synthetic rows; can be published",
    "synthetic.csv.mark": "says which release they are from; published beside them",
    "summary.html": "release and synthetic rows side by side; can be published",
}


@dataclass(frozen=True)
class DemoRun:
    """What a run of the demo made: its files, and the text that presents them."""

    folder: Path
    n_rows: int
    plan: Plan
    joint: Joint
    ledger: Ledger
    seconds: float

    @property
    def text(self) -> str:
        """The result, for people."""
        width = max(map(len, FILES))
        return "\n".join(
            [
                str(self.plan),
                "",
                f"Ledger   spent {self.ledger.spent.describe()}, left {self.ledger.remaining.describe()}",
                f"Rows     {self.n_rows:,} synthetic, {self.joint.health.engine} engine",
                "",
                f"{self.folder}/",
                *(f"  {name:<{width}}  {content}" for name, content in FILES.items()),
                "",
                f"Done in {self.seconds:.1f} s. Open {self.folder / 'summary.html'} in a browser.",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "files": {name: str(self.folder / name) for name in FILES},
            "n_rows": self.n_rows,
            "spent": self.ledger.spent.as_dict(),
            "left": self.ledger.remaining.as_dict(),
            "seconds": self.seconds,
        }


def run_demo(folder: Path, *, say: Callable[[str], None]) -> DemoRun:
    """Run the demo into `folder`, which is new, empty, or an earlier demo's."""
    started = time.perf_counter()
    path = {name: folder / name for name in FILES}
    say("inventing people")
    schema = _prepare(folder, path)
    say("planning")
    foreseen = plan(schema, workload=2, epsilon=EPSILON, unit=UNIT, n_rows=5000)
    ledger = Ledger.create(path["people.ledger"], epsilon=LIMIT, unit=UNIT, name=NAME)
    release = measure(
        str(path["people.csv"]),
        schema,
        workload=2,
        epsilon=EPSILON,
        unit=UNIT,
        ledger=ledger,
        save=path["people.release.parquet"],
        force=True,
        progress=say,
    )
    say("solving")
    joint = solve(release)
    assert isinstance(joint, Joint)  # one set was measured, so there is one joint
    say("drawing synthetic rows")
    drawn = joint.stream(seed=1)
    drawn.write(path["synthetic.csv"], force=True)
    rows = drawn.table()
    say("drawing the summary")
    write_text(path["summary.html"], render(release, rows, ledger), force=True)
    return DemoRun(folder, rows.num_rows, foreseen, joint, ledger, time.perf_counter() - started)


def _prepare(folder: Path, path: dict[str, Path]) -> Schema:
    """The curator's two files: her table and the public schema."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, path["people.ledger"])
        path["people.yaml"].write_text(SCHEMA, encoding="utf-8")
        invent_people().to_csv(path["people.csv"], index=False)
    except OSError as error:
        raise ParameterError(
            f"output ({folder}) must be a folder that can be written ({error.strerror}); choose another"
        ) from None
    return Schema.load(path["people.yaml"])


def _make_room(folder: Path, ledger: Path) -> None:
    """Start afresh in an earlier demo's folder; touch no other folder that holds anything, least of all a real ledger."""
    if not any(folder.iterdir()):
        return
    if not ledger.exists() or Ledger.open(ledger).name != NAME:
        raise ParameterError(
            f"output ({folder}) must be new, empty, or an earlier demo's folder; choose another"
        )
    path_of(ledger).unlink(missing_ok=True)
    ledger.unlink()


def render(release: Release, rows: pa.Table, ledger: Ledger) -> str:
    """The summary: what was released and the synthetic rows, side by side. It is given nothing else of the rows, so it may be published.

    The ledger at hand confirms that it paid for the release, so the page may say certified.
    """
    verification = verify(release, ledger=ledger)
    synthetic = release.schema.encode(rows)
    made_from = (
        "This page was made from the release and the synthetic rows alone, so it can be published with them."
    )
    sections = {
        "In short": cards(release, rows.num_rows, verification)
        + paragraphs([*words.summary(release, rows.num_rows), made_from]),
        "How people are protected": paragraphs([*words.protection(release), *words.noise(release)]),
        "Every column": columns(release, synthetic),
        "Pairs that go together": pairs(release, synthetic, most=MOST_PAIRS),
        "A few synthetic rows": _sample(rows),
        "The files": facts(FILES),
    }
    lead = words.lead(release, rows.num_rows)
    return page("Synthetic people: a release and what it says", PUBLISHABLE, sections, lead=lead)


def _sample(rows: pa.Table) -> str:
    first = rows.slice(0, MOST_ROWS).to_pylist()
    says = "No row belongs to anybody: each was drawn from a distribution that only ever saw noisy counts."
    return table(rows.column_names, [[_value(v) for v in row.values()] for row in first]) + paragraphs([says])


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
