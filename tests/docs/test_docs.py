"""The documentation is run: Python blocks are executed, console blocks are typed, links lead somewhere."""

import ast
import importlib
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpcipher.cli import main
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.schema.schema import Schema
from test_layers import LAYERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def with_blocks(language: str) -> list[str]:
    """The pages that have such blocks."""
    return [name for name, page in zip(NAMES, PAGES, strict=True) if blocks(page, language)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo's people and their schema."""
    monkeypatch.chdir(tmp_path)
    invent_people(1500).to_csv("people.csv", index=False)
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def test_there_is_documentation_to_check() -> None:
    """The pages that every reader is sent to are among those checked."""
    assert {"README.md", "docs/index.md", "docs/cli.md", "docs/privacy.md", "docs/files.md"} <= set(NAMES)
    assert "README.md" in with_blocks("python")
    assert "README.md" in with_blocks("console")


@pytest.mark.parametrize("name", with_blocks("python"))
def test_python_blocks_run(folder: Path, name: str) -> None:
    """All blocks of a page, one after the other, as a reader would type them."""
    done: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(ROOT / name, "python"):
        exec(compile(block, name, "exec"), done)
    assert len(done) > 2


def shape(text: str) -> list[str]:
    """Lines without what noise and machines change: hashes, numbers, and the width of columns; the table of the worst fit."""
    masked = re.sub(r"\b[0-9a-f]{16,}\b", "#", text)
    masked = re.sub(r"\d[\d,.]*(e[-+]\d+)?", "#", masked)
    masked = re.sub(r"(worst residual # sigmas, table) .*", r"\1 …", masked)
    return [" ".join(line.split()) for line in masked.strip().split("\n")]


def typed(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown for it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@pytest.mark.parametrize("name", with_blocks("console"))
def test_console_blocks_print_what_is_shown(folder: Path, name: str) -> None:
    """The same lines, numbers aside."""
    for block in blocks(ROOT / name, "console"):
        for command, shown in typed(block):
            words = shlex.split(command)
            assert words[0] == "dpcipher"
            done = CliRunner().invoke(main, words[1:])
            assert done.exit_code == 0, done.output
            assert shape(done.stdout) == shape(shown), command


@pytest.mark.parametrize("name", with_blocks("yaml"))
def test_yaml_blocks_are_schemas(folder: Path, name: str) -> None:
    """Every schema that is shown loads."""
    for number, block in enumerate(blocks(ROOT / name, "yaml")):
        path = folder / f"{number}.yaml"
        path.write_text(block, encoding="utf-8")
        assert Schema.load(path).columns


@pytest.mark.parametrize("name", [*NAMES, "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_between_pages_lead_somewhere(name: str) -> None:
    """Relative links name files that exist; nothing points to a machine of ours."""
    page = ROOT / name
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_test_that_is_named_as_evidence_exists() -> None:
    """Where a page links a test by its name, the linked file has a test of that name."""
    named = [
        (page.name, test, target)
        for page in PAGES
        for test, target in re.findall(r"\[`(test_\w+)`\]\((\S+\.py)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 30
    assert [
        one for one in named if f"def {one[1]}(" not in (ROOT / "docs" / one[2]).read_text(encoding="utf-8")
    ] == []


def test_every_page_is_in_the_index() -> None:
    """docs/index.md lists all pages beside it."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [
        page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in index
    ] == []


def first_sentence(room: str) -> str:
    """The first line of a room's own docstring; `errors` and `files` are single files."""
    folder = ROOT / "src" / "dpcipher" / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def test_the_house_says_what_its_rooms_say() -> None:
    """docs/house.md lists the layers in their order, each with the sentence at its own top."""
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]\(\S+\) \| (.+) \|$", page, flags=re.MULTILINE)
    assert listed == [(room, first_sentence(room)) for room in LAYERS]
    picture = (ROOT / "docs" / "house.svg").read_text(encoding="utf-8")
    assert [room for number, room in enumerate(LAYERS, 1) if f">{number}  {room}<" not in picture] == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_run(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example is a script that ends well and says something."""
    shutil.copy(ROOT / "examples" / name, folder)
    monkeypatch.setattr("sys.argv", [name])
    exec(compile((folder / name).read_text(encoding="utf-8"), name, "exec"), {"__name__": "__main__"})
    assert len(capsys.readouterr().out) > 100


def test_the_page_of_evidence_is_made_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/evidence.md says what the pages of results say, and nothing older."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    evidence = importlib.import_module("evidence")
    assert (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8") == evidence.page()
