"""Every fact, array and byte of a saved joint, replaced by everything a forger might think of: refused, or still a joint."""

import json
import resource
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved import CORES, HEALTH, facts, save

from dpcipher.errors import DpcipherError
from dpcipher.joint.joint import Joint
from effort import at_most

MOST_SECONDS, MOST_MEGABYTES = 2.0, 100


def attempt(path: Path) -> Joint | None:
    """The joint in a file, or None where it is refused as it should be; always at once."""
    said, loaded = "", None
    with at_most(MOST_SECONDS):
        try:
            loaded = Joint.load(path)
        except DpcipherError as wrong:
            said = str(wrong)
    assert len(said) < 1_000
    return loaded


VALUES = [
    "null", "true", "-1", "0", "0.5", "1e308", "NaN", "1e999", '""', '"1e99999999"', '"' + "9" * 10_000 + '"', '"\\ud800"',
    "9" * 5_000, "1" + "0" * 300, "[" * 50 + "]" * 50, "[" * 20_000, "[]", '[["a"], {}]', "{}", '{"a": 1}',
]  # fmt: skip


def replacements(value: Any, wrap: Any = lambda text: text) -> Any:
    """The JSON of plain values with each value in turn replaced by everything a forger might think of."""
    for text in VALUES:
        yield wrap(text)
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            shell = deepcopy(value)
            shell[key] = "replace me"

            def around(text: str, shell: Any = shell) -> Any:
                return wrap(json.dumps(shell).replace('"replace me"', text, 1))

            yield from replacements(value[key], around)
            fewer = deepcopy(value)
            del fewer[key]
            yield wrap(json.dumps(fewer))
        if isinstance(value, dict):
            yield wrap(json.dumps({**value, "more": 1}))


@pytest.mark.parametrize("kind", CORES)
def test_any_fact_replaced_by_anything(kind: str, tmp_path: Path) -> None:
    """A joint is refused, or it can be used: rows are drawn from it."""
    arrays, refused, loaded = CORES[kind]().to_arrays(), 0, 0
    for number, text in enumerate(replacements(facts(kind))):
        path = save(tmp_path / f"{number}.npz", text, arrays)
        joint = attempt(path)
        refused, loaded = refused + (joint is None), loaded + (joint is not None)
        if joint is not None:
            assert len(joint.sample(5, seed=1)) == 5
            assert str(joint.health)
        path.unlink()
    assert refused > loaded > 10


@pytest.mark.parametrize("kind", CORES)
def test_any_array_replaced_by_anything(kind: str, tmp_path: Path) -> None:
    """Each array gone, longer, of another type or shape, or with one number changed."""
    arrays = CORES[kind]().to_arrays()
    refused = 0
    for name, array in arrays.items():
        others: list[Any] = [
            None,
            array[:0],
            np.append(array, array.ravel()[:1]),
            array.astype("f2"),
            array.reshape(1, -1),
        ]
        others += [array.astype(complex), array.astype("U4"), np.array(1.0), np.zeros(0)]
        for place in range(0, array.size, 1 + array.size // 8):
            for value in (-1, 1, 2, 7, 2**62, -(2**63), np.nan, np.inf, 1e308, -1e308):
                if array.dtype.kind == "f" or (
                    array.dtype.kind == "i" and np.isfinite(value) and abs(value) <= 2**63
                ):
                    changed = array.copy()
                    changed.reshape(-1)[place] = value
                    others.append(changed)
        for other in others:
            rest = {key: one for key, one in arrays.items() if key != name}
            joint = attempt(
                save(tmp_path / "j.npz", facts(kind), rest if other is None else {**rest, name: other})
            )
            refused += joint is None
            if joint is not None:
                assert len(joint.sample(5, seed=1)) == 5
    assert refused > 20


@pytest.mark.parametrize("kind", CORES)
def test_any_byte_changed_or_cut(kind: str, tmp_path: Path) -> None:
    """Flipped bits, foreign bytes and lost ends: a clear error, or exactly the same joint."""
    core = CORES[kind]()
    path = save(tmp_path / "j.npz", facts(kind), core.to_arrays())
    good, rng, refused = path.read_bytes(), np.random.default_rng(7), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for trial in range(300):
        data = bytearray(good)
        for place in rng.integers(0, len(good), size=1 + trial % 3):
            data[place] ^= int(rng.integers(1, 256))
        path.write_bytes(data[: rng.integers(0, len(good))] if trial % 5 == 0 else data)
        joint = attempt(path)
        refused += joint is None
        if joint is not None:
            assert joint.health == HEALTH
            found = joint.core.to_arrays()
            assert all(np.array_equal(found[name], array) for name, array in core.to_arrays().items())
    assert refused > 150
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_MEGABYTES
