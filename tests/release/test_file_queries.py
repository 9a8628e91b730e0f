"""The release file holds any query: columns in levels, in runs or named groups of levels, in contrasts, centred; exact or noisy, in whole numbers or reals."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcipher.errors import ReleaseError
from dpcipher.release import file
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

SIZES = (5, 2, 6, 1)
SCHEMA = Schema.from_domain(dict(zip("abcd", SIZES, strict=True)))
NOISES = (Noise("laplace", 3.0), Noise("gaussian", 2.5), Noise("none", 0.0))


@st.composite
def groups(draw: st.DrawFn, size: int) -> Groups | None:
    """None, runs, or groups of any levels, with names or without."""
    if draw(st.booleans()):
        return None
    members = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    order = list(dict.fromkeys(members))
    of = tuple(order.index(one) for one in members)
    named = draw(st.booleans())
    return Groups(of, tuple(f"group {n} of {size}" for n in range(len(order))) if named else ())


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    """A measurement of any query of the schema."""
    axes = tuple(sorted(draw(st.sets(st.sampled_from(range(4)), max_size=3))))
    forms = tuple(draw(groups(SIZES[axis])) for axis in axes)
    centred = draw(st.booleans()) and bool(axes)
    contrasts = () if centred else tuple(sorted(draw(st.sets(st.sampled_from(axes))))) if axes else ()
    query = Query(axes, forms if any(forms) else (), contrasts, centred)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.integers(-50, 1000, query.shape(SIZES))
    real = draw(st.booleans())
    return Measurement(
        query, values / 3 if real else values, draw(st.sampled_from(NOISES)), draw(st.integers(0, 2))
    )


def said(one: Measurement) -> tuple[object, ...]:
    """Everything about a measurement, names of groups included."""
    names = tuple(form.names if form else () for form in one.query.forms)
    return one.query, names, one.noise, one.set, one.whole, one.values.shape, one.values.tobytes()


@given(st.lists(measurements(), min_size=1, max_size=12))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, measured: list[Measurement]) -> None:
    """In its order, whichever measurements are alike; the rows of the file are labelled by levels and groups."""
    totals = [Measurement(Query(()), np.array(100), NOISES[1], number) for number in range(3)]
    all_of_them = [*measured, *totals]
    path = file.write(tmp_path / "r.parquet", SCHEMA, all_of_them, Statement("declared"), force=True)
    schema, again, statement = file.read(path)
    assert (schema, statement) == (SCHEMA, Statement("declared"))
    # Beside a table of reals, whole numbers stay whole.
    assert [said(one) for one in again] == [said(one) for one in all_of_them]
    assert file.checksum(schema, again, statement) == file.checksum(SCHEMA, all_of_them, statement)
    cells = pq.read_table(path).to_pandas()
    for number, one in enumerate(all_of_them):
        rows = cells[cells["table"] == number]
        assert np.array_equal(rows["count"].to_numpy(), one.values.ravel())
        for place, (axis, form) in enumerate(zip(one.query.axes, one.query.forms, strict=True)):
            levels = SCHEMA.labels("abcd"[axis])
            labels = form.labels(levels) if form else list(levels)
            cell = np.indices(one.values.shape)[place].ravel()
            assert rows[f"level_{place + 1}"].tolist() == [labels[level] for level in cell]


def test_grouped_pairs_of_many_columns_are_one_entry(tmp_path: Path) -> None:
    """Each column's groups are written once, so that a file of all pairs stays short."""
    schema = Schema.from_domain({f"c{number}": 20 for number in range(30)})
    runs = Groups.runs([0, 5, 10, 15], 20)
    pairs = [
        Measurement(Query((first, second), (runs, runs)), np.full((4, 4), first), NOISES[0])
        for first in range(30)
        for second in range(first + 1, 30)
    ]
    path = file.write(tmp_path / "r.parquet", schema, pairs, Statement("declared"))
    facts = file.read_json(pq.read_metadata(path).metadata[file.KEY])
    assert [len(batch["tables"]) for batch in facts["measurements"]] == [435]  # type: ignore[index, call-overload]
    assert [said(one) for one in file.read(path)[1]] == [said(one) for one in pairs]


def test_groups_of_too_many_levels_are_neither_written_nor_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each grouping of a column counts once, however many tables use it."""
    runs, others = Groups.runs([0, 2], 5), Groups.runs([0, 3], 5)
    tables = [Measurement(Query((0,), (form,)), np.array([1, 2]), NOISES[0], number) for form in (runs, others) for number in (0, 1)]  # fmt: skip
    monkeypatch.setattr(file, "MAX_GROUPED", 10)
    path = file.write(tmp_path / "r.parquet", SCHEMA, tables, Statement("declared"))
    assert len(file.read(path)[1]) == 4
    monkeypatch.setattr(file, "MAX_GROUPED", 9)
    with pytest.raises(ReleaseError, match="of at most 9 levels in all; these are of 10"):
        file.read(path)
    with pytest.raises(ReleaseError, match="of at most 9 levels in all; these are of 10"):
        file.write(path, SCHEMA, tables, Statement("declared"), force=True)
