"""What a dictionary says of one variable, whatever its format, and the column that follows from it.

What the dictionary leaves open is left to `measure`, which finds it privately: bins and ranges (`auto`) and levels (`discover`). Each fact is noted with
where it came from. A person signs for all of them, since a dictionary may have been computed from the rows: its largest income can be somebody's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dpcipher.errors import SchemaError, did_you_mean
from dpcipher.files.codec import is_number
from dpcipher.schema.levels import MAX_CODES, Level
from dpcipher.schema.scale import EXACT, WRITTEN_DECIMALS, decimals_of, parse_day
from dpcipher.schema.words import one_line

MAX_UNIT = 32  # levels of whole numbers; in pairs of generated columns the noise of more of them exceeds what bins leave out
AUTO, DISCOVER = "auto", "discover"
_RANGE = ("min", "max", "bins", "edges", "max_bins", "special")
# Which texts of a column that lists no levels may be published, where the dictionary does not say: codes and short names, no sentences and no addresses.
SHORT_TEXT, LONGEST_TEXT = r"[\pL\pN][\pL\pN ._/&+'()-]*", 40

VariableKind = Literal["text", "integer", "number", "boolean", "date", "time"]


@dataclass(frozen=True)
class Variable:
    """The facts about one variable.

    `values` are its levels, where they are listed. `low` and `high` bound a number, date or time; `singles` are values of it with a meaning of their own, inside
    the range or beside it. `decimals` are those of its numbers, unless its bounds are written with as many as they are. `pattern` says which texts a column
    without `values` may hold, and `longest` how many characters. `blank` says that cells may be empty. `left_out` is the reason why it cannot become a column.
    `declared` is a column as a schema file declares it, which is then all that counts. `source` says where in the dictionary levels and ranges stood.
    """

    name: str
    kind: VariableKind = "text"
    values: Sequence[Level] | None = None
    ordered: bool = False
    low: Any = None
    high: Any = None
    singles: Sequence[float] = ()
    missing: Sequence[Level] = ()
    blank: bool = False
    labels: Mapping[str, Any] = field(default_factory=dict)
    title: Any = None
    description: Any = None
    unit: Any = None
    pattern: str = ""
    longest: int | None = None
    decimals: int | None = None
    bounds_show_decimals: bool = False
    left_out: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    source: str = "the dictionary"
    notes: Sequence[str] = ()

    def spec(self) -> dict[str, Any]:
        """The declaration of its column, as a schema file has it."""
        if self.declared:
            return dict(self.declared)
        missing = _codes(self.missing)[:MAX_CODES]
        spec = self._domain() | ({"missing_values": missing} if missing else {})
        spec |= {"missing": "level"} if self.blank else {}
        labels = {value: text for value, label in self.labels.items() if (text := one_line(label, "label"))}
        words = {name: one_line(getattr(self, name), name) for name in ("title", "description", "unit")}
        spec |= {"labels": labels} if labels else {}
        return spec | {name: text for name, text in words.items() if text}

    def opened(self) -> "Variable":
        """The variable without its range, which is then found privately."""
        cut = self.declared.get("kind") in ("integer", "number", "date", "time")
        kept = {key: value for key, value in self.declared.items() if key not in _RANGE}
        return replace(
            self,
            low=None,
            high=None,
            declared={**kept, "min": AUTO, "max": AUTO, "bins": AUTO} if cut else self.declared,
        )

    def _domain(self) -> dict[str, Any]:
        if self.kind == "boolean" and self.values is None:
            return {"kind": "boolean"}
        if self.values is not None:
            return {"kind": "ordinal" if self.ordered else "categorical", "levels": list(self.values)}
        if self.kind in ("text", "boolean"):
            return {
                "kind": "categorical",
                "levels": DISCOVER,
                "pattern": self.pattern or SHORT_TEXT,
                "max_length": min(self.longest or LONGEST_TEXT, LONGEST_TEXT),
            }
        return {"kind": self.kind, **self._range()}

    def _range(self) -> dict[str, Any]:
        """The range with a level for each of few whole numbers, and bins to be found of anything wider or open."""
        low, high = self._bounds()
        if self.kind == "integer" and low is not None and high is not None:
            first, last = min([low, *self.singles]), max([high, *self.singles])
            if last - first < MAX_UNIT:
                return {"min": first, "max": last}
        spec = {"min": AUTO if low is None else low, "max": AUTO if high is None else high, "bins": AUTO}
        spec |= {"special": sorted(self.singles)} if self.singles else {}
        decimals = self._decimals([end for end in (low, high) if end is not None])
        return spec if decimals is None else spec | {"decimals": decimals}

    def _decimals(self, ends: Sequence[float]) -> int | None:
        """Its decimals, where they are stated and floats of this range are fine enough for them."""
        decimals = written_decimals(ends) if self.bounds_show_decimals else self.decimals
        if self.kind != "number" or decimals is None or not 0 <= decimals <= WRITTEN_DECIMALS:
            return None
        wide = len(ends) < 2 or (ends[1] - ends[0]) * 10**decimals >= 2
        fine = all(abs(end) * 10**decimals < EXACT for end in (*ends, *self.singles))
        return decimals if wide and fine else None

    def _bounds(self) -> tuple[Any, Any]:
        if self.low is not None and self.high is not None and not self.low < self.high:
            return None, None
        return self.low, self.high

    def origin(self) -> str:
        """Where each fact came from, in one line for the person who signs."""
        if self.left_out:
            return f"left out: {self.name!r} {self.left_out}"
        facts = []
        if self.values is not None:
            facts.append(f"{len(self.values)} levels from {self.source}")
        if self.low is not None or self.high is not None:
            facts.append(f"range from {self.source}, which may have been computed from the rows")
        if self.missing:
            facts.append("codes for missing values from the dictionary")
        opened = [key for key, value in self.spec().items() if value in (AUTO, DISCOVER)]
        if opened:
            facts.append(f"{', '.join(opened)} left open: found privately")
        return f"{self.name!r}: {'; '.join([*facts, *self.notes]) or 'as the dictionary says'}"

    @property
    def needs_signature(self) -> bool:
        """Whether it states something that could have been read off the rows."""
        stated = self.values is not None or self.low is not None or self.high is not None
        return not self.left_out and bool(stated or self.missing or self.labels or self.declared)


@dataclass(frozen=True)
class Codebook:
    """All that a dictionary says: its variables in order, its own title and description, and how its files are written."""

    form: str
    variables: Sequence[Variable]
    title: Any = None
    description: Any = None
    format: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


def choose_table(tables: Mapping[str, Any], table: str | None) -> Any:
    """The table asked for, of a dictionary of several; the only one where none was."""
    names = [str(name) for name in tables]
    if table is None and len(names) == 1:
        return next(iter(tables.values()))
    if table is None:
        raise SchemaError(
            f"the dictionary has {len(names)} tables ({', '.join(names):.200}); say which with table (--table)"
        )
    if table not in tables:
        raise SchemaError(f"table ({table!r:.60}) is not in the dictionary{did_you_mean(table, names)}")
    return tables[table]


def as_number(value: object) -> float | int | None:
    """A number that a dictionary gives as one or as text; None for anything else.

    >>> as_number("16.50"), as_number("99"), as_number(True), as_number("N")
    (16.5, 99, None, None)
    """
    if not isinstance(value, str) and not is_number(value):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if not abs(number) < EXACT:
        return None
    return int(number) if number.is_integer() else number


def written_decimals(bounds: Iterable[float]) -> int | None:
    """The decimals that the bounds of a range are written with; None where there are none, or so many that they were computed.

    >>> written_decimals([16.3, 52864.7]), written_decimals([0, 10]), written_decimals([1 / 3])
    (1, None, None)
    """
    decimals = decimals_of(bounds)
    return decimals if 0 < decimals <= WRITTEN_DECIMALS else None


def whole_levels(codes: Sequence[str]) -> Sequence[Level]:
    """Codes as whole numbers where all of them are written as such: a typed column then comes back as one.

    >>> whole_levels(["1", "2"]), whole_levels(["01", "2"])
    ([1, 2], ['01', '2'])
    """
    numbers = [as_number(code) for code in codes]
    plain = all(
        isinstance(number, int) and str(number) == code for number, code in zip(numbers, codes, strict=True)
    )
    return [int(code) for code in codes] if plain else list(codes)


def as_bound(kind: VariableKind, value: object) -> Any:
    """A bound of a range as a schema takes it; None where there is none that can be read."""
    if kind == "date":
        text = str(value)[:10]
        try:
            parse_day(text, "bound")
        except Exception:
            return None
        return text
    if kind == "time":
        return value if isinstance(value, str) else None
    return as_number(value)


def _codes(values: Sequence[Level]) -> list[Level]:
    """Codes for missing values, each once; those that are numbers written plainly as numbers, so that a column of numbers can stay one.

    >>> _codes(["N", "-9", -9, "-09"])
    ['N', -9, '-09']
    """
    codes = {str(value): value for value in values}
    return [number if str(number := as_number(value)) == text else value for text, value in codes.items()]  # type: ignore[misc]
