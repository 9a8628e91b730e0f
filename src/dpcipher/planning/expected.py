"""The schema that a plan counts with: of what is still to be found, as much as the number of rows lets expect, and not the most there can be."""

from collections.abc import Sequence
from dataclasses import replace

from dpcipher.planning.bins import BinPlan
from dpcipher.planning.levels import LevelPlan
from dpcipher.schema.open_column import declared_edges
from dpcipher.schema.schema import Schema
from dpcipher.schema.text_column import stand_in_texts


def with_expected_levels(schema: Schema, levels: LevelPlan | None) -> Schema:
    """The levels that are expected; the most where no number of rows was given."""
    if levels is None or levels.expected is None:
        return schema
    columns = (
        replace(column, max_levels=min(levels.expected, len(stand_in_texts(column))))
        if column.discovers
        else column
        for column in schema.columns
    )
    return replace(schema, columns=tuple(columns))


def with_expected_bins(schema: Schema, bins: Sequence[BinPlan]) -> Schema:
    """The bins that are expected, and at least those between declared edges; the most where no number of rows was given."""
    expected = {plan.column: plan.expected for plan in bins if plan.expected is not None}
    if not expected:
        return schema
    columns = (
        replace(column, max_bins=max(expected[column.name], len(declared_edges(column)) + 1))
        if column.name in expected
        else column
        for column in schema.columns
    )
    return replace(schema, columns=tuple(columns))
