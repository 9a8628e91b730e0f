"""The notebooks run from top to bottom, show what they end their cells with, and carry no outputs."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


def code_cells(name: str) -> list[str]:
    """The text of the cells that are run."""
    cells = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run(cell: str, name: str, namespace: dict[str, Any]) -> object:
    """Run a cell as a notebook does: the value of a last expression is what it shows."""
    tree = ast.parse(cell, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), namespace)


def shown(value: object) -> str:
    """What a notebook would print of a value: HTML where it has some, its text otherwise."""
    draw = getattr(value, "_repr_html_", None)
    return (draw() if draw else None) or repr(value)


def test_there_is_a_notebook_for_each_of_three_people() -> None:
    """The curator, the data user, the researcher."""
    assert NOTEBOOKS == ["curator.ipynb", "data_user.ipynb", "researcher.ipynb"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell runs, and whatever a cell ends with can show itself."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    values = [run(cell, name, namespace) for cell in code_cells(name)]
    texts = [shown(value) for value in values if value is not None]
    assert len(texts) >= 2
    assert all(texts)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_committed_without_outputs(name: str) -> None:
    """What a run has left stays out of the repository."""
    book = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    runs = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in runs if cell["outputs"] or cell["execution_count"] is not None] == []
