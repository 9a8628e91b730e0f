"""The columns of a table: what each may hold, and how its cells become codes and codes become cells again.

A closed column is one of seven frozen classes: `Categorical`, `Ordinal` and `Boolean` here, the four that are cut into bins in `cut`. An open column,
whose bins or levels `measure` finds privately, is one of two: `OpenBins` or `OpenLevels`. Nothing here is read from data.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import DataError, SchemaError, SizeError, did_you_mean
from dpcipher.files.codec import Rule, as_plain, check_fields, is_number
from dpcipher.schema.bins import Bins
from dpcipher.schema.cells import ABSENT, Marks, as_text, flat, is_missing, marks_of, narrow_codes
from dpcipher.schema.levels import MISSING_LABEL, Level, Levels, Missing
from dpcipher.schema.words import line_rule, read_labels
from dpcipher.tables.domain import Bools, CodeColumn, Codes, Floats

Kind = Literal["categorical", "ordinal", "integer", "number", "boolean", "date", "time"]

# The facts of a declaration by their keys in a file, in the order in which they are written.
KEYS = (
    "levels", "edges", "min", "max", "bins", "missing", "other", "missing_values", "labels", "title", "description", "unit",
    "step", "decimals", "special", "max_bins", "keep", "pattern", "max_length", "max_levels",
)  # fmt: skip
ATTRIBUTES = {"labels": "value_labels"}  # `Column.labels` are the names of the levels
FORM_KEYS = ("levels", "edges", "min", "max", "bins")  # which of them are given depends on the kind
MAX_BIN_LABELS = 1_000
_LONGEST_NAME = 500  # YAML takes no key past 1024 characters
_MOST_CODES = 2**31 - 1
_UNLISTED = -1  # the mark of a cell that is not declared


@dataclass(frozen=True, kw_only=True)
class Column:
    """What every column declares beside its values.

    `missing` says whether a missing cell is a level of its own; `missing_values` lists codes that each stand for a kind of missing, with a level for
    each. `other` says where a value goes that is not declared: nowhere (`refuse`), to a declared level, to the missing level (`missing`), to one of
    `missing_values` or, for cut columns, to the end bins (`nearest`).
    """

    name: Annotated[
        str, Rule(f"must be a text of 1 to {_LONGEST_NAME} characters", lambda name: 0 < len(name) <= _LONGEST_NAME)
    ] = field(kw_only=False)  # fmt: skip
    missing: Literal["level", "refuse"] = "refuse"
    other: Annotated[Level, Rule("must be refuse, nearest or one level")] = "refuse"
    missing_values: tuple[Any, ...] = ()
    value_labels: Any = ()
    title: Annotated[str, line_rule("title")] | None = None
    description: Annotated[str, line_rule("description")] | None = None
    unit: Annotated[str, line_rule("unit")] | None = None

    forms: ClassVar[
        tuple[frozenset[str], ...]
    ] = ()  # the sets of FORM_KEYS that declare the values, if any will do
    is_open: ClassVar[bool] = False  # its bins or levels are to be found privately
    discovers: ClassVar[bool] = False  # its levels are to be found among the texts of its cells

    def __post_init__(self) -> None:
        try:
            check_fields(self)
            if self.value_labels != ():
                object.__setattr__(self, "value_labels", read_labels(self.value_labels))
            self._check()
        except ValueError as wrong:
            kind = SizeError if isinstance(wrong, SizeError) else SchemaError
            raise kind(f"column {self.name!r:.60}: {wrong}") from None

    def _check(self) -> None:
        """Check what annotations cannot say; the values are checked as `domain` is built."""
        check_form(self.kind, self.forms, [key for key in FORM_KEYS if getattr(self, key, None) is not None])
        if self.size > _MOST_CODES:
            raise SizeError(f"it has {self.size} levels; at most {_MOST_CODES} can be counted: use bins")
        _ = self._labelled
        if self.other not in ("refuse", "nearest"):
            _ = self.other_code

    @property
    def kind(self) -> Kind:
        """The kind of the column in a schema."""
        return cast(Kind, type(self).__name__.lower())

    @cached_property
    def domain(self) -> Levels | Bins:
        """The declared values, without the levels for what is missing; of an open column as many as may be found."""
        raise NotImplementedError

    @cached_property
    def missing_codes(self) -> Missing:
        """The codes that stand for kinds of missing."""
        return Missing(self.missing_values)

    @property
    def size(self) -> int:
        """How many levels there are, those for what is missing included."""
        return self.domain.size + self.n_missing

    @property
    def n_missing(self) -> int:
        """How many levels stand for what is missing. They are the last ones, and have no place in the order of the others."""
        return self.missing_codes.size + (self.missing == "level")

    @property
    def ordered_levels(self) -> int:
        """How many levels, from the first, follow one another: bins, or levels of an ordinal column; special values and missing do not."""
        return 0

    @property
    def level_numbers(self) -> tuple[float, ...] | None:
        """The levels of an ordinal column where all of them are numbers; None for any other column."""
        return None

    @property
    def draws_values(self) -> bool:
        """Whether there are bins of several values, so that a value is drawn for each code."""
        return False

    # What its levels are called

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each level: the declared values, then each kind of missing, then what is missing altogether."""
        nothing = (MISSING_LABEL,) if self.missing == "level" else ()
        return self.domain.labels + self.missing_codes.labels + nothing

    @cached_property
    def shown_labels(self) -> tuple[str, ...]:
        """The name of each level on pages and plots: its label where it has one."""
        if not self._labelled:
            return self.labels
        return tuple(self._labelled.get(code, label) for code, label in enumerate(self.labels))

    @cached_property
    def _labelled(self) -> dict[int, str]:
        """What each level that has a label is shown as, by its code: the label, with the value behind it where another level would look alike.

        Of a cut column, a value needs a bin of its own to be labelled: 0 in 0..9 has none. No list of all levels is made: there may be a billion.
        """
        cut = isinstance(self.domain, Bins)
        if cut and len(self.value_labels) > MAX_BIN_LABELS:
            raise SchemaError(
                f"labels ({len(self.value_labels)} of them) must be at most {MAX_BIN_LABELS} in a column with bins"
            )
        codes: dict[int, tuple[str, str]] = {}
        for value, label in self.value_labels:
            code = self._code_called(value)
            if code is None and cut:
                continue
            if code is None or code in codes:
                raise SchemaError(f"labels ({value!r:.60}) must name levels of the column, each once")
            codes[code] = value, label
        times = Counter(label for _, label in codes.values())
        return {
            code: f"{label} ({value})" if times[label] > 1 or self._code_called(label) not in (None, code) else label
            for code, (value, label) in codes.items()
        }  # fmt: skip

    @property
    def heading(self) -> str:
        """The column on pages and plots: its name, title and unit; the name is what commands and formulas take."""
        named = self.name if not self.title or self.title == self.name else f"{self.name}: {self.title}"
        return f"{named} [{self.unit}]" if self.unit else named

    @cached_property
    def places(self) -> dict[str, int]:
        """The code of each level by its name."""
        return {label: code for code, label in reversed(tuple(enumerate(self.labels)))}

    def find(self, value: object) -> int | None:
        """The code of a public value or label; None where there is no such level."""
        code = self.find_value(value)
        if code is None and self._labelled and isinstance(value, str):
            return next((code for code, shown in self._labelled.items() if shown == value), None)
        return code

    def find_value(self, value: object) -> int | None:
        """The code of a public value or the name of a level, without the labels that the column gives its values."""
        if value is None or value == MISSING_LABEL:
            return self.size - 1 if self.missing == "level" else self._null_code
        if value in self.missing_codes.labels:
            return self.domain.size + self.missing_codes.labels.index(str(value))
        try:
            code = self._code_of_cell(flat(pa.array([as_plain(value)])))
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            return None
        return code if code >= 0 else self._code_of_name(value)

    def _code_of_cell(self, cell: pa.Array) -> int:
        return int(self._marks(cell)[0])

    def _code_of_name(self, value: object) -> int | None:
        return self.places.get(value) if isinstance(value, str) else None

    def _code_called(self, value: str) -> int | None:
        """The code of the level that is this value, or is called so, and of no level that merely holds it."""
        return self.find_value(value)

    # From cells to codes

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> CodeColumn:
        """The code of each cell, from that cell and this column alone; what is not allowed raises a DataError that names the rule.

        Stability 1: one row more or less changes the code of no other row. Codes are of the narrowest integer type that holds them.
        """
        if self.is_open:
            raise SchemaError(
                f"column {self.name!r}: its bins or levels are open (auto, discover) until measure has found them; "
                "use the release's own schema: a command takes the release file in place of a schema, Python has release.schema"
            )
        absent = int(self._ruled(np.array([ABSENT], dtype=np.int32))[0])
        marks = marks_of(cells, lambda part: self._ruled(self._plain_marks(part)), self.size, absent=absent)
        if len(marks) and marks.min() < 0:
            # What no rule could place is refused; an absent cell before an unlisted one, whatever the order of the rows.
            _ = self.missing_code if (marks == ABSENT).any() else self.other_code
        return narrow_codes(marks, self.size)

    def judged(self, cells: pa.Array | pa.ChunkedArray) -> tuple[Bools, Bools, Codes]:
        """Which cells are missing, which hold what is not declared, and the codes of the others."""
        codes = self._marks(cells).astype(np.int32)
        return codes == ABSENT, codes == _UNLISTED, codes

    def _ruled(self, marks: Codes) -> Codes:
        """Codes in the place of marks, where a rule says where such cells go; marks without a rule stay and are refused later."""
        if self.missing == "level" or self._null_code is not None:
            marks[marks == ABSENT] = self.missing_code
        unlisted = marks == _UNLISTED
        if self.other not in ("refuse", "nearest") and unlisted.any():
            marks[unlisted] = self.other_code
        return marks

    def _marks(self, cells: pa.Array | pa.ChunkedArray) -> Marks:
        """Codes before any rule is applied, with marks for absent and unlisted cells."""
        return marks_of(cells, self._plain_marks, self.size)

    def _plain_marks(self, cells: pa.Array) -> Codes:
        """The marks of cells of one type."""
        codes = self._codes(cells)
        codes[(codes < 0) & is_missing(cells, blank=True)] = ABSENT  # unless a level is called so
        codes[is_missing(cells, blank=False)] = ABSENT
        if self.missing_codes.size:
            kinds = self.missing_codes.codes(cells, dates=self.kind == "date")
            codes = np.where(kinds < 0, codes, kinds + np.int32(self.domain.size))
        return codes

    def codes_of_declared(self, cells: pa.Array) -> Codes:
        """The code of each cell of one type that holds a declared value, else -1."""
        raise NotImplementedError

    def _codes(self, cells: pa.Array) -> Codes:
        """The code of each cell that a declared value takes in, else -1."""
        return self.codes_of_declared(cells)

    @property
    def _null_code(self) -> int | None:
        """The kind of missing that a null can only be."""
        kind = self.missing_codes.of_null
        return None if kind is None else self.domain.size + kind

    @property
    def missing_code(self) -> int:
        """The code of a missing cell; a DataError where it is refused."""
        if self.missing == "level":
            return self.size - 1
        if self._null_code is not None:
            return self._null_code
        raise DataError(
            f"column {self.name!r}: missing values are refused (missing: refuse); "
            "declare missing: level in the schema, or leave out such rows"
        )

    @property
    def other_code(self) -> int:
        """The code of a value that is not declared; a DataError where it is refused."""
        if self.other in ("refuse", "nearest"):
            raise DataError(
                f"column {self.name!r}: values that the schema does not declare are refused (other: {self.other}); "
                "declare them as they are written, capitals and spaces included, or say where they go with other"
            )
        code = self._code_of_other()
        if code is None and self.other == "missing" and self.missing == "level":
            return self.size - 1
        if code is None:
            raise SchemaError(f"other ({self.other!r:.60}) must be {self._rule_of_other()}")
        return code

    def _code_of_other(self) -> int | None:
        return self.find(self.other)

    def _rule_of_other(self) -> str:
        return f"refuse or a declared level; add it to levels{did_you_mean(str(self.other), self.labels)}"

    # From codes to cells

    def decode(
        self, codes: Codes, rng: np.random.Generator, *, masses: Floats | None = None, within: tuple[float, float] | None = None
    ) -> pa.Array:  # fmt: skip
        """A cell for each code: a value of its level, the code of its kind of missing, or null for the missing level; as `values` draws them."""
        kinds = np.asarray(codes).astype(np.int64) - self.domain.size
        kinds[kinds >= self.missing_codes.size] = -1
        return self.missing_codes.write_codes(self.values(codes, rng, masses=masses, within=within), kinds)

    def values(
        self, codes: Codes, rng: np.random.Generator, *, masses: Floats | None = None, within: tuple[float, float] | None = None
    ) -> pa.Array:  # fmt: skip
        """A cell for each code, null for every kind of missing, so that a column of numbers stays one.

        Inside a bin a value is drawn along the density that `masses`, the probabilities of the levels, suggest, or uniformly without them;
        `within` keeps to the values from `low` to `high`, of which every code's bin must have one.
        """
        codes = np.asarray(codes)
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.size:
            raise DataError(f"column {self.name!r}: codes must lie in 0..{self.size - 1}")
        absent = codes >= self.domain.size
        values = self._values(np.where(absent, 0, codes).astype(np.int32), rng, masses, within)
        return pc.if_else(pa.array(absent), pa.scalar(None, values.type), values)

    def _values(
        self,
        codes: Codes,
        rng: np.random.Generator,
        masses: Floats | None,
        within: tuple[float, float] | None,
    ) -> pa.Array:
        raise NotImplementedError

    @cached_property
    def cells(self) -> pa.Array:
        """The cell of every code of a column in which no value is drawn."""
        assert not self.draws_values
        return self.decode(np.arange(self.size, dtype=np.int32), np.random.default_rng(0))

    # Plain values

    def to_spec(self) -> dict[str, object]:
        """The declaration as plain values, what is default left out."""
        known = {one.name: one.default for one in fields(self)}
        spec: dict[str, object] = {"name": self.name, "kind": self.kind}
        for key in KEYS:
            name = ATTRIBUTES.get(key, key)
            value = getattr(self, name, None)
            if value != known.get(name):
                spec[key] = list(value) if isinstance(value, tuple) else value
        return spec | ({"labels": dict(self.value_labels)} if self.value_labels else {})


@dataclass(frozen=True, kw_only=True)
class Listed(Column):
    """A column whose values are listed one by one."""

    @cached_property
    def domain(self) -> Levels:
        """The listed levels, without those for what is missing."""
        raise NotImplementedError

    def _check(self) -> None:
        _ = self.domain  # so that a wrong list is refused in its own words
        self._check_missing()
        super()._check()
        if self.other == "nearest":
            raise SchemaError(
                "other (nearest) must be a level here; nearest is for integer, number, date and time columns"
            )

    def _check_missing(self) -> None:
        """The levels for what is missing must not be levels already."""
        if self.missing == "level" and MISSING_LABEL in self.domain.labels:
            raise SchemaError(
                f"levels must not hold {MISSING_LABEL!r} beside missing: level; rename that level"
            )
        for text, label in zip(self.missing_codes.texts, self.missing_codes.labels, strict=True):
            if self.domain.codes(pa.array([text]))[0] >= 0 or label in self.domain.labels:
                raise SchemaError(
                    f"missing_values ({text!r:.60}) must not be a level too; leave it out of one of them"
                )

    def codes_of_declared(self, cells: pa.Array) -> Codes:
        """The code of each cell that holds a level."""
        return self.domain.codes(cells)

    def _values(
        self,
        codes: Codes,
        rng: np.random.Generator,
        masses: Floats | None,
        within: tuple[float, float] | None,
    ) -> pa.Array:
        return self.domain.cells(codes)

    def _code_of_cell(self, cell: pa.Array) -> int:
        named = self.places.get(
            as_text(cell)[0].as_py()
        )  # a level by its own text, without going through all levels
        return super()._code_of_cell(cell) if named is None or is_missing(cell, blank=False)[0] else named

    def _code_called(self, value: str) -> int | None:
        return self.places[value] if value in self.places else self.find_value(value)


@dataclass(frozen=True, kw_only=True)
class Categorical(Listed):
    """Levels without an order.

    >>> Categorical("sex", levels=("F", "M"), missing="level").labels
    ('F', 'M', '(missing)')
    """

    levels: tuple[Any, ...]

    forms = (frozenset({"levels"}),)

    @cached_property
    def domain(self) -> Levels:
        """The listed levels."""
        return Levels(self.levels)


@dataclass(frozen=True, kw_only=True)
class Ordinal(Categorical):
    """Levels in their order."""

    @property
    def ordered_levels(self) -> int:
        """All declared levels."""
        return self.domain.size

    @property
    def level_numbers(self) -> tuple[float, ...] | None:
        """The levels where all of them are numbers."""
        numbers = [float(level) for level in self.levels if is_number(level)]
        return tuple(numbers) if len(numbers) == len(self.levels) else None


@dataclass(frozen=True, kw_only=True)
class Boolean(Listed):
    """False, then true."""

    forms = (frozenset(),)

    @cached_property
    def domain(self) -> Levels:
        """False and true."""
        return Levels((False, True))


def check_form(kind: str, forms: tuple[frozenset[str], ...], given: list[str]) -> None:
    """Each kind is declared in its own way, and in one way only."""
    if forms and set(given) not in forms:
        allowed = " or ".join("/".join(sorted(form)) or "nothing more" for form in forms)
        raise SchemaError(
            f"a column of kind {kind} must declare {allowed}, not {'/'.join(sorted(given)) or 'nothing'}"
        )
