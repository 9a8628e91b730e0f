"""Every fact of a release file, replaced by everything a forger might think of: refused, or still a release."""

import json
import resource
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import forge
import numpy as np
import pandas as pd
import pytest

from dpcipher.errors import DpcipherError
from dpcipher.pages import words
from dpcipher.pages.report import report
from dpcipher.pages.words import certificate
from dpcipher.release import file
from dpcipher.release.release import Release
from effort import at_most

MOST_SECONDS, MOST_MEGABYTES = 2.0, 200
MARK = "replace me"
GONE, MORE = "gone", "more"
# JSON itself, since some of it no Python value stands for.
VALUES = {
    "null": "null",
    "true": "true",
    "minus one": "-1",
    "zero": "0",
    "half": "0.5",
    "large": "1e308",
    "not a number": "NaN",
    "infinity": "1e999",
    "empty text": '""',
    "endless number": '"1e99999999"',
    "long text": '"' + "9" * 100_000 + '"',
    "long name": '"' + "age" * 10_000 + '"',
    "surrogate": '"\\ud800"',
    "huge": "9" * 5_000,
    "large whole": "1" + "0" * 300,
    "deep": "[" * 50 + "]" * 50,
    "very deep": "[" * 20_000,
    "empty list": "[]",
    "nested": '[["age"], {"a": []}]',
    "empty object": "{}",
    "object": '{"a": 1}',
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside plain values, themselves included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(facts: dict[str, Any], path: tuple[Any, ...], change: str) -> str:
    """The metadata with the value at `path` gone, with a key more, or replaced by a text of JSON."""
    whole: list[Any] = [deepcopy(facts)]
    *before, last = (0, *path)
    holder = reduce(lambda inner, key: inner[key], before, whole)
    if change == GONE:
        del holder[last]
    elif change == MORE and isinstance(holder[last], dict):
        holder[last]["more"] = 1
    elif change != MORE:
        holder[last] = MARK
    text = json.dumps(whole)[1:-1]
    return text.replace(json.dumps(MARK), VALUES[change], 1) if change in VALUES else text


def attempt(path: Path) -> Release | None:
    """The release in a file, or None where it is refused as it should be; always at once."""
    said, loaded = "", None
    with at_most(MOST_SECONDS):
        try:
            loaded = Release.load(path)
        except DpcipherError as wrong:
            said = str(wrong)
    assert len(said) < 1_000
    return loaded


def use(release: Release) -> None:
    """What a page says of a release: it may refuse, never fail or hang."""
    json.dumps(release.statement.to_dict(), allow_nan=False)
    with at_most(MOST_SECONDS), suppress(DpcipherError):
        assert certificate(release)
        assert words.protection(release)
        assert words.summary(release, 10)
        assert words.noise(release)


def megabytes() -> float:
    """The most memory that this process ever took."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("kind", forge.KINDS)
def test_any_fact_replaced_by_anything(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the old checksum nothing but the same release is loaded; where the forger made a new one, only what can be used."""
    facts, counts = forge.KINDS[kind]()
    facts = forge.sealed(facts, counts)
    honest, before, refused, loaded = file.checksum, megabytes(), 0, 0
    for number, (path, change) in enumerate(product(places(facts), (*VALUES, GONE, MORE))):
        target = tmp_path / f"{number}.parquet"
        forge.save(target, replaced(facts, path, change), counts)
        monkeypatch.setattr(file, "checksum", lambda *_: facts["checksum"])
        release = attempt(target)
        refused, loaded = refused + (release is None), loaded + (release is not None)
        if release is not None:
            use(release)
            monkeypatch.setattr(file, "checksum", honest)
            same = attempt(target)
            assert same is None or same.checksum == facts["checksum"], (path, change)
        target.unlink()
    assert refused > loaded > 10
    assert megabytes() - before < MOST_MEGABYTES


@pytest.mark.parametrize("kind", forge.KINDS)
def test_any_byte_changed_or_cut(kind: str, tmp_path: Path) -> None:
    """Flipped bits, foreign bytes and lost ends: a clear error, or exactly the same release."""
    facts, counts = forge.KINDS[kind]()
    sealed = forge.sealed(facts, counts)
    path = forge.save(tmp_path / "r.parquet", sealed, counts)
    good, rng, before, refused = path.read_bytes(), np.random.default_rng(7), megabytes(), 0
    for trial in range(300):
        data = bytearray(good)
        for place in rng.integers(0, len(good), size=1 + trial % 3):
            data[place] ^= int(rng.integers(1, 256))
        if trial % 5 == 0:
            data = data[: rng.integers(0, len(good))]
        if trial % 7 == 0:  # where the footer and its length are, what is wrong does most
            data = bytearray(good[:-8]) + rng.bytes(4) + good[-4:]
        path.write_bytes(data)
        release = attempt(path)
        refused += release is None
        assert release is None or release.checksum == sealed["checksum"]
    assert refused > 150
    assert megabytes() - before < MOST_MEGABYTES


@pytest.mark.parametrize("kind", ["given", "sets", "chosen"])
@pytest.mark.parametrize("scale", [2.0**40, 1 / 16])
@pytest.mark.parametrize("count", [2**62, -(2**62), 0])
def test_a_page_is_made_of_whatever_is_loaded(kind: str, scale: float, count: int, tmp_path: Path) -> None:
    """The largest and smallest counts and noise that pass: the report is written, at once and without a warning."""
    facts, counts = forge.KINDS[kind]()
    for number, batch in enumerate(facts["measurements"]):  # of one scale they would be one batch
        batch["scale"] = scale / 2**number if scale > 1 else scale * 2**number
    counts = [count] * len(counts)
    rows = pd.DataFrame({"age": [0, 3], "who": ["a", None], "pay": [1.0, 9.0]})
    release = attempt(forge.save(tmp_path / "r.parquet", forge.sealed(facts, counts), counts))
    assert release is not None
    with at_most(MOST_SECONDS):
        page = report(release, rows, tmp_path / "page.html", rows_from="invented here")
        assert page.stat().st_size > 10_000
