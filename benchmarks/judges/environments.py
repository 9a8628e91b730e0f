"""Make the environments of judges and peers, one each, from the names and versions in requirements/; and find them again.

usage: python benchmarks/judges/environments.py [NAME …]    all of them without names; DPCIPHER_VENVS is the folder they are made in

Run it with Python 3.11, which all of them take. A package index must be within reach of pip.
"""

import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"


def home() -> Path:
    """The folder of environments, named by the environment."""
    given = os.environ.get("DPCIPHER_VENVS")
    if not given:
        raise SystemExit("set DPCIPHER_VENVS to a folder for environments, outside the repository")
    return Path(given)


def python_of(name: str) -> str:
    """The Python of an environment."""
    python = home() / name / "bin" / "python"
    if not python.exists():
        raise SystemExit(
            f"environment {name!r} is not there; run: python benchmarks/judges/environments.py {name}"
        )
    return str(python)


@cache
def versions(name: str) -> str:
    """The packages that the requirements of an environment name, with the versions that are installed."""
    wanted = [line.split("==")[0].split("[")[0] for line in listed(name)]
    ask = "import sys; from importlib.metadata import version as v; print(', '.join(f'{p} {v(p)}' for p in sys.argv[1:]))"
    return subprocess.check_output([python_of(name), "-c", ask, *wanted], text=True).strip()


def listed(name: str) -> list[str]:
    """The lines of a requirements file that name a package."""
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def make(name: str) -> None:
    """Make one environment, unless it is there."""
    if (home() / name / "bin" / "python").exists():
        print("there", name)
        return
    print("make ", name, flush=True)
    venv.create(home() / name, with_pip=True)
    install = [python_of(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *listed(name)], check=True)


def main() -> None:
    for name in sys.argv[1:] or sorted(path.stem for path in REQUIREMENTS.glob("*.txt")):
        make(name)


if __name__ == "__main__":
    main()
