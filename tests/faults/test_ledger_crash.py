"""Processes that race for a budget, and processes that are killed while they spend it."""

import contextlib
import hashlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kills import forked

from dpcipher.errors import LedgerDamaged, LedgerError, LedgerExceeded
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit

fcntl = pytest.importorskip("fcntl")
UNIT = Unit("add-remove")
HUNDREDTH = Budget.parse(epsilon=0.01)


def finished(child: int) -> bool:
    """Wait for a child; whether it came to its end."""
    return os.waitpid(child, 0)[1] == 0


def request(ledger: Ledger, times: int) -> int:
    """How many of so many requests are granted."""
    granted = 0
    for _ in range(times):
        try:
            ledger.charge(HUNDREDTH, unit=UNIT, what={})
            granted += 1
        except LedgerExceeded:
            continue
    return granted


def test_eight_processes_get_exactly_the_budget(tmp_path: Path) -> None:
    """320 requests of 1/100 against a budget of 1: 100 are granted, no more and no fewer."""
    ledger = Ledger.create(tmp_path / "l", epsilon=1, unit="add-remove")
    tallies = [tmp_path / f"granted-{i}" for i in range(8)]
    children = [
        forked(lambda tally=tally: tally.write_text(str(request(ledger, 40))) and None) for tally in tallies
    ]
    ends = [finished(child) for child in children]  # wait for every one of them
    assert all(ends)
    assert sum(int(tally.read_text()) for tally in tallies) == len(ledger.entries) == 100
    assert ledger.spent.epsilon == 1
    assert json.loads((tmp_path / "l.witness").read_text())["length"] == ledger.path.stat().st_size


def test_threads_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    """Every operation opens the file anew, and flock is between openings, not between processes."""
    ledger = Ledger.create(tmp_path / "l", epsilon=Fraction(1, 4), unit="add-remove")
    granted: list[int] = []
    threads = [threading.Thread(target=lambda: granted.append(request(ledger, 15))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == len(Ledger.open(ledger.path).entries) == 25


def test_one_of_several_creators_wins(tmp_path: Path) -> None:
    """Whoever loses is told; nobody ever sees half a ledger."""
    path = tmp_path / "l"
    children = [
        forked(lambda i=i: Ledger.create(path, epsilon=i + 1, unit="replace") and None) for i in range(6)
    ]
    assert sum([finished(child) for child in children]) == 1
    assert Ledger.open(path).limit in [Budget.parse(epsilon=i + 1) for i in range(6)]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l", "l.witness"]


def release(ledger: Ledger, folder: Path) -> None:
    """A release as the protocol wants it: charge, draw, write aside, sync, rename, mark."""
    charge = ledger.charge(HUNDREDTH, unit=UNIT, what={})
    content = os.urandom(2000)
    temporary = folder / f".{charge.id}.tmp"
    with temporary.open("wb") as file:
        file.write(content + hashlib.sha256(content).digest())
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / charge.id)
    ledger.mark_released(charge.id, hashlib.sha256(content).hexdigest())


def assert_sound(ledger: Ledger, folder: Path) -> tuple[int, int]:
    """Released is a subset of charged, every release is whole, and the ledger opens; numbers of charges and releases."""
    entries = {entry.id: entry for entry in Ledger.open(ledger.path).entries}
    releases = [path for path in folder.iterdir() if not path.name.startswith(".")]
    for path in releases:
        content = path.read_bytes()
        assert path.name in entries
        assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    marked = {id for id, entry in entries.items() if entry.checksum is not None}
    assert marked <= {path.name for path in releases}
    return len(entries), len(releases)


def test_kill_at_forty_random_moments(tmp_path: Path) -> None:
    """Whenever a releasing process dies, nothing was released that is not charged, and the next one goes on."""
    folder = tmp_path / "releases"
    folder.mkdir()
    ledger = Ledger.create(tmp_path / "l", epsilon=1000, unit="add-remove")
    rng = random.Random(20)
    for _ in range(40):
        child = forked(lambda: [release(ledger, folder) for _ in range(10**6)] and None)
        time.sleep(rng.uniform(0.002, 0.04))
        os.kill(child, signal.SIGKILL)
        assert not finished(child)
        charged, released = assert_sound(ledger, folder)
        assert charged >= released
    assert charged > 0


CALLS = [
    (os, name)
    for name in (
        "open",
        "pread",
        "ftruncate",
        "lseek",
        "write",
        "fsync",
        "close",
        "link",
        "unlink",
        "fchmod",
        "replace",
    )
] + [(fcntl, "flock")]


def die_at(step: int, *, after: bool) -> Callable[[], int]:
    """Make the process kill itself at its step-th system call, before or just after doing it; returns a counter."""
    seen = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == step and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **options)
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for module, name in CALLS:
        setattr(module, name, wrap(getattr(module, name)))
    return lambda: seen


def assert_no_cut_loses_a_charge(path: Path, charged: int) -> None:
    """Whatever is taken off the end of the ledger, it is refused or says as much as before."""
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with contextlib.suppress(LedgerDamaged):
            assert len(Ledger.open(path).entries) == charged
    path.write_bytes(whole)


def test_kill_between_each_pair_of_system_calls(tmp_path: Path) -> None:
    """A charge that dies at any step is charged or is not; it is never granted without being charged."""
    outcomes, survived, step = set(), False, 0
    while not survived:
        step += 1
        for after in (False, True):
            path, granted = tmp_path / f"l-{step}-{after}", tmp_path / f"granted-{step}-{after}"
            ledger = Ledger.create(path, epsilon=1, unit="add-remove")
            with path.open("ab") as file:
                file.write(b'{"torn')

            def spend(
                ledger: Ledger = ledger, granted: Path = granted, step: int = step, after: bool = after
            ) -> None:
                die_at(step, after=after)
                ledger.charge(HUNDREDTH, unit=UNIT, what={})
                granted.touch()

            survived = finished(forked(spend))
            charged = len(Ledger.open(path).entries)
            assert charged == 1 or not granted.exists()
            if granted.exists():
                assert_no_cut_loses_a_charge(path, 1)
            outcomes.add((charged, granted.exists()))
            ledger.charge(HUNDREDTH, unit=UNIT, what={})
            assert charged + 1 == len(Ledger.open(path).entries)
    assert step > 10
    assert outcomes == {(0, False), (1, False), (1, True)}


def test_kill_a_creator_between_each_pair_of_system_calls(tmp_path: Path) -> None:
    """There is no ledger and the path is free, or there is one and it can be charged, with its witness or without."""
    outcomes, survived, step = set(), False, 0
    while not survived:
        step += 1
        for after in (False, True):
            path = tmp_path / f"l-{step}-{after}"

            def make(path: Path = path, step: int = step, after: bool = after) -> None:
                die_at(step, after=after)
                Ledger.create(path, epsilon=1, unit="add-remove")

            survived = finished(forked(make))
            made = path.exists()
            ledger = Ledger.open(path) if made else Ledger.create(path, epsilon=1, unit="add-remove")
            outcomes.add((made, ledger.witness is not None))
            ledger.charge(HUNDREDTH, unit=UNIT, what={})
            assert_no_cut_loses_a_charge(path, 1)
    assert outcomes == {(False, True), (True, False), (True, True)}


def test_a_file_size_limit_of_the_system_refuses_the_charge(tmp_path: Path) -> None:
    """A real EFBIG in the middle of a line: the charge is refused and the file is as before."""
    resource = pytest.importorskip("resource")
    ledger = Ledger.create(tmp_path / "l", epsilon=1, unit="add-remove")
    before = ledger.path.read_bytes()

    def spend() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, len(before) + 50))
        with pytest.raises(LedgerError, match="too large"):
            ledger.charge(HUNDREDTH, unit=UNIT, what={})

    assert finished(forked(spend))
    assert ledger.path.read_bytes() == before


def test_the_gate_catches_a_ledger_that_charges_too_late(tmp_path: Path) -> None:
    """The same check fails on a planted protocol that releases first and charges after."""
    folder = tmp_path / "releases"
    folder.mkdir()
    ledger = Ledger.create(tmp_path / "l", epsilon=1, unit="add-remove")

    def wrong() -> None:
        content = b"noise"
        (folder / "some-id").write_bytes(content + hashlib.sha256(content).digest())
        os.kill(os.getpid(), signal.SIGKILL)

    assert not finished(forked(wrong))
    with pytest.raises(AssertionError):
        assert_sound(ledger, folder)
