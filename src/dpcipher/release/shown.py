"""A release as people first see it: a card, and pictures of its columns and pairs with their margins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.figures import column_chart, pair_maps, samples
from dpcipher.drawing.html import rows
from dpcipher.drawing.plot import Plot
from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.marginals.arrays import Bools
from dpcipher.marginals.zero_cells import zero_cells
from dpcipher.privacy.budget import Budget

if TYPE_CHECKING:
    from dpcipher.release.release import Release

MOST_COLUMNS = 12
NOT_MEASURED = "those two were never measured together, and a release shows only what was measured. Plot the joint, dc.plot(dc.solve(release), columns), and mind that its error includes the model's"


def card(release: "Release") -> Card:
    """What was measured, of whom, and for how much."""
    schema, statement = release.schema, release.statement
    orders, coarse = sorted({len(attrs) for attrs in release.workload}), len({c.attr for c in release.coarse})
    lines = [
        (schema.heading(attr), f"{size:,}") for attr, size in zip(schema.attrs, schema.shape, strict=True)
    ]
    return Card(
        f"Release of {schema.title}" if schema.title else "Release",
        {
            "Rows": _n_rows(release),
            "Columns": f"{len(schema.attrs):,}",
            "Tables": f"{len(release.workload):,} of {' and '.join(map(str, orders))} columns"
            if len(orders) < 3
            else f"{len(release.workload):,}",
            "Sets": f"{release.sets}" if release.sets > 1 else "",
            "Found privately": _found(statement.certificate),
            "Coarse counts": f"of {coarse:,} column{'s' if coarse > 1 else ''} with found bins"
            if coarse
            else "",
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
    """The public number, or the sums of all tables, each weighed by its precision: what reconciling them gives where no cell is impossible and nothing is counted coarsely, at a glance."""
    if release.statement.n_rows is not None:
        return f"{release.statement.n_rows:,} (public)"
    if release.totals:
        return f"about {rows(max(release.reconciled.total, 0.0))}"
    totals = np.array([float(np.sum(table.counts, dtype=float)) for table in release.tables])
    variances = np.array([table.mechanism.variance * table.counts.size for table in release.tables])
    exact = variances == 0
    total = totals[exact].mean() if exact.any() else np.average(totals, weights=1 / variances)
    return f"about {rows(max(float(total), 0.0))}"


def draw(release: "Release", columns: tuple[str, ...] | None) -> Plot:
    """One column as bars with whiskers, two as a heat map, and without any the first dozen columns."""
    schema = release.schema
    if columns is None:
        names = schema.attrs[:MOST_COLUMNS]
        hidden = len(schema.attrs) - len(names)
        return Plot(
            schema.title or "The columns of the release",
            {schema.heading(name): column_chart(_series(release, name)) for name in names},
            samples(bar="released estimate", whisker="95 % margin"),
            f"{hidden:,} more columns are not drawn: name them." if hidden else "",
        )
    if len(columns) == 1:
        series = _series(release, columns[0])
        key = samples(bar="released estimate", whisker="95 % margin")
        return Plot(series.name, {series.name: column_chart(series)}, key)
    return _pair(release, checked_pair(columns))


def checked_pair(columns: tuple[str, ...]) -> tuple[str, str]:
    """Two columns: more cannot be drawn on paper."""
    if len(columns) != 2:
        raise ParameterError(
            f"columns ({', '.join(columns)}) must be one or two names; plot pairs of them one by one"
        )
    return columns[0], columns[1]


def _series(release: "Release", name: str) -> Series:
    counts = np.asarray(release.project(name), dtype=float)
    low, high = (np.asarray(bound, dtype=float) for bound in release.interval(name))
    labels = release.schema.shown_labels(name)
    largest = int(np.argmax(counts))
    says = f"Bar chart of {len(labels)} levels. Largest: {labels[largest]}, {rows(float(counts[largest]))}."
    return Series(release.schema.heading(name), labels, counts, None, says, (low, high))


def _pair(release: "Release", names: tuple[str, str]) -> Plot:
    schema = release.schema
    try:
        counts = np.asarray(release.project(names), dtype=float)
    except WorkloadError as error:
        if all(name in (*schema.attrs, *schema.names) for name in names) and names[0] != names[1]:
            raise WorkloadError(f"columns ({', '.join(names)}): {NOT_MEASURED}") from None
        raise error
    variance = np.asarray(release.std_error(names), dtype=float) ** 2
    title = " × ".join(map(schema.heading, names))
    maps = pair_maps(
        names,
        (schema.shown_labels(names[0]), schema.shown_labels(names[1])),
        {"released": counts},
        variance,
        _impossible(release, names),
    )
    return Plot(title, {title: next(iter(maps.values()))})


def _impossible(release: "Release", names: tuple[str, str]) -> Bools | None:
    """The cells that the schema says are empty; of columns inside a compound nothing is known."""
    schema = release.schema
    if not set(names) <= set(schema.attrs):
        return None
    axes = (schema.attrs.index(names[0]), schema.attrs.index(names[1]))
    ordered = (min(axes), max(axes))
    cells = zero_cells(ordered, schema.shape, schema.zero_masks)
    return cells if axes == ordered else cells.T
