"""Tables whose levels are put together in groups: how a person says which."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpcipher.errors import WorkloadError, did_you_mean
from dpcipher.schema.bins import Bins
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs
from dpcipher.tables.query import Groups, Query

_TRY = "try [0, 18, 65], the first level of each run, [[0, 1], [2, 3]], or {'north': ['NY', 'ME'], …}"


class Grouped(tuple[str, ...]):
    """The table of some columns with the levels of some of them in groups, beside plain tuples in a list of tables.

    A column is given the first level of each run of its levels, lists of levels, or lists by name; columns without any keep every level. Levels are
    named as the schema names them, and each must be in one group. A column whose name is no word of Python goes through `**{"age in years": [0, 18]}`.

    >>> import dpcipher as dc
    >>> dc.Grouped(("age", "state"), age=[0, 18, 65], state={"north": ["NY", "ME"], "south": ["TX"]})
    Grouped(('age', 'state'), age=[0, 18, 65], state={'north': ['NY', 'ME'], 'south': ['TX']})
    """

    groups: Mapping[str, Any]

    def __new__(cls, columns: str | Sequence[str], /, **groups: Any) -> "Grouped":
        """Columns by name, and the groups of at least one of them."""
        table = super().__new__(cls, (columns,) if isinstance(columns, str) else columns)
        if not groups:
            raise WorkloadError(
                f"groups of {' × '.join(table)} (none) must be given for a column; without any a plain tuple of columns will do"
            )
        for name in groups:
            if name not in table:
                raise WorkloadError(
                    f"groups of {name!r} must be of a column of the table{did_you_mean(name, table)}; it has {', '.join(table)}"
                )
        table.groups = {name: _plain(name, groups[name]) for name in table if name in groups}
        return table

    @property
    def key(self) -> object:
        """What is equal for equal tables."""
        return frozenset(self), tuple(sorted((name, repr(spec)) for name, spec in self.groups.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grouped) and self.key == other.key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        groups = ", ".join(
            f"{name}={spec!r}" if name.isidentifier() else f"**{ {name: spec}!r}"
            for name, spec in self.groups.items()
        )
        return f"Grouped({tuple(self)!r}, {groups})"

    def __getnewargs_ex__(self) -> tuple[tuple[Attrs], Mapping[str, Any]]:
        """For pickle and copy."""
        return (tuple(self),), self.groups

    def on(self, columns: Sequence[str]) -> "Grouped":
        """The table with its columns in another order."""
        return Grouped(columns, **self.groups)


def table_key(table: Sequence[str]) -> object:
    """What is equal for equal tables, whatever the order of their columns."""
    return table.key if isinstance(table, Grouped) else frozenset(table)


def said(table: Sequence[str]) -> str:
    """A table as people read it: its columns, and which are in groups.

    >>> said(("age", "sex")), said(Grouped(("age", "sex"), age=[0, 18, 65]))
    ('age × sex', 'age (3 groups) × sex')
    """
    groups = table.groups if isinstance(table, Grouped) else {}
    return " × ".join(f"{name} ({len(groups[name])} groups)" if name in groups else name for name in table)


def plain_table(table: Sequence[str]) -> dict[str, Any]:
    """A table as plain values, as `table_of_plain` reads it."""
    return {"attrs": list(table), **({"groups": dict(table.groups)} if isinstance(table, Grouped) else {})}


def table_of_plain(plain: Mapping[str, Any]) -> Attrs:
    """A table from plain values."""
    return Grouped(plain["attrs"], **plain["groups"]) if plain.get("groups") else tuple(plain["attrs"])


def _plain(name: str, spec: object) -> Any:
    """First levels, lists of levels, or lists by name; a single level may stand for a list of one."""
    if isinstance(spec, Mapping) and spec:
        return {str(group): _levels(levels) for group, levels in spec.items()}
    if isinstance(spec, str) or not isinstance(spec, Iterable) or not (items := list(spec)):
        raise WorkloadError(f"groups of {name} ({spec!r:.60}) must be a list or a mapping; {_TRY}")
    lists = [_is_list(item) for item in items]
    if any(lists) and not all(lists):
        raise WorkloadError(
            f"groups of {name} ({spec!r:.60}) must be first levels, or a list for every group; {_TRY}"
        )
    return [_levels(item) for item in items] if all(lists) else _levels(items)


def _levels(levels: object) -> list[Any]:
    listed = list(levels) if _is_list(levels) else [levels]  # type: ignore[call-overload]
    return [level.item() if isinstance(level, np.generic) else level for level in listed]


def _is_list(item: object) -> bool:
    return isinstance(item, Iterable) and not isinstance(item, str)


def query_of(schema: Schema, table: Sequence[str]) -> Query:
    """What is asked of the rows for a table, plain or grouped."""
    axes = schema.axes(table)
    if not isinstance(table, Grouped):
        return Query(axes)
    forms = (table.groups.get(attr) for attr in schema.attrs_on(axes))
    return Query(
        axes,
        tuple(
            None if spec is None else read_groups(schema, schema.attrs[axis], spec)[0]
            for axis, spec in zip(axes, forms, strict=True)
        ),
    )


def table_of(schema: Schema, query: Query) -> Attrs:
    """The table that a query is about, as a person would say it."""
    attrs = schema.attrs_on(query.axes)
    groups = {
        attr: _spec(schema.labels(attr), form)
        for attr, form in zip(attrs, query.forms, strict=True)
        if form is not None
    }
    return Grouped(attrs, **groups) if groups else attrs


def _spec(labels: Sequence[str], groups: Groups) -> Any:
    """The first label of each run; of other groups the labels, by name where there are names."""
    if groups.are_runs and not groups.names:
        return [labels[start] for start in groups.starts]
    members: list[list[str]] = [[] for _ in range(groups.size)]
    for label, group in zip(labels, groups.of, strict=True):
        members[group].append(label)
    return dict(zip(groups.names, members, strict=True)) if groups.names else members


def read_groups(schema: Schema, attr: str, spec: Any) -> tuple[Groups, list[int]]:
    """The groups of a column, which are numbered by their first levels, and for each the place it was given at."""
    key = attr, repr(spec)
    if key not in schema.known_groups:
        schema.known_groups[key] = _read_groups(schema, attr, spec)
    return schema.known_groups[key]


def _read_groups(schema: Schema, attr: str, spec: Any) -> tuple[Groups, list[int]]:
    if schema.column(attr).is_open:
        raise WorkloadError(
            f"groups of {attr} must be of levels that the schema declares, and those are to be found; declare its bins or levels, or leave its groups out"
        )
    n_levels = schema.n_cells((attr,))
    if isinstance(spec, dict) or isinstance(spec[0], list):
        lists = list(spec.values()) if isinstance(spec, dict) else spec
        codes = [[_code(schema, attr, level) for level in levels] for levels in lists]
        check_once(schema, attr, codes)
        order = sorted(range(len(codes)), key=lambda place: min(codes[place]))
        groups = Groups.of_lists(codes, n_levels, tuple(spec) if isinstance(spec, dict) else ())
    else:
        starts = [_first(schema, attr, level) for level in spec]
        _check_runs(schema, attr, spec, starts)
        groups, order = Groups.runs(starts, n_levels), list(range(len(starts)))
    if groups.size < 2:
        raise WorkloadError(
            f"groups of {attr} (one) must be two or more; leave the column out of the table instead"
        )
    return groups, order


def _code(schema: Schema, attr: str, level: object) -> int:
    """The number of a level, by its value or its label."""
    code = schema.column(attr).find(level)
    if code is None:
        known = schema.shown_labels(attr)
        raise WorkloadError(
            f"groups of {attr} name {level!r:.60}, which is no level of it{did_you_mean(str(level), known[:10_000])}; it has {_some(known)}"
        )
    return code


def _first(schema: Schema, attr: str, level: object) -> int:
    """The number of a level that a run begins with: of a bin its first value, or its label."""
    code, domain = _code(schema, attr, level), schema.column(attr).domain
    if isinstance(domain, Bins) and code < domain.n_bins:
        number, low = domain.number_named(level), domain.ends[0][code]
        if number == number and number != low:
            raise WorkloadError(
                f"groups of {attr} begin at {level!r:.60}, inside its bin {domain.labels[code]}; begin at {domain.scale.text(low)}, or declare narrower bins"
            )
    return code


def _check_runs(schema: Schema, attr: str, spec: Sequence[object], starts: Sequence[int]) -> None:
    """Runs ascend from the first level, and none goes on from levels that follow one another into others, such as what is missing."""
    labels, ordered = schema.shown_labels(attr), schema.column(attr).ordered_levels
    if starts[0] != 0 or list(starts) != sorted(set(starts)):
        raise WorkloadError(
            f"groups of {attr} ({list(spec)!s:.60}) must be the first levels of runs: ascending, from {labels[0]!r}; for other groups give lists of levels"
        )
    if 0 < ordered < len(labels) and ordered not in starts:
        raise WorkloadError(
            f"groups of {attr} ({list(spec)!s:.60}) must not run on into {labels[ordered]!r}, which has no place in the order of the levels; begin a group there, too, or give lists of levels"
        )


def check_once(schema: Schema, attr: str, lists: Sequence[Sequence[int]]) -> None:
    """Every level is in one group, and no group is empty."""
    labels, listed = schema.shown_labels(attr), [code for codes in lists for code in codes]
    if any(not codes for codes in lists):
        raise WorkloadError(f"groups of {attr} must hold at least one level each; one is empty")
    twice = (
        next((code for code in listed if listed.count(code) > 1), None)
        if len(set(listed)) < len(listed)
        else None
    )
    if twice is not None:
        raise WorkloadError(f"groups of {attr} must hold each level once; {labels[twice]!r} is there twice")
    absent = [labels[code] for code in sorted(set(range(len(labels))).difference(listed))]
    if absent:
        raise WorkloadError(
            f"groups of {attr} must hold each level once; {_some(absent)} {'is' if len(absent) == 1 else 'are'} in none"
        )


def _some(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels[:5])) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")


def labels_of(schema: Schema, attr: str, groups: Groups | None, *, shown: bool = False) -> tuple[str, ...]:
    """What the levels of a column, or its groups, are called: as the schema names them, or as people read them."""
    labels = schema.shown_labels(attr) if shown else schema.labels(attr)
    return labels if groups is None else tuple(groups.labels(labels))
