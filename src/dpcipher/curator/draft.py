"""A first schema, read off the rows: not private, marked as such, and refused until a person has signed it."""

import calendar
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpcipher.curator.profile import (
    MAX_CODES,
    MAX_SEEN,
    ColumnProfile,
    has_minus_one,
    piled_up,
    read_otherwise,
)
from dpcipher.curator.round_edges import amount_edges, calendar_edges, clock_facts, even_steps, is_skewed
from dpcipher.errors import SchemaError
from dpcipher.io.sniff import guess_format
from dpcipher.io.source import open_table
from dpcipher.schema.cells import as_number
from dpcipher.schema.codebooks.variable import MAX_UNIT
from dpcipher.schema.columns import Column
from dpcipher.schema.declared import column
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
# What a name says of few whole numbers: that they count something, or that they are in order.
_COUNTS = re.compile(
    r"(?i)(^|[_ .-])(n|num|number|count|cnt|how_?many|children|kids|persons|people|members|siblings|rooms|bedrooms|cars"
    r"|vehicles|pets|visits|times|age|years|months|weeks|days|hours)($|[_ .-])"
)
_RANKS = re.compile(
    r"(?i)(^|[_ .-])(level|grade|rank|rating|score|scale|stage|degree|education|educ|satisfaction|severity|importance"
    r"|agreement|frequency|priority|tier|stars|quartile|quintile|decile)($|[_ .-])"
)
_CALENDAR = tuple(
    tuple(name.casefold() for name in names if name)
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
)
_SHORT = 40  # characters; longer texts are sentences

_ZEROS = "many zeros: is 0 an amount, or a code for not applicable?"
_NO_AND_YES = (
    "0 and 1, taken for no and yes, as which synthetic rows have them; kind: categorical keeps the numbers"
)
_COUNTED = "few whole numbers that count something, by the name; if they are codes, say kind: categorical"
_IN_ORDER = "few whole numbers in order, by the name; if the order means nothing, say kind: categorical"
_CODES = "few whole numbers, taken for codes: if they count something, say kind: integer; if they rank, kind: ordinal"
_MANY = "taken for codes: is every one public? levels: discover would find them privately"
_FRACTIONS = "few numbers, taken for levels that rank"
_FEW_TIMES = "few times of day, taken for categories; kind: time would let others be drawn"
_CLOCK_DROPPED = "its time of day is dropped; a column of kind: time would keep it"
_BY_HAND = "add it by hand if it is needed"

Guess = tuple[Column | None, str]


def draft(
    data: object,
    *,
    dictionary: str | PathLike[str] | Mapping[str, object] | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Schema:
    """Guess a schema from the rows; it is marked as drawn from data, and tells about the rows until a person edits it.

    Columns that a data `dictionary` describes are taken from there, and the rows say nothing of them. `tell` is told about how many persons there are,
    where a column seems to say whose row each is: for the curator alone, and for no file.
    """
    written = guess_format(data)
    source = open_table(data, written.format, numbers=written.numbers)
    profiles = {name: ColumnProfile(name) for name in source.names if name}
    with closing(source.batches(list(profiles))) as batches:
        for batch in batches:
            for name, profile in profiles.items():
                profile.add(batch.column(name))
    if not any(profile.rows or profile.missing for profile in profiles.values()):
        raise SchemaError("the table has no rows to draft a schema from; write the schema by hand")
    described = {} if dictionary is None else _described(dictionary, list(profiles))
    guesses = [described.get(name) or guess(profile) for name, profile in profiles.items()]
    columns = tuple(column for column, _ in guesses if column)
    if not columns:
        raise SchemaError("no column could be drafted: each is empty or free text; write the schema by hand")
    for words in persons(profiles.values()):
        tell(words)
    notes = tuple(note for _, note in guesses if note)
    return Schema(
        columns, provenance=Provenance(drawn_from_data=True, notes=notes), format=written.format
    ).as_drafted()


def _described(source: str | PathLike[str] | Mapping[str, object], names: Sequence[str]) -> dict[str, Guess]:
    """The columns of the table that a dictionary describes, or leaves out, with the note of where each fact came from."""
    schema = Schema.import_dictionary(source)
    columns = {column.name: column for column in schema.columns}
    notes = {
        name: note
        for note in schema.provenance.notes
        for name in names
        if note.startswith((f"{name!r}: ", f"left out: {name!r} "))
    }
    return {
        name: (columns.get(name), notes.get(name, "")) for name in names if name in columns or name in notes
    }


def persons(profiles: Iterable[ColumnProfile], *, known: str | None = None) -> tuple[str, ...]:
    """About how many persons there are, by each column that is known to name them, or looks like an id and has values that come more than once; private."""
    return tuple(
        profile.ids.describe(profile.name)
        for profile in profiles
        if profile.ids is not None and profile.repeats and (profile.name == known or _looks_like_id(profile))
    )


def guess(profile: ColumnProfile) -> Guess:
    """The column, by the first reading that fits every cell, and a note for the person who checks it."""
    name, seen = profile.name, profile.ranges
    if not profile.texts:
        return None, f"left out: {name!r} holds no value at all"
    if reason := _looks_like_id(profile):
        owner = "; if it says whose row it is, give it to measure as the person, so that all rows of one are protected"
        hint = owner if profile.repeats else ""
        return None, f"left out: {name!r} looks like an id ({reason}); add it by hand if it is none{hint}"
    if "boolean" in seen:
        return _column(profile, "boolean"), ""
    if "date" in seen:
        return _dates(profile, *map(int, seen["date"]))
    if "time" in seen:
        return _times(profile, *map(int, seen["time"]))
    if "number" in seen:
        return _numbers(profile)
    return _texts(profile)


def _texts(profile: ColumnProfile) -> Guess:
    """Texts as levels, where they come often enough; numbers with a few texts among them as numbers."""
    name = profile.name
    has_numbers = profile.mixed[0] <= profile.mixed[1] and not profile.leading_zeros
    mostly_numbers = has_numbers and 0 < len(profile.codes) <= MAX_CODES
    if mostly_numbers and _are_missing(profile.codes):
        return _numbers(profile)
    otherwise = read_otherwise({text for text in profile.texts if not _are_missing({text})})
    repeat = profile.distinct <= FEW_VALUES or profile.rows >= TWICE * profile.distinct
    often = profile.longest <= _SHORT and profile.rows >= OFTEN * profile.distinct
    if repeat and profile.distinct <= (MOST_LEVELS if often else MAX_LEVELS):
        note = f"check: {name!r} holds {otherwise}" if otherwise else _look_alike(profile)
        return _column(profile, "categorical", levels=_in_order(profile.texts)), note
    if otherwise:
        return None, f"left out: {name!r} holds {otherwise}"
    if mostly_numbers:
        note = f"check: {name!r} holds numbers and a few texts; the texts become kinds of missing"
        return _numbers(profile)[0], note
    if not repeat:
        return None, f"left out: {name!r} holds texts of which most are in one row; {_BY_HAND}"
    texts = "long texts" if profile.longest > _SHORT else "texts"
    return None, f"left out: {name!r} holds more than {MAX_LEVELS} distinct {texts}; {_BY_HAND}"


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


def _numbers(profile: ColumnProfile) -> Guess:
    """Numbers with the codes among them set aside: a few values as levels, whole numbers one by one, anything wider in bins with round edges."""
    codes, low, high = _missing_codes(profile)
    facts: dict[str, Any] = {"missing_values": codes} if codes else {}
    remarks = [f"{', '.join(map(str, codes))} taken for missing values"] if codes else []
    if few := _few_numbers(profile, _values(profile.texts - set(map(str, codes)))):
        kind, levels, remark = few
        kinds = [(kind, levels | facts)]
        if kind == "boolean":  # to which n is no kind of missing
            kinds.append(("categorical", {"levels": [0, 1], **facts}))
        return _accepted(profile, kinds), _check(profile, [*remarks, remark])
    if profile.whole and high - low < MAX_NARROW:
        facts |= {"min": int(low), "max": int(high)} | ({"bins": "auto"} if high - low >= MAX_UNIT else {})
        return _column(profile, "integer", **facts), _check(profile, remarks)
    never = [-1] if profile.whole and has_minus_one(profile.values, low) else []
    low = 0.0 if never else low
    facts |= _bins(profile, low, high)
    piled = piled_up(profile.values, low, high)
    remarks += ["-1 in many rows: a code, such as for never?"] if never else []
    remarks += [
        _ZEROS if value == 0 else f"{_whole([value])[0]} in many rows: a top code?" for value in piled
    ]
    alone = profile.whole and {0, 1} <= set(facts.get("edges", ()))  # zero has a bin of its own
    special = [*never, *_whole([value for value in piled if value or not alone])]
    grid: dict[str, Any] = {}
    if profile.whole and profile.step > 1 and profile.rows >= ENOUGH_ROWS:
        grid = {"step": profile.step}
    elif not profile.whole and profile.decimals is not None:
        grid = {"decimals": profile.decimals}
    kind = "integer" if profile.whole else "number"
    singled = {"special": special} if special else {}
    # A step and special values as far as they leave every bin a value.
    return _accepted(profile, [(kind, facts | more) for more in (grid | singled, singled, {})]), _check(
        profile, remarks
    )


def _few_numbers(profile: ColumnProfile, values: Sequence[float]) -> tuple[str, dict[str, Any], str] | None:
    """The kind and levels of few numbers, or of numbers that lie far apart and come often, with a remark; None for others."""
    few, often = len(values) <= FEW_VALUES, profile.rows >= OFTEN * len(values)
    if not values or profile.distinct > MOST_LEVELS:
        return None
    levels, width = {"levels": _whole(values)}, values[-1] - values[0]
    if not profile.whole:
        return ("ordinal", levels, _FRACTIONS) if few and often else None
    if values == [0, 1]:
        return "boolean", {}, _NO_AND_YES
    if few and width < MAX_UNIT and _COUNTS.search(profile.name):
        return "integer", {"min": int(values[0]), "max": int(values[-1])}, _COUNTED
    if few:
        return (
            ("ordinal", levels, _IN_ORDER) if _RANKS.search(profile.name) else ("categorical", levels, _CODES)
        )
    far_apart = values[0] > 0 and width >= APART * len(values)
    return ("categorical", levels, _MANY) if far_apart and often else None


def _missing_codes(profile: ColumnProfile) -> tuple[list[str | int], float, float]:
    """The texts among numbers, and the negative numbers that stand for a missing value, with the range of what is left."""
    values = _values(profile.texts) if profile.distinct <= MAX_SEEN else []
    negative = [int(value) for value in values if value < 0]
    low, high = profile.mixed
    codes = negative if {*negative} <= _MISSING_NUMBERS and high >= 0 else []
    if codes:
        low = min(value for value in values if value >= 0)
    texts = sorted(profile.codes) if "number" not in profile.ranges else []
    return [*texts, *codes], low, high


def _values(texts: set[str]) -> list[float]:
    """The numbers among texts, each once, in order."""
    numbers = as_number(pa.array(sorted(texts), pa.string()))
    return sorted(set(numbers[np.isfinite(numbers)].tolist()))


def _whole(values: Sequence[float]) -> list[float]:
    """Numbers as people write them: 50, not 50.0."""
    return [int(value) if value == int(value) else value for value in values]


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


def _dates(profile: ColumnProfile, first: int, last: int) -> Guess:
    note = _check(profile, [_CLOCK_DROPPED] if profile.has_clock else [])
    edges = calendar_edges(first, last)
    facts = {"edges": edges} if edges else {"min": day_text(first), "max": day_text(last)}
    return _column(profile, "date", **facts), note


def _times(profile: ColumnProfile, first: int, last: int) -> Guess:
    """Few times as categories, others in whole hours; a step that few rows keep may be chance."""
    if profile.distinct <= FEW_VALUES:
        levels = _in_order(profile.texts)
        return _column(profile, "categorical", levels=levels), _check(profile, [_FEW_TIMES])
    enough = profile.rows >= ENOUGH_ROWS or not profile.seconds
    step = profile.seconds if enough else math.gcd(profile.seconds, 60)
    return _column(profile, "time", **clock_facts(first, last, step)), ""


def _accepted(profile: ColumnProfile, declarations: Sequence[tuple[str, dict[str, Any]]]) -> Column:
    """The first declaration that a schema accepts; the last one must be."""
    for kind, facts in declarations[:-1]:
        try:
            return _column(profile, kind, **facts)
        except SchemaError:
            continue
    return _column(profile, declarations[-1][0], **declarations[-1][1])


def _column(profile: ColumnProfile, kind: Any, **facts: Any) -> Column:
    missing: Literal["level", "refuse"] = "level" if profile.missing else "refuse"
    return column(profile.name, kind, missing=missing, **facts)


def _check(profile: ColumnProfile, remarks: Sequence[str]) -> str:
    return f"check {profile.name!r}: {'; '.join(remarks)}" if remarks else ""


def _look_alike(profile: ColumnProfile) -> str:
    """What to look at in a list of texts."""
    if profile.leading_zeros:
        return f"check: {profile.name!r} has codes with leading zeros, which are kept as texts"
    if len({" ".join(text.split()).casefold() for text in profile.texts}) < profile.distinct:
        return f"check: {profile.name!r} has levels that differ in case or spaces alone; if they are the same, make them so in the table"
    if any(text != text.strip() for text in profile.texts):
        return f"check: {profile.name!r} has levels with spaces around them, which are part of the level; take them away in the table, unless they belong there"
    return ""


def _are_missing(texts: set[str]) -> bool:
    return all(text.strip().lower() in _MISSING_TEXTS for text in texts)


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
