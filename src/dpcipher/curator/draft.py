"""A first schema, read off the rows: not private, marked as such, and refused until a person has signed it."""

import calendar
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, Literal

from dpcipher.curator.profile import (
    MAX_CODES,
    MAX_SEEN,
    ColumnProfile,
    Range,
    amount_edges,
    calendar_edges,
    clock_facts,
    even_steps,
    has_minus_one,
    is_skewed,
    piled_up,
    read_otherwise,
)
from dpcipher.errors import SchemaError
from dpcipher.io.detect import detect
from dpcipher.io.read import open_table
from dpcipher.schema.columns import Column
from dpcipher.schema.declared import column
from dpcipher.schema.dictionaries.variable import MAX_UNIT
from dpcipher.schema.document import Provenance
from dpcipher.schema.scale import day_text
from dpcipher.schema.schema import Schema

MAX_LEVELS = 200  # a text column with more distinct values is listed only where each comes often
MOST_LEVELS = 1_000
FEW_VALUES = 12  # numbers with no more distinct values are taken for codes
MAX_NARROW = 128  # the bins of whole numbers in a range up to here are found privately; wider ones are cut into round bins
ENOUGH_ROWS = 20  # with fewer, values that are all different say nothing
TWICE = 2  # rows for each text, on average, from which a list of them is no list of rows
OFTEN = 20  # rows for each value, from which numbers that lie far apart are taken for codes
APART = 10  # how far that is: the range over the number of values
# Whole numbers that tell people apart, who have a few rows each: more values than a year has days, nearly all of a range.
MANY_IDS, FILLED, ROWS_EACH = 367, 0.9, 5

# Texts and numbers that dictionaries use for a value that is not there.
_MISSING_TEXTS = {
    "n",
    "na",
    "n/a",
    "n.a.",
    "dk",
    "?",
    ".",
    "-",
    "--",
    "unknown",
    "missing",
    "refused",
    "not applicable",
}
_MISSING_NUMBERS = {-9, -8, -7, -99, -98, -97, -88, -77, -999, -998, -997, -888, -777, -9999}
_ID_NAME = re.compile(
    r"(?i:(^|[_ .-])((|case|hh|p|person|u)id|idnum|uuid|guid|ssn|iban|e-?mail|phone|telephone"
    r"|customer|patient|respondent|seqn|serialno|subject)($|[_ .-]))|[a-z]I[Dd]$"  # userID, not paid
)
_CALENDAR = tuple(
    tuple(name.casefold() for name in names if name)
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
)
_SHORT = 40  # characters; longer texts are sentences

_RANKED = "do they count or rank?"
_FEW_TIMES = "few times of day, taken for categories; kind: time would let others be drawn"
_MANY = "is every one public? levels: discover would find them privately"

Guess = tuple[Column | None, str]


def draft(data: object, *, tell: Callable[[str], object] = lambda _: None) -> Schema:
    """Guess a schema from the rows; it is marked as drawn from data, and tells about the rows until a person edits it.

    `tell` is told about how many persons there are, where a column seems to say whose row each is: for the curator alone, and for no file.
    """
    detected = detect(data)
    source = open_table(data, detected.format, numbers=detected.numbers)
    profiles = {name: ColumnProfile(name) for name in source.names if name}
    with closing(source.batches(list(profiles))) as batches:
        for batch in batches:
            for name, profile in profiles.items():
                profile.add(batch.column(name))
    if not any(profile.rows or profile.missing for profile in profiles.values()):
        raise SchemaError("the table has no rows to draft a schema from; write the schema by hand")
    guesses = [guess(profile) for profile in profiles.values()]
    columns = tuple(column for column, _ in guesses if column)
    if not columns:
        raise SchemaError("no column could be drafted: each is empty or free text; write the schema by hand")
    for words in persons(profiles.values()):
        tell(words)
    notes = tuple(note for _, note in guesses if note)
    return Schema(
        columns, provenance=Provenance(drawn_from_data=True, notes=notes), format=detected.format
    ).as_drafted()


def persons(profiles: Iterable[ColumnProfile], *, known: str | None = None) -> tuple[str, ...]:
    """About how many persons there are, by each column that is known to name them, or looks like an id and has values that come more than once; private."""
    return tuple(
        profile.ids.describe(profile.name)
        for profile in profiles
        if profile.ids is not None and profile.repeats and (profile.name == known or _looks_like_id(profile))
    )


def guess(profile: ColumnProfile) -> Guess:
    """The column, by the first reading that fits every cell, and a note for the person who checks it."""
    if not profile.texts:
        return None, f"left out: {profile.name!r} holds no value at all"
    if reason := _looks_like_id(profile):
        return None, (
            f"left out: {profile.name!r} looks like an id ({reason}); add it by hand if it is none{_owner_hint(profile)}"
        )
    if "boolean" in profile.ranges:
        return _made(profile, "boolean"), ""
    if "date" in profile.ranges:
        return _dated(profile, profile.ranges["date"])
    if "time" in profile.ranges:
        return _timed(profile, profile.ranges["time"])
    if "number" in profile.ranges:
        return _numbers(profile)
    mostly_numbers = (
        profile.mixed[0] <= profile.mixed[1]
        and 0 < len(profile.codes) <= MAX_CODES
        and not profile.leading_zeros
    )
    if mostly_numbers and _are_missing(profile.codes):
        return _numbers(profile)
    otherwise = read_otherwise({text for text in profile.texts if not _are_missing({text})})
    if _repeat(profile) and (profile.distinct <= MAX_LEVELS or _come_often(profile)):
        note = f"check: {profile.name!r} holds {otherwise}" if otherwise else _texts_note(profile)
        return _made(profile, "categorical", levels=_in_order(profile.texts)), note
    if otherwise:
        return None, f"left out: {profile.name!r} holds {otherwise}"
    if not _repeat(profile) and not mostly_numbers:
        return (
            None,
            f"left out: {profile.name!r} holds texts of which most are in one row; add it by hand if it is needed",
        )
    if mostly_numbers:
        column, _ = _numbers(profile)
        return (
            column,
            f"check: {profile.name!r} holds numbers and a few texts; the texts become kinds of missing",
        )
    what = "long texts" if profile.longest > _SHORT else "texts"
    return (
        None,
        f"left out: {profile.name!r} holds more than {MAX_LEVELS} distinct {what}; add it by hand if it is needed",
    )


def _looks_like_id(profile: ColumnProfile) -> str:
    """Why the values name rows; nothing where they do not. Real numbers are all different too, and name nothing."""
    if profile.rows >= ENOUGH_ROWS and not profile.repeats:
        if _ID_NAME.search(profile.name):
            return "by its name, and every value is different"
        low, high = profile.ranges.get("integer", (0.0, 0.0))
        if "integer" in profile.ranges and (high - low == profile.rows - 1 or profile.increasing):
            return "whole numbers that count the rows"
        if not profile.ranges and profile.distinct > MAX_LEVELS and profile.longest <= _SHORT:
            return "every text is different"
    if _ID_NAME.search(profile.name) and profile.distinct > MAX_LEVELS:
        return "by its name"
    if "integer" in profile.ranges and profile.distinct >= MANY_IDS:
        low, high = profile.ranges["integer"]
        if profile.number >= FILLED * (high - low + 1) and profile.rows <= ROWS_EACH * profile.number:
            return "whole numbers that leave out few, each in few rows"
    return ""


def _owner_hint(profile: ColumnProfile) -> str:
    """What an id is good for whose values come more than once."""
    if not profile.repeats:
        return ""
    return "; if it says whose row it is, give it to measure as the person, so that all rows of one are protected"


def _numbers(profile: ColumnProfile) -> Guess:
    """Numbers with the codes among them set aside: a few values as categories, whole numbers one by one, anything wider in bins with round edges."""
    codes, low, high = _missing_codes(profile)
    facts: dict[str, Any] = {"missing_values": codes} if codes else {}
    said = [f"{', '.join(map(str, codes))} taken for missing values"] if codes else []
    levels = sorted({float(text) for text in profile.texts - set(map(str, codes)) if _is_number(text)})
    if profile.distinct <= MOST_LEVELS and _are_codes(profile, levels):
        few = (
            f"few whole numbers, taken for codes: {_RANKED}"
            if len(levels) <= FEW_VALUES
            else f"taken for codes: {_MANY}"
        )
        said.append(few)
        return _made(profile, "categorical", levels=[int(level) for level in levels], **facts), _check(
            profile, said
        )
    if not profile.whole and len(levels) <= FEW_VALUES and profile.rows >= OFTEN * len(levels):
        said.append("few numbers, taken for levels that rank")
        return _made(profile, "ordinal", levels=_whole(levels), **facts), _check(profile, said)
    if profile.whole and high - low < MAX_NARROW:
        facts |= {"bins": "auto"} if high - low >= MAX_UNIT else {}
        return _made(profile, "integer", min=int(low), max=int(high), **facts), _check(profile, said)
    coded = [-1] if profile.whole and has_minus_one(profile.values, low) else []
    low = 0.0 if coded else low
    facts |= _bins(profile, low, high)
    if special := [*coded, *_special(profile, facts, low, high)]:
        facts["special"] = special
        said.append(f"{', '.join(map(str, special))} in many rows: no amount, a top code or a code?")
    kind = "integer" if profile.whole else "number"
    return _on_grid(profile, kind, facts), _check(profile, said)


def _special(profile: ColumnProfile, facts: dict[str, Any], low: float, high: float) -> list[float]:
    """The values that pile up, but for a zero that has a bin of its own."""
    alone = profile.whole and {0, 1} <= set(facts.get("edges", ()))
    piled = [value for value in piled_up(profile.values, low, high) if value or not alone]
    return _whole(piled)


def _whole(values: Sequence[float]) -> list[float]:
    """Numbers as people write them: 50, not 50.0."""
    return [int(value) if value == int(value) else value for value in values]


def _on_grid(profile: ColumnProfile, kind: str, facts: dict[str, Any]) -> Column:
    """The column with the step or decimals of its numbers, and with the special values, as far as they leave every bin a value."""
    grid: dict[str, Any] = {}
    if profile.whole and profile.step > 1 and profile.rows >= ENOUGH_ROWS:
        grid = {"step": profile.step}
    elif not profile.whole and profile.decimals is not None:
        grid = {"decimals": profile.decimals}
    for known in (facts | grid, facts):
        try:
            return _made(profile, kind, **known)
        except SchemaError:
            continue
    return _made(profile, kind, **{key: value for key, value in facts.items() if key != "special"})


def _repeat(profile: ColumnProfile) -> bool:
    """Whether texts come more than once, as levels do: a list of those that do not is a list of rows."""
    return profile.distinct <= FEW_VALUES or profile.rows >= TWICE * profile.distinct


def _come_often(profile: ColumnProfile) -> bool:
    return (
        profile.distinct <= MOST_LEVELS
        and profile.longest <= _SHORT
        and profile.rows >= OFTEN * profile.distinct
    )


def _check(profile: ColumnProfile, said: list[str]) -> str:
    return f"check {profile.name!r}: {'; '.join(said)}" if said else ""


def _are_codes(profile: ColumnProfile, levels: list[float]) -> bool:
    """Whether whole numbers stand for something else: there are few of them, or they lie far apart and each comes often."""
    if not profile.whole or not levels:
        return False
    apart = levels[-1] - levels[0] >= APART * len(levels)
    return len(levels) <= FEW_VALUES or (levels[0] > 0 and apart and profile.rows >= OFTEN * len(levels))


def _missing_codes(profile: ColumnProfile) -> tuple[list[str | int], float, float]:
    """The texts among numbers, and the negative numbers that stand for a missing value, with the range of what is left."""
    numbers = (
        [float(text) for text in profile.texts if _is_number(text)] if profile.distinct <= MAX_SEEN else []
    )
    negative = {number for number in numbers if number < 0}
    low, high = profile.mixed
    found = sorted(negative) if negative and negative <= _MISSING_NUMBERS and high >= 0 else []
    if found:
        low = min(number for number in numbers if number >= 0)
    texts = sorted(profile.codes) if "number" not in profile.ranges else []
    return [*texts, *(int(number) for number in found)], low, high


def _bins(profile: ColumnProfile, low: float, high: float) -> dict[str, Any]:
    """Round edges: of one width, or growing with the amounts where a tail reaches far."""
    values = profile.values[(profile.values >= low) & (profile.values <= high)]
    if len(values) and is_skewed(values, low, high):
        edges = amount_edges(values, low, high, whole=profile.whole)
        return {"edges": _whole(edges)}
    first, last, bins = even_steps(low, high, whole=profile.whole)
    if not profile.whole:
        return {"min": _whole([first])[0], "max": _whole([last])[0], "bins": bins}
    return {"min": int(first), "max": int(last) - 1, "bins": bins}


def _dated(profile: ColumnProfile, seen: Range) -> Guess:
    dropped = "its time of day is dropped; a column of kind: time would keep it"
    note = _check(profile, [dropped] if profile.has_clock else [])
    edges = calendar_edges(int(seen[0]), int(seen[1]))
    if edges is None:
        return _made(profile, "date", min=day_text(int(seen[0])), max=day_text(int(seen[1]))), note
    return _made(profile, "date", edges=edges), note


def _timed(profile: ColumnProfile, seen: Range) -> Guess:
    """Few times as categories, others in whole hours; a step that few rows keep may be chance."""
    if profile.distinct <= FEW_VALUES:
        return _made(profile, "categorical", levels=_in_order(profile.texts)), _check(profile, [_FEW_TIMES])
    apart = (
        profile.seconds if profile.rows >= ENOUGH_ROWS else profile.seconds and math.gcd(profile.seconds, 60)
    )
    return _made(profile, "time", **clock_facts(int(seen[0]), int(seen[1]), apart)), ""


def _made(profile: ColumnProfile, kind: Any, **facts: Any) -> Column:
    missing: Literal["level", "refuse"] = "level" if profile.missing else "refuse"
    return column(profile.name, kind, missing=missing, **facts)


def _texts_note(profile: ColumnProfile) -> str:
    """What to profile at in a list of texts."""
    if profile.leading_zeros:
        return f"check: {profile.name!r} has codes with leading zeros, which are kept as texts"
    if len({" ".join(text.split()).casefold() for text in profile.texts}) < profile.distinct:
        return f"check: {profile.name!r} has levels that differ in case or spaces alone; if they are the same, make them so in the table"
    if any(text != text.strip() for text in profile.texts):
        return f"check: {profile.name!r} has levels with spaces around them, which are part of the level; take them away in the table, unless they belong there"
    return ""


def _are_missing(texts: set[str]) -> bool:
    return all(text.strip().lower() in _MISSING_TEXTS for text in texts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _in_order(texts: set[str]) -> list[str]:
    """Months and days of the week as in a calendar; of others whole numbers by size, then the other texts.

    >>> _in_order({"N", "10", "9"})
    ['9', '10', 'N']
    >>> _in_order({"Apr", "Feb", "Dec"})
    ['Feb', 'Apr', 'Dec']
    """
    for names in _CALENDAR:
        if {text.casefold() for text in texts} <= set(names):
            return sorted(texts, key=lambda text: (names.index(text.casefold()), text))
    return sorted(texts, key=lambda text: (not text.isdecimal(), int(text) if text.isdecimal() else 0, text))
