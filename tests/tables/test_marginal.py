"""Labelled tables."""

import numpy as np
import pytest

from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.schema import Marginal

TABLE = Marginal(("a", "b"), (("x", "y"), ("0", "1", "2")), np.arange(6).reshape(2, 3))


def test_project_sums_and_orders():
    """Projecting sums the rest out, and axes come in the order asked for."""
    assert np.asarray(TABLE.project(("a",))).tolist() == [3, 12]
    assert np.arange(6).reshape(2, 3).T.tolist() == np.asarray(TABLE.project(("b", "a"))).tolist()
    assert np.asarray(TABLE.project(())).item() == 15


def test_a_frame_has_one_row_for_each_cell():
    """Long form: levels, then the value."""
    frame = TABLE.to_frame("count")
    assert list(frame.columns) == ["a", "b", "count"]
    assert list(frame[(frame.a == "y") & (frame.b == "1")].itertuples(index=False, name=None)) == [
        ("y", "1", 4)
    ]


def test_numpy_sees_the_values():
    """asarray gives the values, in the type asked for."""
    assert np.asarray(TABLE).shape == (2, 3)
    assert np.float32 == np.asarray(TABLE, dtype=np.float32).dtype


def test_a_wrong_shape_is_refused():
    """Values and levels must agree."""
    with pytest.raises(ParameterError, match="shape"):
        Marginal(("a",), (("x", "y"),), np.zeros(3))


@pytest.mark.parametrize("attrs", [("z",), ("a", "a"), "z"])
def test_a_wrong_projection_is_refused(attrs):
    """Unknown and repeated names are errors."""
    with pytest.raises(WorkloadError):
        TABLE.project(attrs)


def test_one_name_stands_for_itself():
    """The table of one column, by its name."""
    assert TABLE.project("a").values.tolist() == TABLE.project(("a",)).values.tolist()
