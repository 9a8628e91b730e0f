"""The layout shows the flow of data, and this proves it from the imports alone."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dpcipher"

# In the order of the flow; a layer imports only itself and earlier ones. A noun stands before the verb that makes it:
# the release before the session that fills it, the joint before the solvers.
LAYERS = (
    "errors",
    "files",
    "drawing",
    "tables",
    "schema",
    "io",
    "privacy",
    "release",
    "joint",
    "posteriors",
    "engines",
    "request",
    "selection",
    "planning",
    "methods",
    "inference",
    "pages",
    "curator",
    "evaluation",
    "demo",
    "cli",
)
RELEASED = (
    "release",
    "joint",
    "posteriors",
    "engines",
    "request",
    "selection",
    "planning",
    "methods",
    "inference",
    "pages",
)
# Where a method is handed private rows: the two functions of the released side that open a session to them.
ENTRY_POINTS = {"dpcipher.methods.base": ("fit", "fit_counts"), "dpcipher.schema.schema": ("draft", "check")}
READS_PRIVATE_ROWS = ("dpcipher.curator", "dpcipher.evaluation")
READS_ANY_ROWS = (*READS_PRIVATE_ROWS, "dpcipher.io.source")

Imports = Mapping[str, set[str]]


def modules(root: Path) -> dict[str, str]:
    """Dotted name and source text of every module below `root`, except the package's own front page."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = ("dpcipher", *path.relative_to(root).with_suffix("").parts)
        found[".".join(part for part in parts if part != "__init__")] = path.read_text(encoding="utf-8")
    return {name: text for name, text in found.items() if name not in ("dpcipher", "dpcipher.__main__")}


def imported(name: str, text: str) -> Iterator[str]:
    """Every dpcipher module that a module names in an import, wherever in the file it stands."""
    for node in _nodes(ast.parse(text), ENTRY_POINTS.get(name, ())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "dpcipher")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpcipher":
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            yield "dynamic import"


def _nodes(tree: ast.AST, entry_points: tuple[str, ...]) -> Iterator[ast.AST]:
    """All nodes but those inside entry points, and what is imported for the sake of types alone."""
    for node in ast.iter_child_nodes(tree):
        skipped = isinstance(node, ast.FunctionDef) and node.name in entry_points
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and entry_points
        if not skipped and not typing:
            yield node
            yield from _nodes(node, entry_points)


def imports(sources: Mapping[str, str]) -> Imports:
    """Which known modules each module imports; a package stands for its front page."""
    return {
        name: {
            target
            for target in imported(name, text)
            if target in sources or target in ("dpcipher", "dynamic import")
        }
        for name, text in sources.items()
    }


def layer(name: str) -> str:
    """The layer that a module is placed in."""
    return name.split(".")[1]


def misplaced(graph: Imports) -> list[str]:
    """Modules in no layer, and imports that run against the flow."""
    wrong = [f"{name} is in no layer" for name in graph if layer(name) not in LAYERS]
    for name, targets in graph.items():
        for target in targets:
            if target in ("dpcipher", "dynamic import"):
                if (
                    layer(name) == LAYERS[-1]
                ):  # the command line may load its commands as they are called: all is below it
                    continue
                wrong.append(f"{name} hides its imports behind {target}")
            elif layer(name) in LAYERS and LAYERS.index(layer(target)) > LAYERS.index(layer(name)):
                wrong.append(f"{name} imports {target}, a later stage")
    return wrong


def reach(graph: Imports, start: str) -> set[str]:
    """Every module that importing `start` brings in."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        packages = [".".join(name.split(".")[:size]) for size in range(2, len(name.split(".")))]
        for target in [*graph.get(name, ()), *packages]:
            if target not in seen and target in graph:
                seen.add(target)
                waiting.append(target)
    return seen


def leaks(graph: Imports) -> list[str]:
    """Released-side modules that can reach what reads private rows."""
    found = []
    for name in graph:
        if layer(name) not in RELEASED:
            continue
        banned = READS_PRIVATE_ROWS if layer(name) == "pages" else READS_ANY_ROWS
        found += [f"{name} reaches {seen}" for seen in reach(graph, name) if seen.startswith(banned)]
    return found


def test_there_is_a_package_to_check() -> None:
    """The source tree is where this test looks for it."""
    assert {"dpcipher.errors", "dpcipher.curator.answers", "dpcipher.engines.solve"} <= set(modules(SOURCE))


def test_every_module_is_placed_and_no_stage_imports_a_later_one() -> None:
    """Data flows one way."""
    assert misplaced(imports(modules(SOURCE))) == []


def test_the_released_side_cannot_reach_private_rows() -> None:
    """Nothing from the release on, followed through all its imports, reads rows."""
    assert leaks(imports(modules(SOURCE))) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("dpcipher.schema.planted", "from dpcipher.release.release import Release"),
        ("dpcipher.engines.planted", "import dpcipher.cli"),
        ("dpcipher.stray", "import numpy"),
        ("dpcipher.privacy.planted", "def f():\n    from dpcipher.curator import counts"),
        ("dpcipher.joint.planted", "from dpcipher import measure"),
        ("dpcipher.request.planted", "from dpcipher.curator.answers import PrivateRows"),
        ("dpcipher.selection.planted", "from dpcipher.curator.counts import CountSource"),
        ("dpcipher.planning.planted", "from dpcipher.curator.measure import open_session"),
        ("dpcipher.methods.planted", "def fit():\n    from dpcipher.curator.measure import open_session"),
        ("dpcipher.schema.planted", "import importlib\nimportlib.import_module('dpcipher.curator.draft')"),
    ],
)
def test_a_planted_import_against_the_flow_is_found(module: str, line: str) -> None:
    """The check fails on each kind of violation."""
    sources = {**modules(SOURCE), "dpcipher.cli": "", module: line}
    assert any(module in problem for problem in misplaced(imports(sources)))


def test_every_entry_point_is_there() -> None:
    """A function that is renamed is no longer excepted, and is taken off the list."""
    for name, functions in ENTRY_POINTS.items():
        text = modules(SOURCE)[name]
        assert all(f"    def {function}(" in text for function in functions)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("dpcipher.engines.planted", "from dpcipher.curator.counts import count_codes"),
        ("dpcipher.release.planted", "from dpcipher.io.source import open_table"),
        ("dpcipher.pages.planted", "from dpcipher.evaluation import scores"),
    ],
)
def test_a_planted_reach_into_private_rows_is_found(module: str, line: str) -> None:
    """The check fails when the released side reaches a reader, directly or through a friend."""
    sources = {**modules(SOURCE), "dpcipher.evaluation": "", "dpcipher.evaluation.scores": "", module: line}
    assert any(module in problem for problem in leaks(imports(sources)))
    friend = module.rsplit(".", 1)[0] + ".friend"
    sources[friend] = f"import {module}"
    assert any(friend in problem for problem in leaks(imports(sources)))
