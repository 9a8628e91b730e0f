"""`python -m experiments.paper`: storage, both experiments, figures, and one page of verdicts. NOT PRIVATE: noise is seeded."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dpcipher.errors import DpcipherError, TableFileError
from experiments.paper import bankruptcy, figures, simulated
from experiments.paper.bankruptcy_data import load
from experiments.paper.blocks import STAMP, Say
from experiments.paper.judge import Verdict, counts, judge_all
from experiments.paper.page import LINK, write_page
from experiments.paper.quantities import OURS, Condition
from experiments.paper.results import Scores, plain, summarise_bankruptcy, summarise_simulated
from experiments.paper.stacks import chosen

PARTS = ("storage", "experiment1", "experiment2")


@dataclass(frozen=True)
class Reproduction:
    """The page that was written, and the verdicts."""

    page: Path
    verdicts: tuple[Verdict, ...]

    @property
    def text(self) -> str:
        """A few lines for people."""
        lines = []
        for title, arithmetic in (("results", False), ("pieces of arithmetic", True)):
            count = counts(self.verdicts, arithmetic=arithmetic)
            lines += [f"{sum(count.values())} {title} in the paper"]
            lines += [f"{number:4d}  {name}" for name, number in count.items() if number]
        return "\n".join([*lines, f"written: {self.page}", STAMP])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        count = {"results": counts(self.verdicts), "arithmetic": counts(self.verdicts, arithmetic=True)}
        claims = [_as_dict(verdict) for verdict in self.verdicts]
        return {"stamp": STAMP, "page": str(self.page), "counts": count, "claims": claims}


def reproduce(
    what: str,
    folder: Path,
    *,
    repeats: int,
    second_repeats: int,
    reading: str | Sequence[str],
    data: Path | None = None,
    workers: int = 1,
    say: Say = lambda text: None,
) -> Reproduction:
    """Run one part or all, go on where an earlier run in the folder was stopped, and write figures, numbers and a page.

    `reading` is `"literal"`, other readings to put beside it, or `"all"`. Without the bankruptcy data `all` leaves the second experiment out and
    says so.
    """
    readings, parts = chosen(reading), _parts(what, data, say)
    # A missing part of the environment is said before an hour's work, not after it.
    figures.blank(1, 1)
    pictures = folder / LINK
    pictures.mkdir(parents=True, exist_ok=True)
    first: Scores | None = None
    second: Scores | None = None
    if "experiment2" in parts:
        bankruptcy.svm()
    if "experiment1" in parts:
        blocks, todo = simulated.blocks(folder), simulated.tasks(repeats, readings)
        blocks.run(todo, workers=workers, say=lambda text: say(f"experiment 1: {text}"))
        first = summarise_simulated(folder, repeats, readings)
        figures.draw_simulated(pictures, first)
    if "experiment2" in parts:
        blocks, todo = bankruptcy.blocks(folder, load(data)), bankruptcy.tasks(second_repeats, readings)
        blocks.run(todo, workers=workers, say=lambda text: say(f"experiment 2: {text}"))
        second = summarise_bankruptcy(folder, second_repeats, readings, data)
        figures.draw_bankruptcy(pictures, second)
    if "storage" in parts:
        figures.draw_storage(pictures)
    judged = judge_all(storage="storage" in parts, first=first, second=second)
    page = write_page(folder, judged, first=first, second=second)
    done = Reproduction(page, tuple(verdict for part in judged.values() for verdict in part))
    numbers = {
        **done.to_dict(),
        "experiment1": first and plain(first.frame()),
        "random": first and plain(first.random),
        "experiment2": second and plain(second.frame()),
    }
    text = json.dumps(numbers, ensure_ascii=False) + "\n"
    (folder / "numbers.json").write_text(text, encoding="utf-8")
    return done


def _parts(what: str, data: Path | None, say: Say) -> Sequence[str]:
    """What will be run: without data, `all` is the rest."""
    if what in ("storage", "experiment1"):
        return (what,)
    try:
        load(data)
    except TableFileError as missing:
        if what == "experiment2":
            raise
        say(f"experiment 2 is left out: {missing}")
        return PARTS[:2]
    return PARTS if what == "all" else (what,)


def _as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    claim = verdict.claim
    ours = {Condition(OURS, where.choices): finding for where, finding in verdict.ours.items()}
    findings = [
        {"reading": where.reading, **dict(where.choices), "outcome": finding.outcome, "found": finding.found}
        for where, finding in {**verdict.findings, **ours}.items()
    ]
    told = {"key": claim.key, "says": claim.says, "where": claim.where, "rule": claim.words}
    return {**told, "verdict": verdict.status, "flips": verdict.flips, "findings": findings}


_FOLDER = click.Path(file_okay=False, path_type=Path)
_COUNT = click.IntRange(min=1)


@click.command("reproduce", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("part", type=click.Choice((*PARTS, "all")))
@click.option("--repeats", type=_COUNT, default=1000, show_default=True, help="Repeats of experiment 1.")
@click.option("--second-repeats", type=_COUNT, help="Repeats of experiment 2; by default a tenth.")
@click.option(
    "--reading",
    multiple=True,
    default=["literal"],
    metavar="literal|all|NAME",
    help="How the paper's algorithm is read: literally (always), also as named (may be repeated), or in all ways.",
)
@click.option(
    "--data", type=_FOLDER, help="The folder with the bankruptcy data; by default that of DPCIPHER_DATA."
)
@click.option("--workers", type=_COUNT, help="Processes to use; by default one for each core.")
@click.option(
    "-o",
    "--output",
    type=_FOLDER,
    default=Path("reproduction"),
    show_default=True,
    help="The folder to write into; run again to go on after a kill.",
)
@click.option("--json", "json_", is_flag=True, help="Print the verdicts as JSON.")
def main(
    part: str,
    repeats: int,
    second_repeats: int | None,
    reading: tuple[str, ...],
    data: Path | None,
    workers: int | None,
    output: Path,
    json_: bool,
) -> None:
    """Reproduce the paper's figures and tables, and judge its claims. Noise is seeded: NOT PRIVATE.

    \b
    Examples:
      python -m experiments.paper storage
      python -m experiments.paper all --reading all --data data -o reproduction
    """
    try:
        done = reproduce(
            part,
            output,
            repeats=repeats,
            # Its tables have forty times the cells, and it has one original, not thousands.
            second_repeats=second_repeats or max(1, repeats // 10),
            reading=reading,
            data=data,
            workers=workers or os.cpu_count() or 1,
            say=lambda text: click.echo(text, err=True),
        )
    except DpcipherError as error:
        raise click.ClickException(str(error)) from None
    click.echo(json.dumps(done.to_dict(), indent=2, ensure_ascii=False) if json_ else done.text)


if __name__ == "__main__":
    main(prog_name="python -m experiments.paper")
