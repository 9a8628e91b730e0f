"""Benchmarks and examples name what the package has."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [path for folder in ("benchmarks", "examples", "docs") for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_script_imports_from_the_package_is_there(script: Path) -> None:
    """A name that moved would otherwise be noticed only when somebody repeats a benchmark."""
    nodes = [
        node
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    asked = [(node.module or "", alias.name) for node in nodes for alias in node.names]
    ours = [(module, name) for module, name in asked if module.split(".")[0] in ("dpcipher", "experiments")]
    lost = [f"{module}.{name}" for module, name in ours if not has(module, name)]
    assert lost == []


def has(module: str, name: str) -> bool:
    """Whether a module of the package has a name, or a module of that name below it."""
    if find_spec(module.split(".")[0]) is None:
        return False
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:
        return False


def test_a_name_that_is_gone_is_noticed() -> None:
    """The check fails on a module and on a name that are not there."""
    assert has("dpcipher.release.reconcile", "reconcile")
    assert has("dpcipher.tables", "query")
    assert not has("dpcipher.release.reconcile", "Noisy")
    assert not has("dpcipher.release.components", "centre")
