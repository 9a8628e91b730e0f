"""The labels of published tables: levels, or groups of them such as `0–4` and `18 or more`."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from dpcipher.errors import WorkloadError, did_you_mean
from dpcipher.schema.bins import Bins
from dpcipher.schema.grouped import check_once, labels_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.query import Groups

_BETWEEN = (
    "..",
    "–",
    "—",
    " to ",
    "-",
)  # between the ends of a run; a hyphen may also be a minus or part of a date
_FROM = re.compile(r"(?P<low>.+?)(?: or (?:more|older|over|above)| and (?:more|older|over|above)|\s*\+)")
_TO = re.compile(
    r"(?:under|below|less than) (?P<stop>.+)|(?:up to )?(?P<high>.+?)(?: or (?:less|younger|under|below)| and (?:less|younger|under|below))?"
)
_INTERVAL = re.compile(r"\[(?P<low>[^,]+), (?P<stop>[^,]+)[)\]]")


def code_labels(
    schema: Schema, attr: str, labels: Sequence[str], groups: Groups | None
) -> tuple[dict[str, int], Groups | None]:
    """The number of each label of a published table, and its groups: those given or, where the labels are no levels, those that the labels say."""
    known = _numbers(schema, attr, groups)
    if all(label in known for label in labels):
        return known, groups
    held = {
        label: _levels_in(schema, attr, label) for label in labels if groups is None or label not in known
    }
    unknown = next((label for label, codes in held.items() if codes is None), None)
    if unknown is not None:
        what = "one of the schema's" if groups is None else "one of its groups"
        raise WorkloadError(
            f"level ({unknown!r:.100}) of {attr} must be {what}{did_you_mean(unknown, known)}; "
            f"it has {', '.join(list(known)[:5])}{' …' if len(known) > 5 else ''}"
        )
    if groups is not None:
        whole = {
            frozenset(np.flatnonzero(np.array(groups.of) == group).tolist()): group
            for group in range(groups.size)
        }
        other = next((label for label, codes in held.items() if frozenset(codes or ()) not in whole), None)
        if other is not None:
            raise WorkloadError(
                f"level ({other!r:.100}) of {attr} must be one of its groups; it has {', '.join(list(known)[:5])}{' …' if len(known) > 5 else ''}"
            )
        return known | {label: whole[frozenset(codes or ())] for label, codes in held.items()}, groups
    lists = [list(codes or ()) for codes in held.values()]
    check_once(schema, attr, lists)
    found = Groups.of_lists(lists, schema.n_cells((attr,)))
    return {label: found.of[codes[0]] for label, codes in zip(held, lists, strict=True)}, found


def _numbers(schema: Schema, attr: str, groups: Groups | None) -> dict[str, int]:
    """Levels or groups by the schema's own labels and by those that pages show."""
    both = (labels_of(schema, attr, groups, shown=True), labels_of(schema, attr, groups))
    return {label: code for labels in both for code, label in enumerate(labels)}


def _levels_in(schema: Schema, attr: str, label: str) -> list[int] | None:
    """The levels that the label of a group names: `0–4`, `18 or more`, `under 18`, `[0, 10)`, or levels joined by commas; None where it names none."""
    known, column = _numbers(schema, attr, None), schema.column(attr)
    if label in known:
        return [known[label]]
    ordered = column.ordered_levels

    def code(text: str, *, last: bool = False) -> int | None:
        """The level that begins, or ends, with a value."""
        text = text.strip()
        if text in known:
            return known[text]
        found = column.find(text)
        if found is None or not isinstance(column.domain, Bins) or found >= column.domain.n_bins:
            return found
        return found if column.domain.ends[int(last)][found] == column.domain.number_named(text) else None

    for low, high in _ends(label):
        first, final = (
            (0 if low is None else code(low)),
            (ordered - 1 if high is None else code(high, last=True)),
        )
        if first is not None and final is not None and first <= final < (ordered or column.size):
            return list(range(first, final + 1))
    if ordered:
        under = _TO.fullmatch(label)
        if under and under["stop"] and (stop := code(under["stop"])):
            return list(range(stop))
    interval = _INTERVAL.fullmatch(label)
    if interval and isinstance(column.domain, Bins):
        edges = list(column.domain.edges)
        bottom, top = (column.domain.number_named(interval[end]) for end in ("low", "stop"))
        if bottom in edges and top in edges and (label[-1] == ")" or top == edges[-1]):
            return list(range(edges.index(bottom), edges.index(top)))
    codes = [known.get(part) for part in label.split(", ")]
    return None if None in codes else [part for part in codes if part is not None]


def _ends(label: str) -> Iterator[tuple[str | None, str | None]]:
    """The first and last value that a label may name, in each way of reading it; None where it has no end."""
    for mark in _BETWEEN:
        start = label.find(mark, 1)
        while start > 0:
            yield label[:start], label[start + len(mark) :]
            start = label.find(mark, start + 1)
    above = _FROM.fullmatch(label)
    if above:
        yield above["low"], None
    below = _TO.fullmatch(label)
    if below and below["high"] and below["high"] != label:
        yield None, below["high"]
