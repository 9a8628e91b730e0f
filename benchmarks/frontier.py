"""Error against processor time at ε = e², where AIM is strongest: ours, AIM, SWIFT and MST on the tables where they end, and which did not.

usage: DPCIPHER_DATA=FOLDER DPCIPHER_NETWORKS=FOLDER python benchmarks/frontier.py [repeats=5]

The peers' cells are those of results/peers.jsonl (peers/run.py). Ours are run here: seeded noise, nothing is private.
"""

import json
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent / "peers"))
from auto import EPSILONS, synthesize
from common import RESULTS, Floats, markdown, show, tvd_rows, write_page
from run import load

from dpcipher.drawing.curves import COLOURS, FAINT, MARKS
from dpcipher.drawing.svg import element, image, standalone, text

LABEL = "e2"
DATA = ("2x2x3x3", "bankruptcy", "asia", "nltcs", "child", "adult")
METHODS = ("AIM", "SWIFT", "MST")
PACKAGES = ("ours", "opendp", "smartnoise", "dpsynth")  # a colour each; a method has a mark
WIDTH, HEIGHT, GAP, TOP, LEFT, COLUMNS = 250, 190, 50, 30, 60, 3
LEGEND = 160  # the width of an entry
SECONDS, ERRORS = (0.3, 10_000.0), (1e-4, 1.0)


@dataclass(frozen=True)
class Point:
    """One method on one table: how it ended, what it took and its 1/2/3-way error."""

    method: str
    status: str
    seconds: float
    megabytes: float
    error: Floats
    seeds: int


def once(name: str) -> None:
    """One run of ours in a fresh process: its processor time from the start, imports and reading included."""
    codes, shape = load(name)
    synthesize(codes, shape, EPSILONS[LABEL], 0)
    print(json.dumps(time.process_time()))


def ours(name: str, repeats: int) -> Point:
    """The mean error over seeds, and the processor time of a fresh process."""
    codes, shape = load(name)
    errors = [
        tvd_rows(codes, synthesize(codes, shape, EPSILONS[LABEL], seed)[0], shape) for seed in range(repeats)
    ]
    told = subprocess.run(
        [sys.executable, __file__, "once", name], check=True, capture_output=True, text=True
    )
    return Point("ours", "ok", float(told.stdout), float("nan"), np.mean(errors, axis=0), repeats)


def peers() -> dict[str, list[Point]]:
    """The peers' cells at this epsilon, seeds averaged."""
    runs: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for line in (RESULTS / "peers.jsonl").read_text().splitlines():
        cell = json.loads(line)
        if cell["epsilon"] == LABEL and cell["method"] in METHODS and cell["data"] in DATA:
            runs[cell["data"], f"{cell['peer'].removesuffix('_mbi')} {cell['method']}"].append(cell)
    results: dict[str, list[Point]] = defaultdict(list)
    for (data, method), cells in sorted(runs.items()):
        good = [cell for cell in cells if cell["status"] == "ok"]
        if good:
            seconds = float(np.mean([cell["cpu_seconds"] for cell in good]))
            error = np.mean([cell["tvd"] for cell in good], axis=0)
            results[data].append(
                Point(method, "ok", seconds, max(cell["megabytes"] for cell in good), error, len(good))
            )
        else:
            last = cells[-1]
            status = (
                f"{last['status']} at {last['cap']:.0f} s"
                if last["status"] == "timed out"
                else last["status"]
            )
            results[data].append(Point(method, status, last["cap"], last["megabytes"], np.full(3, np.nan), 0))
    return results


def place(point: Point) -> tuple[float, float]:
    """Where a point lies in its panel, both axes logarithmic."""
    across = log10(min(max(point.seconds, SECONDS[0]), SECONDS[1]) / SECONDS[0]) / log10(
        SECONDS[1] / SECONDS[0]
    )
    error = float(np.clip(point.error[1], *ERRORS))
    return across * WIDTH, HEIGHT - log10(error / ERRORS[0]) / log10(ERRORS[1] / ERRORS[0]) * HEIGHT


def mark(method: str, x: float, y: float) -> str:
    """The mark of a method in the colour of its package."""
    package, _, kind = method.partition(" ")
    return element(
        "path",
        d=MARKS[("", *METHODS).index(kind)],
        fill=COLOURS[PACKAGES.index(package)],
        transform=f"translate({x:.1f} {y:.1f})",
    )


def panel(name: str, points: Sequence[Point]) -> str:
    """One table: seconds across, 2-way error up; a method that did not end is a name at the right edge."""
    drawn = [element("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill="none", stroke=FAINT)]
    drawn.append(text(WIDTH / 2, -8, name, anchor="middle", font_weight="bold"))
    for tick in (1, 10, 100, 1000):
        x = place(Point("", "", tick, 0, np.ones(3), 0))[0]
        drawn.append(element("line", x1=x, x2=x, y1=0, y2=HEIGHT, stroke=FAINT))
        drawn.append(text(x, HEIGHT + 16, f"{tick:g} s", anchor="middle", font_size=11))
    for tick in (1e-3, 1e-2, 1e-1):
        y = place(Point("", "", 1, 0, np.full(3, tick), 0))[1]
        drawn.append(element("line", x1=0, x2=WIDTH, y1=y, y2=y, stroke=FAINT))
        drawn.append(text(-5, y + 4, f"{tick:g}", anchor="end", font_size=11))
    for number, point in enumerate(point for point in points if point.status != "ok"):
        drawn.append(
            text(WIDTH - 4, 14 + 13 * number, f"{point.method}: {point.status}", anchor="end", font_size=10)
        )
    drawn += [mark(point.method, *place(point)) for point in points if point.status == "ok"]
    return "".join(drawn)


def draw(results: Mapping[str, Sequence[Point]]) -> str:
    """All panels and a legend."""
    names = ["ours", *sorted({p.method for points in results.values() for p in points} - {"ours"})]
    parts = [text(8, 14, "2-way error", font_size=11)]
    for number, (name, points) in enumerate(results.items()):
        x = LEFT + (number % COLUMNS) * (WIDTH + GAP)
        y = TOP + number // COLUMNS * (HEIGHT + GAP)
        parts.append(element("g", panel(name, points), transform=f"translate({x} {y})"))
    bottom = TOP + ((len(results) + COLUMNS - 1) // COLUMNS) * (HEIGHT + GAP)
    width = LEFT + COLUMNS * (WIDTH + GAP)
    across = (width - LEFT) // LEGEND
    for number, name in enumerate(names):
        x, y = LEFT + number % across * LEGEND, bottom + number // across * 20
        parts.append(mark(name, x, y - 4) + text(x + 10, y, name))
    told = "; ".join(
        f"{name}: "
        + ", ".join(f"{p.method} {p.error[1]:.4f} in {p.seconds:.0f} s" for p in points if p.status == "ok")
        for name, points in results.items()
    )
    height = bottom + 20 * ((len(names) - 1) // across + 1)
    title = "2-way error against processor seconds"
    return standalone(image(width, height, "".join(parts), title=title, description=told))


def rows(results: Mapping[str, Sequence[Point]]) -> list[list[str]]:
    """Every cell as a line of the table."""
    lines = []
    for name, points in results.items():
        for point in points:
            ended = point.status == "ok"
            lines.append(
                [
                    name,
                    point.method + (f" ({point.seeds} seeds)" if point.seeds > 1 else ""),
                    show(point.error) if ended else point.status,
                    f"{point.seconds:.1f}" if ended else "",
                    "" if np.isnan(point.megabytes) else f"{point.megabytes:.0f}",
                ]
            )
    return lines


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    theirs = peers()
    results = {name: [ours(name, repeats), *theirs[name]] for name in DATA if theirs[name]}
    (RESULTS / "frontier.svg").write_text(draw(results), encoding="utf-8")
    about = (
        "(ε, δ) = (e², 10⁻⁹), add-remove: mean total variation distance of 1/2/3-way tables between rows and data, and processor seconds from "
        "rows to rows, each method in a fresh process on one core, its imports and compilation included. AIM runs with its default settings. A cell is "
        "stopped at a cap of processor time, and says so. One seed for the peers unless it says otherwise. 2×2×3×3 is one table of 500 rows; "
        "bankruptcy has 250 rows and 1,458 cells."
    )
    sections = [
        about,
        "![Error against time](frontier.svg)",
        markdown(["data", "method", "error", "processor s", "MB"], rows(results)),
    ]
    write_page(
        "frontier", "Error against time at ε = e²", f"python benchmarks/frontier.py {repeats}", sections
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["once"]:
        once(sys.argv[2])
    else:
        main()
