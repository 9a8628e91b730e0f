"""Saved joints: what was saved is loaded, and what somebody made up is refused before it takes time or memory."""

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved import CORES, HEALTH, SCHEMA, chain, dense, facts, save

from dpcipher.errors import JointError
from dpcipher.joint.joint import Joint
from dpcipher.schema.schema import Schema
from effort import at_most

MOST_SECONDS = 2.0


@pytest.mark.parametrize("kind", CORES)
def test_a_file_of_version_0_1_0_is_read(kind: str, tmp_path: Path) -> None:
    """Written by NumPy alone: arrays, header and schema arrive as they were, and are saved the same again."""
    core = CORES[kind]()
    joint = Joint.load(save(tmp_path / "j.npz", facts(kind), core.to_arrays()))
    assert (joint.schema, joint.n_rows, joint.health) == (SCHEMA, 100, HEALTH)
    assert type(joint.core) is type(core)
    for name, array in core.to_arrays().items():
        assert np.array_equal(joint.core.to_arrays()[name], array)
        assert joint.core.to_arrays()[name].dtype == array.dtype
    assert joint.sample(50, seed=1).equals(Joint(SCHEMA, core, 100, HEALTH).sample(50, seed=1))
    again = Joint.load(joint.save(tmp_path / "again.npz"))
    assert again.health == HEALTH


def member(header: str, data: bytes = b"", *, version: bytes = b"\x01\x00") -> bytes:
    """A .npy file by hand."""
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header.encode() + data


def npy(array: Any) -> bytes:
    """A .npy file by NumPy."""
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


def declared(shape: str, descr: str = "'<f8'") -> str:
    """The header of a .npy file."""
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def archive(path: Path, members: list[tuple[str, bytes]], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    """An archive of these members, beside the header of a dense joint."""
    coded = np.frombuffer(json.dumps(facts("dense")).encode(), dtype=np.uint8)
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, data in [("dpcipher.npy", npy(coded)), *members]:
            made.writestr(name, data)
    return path


class Boom:
    """Shows if it is ever unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was unpickled",))


GOOD = npy(dense().probabilities)
BOMBS: dict[str, list[tuple[str, bytes]]] = {
    "declares much": [("probabilities.npy", member(declared("(2000000000, 3, 2)"), bytes(96)))],
    "declares more than any": [("probabilities.npy", member(declared(f"({10**17}, {10**17})"), bytes(96)))],
    "unpacks to much": [("probabilities.npy", member(declared("(2, 3, 2)"), bytes(2**28)))],
    "is short": [("probabilities.npy", member(declared("(2, 3, 2)"), bytes(95)))],
    "is not there": [],
    "is there twice": [("probabilities.npy", GOOD), ("probabilities.npy", GOOD)],
    "is there under two names": [("probabilities.npy", GOOD), ("probabilities", GOOD)],
    "has company": [("probabilities.npy", GOOD), ("more.npy", GOOD)],
    "is pickled": [("probabilities.npy", npy(np.array([Boom()], dtype=object)))],
    "is a record": [("probabilities.npy", npy(np.zeros(12, dtype=[("x", "f8")])))],
    "is text": [("probabilities.npy", b"0.1, 0.2")],
    "is nothing": [("probabilities.npy", b"")],
    "is of a later format": [("probabilities.npy", member(declared("(2, 3, 2)"), bytes(96), version=b"\x02\x00"))],
    "runs code": [("probabilities.npy", member(declared("(exit(), )"), bytes(96)))],
    "is deep": [("probabilities.npy", member(declared("(" * 4000), bytes(96)))],
    "is long": [("probabilities.npy", member(declared("(2, 3, 2)").replace(" }", " " * 60_000 + "}"), bytes(96)))],
    "has negative sizes": [("probabilities.npy", member(declared("(-2, 3, 2)"), bytes(96)))],
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_not_what_it_should_be_is_refused_unread(bomb: str, tmp_path: Path) -> None:
    """Whatever it declares or unpacks to, in little time and memory; nothing is unpickled."""
    path = archive(tmp_path / "j.npz", BOMBS[bomb])
    tracemalloc.start()
    with at_most(MOST_SECONDS), pytest.raises(JointError, match="is damaged or was not written by dpcipher"):
        Joint.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_the_writers_packing_is_read(packing: int, tmp_path: Path) -> None:
    """Deflate grows a file a thousandfold at most; the others have no such limit."""
    path = archive(tmp_path / "j.npz", [("probabilities.npy", GOOD)], packing)
    with pytest.raises(JointError, match="packed by deflate"):
        Joint.load(path)
    stored = archive(tmp_path / "s.npz", [("probabilities.npy", GOOD)], zipfile.ZIP_STORED)
    assert Joint.load(stored).n_rows == 100


def test_a_header_beyond_its_limit_is_not_parsed(tmp_path: Path) -> None:
    """A hundred megabytes of spaces pack to a hundred kilobytes, and are not unpacked."""
    path = save(tmp_path / "j.npz", "[" + " " * 70 * 2**20 + "]", dense().to_arrays())
    tracemalloc.start()
    with pytest.raises(JointError, match="its header must have at most"):
        Joint.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"groups": [0, 1, 2**62]}, "too many groups"),
        ({"groups": [0, 1, -2]}, "whole numbers from 0 up"),
        ({"group_sizes": [1, 1, 2**40]}, "too many groups"),
        ({"group_axes": [1, 0, 0, 9]}, "attributes of the schema"),
        ({"group_axes": [1, 0, 0, -1]}, "whole numbers from 0 up"),
        ({"group_axes": [1, 0, 2, 1]}, "attributes before it"),
        ({"order": [1, 1, 2]}, "every attribute once"),
        ({"shape": [2, 3, 3]}, "must be the schema's"),
        ({"base": np.full(7, -0.1)}, "0 or above"),
        ({"factors": np.full(22, np.nan)}, "finite"),
        ({"factors": np.full(22, 1e40)}, "finite"),
    ],
)
def test_a_chain_must_fit_together(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    """Lengths are added up and judged before the numbers that they call for are read."""
    arrays = chain().to_arrays() | {name: np.array(value) for name, value in changes.items()}
    with pytest.raises(JointError, match=why):
        Joint.load(save(tmp_path / "j.npz", facts("chain"), arrays))


def test_a_chain_over_endless_columns_is_judged_at_once(tmp_path: Path) -> None:
    """A group of two hundred columns of a billion levels each has a number of cells that takes long to write down."""
    schema = Schema.from_domain({f"c{i}": 2**30 for i in range(400)})
    arrays = {name: np.zeros(400, np.int64) for name in ("groups", "bars")}
    arrays |= {"shape": np.array(schema.shape), "order": np.arange(400)}
    arrays["groups"][-1] = 1
    arrays |= {"group_sizes": np.array([399]), "group_axes": np.arange(399)}
    arrays |= {name: np.zeros(0, np.int64) for name in ("bar_sizes", "bar_axes")}
    arrays |= {name: np.zeros(0) for name in ("base", "factors", "goals")}
    arrays |= {"bar_masks": np.zeros(0, bool)}
    header = facts("chain") | {"schema": schema.to_dict()}
    with pytest.raises(JointError, match="too many numbers"):
        Joint.load(save(tmp_path / "j.npz", header, arrays))


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"age,sex\n1,2\n", b"\x93NUMPY\x01\x00"])
def test_what_is_no_joint_is_refused(content: bytes, tmp_path: Path) -> None:
    """Empty, cut and foreign files get one clear error."""
    (tmp_path / "j.npz").write_bytes(content)
    with pytest.raises(JointError, match="is damaged or was not written by dpcipher"):
        Joint.load(tmp_path / "j.npz")
    with pytest.raises(JointError, match="must be an existing file"):
        Joint.load(tmp_path / "absent.npz")
