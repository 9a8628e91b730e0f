"""A release as people first see it: a card, and pictures of its columns and pairs with their margins."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.figures import column_chart, group_series, merged_note, pair_maps, samples
from dpcipher.drawing.groups import EXPLAINED, MOST_ACROSS, MOST_BARS, Groups, group_levels
from dpcipher.drawing.html import rows
from dpcipher.drawing.plot import Plot
from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.privacy.budget import Budget
from dpcipher.release.query import interval
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.query import Groups as LevelGroups
from dpcipher.tables.query import Query

if TYPE_CHECKING:
    from dpcipher.release.release import Release

MOST_COLUMNS = 12
NOT_MEASURED = "those two were never measured together, and a release shows only what was measured. Plot the joint, dc.plot(dc.solve(release), columns), and mind that its error includes the model's"


def card(release: "Release") -> Card:
    """What was measured, of whom, and for how much."""
    schema, statement = release.schema, release.statement
    orders = sorted({len(attrs) for attrs in release.workload})
    in_groups = len({one.query for one in release.measurements if one.query.groups})
    lines = [
        (schema.heading(attr), f"{size:,}") for attr, size in zip(schema.attrs, schema.shape, strict=True)
    ]
    return Card(
        f"Release of {schema.title}" if schema.title else "Release",
        {
            "Rows": _n_rows(release),
            "Counts": statement.counted,
            "Columns": f"{len(schema.attrs):,}",
            "Tables": f"{len(release.workload):,} of {' and '.join(map(str, orders))} columns"
            if len(orders) < 3
            else f"{len(release.workload):,}",
            "Sets": f"{release.sets}" if release.sets > 1 else "",
            "Found privately": _found(statement.certificate),
            "Levels in groups": f"in {counted(in_groups, 'table')}" if in_groups else "",
            "Budget": Budget.from_dict(dict(statement.budget)).describe()
            if statement.budget
            else "not stated",
            "Unit": str(statement.unit["relation"]) if statement.unit else "not stated",
            "Status as stated": statement.status,
        },
        ("column", "levels"),
        lines,
        notes=[
            *(f"Range: {text}" for text in found_ranges(release)),
            "Counts carry noise: dc.trust(release) says which pairs can be relied on, dc.plot(release, column) draws a column with its margins.",
        ],
    )


def _found(certificate: Mapping[str, Any]) -> str:
    """Of how many columns bins and levels were found; empty where all were declared."""
    numbers = {
        "bins": len(certificate.get("bins", {}).get("found", ())),
        "levels": len(certificate.get("levels", ())),
    }
    return ", ".join(f"{what} of {counted(number, 'column')}" for what, number in numbers.items() if number)


def found_ranges(release: "Release") -> list[str]:
    """Of the ranges that were found, whether rows stood out of the noise, and how many may go unseen beyond them."""
    stated = release.statement.certificate.get("bins", {}).get("ranges", {})
    ranges = {name: found for name, found in stated.items() if name in release.schema.names}
    told = []
    for guess in (True, False):
        names = [name for name, found in ranges.items() if found["guess"] is guess]
        if names:
            most = max(ranges[name]["rows"] for name in names)
            told.append(_range_words(", ".join(names), most, guess=guess))
    return told


def _range_words(names: str, rows: int, *, guess: bool) -> str:
    if guess:
        return (
            f"A guess for {names}: no rows stood out of the noise, as about {rows:,} of them would have. Values beyond the range are counted in its end bins; "
            "declare min and max where they are public."
        )
    return (
        f"Found for {names}. Rows far from the others, up to about {rows:,} of them, may lie beyond the range unseen, and are counted in its "
        "end bins."
    )


def _n_rows(release: "Release") -> str:
    """The public number, or the sums of all tables, each weighed by its precision: what reconciling them gives where no cell is impossible, at a glance."""
    if release.statement.n_rows is not None:
        return f"{release.statement.n_rows:,} (public)"
    if release.centred or any(one.query.contrasts for one in release.measurements):
        return f"about {rows(max(release.reconciled.total, 0.0))}"
    tables = release.measurements
    totals = np.array([float(np.sum(table.values, dtype=float)) for table in tables])
    variances = np.array([table.noise.variance * table.values.size for table in tables])
    exact = variances == 0
    total = totals[exact].mean() if exact.any() else np.average(totals, weights=1 / variances)
    return f"about {rows(max(float(total), 0.0))}"


def draw(release: "Release", columns: tuple[str, ...] | None) -> Plot:
    """One column as bars with whiskers, two as a heat map, and without any the first dozen columns."""
    schema = release.schema
    if columns is not None and len(columns) != 1:
        return _pair(release, checked_pair(columns))
    names = columns or schema.attrs[:MOST_COLUMNS]
    drawn = [column_series(release, name) for name in names]
    hidden = 0 if columns else len(schema.attrs) - len(names)
    notes = [EXPLAINED] if any(series.merged for series in drawn) else []
    notes += [f"{hidden:,} more columns are not drawn: name them."] if hidden else []
    title = drawn[0].name if columns else schema.title or "The columns of the release"
    key = samples(bar="released estimate", whisker="95 % margin")
    return Plot(title, {series.name: column_chart(series) for series in drawn}, key, " ".join(notes))


def checked_pair(columns: tuple[str, ...]) -> tuple[str, str]:
    """Two columns: more cannot be drawn on paper."""
    if len(columns) != 2:
        raise ParameterError(
            f"columns ({', '.join(columns)}) must be one or two names; plot pairs of them one by one"
        )
    return columns[0], columns[1]


def column_series(release: "Release", name: str, compared: Floats | None = None) -> Series:
    """The counts of a column with their 95 % margins, and others beside them; of many levels the sums of groups that the schema alone decides."""
    table = release.project(name)
    groups = _drawn(release, name, table.shown[0], MOST_BARS)
    counts = groups.add_up(np.asarray(table, dtype=float))
    bounds = interval(counts, _variance(release, (name,), (groups,)), 0.95)
    return group_series(release.schema.heading(name), groups, counts, compared, bounds)


def pair_drawing(
    release: "Release", names: tuple[str, str], others: Mapping[str, Floats] = MappingProxyType({})
) -> tuple[dict[str, str], tuple[Groups, Groups]]:
    """Heat maps of a pair, and of another table of it with their difference; and the levels that they add up."""
    released = release.project(names)
    tables = {"released": np.asarray(released, dtype=float), **others}
    first, second = (
        _drawn(release, name, labels, MOST_ACROSS) for name, labels in zip(names, released.shown, strict=True)
    )
    variance = _variance(release, names, (first, second))
    return pair_maps(names, (first, second), tables, variance, _impossible(release, names)), (first, second)


def _drawn(release: "Release", name: str, labels: tuple[str, ...], most: int) -> Groups:
    """What is drawn of the levels of a column, or of the groups in which they were measured, which are drawn in their order."""
    groups = release.schema.groups(name, most)
    return groups if groups.n_levels == len(labels) else group_levels(labels, len(labels), most)


def _variance(release: "Release", names: tuple[str, ...], groups: Sequence[Groups]) -> Floats:
    """The variance of the sum of every group of levels, or of every two groups, covariances included."""
    cover, query = release.inside(names)
    drawn = dict(zip(names, groups, strict=True))
    forms = []
    for name, form in zip(cover.attrs, query.forms, strict=True):
        sizes = drawn[name].sizes
        of = np.repeat(np.arange(len(sizes)), sizes)
        forms.append(LevelGroups(tuple((of if form is None else of[list(form.of)]).tolist())))
    variance = release.reconciled.variance(Query(cover.axes, tuple(forms)))
    return cover.fold(variance.reshape([form.size for form in forms]))


def _pair(release: "Release", names: tuple[str, str]) -> Plot:
    schema = release.schema
    try:
        maps, groups = pair_drawing(release, names)
    except WorkloadError as error:
        if all(name in schema.attrs for name in names) and names[0] != names[1]:
            raise WorkloadError(f"columns ({', '.join(names)}): {NOT_MEASURED}") from None
        raise error
    title = " × ".join(map(schema.heading, names))
    return Plot(title, {title: next(iter(maps.values()))}, note=merged_note(names, groups))


def _impossible(release: "Release", names: tuple[str, str]) -> Bools:
    """The cells that the schema says are empty."""
    cover, query = release.inside(names)
    counted = query.apply(release.schema.domain.possible(cover.axes).astype(np.float64), cover.axes)
    return np.asarray(cover.fold(counted) == 0)
