"""The second experiment in small: the schema, the regression, the held-out rows, and what is said without data."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented_run import invented_rows

from dpcipher.errors import TableFileError
from dpcipher.inference.models import fit_models
from experiments.paper import bankruptcy, bankruptcy_data
from experiments.paper.bankruptcy import CONTENDERS, BankruptcyBlock, fit_class, run_block
from experiments.paper.bankruptcy_data import (
    CROSSED,
    DIGEST,
    LEVELS,
    NAMES,
    OUTCOME,
    SCHEMA,
    columns_of_cells,
    digest,
    load,
)
from experiments.paper.readings import LITERAL
from experiments.paper.simulated import METHODS, OURS_GROUP

pytest.importorskip("sklearn")


def test_the_workload_is_that_of_the_supplement() -> None:
    """Ten pairs of five attributes: one 4-way, six 3-way and three 2-way tables of the seven columns, 216 cells."""
    widths = [sum(len(names) for names in pair) for pair in combinations(CROSSED.values(), 2)]
    assert [widths.count(k) for k in (4, 3, 2)] == [1, 6, 3]
    assert sorted(SCHEMA.shape) == [3, 3, 3, 6, 9]
    assert sum(a * b for a, b in combinations(SCHEMA.shape, 2)) == 216


def test_cells_are_decoded_as_the_schema_decodes_them() -> None:
    """The level of every column in every cell."""
    codes = np.argwhere(np.ones(SCHEMA.shape)).astype(np.int32)
    rows = SCHEMA.decode(codes, np.random.default_rng(0)).to_pandas()
    for attr, names in CROSSED.items():
        levels = columns_of_cells()[:, [NAMES.index(name) for name in names]]
        told = [" ".join(LEVELS[name][code] for name, code in zip(names, row, strict=True)) for row in levels]
        assert rows[attr].astype(str).tolist() == told


def test_the_regression_equals_fit_models() -> None:
    """Thirteen Firth estimates, against the formula interface on rows."""
    data = invented_rows()
    estimate, variance = (part[0, 0] for part in fit_class(data.table()[None], 1))
    frame = pd.DataFrame(columns_of_cells()[data.cells], columns=list(NAMES)).astype(str)
    formula = "Class ~ " + " + ".join(NAMES[:-1])
    table = fit_models(frame, formula, firth=True).table()
    np.testing.assert_allclose(estimate, table["estimate"], atol=1e-6)
    np.testing.assert_allclose(np.sqrt(variance), table["std_error"], atol=1e-6)


def test_held_out_rows_are_not_in_the_training_table() -> None:
    """Fifty are held out in every repeat, other ones each time."""
    held = bankruptcy._held_out(250, 4, np.random.default_rng(1))
    assert (held.sum(axis=1) == 50).all()
    assert len({tuple(row) for row in held}) == 4
    data = invented_rows()
    rest = data.table(np.flatnonzero(~held[0]))
    assert rest.sum() == 200
    np.testing.assert_array_equal(rest + data.table(np.flatnonzero(held[0])), data.table())


def test_an_svm_that_saw_one_class_says_that_class() -> None:
    """And is right as often as that class occurs."""
    data, held = invented_rows(), np.zeros(250, dtype=bool)
    held[:50] = True
    only = np.zeros(SCHEMA.shape, dtype=np.int64)
    place = int(np.flatnonzero(columns_of_cells()[:, OUTCOME] == 1)[0])
    only.ravel()[place] = 200
    right = bankruptcy._right(only, data, held)
    np.testing.assert_array_equal(right, columns_of_cells()[data.cells[held], OUTCOME] == 1)


def test_a_block_repeats_and_holds_all_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same block twice gives the same numbers; a large budget predicts better than the larger class."""
    monkeypatch.setattr(bankruptcy, "best_rounds", lambda *args: 2)
    first, second = ({}, {})
    for group in (METHODS, LITERAL, OURS_GROUP):
        block = BankruptcyBlock(2, 1, 0, 1, group)
        first |= run_block(block, invented_rows())
        second |= run_block(block, invented_rows())
    assert {key.split("/")[0] for key in first} == {"original", *(one.name for one in CONTENDERS)}
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])
    assert first["FDH/accuracy"][0, 0] > first["original/majority"][0, 0]


def test_without_data_the_message_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The public home by name and number, the checksum, and the option."""
    monkeypatch.delenv(bankruptcy_data.VARIABLE, raising=False)
    with pytest.raises(TableFileError, match="--data FOLDER or set DPCIPHER_DATA") as caught:
        load(None)
    assert "281" in str(caught.value)
    assert DIGEST in str(caught.value)
    with pytest.raises(TableFileError, match=r"must hold qualitative_bankruptcy\.csv"):
        load(tmp_path)


def test_other_rows_are_refused(tmp_path: Path) -> None:
    """The checksum is of the rows, whatever their order and header; other rows do not have it."""
    rows = [("P", "A", "N", "P", "A", "N", "B"), ("P", "A", "N", "P", "A", "N", "NB")]
    assert digest(rows) == digest(rows[::-1])
    (tmp_path / "qualitative_bankruptcy.csv").write_text("\n".join(",".join(row) for row in rows))
    with pytest.raises(TableFileError, match="does not hold the rows"):
        load(tmp_path)


def test_the_real_data_are_those_of_the_paper(data_folder: Path) -> None:
    """250 rows, 103 of them different, with the supplement's frequencies (average and negative as in the data)."""
    data = load(data_folder)
    levels = columns_of_cells()[data.cells]
    assert len(np.unique(levels, axis=0)) == 103
    assert np.bincount(levels[:, OUTCOME]).tolist() == [143, 107]
    assert np.bincount(levels[:, 0]).tolist() == [80, 81, 89]
