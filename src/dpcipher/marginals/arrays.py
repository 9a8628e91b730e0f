"""The types that everybody shares: names and numbers of attributes, and arrays of counts, codes and probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Attrs = tuple[str, ...]  # attributes by name
Axes = tuple[int, ...]  # attributes by number, ascending
Shape = tuple[int, ...]  # how many levels each attribute has

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Codes = NDArray[np.int32]  # rows by columns: the level of each attribute, by number
CodeColumn = NDArray[np.integer[Any]]  # the codes of one attribute, in the narrowest integer that holds them
Bools = NDArray[np.bool_]
