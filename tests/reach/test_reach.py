"""Beyond the library: completion in the shell, the container, the package's metadata, and R."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpcipher as dc
from conftest import missing
from dpcipher.cli.reference import walk
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.inference.regression import FAMILIES
from dpcipher.methods import METHODS

ROOT = Path(__file__).parents[2]
TREE = dict(walk())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    """The line that the guide gives prints a script for each shell."""
    script = _dpcipher({"_DPCIPHER_COMPLETE": f"{shell}_source"})
    assert "_DPCIPHER_COMPLETE" in script
    assert "dpcipher" in script


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("dpcipher mea", "measure"), ("dpcipher ledger ver", "verify"), ("dpcipher plan --work", "--workload")],
)
def test_tab_completes_commands_and_options(typed: str, offered: str) -> None:
    """What bash asks for after a Tab names the command or option that was begun."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    assert offered in _dpcipher({"_DPCIPHER_COMPLETE": "bash_complete", **words})


HEAVY = ("numpy", "pandas", "pyarrow", "scipy", "opendp", "formulaic", "rich", "yaml")
LIGHT = """
import os, sys
from dpcipher.cli import main
from dpcipher.cli.reference import walk

def loaded():
    return [name for name in sys.argv[1].split(",") if name in sys.modules]

def calls():
    for name, _ in walk():
        yield [*name.split()[1:], "--help"], {}
        for begun in ("", " --"):
            typed = name + (begun or " ")
            yield [], {"_DPCIPHER_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}

for arguments, variables in [*calls()]:
    os.environ.pop("_DPCIPHER_COMPLETE", None)
    os.environ.update(variables)
    try:
        main(arguments, prog_name="dpcipher")
    except SystemExit as end:
        assert not end.code or variables, arguments
    assert not loaded(), (arguments, variables, loaded())
"""


def test_help_and_completion_load_none_of_the_libraries() -> None:
    """What each command says of itself, and what a Tab offers, needs no library that computes: both answer at once."""
    ran = subprocess.run(
        [sys.executable, "-c", LIGHT, ",".join(HEAVY)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Usage: dpcipher") > 20
    assert "plain,--epsilon" in ran.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dpcipher model a.parquet y~x --family ", FAMILIES),
        ("dpcipher evaluate a.csv s.yaml b.csv --family ", FAMILIES),
    ],
)
def test_choices_are_the_ones_of_the_library(typed: str, offered: tuple[str, ...]) -> None:
    """The command line names them itself, since it loads no library to complete them."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    said = _dpcipher({"_DPCIPHER_COMPLETE": "bash_complete", **words})
    assert said.split() == [f"plain,{word}" for word in offered]


def test_compare_names_every_method() -> None:
    """The help of --methods lists the library's own."""
    said = [str(option.to_info_dict().get("help")) for option in TREE["dpcipher compare"].params]
    assert any(f"out of {', '.join(METHODS)}." in words for words in said)


def _dpcipher(environment: dict[str, str]) -> str:
    call = "import sys; sys.argv[0] = 'dpcipher'; from dpcipher.cli import main; main(prog_name='dpcipher')"
    command = [sys.executable, "-c", call]
    surroundings = {**os.environ, **environment, "COLUMNS": "80"}
    return subprocess.run(
        command, env=surroundings, capture_output=True, text=True, timeout=120, check=False
    ).stdout


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_dockerfile_is_sound() -> None:
    """Known instructions, one base with a version, no root at the end, nothing piped into a shell, exec forms, files that exist."""
    found = instructions()
    kinds = [kind for kind, _ in found]
    said = dict(found)
    assert kinds[0] == "FROM"
    assert set(kinds) <= {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert re.fullmatch(r"[\w./-]+:\d+(\.\d+)+[\w.-]*", said["FROM"])
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "RUN")
    assert said["USER"] not in ("root", "0")
    assert said["WORKDIR"].startswith("/")
    assert all(said[kind].startswith("[") for kind in ("ENTRYPOINT", "CMD"))
    assert not re.search(r"\bsudo\b|\|\s*(ba)?sh\b|--privileged|apt-get upgrade", said["RUN"])
    assert "--no-cache-dir" in said["RUN"]
    assert all(
        (ROOT / source).exists() for kind, words in found if kind == "COPY" for source in words.split()[:-1]
    )
    assert {".git", ".venv", "dist", "build"} <= set((ROOT / ".dockerignore").read_text().split())


def test_the_metadata_is_complete() -> None:
    """Name, version, description, readme, licence and Python versions are declared, and the version is the package's own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == dc.__version__
    assert {"name", "description", "readme", "license", "requires-python", "authors", "keywords"} <= set(
        project
    )
    declared = [
        line for line in project["classifiers"] if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert declared[0].endswith(project["requires-python"].lstrip(">="))
    constrained = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    needed = [
        re.split(r"[<>=\[]", line)[0].lower()
        for extra in project["optional-dependencies"].values()
        for line in extra
    ]
    assert [name for name in [*needed] if name not in constrained and name != "dpcipher"] == []


def test_models_need_no_extra() -> None:
    """What the README's first block needs is installed with the package; every extra that a text asks for exists."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert any(line.startswith("formulaic") for line in project["dependencies"])
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    extras = re.compile(r"(?:dpcipher|PATH-TO-CLONE)\[(\w+)\]")
    asked = {name for path in texts for name in extras.findall(path.read_text(encoding="utf-8"))}
    assert asked <= set(project["optional-dependencies"])
    assert len(asked) > 3


def test_r_reads_a_release_and_rows(tmp_path: Path) -> None:
    """The R example prints a noisy table and a summary of the rows."""
    script = shutil.which("Rscript")
    if script is None:
        missing("r", "no Rscript on the path")
    arrow = subprocess.run([str(script), "-e", "library(arrow)"], capture_output=True, check=False)
    if arrow.returncode:
        missing("r", "the R package arrow is not installed")
    (tmp_path / "people.yaml").write_text(SCHEMA, encoding="utf-8")
    schema = dc.Schema.load(tmp_path / "people.yaml")
    release = dc.measure(invent_people(1_000), schema, epsilon=1.0, unit="add-remove")
    release.save(tmp_path / "people.release.parquet")
    dc.solve(release).sample(500, seed=1).to_parquet(tmp_path / "synthetic.parquet")
    example = ROOT / "examples" / "release.R"
    done = subprocess.run(
        [str(script), str(example)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "500 synthetic rows" in done.stdout
