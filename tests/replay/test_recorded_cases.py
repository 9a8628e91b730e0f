"""What the package did, case by case, it does to the last bit: the questions, the release, and what is made of it.

Where a difference is wanted, record the case again (`record.py`); where only last bits differ, list it as near in `cases.py`.
"""

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcipher
from replay.cases import BATCHED, CASES, NEAR
from replay.record import FOLDER, differences, numbers, read, values

TESTS = Path(__file__).parents[1]
SOURCE = str(Path(dpcipher.__file__).parents[1])  # the package that is tested, wherever another is installed


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """The differences of every case, replayed in a process of its own with one thread.

    OpenBLAS has kernels for each kind of processor, which round differently; where it can, it takes those that the cases were recorded with.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    threads["OPENBLAS_CORETYPE"] = "Haswell"
    ran = subprocess.run(
        [sys.executable, "-m", "replay.record", "--check"],
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join((SOURCE, str(TESTS)))},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_case_replays(name: str, found: dict[str, list[str]]) -> None:
    """The same questions, answers and release; and the same answers from the measurements alone."""
    assert found[name] == []


def test_every_case_is_recorded_and_small() -> None:
    """One file for each case, and none besides; exceptions have a reason."""
    assert {path.name.removesuffix(".json.gz") for path in FOLDER.iterdir()} == set(CASES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 200_000
    assert all(reason and name in CASES for name, reason in (NEAR | BATCHED).items())


def halve_a_scale(case: dict[str, Any]) -> None:
    """The first question has half of its noise."""
    case["questions"][0][1] = (float.fromhex(case["questions"][0][1]) / 2).hex()


def swap_two_tables(case: dict[str, Any]) -> None:
    """Two tables of the release have each other's counts."""
    one, other = case["release"]["measured"][1:3]
    one["values"], other["values"] = other["values"], one["values"]


def move_an_estimate(case: dict[str, Any]) -> None:
    """One number of the tables that agree is off by a millionth."""
    moved = values(case["answers"]["tables"]) + 1e-6 * (
        np.arange(len(values(case["answers"]["tables"]))) == 3
    )
    case["answers"]["tables"] = numbers([moved])


def change_a_row(case: dict[str, Any]) -> None:
    """One synthetic row is another."""
    case["answers"]["drawn"] = case["answers"]["drawn"].replace("0", "1", 1)


@pytest.mark.parametrize("change", [halve_a_scale, swap_two_tables, move_an_estimate, change_a_row])
def test_a_changed_run_is_noticed(change: Any) -> None:
    """A recorded case that is changed in one place differs there, and an unchanged one nowhere."""
    case = read("measure-pairs-pure-added")
    changed = deepcopy(case)
    change(changed)
    assert differences("measure-pairs-pure-added", case, case) == []
    assert len(differences("measure-pairs-pure-added", case, changed)) in (1, 2)
