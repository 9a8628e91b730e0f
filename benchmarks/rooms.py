"""How far one has to look: the rooms of the source, the files on the way of a call, and what importing costs.

usage: python benchmarks/rooms.py
"""

import ast
import inspect
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from common import markdown, write_page
from house import draw_house

import dpcipher as dc

ROOT = Path(__file__).parents[1]
PACKAGE = Path(dc.__file__).parent
SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
CHILDREN = 5

# The first edition of the layout, its last state counted with this tracer: before the ledger had a witness and ids of persons were canonical.
FIRST_EDITION = {"measure": 28, "measure, auto": 55, "plan, given": 39, "plan, auto": 17, "plan": 48}
FIRST_FILES, FIRST_LINES = 205, 22_883


def layers() -> tuple[str, ...]:
    """The rooms in their order, from the test that enforces it."""
    for node in ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            return tuple(ast.literal_eval(node.value))
    raise SystemExit("tests/test_layers.py has no LAYERS")


def traced(call: Callable[[], object]) -> set[str]:
    """The files of the package in which a function ran; the bodies of modules and classes are not functions."""
    seen: set[str] = set()

    def note(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            seen.add(code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = {Path(name) for name in seen if name.startswith(str(PACKAGE))}
    return {path.relative_to(PACKAGE).as_posix() for path in inside} - {"__init__.py"}


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """What is traced, as a user would call it."""
    schema = dc.Schema.from_domain(SIZES)
    rng = np.random.default_rng(1)
    share = rng.random(
        2000
    )  # the columns go together, so that a second round of the selection is always held
    rows = pd.DataFrame({name: (share * size).astype(int) for name, size in SIZES.items()})
    ledger, save = folder / "people.ledger", folder / "people.release.parquet"
    dc.Ledger.create(ledger, epsilon=1000, unit="add-remove")
    measure = partial(dc.measure, rows, schema, unit="add-remove", ledger=ledger, save=save, force=True)
    plan = partial(dc.plan, schema, epsilon=1, unit="add-remove", n_rows=2000)
    return {
        "measure": lambda: measure(epsilon=1),
        "measure, auto": lambda: measure(epsilon=20, workload="auto"),
        "plan, given": lambda: str(plan()),
        "plan, auto": lambda: str(plan(workload="auto")),
    }


def ways() -> dict[str, set[str]]:
    """The files on the way of each call, at its second run: the first loads what is loaded when it is used."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, call in calls(Path(folder)).items():
            call()
            found[name] = traced(call)
    return found


def by_room(files: set[str]) -> dict[str, int]:
    """How many of the files each room has."""
    rooms = [file.split("/")[0].removesuffix(".py") for file in files]
    return {room: rooms.count(room) for room in layers() if room in rooms}


def size(room: str) -> tuple[int, int]:
    """Files and lines of a room."""
    folder = PACKAGE / room
    paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return len(paths), sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def processor_ms(*words: str) -> float:
    """The least processor time of a few children that run Python with these words, in milliseconds."""
    readings = []
    for _ in range(CHILDREN):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        readings.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * min(readings)


def ways_section(found: dict[str, set[str]]) -> str:
    rows = []
    merged = {**found, "plan": found["plan, given"] | found["plan, auto"]}
    for name, files in merged.items():
        rooms = ", ".join(f"{room} {count}" for room, count in by_room(files).items())
        rows.append([name, len(files), FIRST_EDITION[name], rooms])
    return markdown(["call", "files", "first edition", "by room"], rows)


def sizes_section() -> str:
    sizes = {room: size(room) for room in layers()}
    front = [PACKAGE / "__init__.py", PACKAGE / "__main__.py"]
    sizes["front page"] = len(front), sum(len(path.read_text().splitlines()) for path in front)
    files, lines = (sum(column) for column in zip(*sizes.values(), strict=True))
    rows = [[room, count, f"{length:,}"] for room, (count, length) in sizes.items()]
    rows += [["**all**", files, f"{lines:,}"], ["first edition", FIRST_FILES, f"{FIRST_LINES:,}"]]
    return markdown(["room", "files", "lines"], rows)


def imports_section() -> str:
    timed = {
        'python -c "pass"': ("-c", "pass"),
        "import dpcipher": ("-c", "import dpcipher"),
        "import numpy": ("-c", "import numpy"),
        "python -m dpcipher --help": ("-m", "dpcipher", "--help"),
        "import click": ("-c", "import click"),
    }
    return markdown(
        ["", "ms of processor"],
        [[f"`{name}`", f"{processor_ms(*words):.0f}"] for name, words in timed.items()],
    )


def main() -> None:
    (ROOT / "docs" / "house.svg").write_text(draw_house(layers()), encoding="utf-8")
    sections = [
        "[The house](../../docs/house.md) says what each room is for.",
        "## Files on the way of a call",
        "The source files in which a function runs, of four columns and 2,000 rows, with a ledger and a saved release; the bodies of modules "
        "and classes, and the package's front page, do not count. A plan is printed; `plan` is the files of both.",
        ways_section(ways()),
        "The first edition was counted with the same script. Since then a plan asks the engines and the selection instead of copying them, which shortened its "
        "way. The way of `measure` is longer by what was added to it: events, a witness beside the ledger, the rules that read a cell by itself, and checks of every fact in a release.",
        "## Files and lines",
        sizes_section(),
        "## What importing costs",
        f"User and system time of a fresh Python, the least of {CHILDREN}.",
        imports_section(),
    ]
    write_page("rooms", "Rooms", "python benchmarks/rooms.py", sections)


if __name__ == "__main__":
    main()
