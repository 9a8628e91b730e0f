"""The second experiment in small: the schema, the regression, the held-out rows, and what is said without data."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented_run import invented_rows

from dpcipher.errors import TableFileError
from dpcipher.inference.models import fit_models
from experiments.paper import bankruptcy
from experiments.paper.bankruptcy import fit_class, run_block
from experiments.paper.bankruptcy_data import (
    ATTRS,
    DIGEST,
    NAMES,
    OUTCOME,
    SHAPE,
    VARIABLE,
    columns_of_cells,
    digest,
    load,
)
from experiments.paper.blocks import ORIGINAL, Block

pytest.importorskip("sklearn")


def test_the_workload_is_that_of_the_supplement() -> None:
    """Ten pairs of five attributes: one 4-way, six 3-way and three 2-way tables of the seven columns, 216 cells."""
    widths = [sum(map(len, pair)) for pair in combinations(ATTRS, 2)]
    assert [widths.count(k) for k in (4, 3, 2)] == [1, 6, 3]
    assert sorted(SHAPE) == [3, 3, 3, 6, 9]
    assert sum(a * b for a, b in combinations(SHAPE, 2)) == 216


def test_every_cell_holds_one_combination_of_the_seven_columns() -> None:
    """Crossed columns are told apart again, the first of them the slower."""
    levels = columns_of_cells()
    assert len(np.unique(levels, axis=0)) == len(levels) == 2 * 3**6
    place = np.ravel_multi_index((8, 0, 0, 5, 2), SHAPE)
    assert dict(zip(NAMES, levels[place].tolist(), strict=True)) == {
        "IndustrialRisk": 2,
        "Competitiveness": 2,
        "ManagementRisk": 0,
        "FinancialFlexibility": 0,
        "Class": 1,
        "Credibility": 2,
        "OperatingRisk": 2,
    }
    assert levels[np.ravel_multi_index((1, 0, 0, 3, 0), SHAPE)].tolist() == [0, 0, 0, 0, 1, 0, 1]


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
    only = np.zeros(SHAPE, dtype=np.int64)
    place = int(np.flatnonzero(columns_of_cells()[:, OUTCOME] == 1)[0])
    only.ravel()[place] = 200
    right = bankruptcy._right(only, data, held)
    np.testing.assert_array_equal(right, columns_of_cells()[data.cells[held], OUTCOME] == 1)


def test_a_block_repeats_and_holds_all_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same block twice gives the same numbers; a large budget predicts better than the larger class."""
    monkeypatch.setattr(bankruptcy, "best_rounds", lambda *args: 2)
    first, second = (
        {
            name: run_block(Block(1, 2, 0, 1, name), invented_rows())
            for name in (ORIGINAL, *bankruptcy.METHODS)
        }
        for _ in range(2)
    )
    for name, scores in first.items():
        for key in scores.keys() - {"seconds"}:
            np.testing.assert_array_equal(scores[key], second[name][key])
    assert first["FDH"]["accuracy"][0, 0] > first[ORIGINAL]["majority"][0, 0]


def test_without_data_the_message_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The public home by name and number, the checksum, and the option."""
    monkeypatch.delenv(VARIABLE, raising=False)
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
