"""Record a case again, on purpose: `PYTHONPATH=tests OMP_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell .venv/bin/python -m replay.record NAME …`

Without a name all cases are recorded. `--check` replays them instead and prints the differences as JSON, `--times` the processor time of
each case. One thread and one kind of kernel, since sums of others differ in their last bits.

A recorded case holds its rows, schema and call, the noise that was drawn, and what the public side made of it. A replay gives the same
noise, cell by cell for each kind and scale of question, so that questions may be asked in larger or smaller batches. Three comparisons:
the questions; the answers through public calls; and the same answers from the measurements alone, so that the public side stays guarded
while the private side changes.
"""

import base64
import gzip
import hashlib
import io
import json
import sys
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy
from threadpoolctl import threadpool_info

import dpcipher as dc
from replay.build import as_plain, from_plain
from replay.cases import BATCHED, CASES, NEAR
from tape import Tape, running  # it must stand before anything is drawn

FOLDER = Path(__file__).parent / "recorded"
KEPT = 40  # numbers of a list that are kept beside its digest
TABLES, JOINTS, COEFFICIENTS = (
    1e-9,
    1e-7,
    0.1,
)  # how far apart near results may be; coefficients in standard errors
_GENERATOR = np.random.default_rng


class NoiseTape:
    """Noise that is seeded, or that of a recorded case over again; and the questions that met it."""

    def __init__(self, recorded: Sequence[Sequence[Any]] | None = None) -> None:
        self.fresh = Tape(seed=7)
        self.questions: list[list[Any]] = []
        self.truths: dict[str, list[int]] = defaultdict(list)
        self.left: dict[str, deque[Any]] = defaultdict(deque)
        for kind, scale, rounds, _, _, answer in recorded or ():
            key = f"{kind} {scale} {rounds}"
            self.left[key].extend(unpacked(answer) if kind in ("laplace", "gaussian") else [answer])

    def ask(self, kind: str, scale: float, truth: Any, rounds: int = 1) -> Any:
        """Note a question and answer it."""
        exact, law = np.array(truth, dtype=np.int64), float(scale).hex()
        key = f"{kind} {law} {rounds}"
        left = self.left[key]
        self.truths[key] += exact.ravel().tolist()
        if kind in ("laplace", "gaussian"):
            many = exact.size
            again = [left.popleft() for _ in range(many)] if len(left) >= many else None
            noise = np.array(again if again is not None else self.fresh.ask(kind, scale, exact) - exact)
            answer, kept = [int(number) for number in exact + noise], packed(noise)
        else:
            answer = kept = left.popleft() if left else self.fresh.ask(kind, scale, truth, rounds)
            if np.max(answer) >= (exact if kind == "below" else exact.size):
                answer = kept = self.fresh.ask(kind, scale, truth, rounds)
        shown = int(exact) if kind == "below" else digest(exact)
        self.questions.append([kind, law, rounds, exact.size, shown, kept])
        return answer

    def finish(self) -> None:
        """Nothing is left to check: the questions are compared afterwards."""

    @property
    def streams(self) -> dict[str, str]:
        """A digest of all true numbers that met each kind and scale, however they were batched."""
        return {key: digest(np.array(values)) for key, values in sorted(self.truths.items())}


def packed(noise: np.ndarray) -> str:
    """Whole numbers as text that packs well."""
    return " ".join(map(str, noise.ravel().tolist()))


def unpacked(text: str) -> list[int]:
    """The whole numbers of a text."""
    return [int(number) for number in text.split()]


def digest(array: np.ndarray) -> str:
    """A few characters that stand for the bytes of an array."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def numbers(arrays: Sequence[Any]) -> dict[str, Any]:
    """Floats: how many, a digest of all their bits, and some of them exactly."""
    flat = np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays] or [np.zeros(0)])
    flat = flat + 0.0  # one zero, not two
    places = np.unique(np.linspace(0, flat.size - 1, min(KEPT, flat.size)).astype(int))
    some = base64.b64encode(flat[places].astype("<f8").tobytes()).decode()
    return {"cells": int(flat.size), "digest": digest(flat), "some": some}


def values(kept: dict[str, Any]) -> np.ndarray:
    """The floats that were kept exactly."""
    return np.frombuffer(base64.b64decode(kept["some"]), "<f8")


@contextmanager
def repeatable(tape: NoiseTape) -> Iterator[None]:
    """Answers from the tape; generators with a fixed seed where they have none, or one from a checksum, which holds a date."""

    def generator(seed: Any = None) -> np.random.Generator:
        if isinstance(seed, list):
            seed = [part if part < 2**32 else 0 for part in seed]
        return _GENERATOR(0 if seed is None else seed)

    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with running(tape), patch.object(np.random, "default_rng", generator):  # type: ignore[arg-type]
            yield


# What a case calls


def called(given: dict[str, Any]) -> tuple[Any, list[Any] | None, Any]:
    """The call of a case: a release if there is one, the joints of a method, and the statement."""
    if given["call"] == "from_tables":
        release = published(given)
        return release, None, release.statement
    schema, rows = dc.Schema.from_dict(given["schema"]), table(given)
    if given["call"] == "measure":
        release = dc.measure(rows, schema, **options(given["options"]))
        return release, None, release.statement
    fitted = getattr(dc, given["call"])(**options(given["options"])).fit(rows, schema)
    return fitted.release, list(fitted.joints), fitted.statement


def table(given: dict[str, Any]) -> Any:
    """The private rows: a CSV file as it is, or a frame of it."""
    if given["as_file"]:
        Path("rows.csv").write_bytes(given["rows"].encode(given["as_file"]))
        return "rows.csv"
    return pd.read_csv(io.StringIO(given["rows"]))


def options(plain: dict[str, Any]) -> dict[str, Any]:
    """Options of a call from JSON: selections, and weights by table."""
    known = dict(plain)
    if isinstance(known.get("workload"), dict):
        known["workload"] = dc.Auto(**known["workload"])
    if "weights" in known:
        known["weights"] = {tuple(columns): weight for columns, weight in known["weights"]}
    return known


def published(given: dict[str, Any]) -> Any:
    """A release of somebody's tables."""
    tables = given["options"]["tables"]
    return dc.Release.from_tables(
        {tuple(one["columns"]): np.array(one["counts"]) for one in tables},
        dc.Schema.from_dict(given["schema"]),
        scale={tuple(one["columns"]): one["scale"] for one in tables},
        mechanism={tuple(one["columns"]): one["mechanism"] for one in tables},
        n_rows=given["options"]["n_rows"],
    )


# What is seen of it


def estimates(release: Any) -> dict[str, Any]:
    """The labels of all columns, the tables made to agree, their standard errors, and an interval."""
    workload = release.workload
    columns = sorted({name for columns in workload for name in columns})
    first = release.interval(workload[0], level=0.9)
    return {
        "labels": hashlib.sha256(repr([release.project((c,)).levels for c in columns]).encode()).hexdigest()[:12],
        "rows": release.n_rows,
        "tables": numbers([release.project(columns) for columns in workload]),
        "errors": numbers([release.std_error(columns) for columns in workload]),
        "interval": numbers([first.low, first.high]),
    }  # fmt: skip


def of_joints(joints: Sequence[Any], look: dict[str, Any]) -> dict[str, Any]:
    """Tables of the joints on fixed pairs, and rows drawn from the first."""
    names = joints[0].schema.attrs
    pairs = look.get("pairs") or [names[:2], (names[0], names[-1]), names[-2:]]
    pairs = list(dict.fromkeys(tuple(dict.fromkeys(pair)) for pair in pairs))
    drawn = {"n_rows": 15, "seed": 3, **look.get("rows", {})}
    if "size" in drawn:
        sample = pd.concat([part.to_pandas() for part in joints[0].stream(**drawn)])
    else:
        sample = joints[0].sample(**drawn)
    return {
        "health": [joint.health.engine for joint in joints],
        "joints": numbers([joint.project(pair) for joint in joints for pair in pairs]),
        "drawn": sample.to_csv(index=False),
    }


def of_models(release: Any, look: dict[str, Any]) -> dict[str, Any]:
    """Coefficients with their standard errors, by formula."""
    shown: dict[str, Any] = {}
    for asked in look.get("models", ()):
        known = dict(asked)
        formula, draws = known.pop("formula"), known.pop("imputed", 0)
        source = (
            dc.solve(release, draws=draws, seed=5, columns=known.pop("columns", None)) if draws else release
        )
        frame = dc.fit_models(source, formula, seed=5, **known).frame
        shown[formula] = {
            "terms": frame["term"].tolist(), "model": numbers([frame["estimate"], frame["std_error"]])
        }  # fmt: skip
    for columns in look.get("estimates", ()):
        share = dc.estimate(release, lambda joint: joint[1, 1] / joint[1].sum(), columns, draws=200, seed=5)
        shown[" ".join(columns)] = {"model": numbers([share.estimate, share.std_error])}
    return shown


def public_side(release: Any, look: dict[str, Any]) -> dict[str, Any]:
    """Everything that the public side makes of a release."""
    seen = estimates(release)
    if look.get("solve", True):
        solved = dc.solve(release, set="all", engine=look.get("engine", "auto"), seed=1)
        seen |= of_joints(solved, look)
    return seen | of_models(release, look)


def observed(given: dict[str, Any], recorded: dict[str, Any] | None = None) -> dict[str, Any]:
    """A case as it runs now, with the noise that was recorded if there is some."""
    tape = NoiseTape(None if recorded is None else recorded["questions"])
    look = given["look"] if given["call"] in ("measure", "from_tables") else {"solve": False}
    with repeatable(tape):
        release, joints, statement = called(given)
        seen: dict[str, Any] = {} if joints is None else of_joints(joints, given["look"])
        seen |= {} if release is None else public_side(release, look)
    plain = None if release is None else as_plain(release)
    alone: dict[str, Any] = {}
    if (kept := plain if recorded is None else recorded["release"]) is not None:
        with repeatable(NoiseTape()):
            alone = public_side(from_plain(kept), look)
    # What the measurements alone give is kept where it is not the same, as it is of methods.
    alone = {key: value for key, value in alone.items() if recorded is not None or seen.get(key) != value}
    now = {"questions": tape.questions, "streams": tape.streams, "release": plain, "answers": seen}
    guarantee = statement.guarantee
    parts = ("epsilon", "delta", "rho")
    promise = None if guarantee is None else [exactly(getattr(guarantee, part)) for part in parts]
    return {"given": given, "machine": machine(), **now, "promise": promise, "alone": alone}


def exactly(amount: Any) -> str | None:
    """A part of a budget, to the last bit."""
    return None if amount is None else float(amount).hex()


def machine() -> list[str]:
    """What floating-point results depend on, beside the code."""
    blas = sorted({f"{one['internal_api']} {one.get('architecture')}" for one in threadpool_info()})
    return [np.__version__, scipy.__version__, *blas]


# Comparisons


def differences(name: str, then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is not as it was recorded."""
    near = name in NEAR or then["machine"] != now["machine"]
    found = [] if then["given"] == now["given"] else ["the case is not the recorded one: record it again"]
    if name in BATCHED:
        found += [] if then["streams"] == now["streams"] else ["other true numbers meet the noise"]
    else:
        found += asked_otherwise(then["questions"], now["questions"])
    found += [part for part in ("promise",) if then[part] != now[part]]
    found += [f"release: {word}" for word in other_release(then["release"], now["release"])]
    found += [f"answers: {word}" for word in apart(then["answers"], now["answers"], near)]
    alone = {key: then["alone"].get(key, then["answers"].get(key)) for key in now["alone"]}
    return found + [f"release only: {word}" for word in apart(alone, now["alone"], near)]


def asked_otherwise(then: Sequence[Any], now: Sequence[Any]) -> list[str]:
    """The first question that is another, and their number."""
    found = [] if len(then) == len(now) else [f"{len(now)} questions, not {len(then)}"]
    for place, (old, new) in enumerate(zip(then, now, strict=False), 1):
        if old[:5] != new[:5]:
            parts = zip(("kind", "scale", "rounds", "cells", "true numbers"), old, new, strict=False)
            what = ", ".join(f"{part} {b}, not {a}" for part, a, b in parts if a != b)
            return [*found, f"question {place}: {what}"]
    return found


def other_release(then: Any, now: Any) -> list[str]:
    """Which measurements, or facts beside them, differ; the schema's spelling is no part of it."""
    if then is None or now is None:
        return [] if then == now else ["there is one only once"]
    old, new = then["measured"], now["measured"]
    found = [f"{len(new)} measurements, not {len(old)}"] if len(old) != len(new) else []
    found += [
        f"{a['form']} {' × '.join(a['columns'])} of set {a['set']}"
        for a, b in zip(old, new, strict=False)
        if a != b
    ]
    facts = ("n_rows", "predict", "cap")
    return found + [f"{fact} {now[fact]}, not {then[fact]}" for fact in facts if then[fact] != now[fact]]


def apart(then: dict[str, Any], now: dict[str, Any], near: bool, place: str = "") -> list[str]:
    """Which results differ: by a bit, or where they need only be near by more than that."""
    found = [f"{place}{key} is there only once" for key in then.keys() ^ now.keys()]
    for key in (key for key in then if key in now):
        old, new = then[key], now[key]
        if isinstance(old, dict) and "digest" in old:
            same = closely(key, old, new) if near else old == new
        elif isinstance(old, dict):
            found += apart(old, new, near, f"{key} ")
            continue
        else:
            same = old == new or (near and key == "drawn")
        found += [] if same else [f"{place}{key}"]
    return found


def closely(key: str, then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the numbers that were kept are near."""
    if then["cells"] != now["cells"]:
        return False
    old, new = values(then), values(now)
    if key == "model":
        half = old.size // 2
        gaps = np.abs(old - new)[:half] / np.maximum(old[half:], 1e-300)
        return bool((gaps <= COEFFICIENTS).all())
    most = JOINTS if key == "joints" else TABLES * max(1.0, float(np.abs(old).max(initial=0)))
    return bool((np.abs(old - new) <= most).all())


# Files


def path_of(name: str) -> Path:
    """Where a case is kept."""
    return FOLDER / f"{name}.json.gz"


def write(name: str, kept: dict[str, Any]) -> None:
    """Keep a case; the same case makes the same bytes."""
    text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    FOLDER.mkdir(exist_ok=True)
    path_of(name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(name: str) -> dict[str, Any]:
    """A recorded case."""
    return dict(json.loads(gzip.decompress(path_of(name).read_bytes())))


def plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def replayed(name: str) -> list[str]:
    """The differences of one case; an error is one."""
    then = read(name)
    try:
        given = then["given"]
        now = plain(observed(given, then))
        now["given"] = {**given, **plain(CASES[name].as_call())}
    except Exception as problem:
        return [f"{type(problem).__name__}: {problem}"]
    return differences(name, then, now)


def main(words: list[str]) -> None:
    """Record, or check."""
    flags = [word for word in words if word.startswith("--")]
    names = [word for word in words if not word.startswith("--")] or list(CASES)
    found, spent = {}, {}
    for name in names:
        begun = time.process_time()
        if "--check" in flags:
            found[name] = replayed(name)
        else:
            write(name, plain(observed(CASES[name].as_given())))
        spent[name] = round(time.process_time() - begun, 2)
    if "--check" in flags:
        print(json.dumps(found))
    if "--times" in flags:
        print(json.dumps(spent, indent=1), f"{sum(spent.values()):.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
