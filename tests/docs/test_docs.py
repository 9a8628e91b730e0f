"""The documentation is run: Python blocks are executed, console blocks are typed, links lead somewhere."""

import ast
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import missing
from dpcipher.cli import main
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.schema.schema import Schema
from test_layers import LAYERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
RUN = ("python", "console", "yaml")
NEEDS = {"docs/guides/other-tools.md": ("stats", "pyreadstat")}  # what a page runs that may not be installed


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def ran(page: Path) -> list[tuple[str, str, str]]:
    """The blocks that are run, in order, each with the line before it and its language."""
    pattern = rf"([^\n]*)\n+^```({'|'.join(RUN)})\n(.*?)^```"
    return re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


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


def shape(text: str) -> list[str]:
    """Lines without what noise and machines change: hashes, numbers, and the width of columns; the table of the worst fit."""
    masked = re.sub(r"\b[0-9a-f]{16,}\b|SHA256:[0-9A-Za-z+/]{43}", "#", text)
    masked = re.sub(r"\d[\d,.]*(e[-+]\d+)?", "#", masked)
    masked = re.sub(r"(worst residual # sigmas, table) .*", r"\1 …", masked)
    return [" ".join(line.split()) for line in masked.strip().split("\n")]


def typed(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown for it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def type_in(block: str) -> None:
    """The commands of a block print the lines that are shown, numbers aside."""
    for command, shown in typed(block):
        words = shlex.split(command)
        assert words[0] == "dpcipher"
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output
        assert shape(done.stdout) == shape(shown), command


def save_schema(block: str, name: str) -> None:
    """A schema that is shown loads; where the text before it names a file, later blocks find it there."""
    path = Path(name or "shown.yaml")
    path.write_text(block, encoding="utf-8")
    assert Schema.load(path).columns


@pytest.mark.parametrize("name", [name for name in NAMES if ran(ROOT / name)])
def test_pages_run_from_top_to_bottom(folder: Path, name: str) -> None:
    """Python is executed, commands are typed, schemas are loaded, in the order in which a reader meets them."""
    part, module = NEEDS.get(name, ("", "dpcipher"))
    if importlib.util.find_spec(module) is None:
        missing(part, f"{module} is not installed")
    done: dict[str, object] = {"__name__": "__docs__"}
    for before, language, block in ran(ROOT / name):
        if language == "python":
            exec(compile(block, name, "exec"), done)
        elif language == "console":
            type_in(block)
        else:
            named = re.search(r"`([\w-]+\.yaml)`:$", before.strip())
            save_schema(block, named[1] if named else "")
    assert list(folder.iterdir())


def test_the_readme_runs_as_typed_after_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor types it from the top, in the clone where `make demo` has just run; installing is left out."""
    readme, clone = ROOT / "README.md", tmp_path / "clone"
    demo = CliRunner().invoke(main, ["demo", "-o", str(clone / "demo-out")])
    assert demo.exit_code == 0, demo.output
    lines = [line for block in blocks(readme, "sh") for line in block.splitlines()]
    shell = "\n".join(line for line in lines if not line.startswith(("make ", ". .venv/")))
    ended = subprocess.run(
        ["sh", "-e", "-c", f"{shell}\npwd"], cwd=clone, capture_output=True, text=True, check=True
    )
    monkeypatch.chdir(ended.stdout.splitlines()[-1])
    for _, language, block in ran(readme):
        if language == "console":
            type_in(block)
        elif language == "python":
            exec(compile(block, "README.md", "exec"), {"__name__": "__docs__"})
    assert {"people.release.parquet", "report.html", "income.svg"} <= {path.name for path in Path().iterdir()}


def test_every_block_is_of_a_kind_that_is_run_or_needs_no_running() -> None:
    """Python, console and yaml are run; text is shown output or help; sh is an installation or the shell's own set-up."""
    fences = re.compile(r"^```([^\n`]*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
    kinds = {(name, kind) for name in NAMES for kind, _ in fences.findall((ROOT / name).read_text())}
    allowed = {*RUN, "text", "sh", "R", "{eval-rst}"}
    assert sorted(one for one in kinds if one[1] not in allowed) == []
    shells = [line for name in NAMES for block in blocks(ROOT / name, "sh") for line in block.splitlines()]
    known = (
        "pip install",
        "python3 -m venv",
        ". ",
        "make ",
        "docker ",
        "mkdir",
        "eval ",
        "source ",
        "_DPCIPHER_COMPLETE",
        "#",
    )
    assert [line for line in shells if not line.startswith(known)] == []


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
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text(encoding="utf-8")
    pages = [page.relative_to(docs).as_posix() for page in PAGES[1:]]
    assert [page for page in pages if page != "index.md" and f"({page})" not in index] == []


def first_sentence(package: str) -> str:
    """The first line of a package's own docstring; `errors` and `files` are single files."""
    folder = ROOT / "src" / "dpcipher" / package
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def test_the_architecture_says_what_its_packages_say() -> None:
    """docs/architecture.md lists the layers in their order, each with the sentence at its own top."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]\(\S+\) \| (.+) \|$", page, flags=re.MULTILINE)
    assert listed == [(package, first_sentence(package)) for package in LAYERS]


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
