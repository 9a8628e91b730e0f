"""The size of the source, the files that a call passes through, and what importing costs; now and at an earlier commit.

usage: python benchmarks/size.py [COMMIT]
"""

import ast
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import token
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from common import markdown, write_page

ROOT = Path(__file__).parents[1]
LAYOUT = {
    token.NEWLINE,
    token.NL,
    token.INDENT,
    token.DEDENT,
    token.COMMENT,
    token.ENDMARKER,
    token.ENCODING,
}
# Files that are registered, each for one name that a user says: one importer is what they are for.
REGISTERED = ("methods/", "engines/", "cli/", "io/")
CORE = (
    "tables/", "marginals/", "release/", "errors.py", "files.py", "files/__init__.py", "files/foreign.py", "__init__.py", "__main__.py",
    "posteriors/evidence.py", "posteriors/noise_law.py", "posteriors/whole_counts.py", "posterior/evidence.py",
    "posterior/noise_law.py", "posterior/whole_counts.py", "privacy/noise.py", "privacy/together.py", "privacy/draws.py",
    "selection/target.py", "request/auto.py", "engines/targets.py", "drawing/curator_only.py",
)  # fmt: skip
ENGINES = ("tables/raking.py",)  # what engines and posteriors rake with
# `tables/` held the readers of users' tables as long as the algebra stood in `marginals/`.
PRIVATE_SIDE = ("privacy/", "request/", "selection/", "planning/", "curator/")
SLICES = {"core: tables, release, errors, files": CORE, "private side": PRIVATE_SIDE}
# What measures the ways: run as a child, so that any commit's source can be traced.
TRACE = """
import inspect, sys, tempfile
from functools import partial
from pathlib import Path
import numpy as np, pandas as pd, dpcipher as dc
package, folder = Path(dc.__file__).parent, Path(tempfile.mkdtemp())
schema = dc.Schema.from_domain({"a": 3, "b": 4, "c": 2, "d": 5})
share = np.random.default_rng(1).random(2000)  # the columns go together, so that a second round is always held
rows = pd.DataFrame({name: (share * size).astype(int) for name, size in {"a": 3, "b": 4, "c": 2, "d": 5}.items()})
dc.Ledger.create(folder / "people.ledger", epsilon=1000, unit="add-remove")
def measure(number, **words):
    save = folder / f"{words.get('workload', 2)}-{number}.release.parquet"
    return dc.measure(rows, schema, unit="add-remove", ledger=folder / "people.ledger", save=save, **words)
plan = partial(dc.plan, schema, epsilon=1, unit="add-remove", n_rows=2000)
calls = {
    "measure": lambda n: measure(n, epsilon=1), "measure, auto": lambda n: measure(n, epsilon=20, workload="auto"),
    "plan": lambda n: str(plan()), "plan, auto": lambda n: str(plan(workload="auto")),
    "Release.load": lambda n: dc.Release.load(folder / "2-0.release.parquet"),
}
for name, call in calls.items():
    call(0)  # loads what is loaded at its first use
    seen = set()
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            seen.add(frame.f_code.co_filename)
    sys.setprofile(note)
    call(1)
    sys.setprofile(None)
    files = {Path(name).relative_to(package).as_posix() for name in seen if name.startswith(str(package))}
    print(name, *sorted(files - {"__init__.py"}), sep="|")
"""

Sources = Mapping[str, str]  # path below the package, and text


def sources_now() -> Sources:
    """The files of the package in the working tree."""
    package = ROOT / "src" / "dpcipher"
    return {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}


def unpack(commit: str, folder: Path) -> Sources:
    """The files of the package at a commit, put below a folder."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    package = folder / "src" / "dpcipher"
    return {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}


def count(texts: Iterable[str]) -> tuple[int, int, int, int]:
    """Files, lines, lines of code without blanks, comments and docstrings, and tokens without comments and layout."""
    files = lines = code = tokens = 0
    for text in texts:
        files, lines = files + 1, lines + text.count("\n")
        every = list(tokenize.generate_tokens(io.StringIO(text).readline))
        tokens += sum(one.type not in LAYOUT for one in every)
        held = {row for one in every if one.type not in LAYOUT for row in range(one.start[0], one.end[0] + 1)}
        code += len(held - docstring_rows(ast.parse(text)))
    return files, lines, code, tokens


def docstring_rows(tree: ast.Module) -> set[int]:
    """The rows of all docstrings of a module."""
    rows: set[int] = set()
    for node in ast.walk(tree):
        holds = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if holds and ast.get_docstring(node) is not None:
            first = node.body[0]
            rows |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return rows


def single_importers(sources: Sources) -> int:
    """Modules that exactly one other module imports, those that are registered apart."""
    names = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources}
    importers: dict[str, set[str]] = defaultdict(set)
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpcipher"):
                base = (node.module or "").removeprefix("dpcipher").removeprefix(".")
                wanted = [f"{base}.{alias.name}".removeprefix(".") for alias in node.names]
                for name in {one if one in names else base for one in wanted} & names.keys():
                    importers[names[name]].add(path)
    return sum(len(by) == 1 and not path.startswith(REGISTERED) for path, by in importers.items())


def curator_imports(sources: Sources) -> Counter[str]:
    """In which packages, other than the curator's, modules of the curator are imported, and how often."""
    found: Counter[str] = Counter()
    for path, text in sources.items():
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        times = sum((node.module or "").startswith("dpcipher.curator") for node in nodes)
        if times and not path.startswith("curator/"):
            found[path.split("/")[0]] += times
    return found


def ways(source: Path) -> dict[str, int]:
    """How many files of the package each call passes through."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        [sys.executable, "-c", TRACE], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return {line.split("|")[0]: len(line.split("|")) - 1 for line in ran.stdout.splitlines()}


def processor_ms(source: Path, statement: str) -> float:
    """The least processor time of five children that run a statement, less that of Python alone, in milliseconds."""

    def least(what: str) -> float:
        readings = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, "-c", what], env={**os.environ, "PYTHONPATH": str(source)}, check=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            readings.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return 1000 * min(readings)

    return least(statement) - least("pass")


def figures(sources: Sources, source: Path) -> dict[str, str]:
    """Every figure of one state of the source, by name."""
    files, lines, code, tokens = count(sources.values())
    found = {"files": files, "lines": lines, "lines of code": code, "tokens": tokens}
    readers = ("tables/",) if any(path.startswith("marginals/") for path in sources) else ()
    for name, starts in SLICES.items():
        inside = [
            text
            for path, text in sources.items()
            if path.startswith(starts) and not path.startswith((*readers, *ENGINES))
        ]
        found[f"{name}: lines"] = sum(text.count("\n") for text in inside)
        found[f"{name}: files"] = len(inside)
    for package in sorted({path.split("/")[0] for path in sources if "/" in path}):
        inside = [text for path, text in sources.items() if path.startswith(package + "/")]
        found[f"`{package}`: lines"] = sum(text.count("\n") for text in inside)
    found["modules with one importer"] = single_importers(sources)
    for name, number in ways(source).items():
        found[f"files on the way of `{name}`"] = number
    shown = {name: f"{number:,}" for name, number in found.items()}
    imports = curator_imports(sources)
    shown["imports of `curator` from outside"] = ", ".join(f"{name} {n}" for name, n in imports.items())
    slower = processor_ms(source, "import dpcipher") / processor_ms(source, "import numpy")
    shown["processor time of `import dpcipher` over that of numpy"] = f"{slower:.2f}"
    return shown


def main() -> None:
    now = figures(sources_now(), ROOT / "src")
    states = {"now": now}
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            commit = sys.argv[1]
            states = {commit[:7]: figures(unpack(commit, Path(folder)), Path(folder) / "src"), **states}
    names = dict.fromkeys(name for state in states.values() for name in state)
    table = markdown(["", *states], [[name, *(s.get(name, "") for s in states.values())] for name in names])
    text = (
        "Lines of code are without blanks, comments and docstrings; tokens, as `tokenize` counts them, without comments and layout. The way of a call are "
        "the source files in which a function runs at its second call, on four columns and 2,000 rows, with a ledger and a saved release."
    )
    write_page(
        "size", "Size of the source", "python benchmarks/size.py " + " ".join(sys.argv[1:]), [text, table]
    )


if __name__ == "__main__":
    main()
