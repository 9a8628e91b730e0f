"""One column of a table: what it may hold, and how its cells become codes and codes become cells again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import DataError, SchemaError, SizeError, did_you_mean
from dpcipher.schema import text_column
from dpcipher.schema.binned import Binned, from_edges, from_range, with_values
from dpcipher.schema.cells import as_text, flat, is_missing
from dpcipher.schema.declaration import (
    KINDS,
    Kind,
    check_column,
    check_declaration,
    checked_spec,
    plain_value,
)
from dpcipher.schema.listed import Level, Listed
from dpcipher.schema.missing import MISSING_LABEL, MissingCodes
from dpcipher.schema.narrow import ABSENT, Marks, marks_of, narrow_codes
from dpcipher.schema.open_column import AUTO, encode_refusal, stand_in
from dpcipher.schema.words import heading, labelled, read_labels
from dpcipher.tables.domain import Bools, CodeColumn, Codes, Floats

# In files, `labels` maps values to their labels; `Column.labels` has always been the names of the levels.
_KEYS = {"value_labels": "labels"}
_FIELDS = {key: name for name, key in _KEYS.items()}
_UNLISTED, _ABSENT = -1, ABSENT
_LONGEST_NAME = 500  # YAML takes no key past 1024 characters


@dataclass(frozen=True)
class Column:
    """A column as its schema declares it; nothing here is read from data.

    `levels` lists the values of a categorical or ordinal column. `edges`, or `min`, `max` and `bins`, cut an integer, number or
    date column (or a time of day); without bins there is one level for each whole number, day or second. The last bin holds its right edge
    too (`edges=[0, 10, 20]` are [0, 10) and [10, 20]), and `min` and `max` are both inside. With `bins: auto` the column is
    open: `measure` finds its edges privately, at most `max_bins` bins, with the `edges` among them that are declared. `missing` says whether a
    missing cell is a level of its own; `missing_values` lists codes that each stand for a kind of missing, with a level for each. `other`
    says where a value goes that is not declared: nowhere (`refuse`), to a declared level, to the missing level (`missing`), to one
    of `missing_values` or, for cut columns, to the end bins (`nearest`). With `levels: discover` the column is open too: `measure` finds texts of
    its cells that match `pattern`, of at most `max_length` characters, at most `max_levels` beside those that it is to `keep`.

    Values of a cut column come back on its grid: multiples of `step` (of a time of day '00:01', '00:15'), or numbers of so many `decimals`; without either whole numbers, days, seconds, or as
    many decimals as the edges and the narrowest bin warrant. Each of the `special` values (a top code, zero, -1 for never) is a level of its own.
    >>> column("age", "integer", min=0, max=99, bins=10).labels[:2]
    ('0..9', '10..19')
    """

    name: str
    kind: Kind
    levels: Sequence[Level] | None = None
    edges: Sequence[float | str] | None = None
    min: float | str | None = None
    max: float | str | None = None
    bins: int | str | None = None
    missing: Literal["level", "refuse"] = "refuse"
    other: Level = "refuse"
    missing_values: Sequence[Level] | None = None
    value_labels: Mapping[Level, str] | tuple[tuple[str, str], ...] | None = None
    title: str | None = None
    description: str | None = None
    unit: str | None = None
    step: float | str | None = None
    decimals: int | None = None
    special: Sequence[float | str] | None = None
    max_bins: int | None = None
    keep: Sequence[Level] | None = None
    pattern: str | None = None
    max_length: int | None = None
    max_levels: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain_value(getattr(self, field.name)))
        if self.discovers and self.other == "refuse":
            object.__setattr__(self, "other", text_column.OTHER)
        if self.missing_values == ():  # says only that a schema's own list is not for this column
            object.__setattr__(self, "missing_values", None)
        if not isinstance(self.name, str) or not 0 < len(self.name) <= _LONGEST_NAME:
            raise SchemaError(
                f"name ({self.name!r:.50}) of a column must be a text of 1 to {_LONGEST_NAME} characters"
            )
        try:
            if self.value_labels is not None:
                object.__setattr__(self, "value_labels", read_labels(self.value_labels) or None)
            check_column(self)
        except (SchemaError, SizeError) as wrong:
            raise type(wrong)(f"column {self.name!r}: {wrong}") from None

    @cached_property
    def missing_codes(self) -> MissingCodes:
        """The codes that stand for kinds of missing."""
        return MissingCodes.parse(self.missing_values)

    @cached_property
    def domain(self) -> Listed | Binned:
        """The declared values, without the missing level."""
        check_declaration(self)
        if self.kind == "boolean":
            return Listed((False, True))
        if self.discovers:
            return text_column.stand_in(self)
        if self.kind == "categorical" or self.kind == "ordinal":
            return Listed(tuple(self.levels or ()))
        if self.is_open:
            bins = stand_in(self)
        elif self.edges is not None:
            bins = from_edges(self.kind, self.edges)
        else:
            bins = from_range(self.kind, self.min, self.max, self.bins)
        return with_values(
            bins,
            special=self.special,
            step=self.step,
            decimals=self.decimals,
            barred=self.missing_codes.numbers(dates=self.kind == "date"),
        )

    @property
    def is_open(self) -> bool:
        """Whether its bins or levels are to be found privately; until then its domain stands for the most there can be."""
        return self.bins == AUTO or self.discovers

    @property
    def discovers(self) -> bool:
        """Whether its levels are to be found among the texts of its cells."""
        return self.levels == text_column.DISCOVER

    @property
    def size(self) -> int:
        """How many levels there are, those for what is missing included."""
        return self.domain.size + self.n_missing

    @property
    def n_missing(self) -> int:
        """How many levels stand for what is missing. They are the last ones, and have no place in the order of the others."""
        return self.missing_codes.size + (self.missing == "level")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each level: the declared values, then each kind of missing, then what is missing altogether."""
        nothing = (MISSING_LABEL,) if self.missing == "level" else ()
        return self.domain.labels + self.missing_codes.labels + nothing

    @cached_property
    def _labelled(self) -> dict[int, str]:
        """What each level that has a label is shown as, by its code."""
        return labelled(self)

    @cached_property
    def shown_labels(self) -> tuple[str, ...]:
        """The name of each level on pages and plots: its label where it has one."""
        labelled = self._labelled
        return (
            tuple(labelled.get(code, label) for code, label in enumerate(self.labels))
            if labelled
            else self.labels
        )

    @property
    def heading(self) -> str:
        """The column on pages and plots: its name, title and unit."""
        return heading(self.name, self.title, self.unit)

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> CodeColumn:
        """The code of each cell, from that cell and this column alone; what is not allowed raises a DataError that names the rule.

        Stability 1: one row more or less changes the code of no other row. Codes are of the narrowest integer type that holds them.
        """
        if self.is_open:
            raise encode_refusal(self.name)
        absent = int(self._ruled(np.array([_ABSENT], dtype=np.int32))[0])
        marks = marks_of(cells, lambda part: self._ruled(self._plain_marks(part)), self.size, absent=absent)
        if len(marks) and marks.min() < 0:
            # What no rule could place is refused; an absent cell before an unlisted one, whatever the order of the rows.
            _ = self.missing_code if (marks == _ABSENT).any() else self.other_code
        return narrow_codes(marks, self.size)

    def _ruled(self, marks: Codes) -> Codes:
        """Codes in the place of marks, where a rule says where such cells go; marks stay where they are to be refused."""
        if self.missing == "level" or self._null_code is not None:
            marks[marks == _ABSENT] = self.missing_code
        unlisted = marks == _UNLISTED
        if self.other not in ("refuse", "nearest") and unlisted.any():
            marks[unlisted] = self.other_code
        return marks

    @property
    def ordered_levels(self) -> int:
        """How many levels, from the first, follow one another: bins, or levels of an ordinal column; special values and missing do not."""
        if isinstance(self.domain, Binned):
            return self.domain.n_bins
        return self.domain.size if self.kind == "ordinal" else 0

    @property
    def level_numbers(self) -> tuple[float, ...] | None:
        """The levels of an ordinal column where all of them are numbers; None for any other column."""
        levels = self.levels if self.kind == "ordinal" and not self.discovers else None
        numbers = [
            float(level)
            for level in levels or ()
            if isinstance(level, (int, float)) and not isinstance(level, bool)
        ]
        return tuple(numbers) if levels and len(numbers) == len(levels) else None

    @property
    def draws_values(self) -> bool:
        """Whether there are bins of several values, so that a value is drawn for each code."""
        return isinstance(self.domain, Binned) and not isinstance(self.domain.edges, range)

    def decode(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: tuple[float, float] | None = None,
    ) -> pa.Array:
        """A cell for each code: a value of its level, the code of its kind of missing, or null for the missing level; as `values` draws them."""
        kinds = np.asarray(codes).astype(np.int64) - self.domain.size
        kinds[kinds >= self.missing_codes.size] = -1
        drawn = self.values(codes, rng, masses=masses, within=within)
        return self.missing_codes.put_back(drawn, kinds)

    def values(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Floats | None = None,
        within: tuple[float, float] | None = None,
    ) -> pa.Array:
        """The same with null for every kind of missing, so that a column of numbers is one.

        Inside a bin a value is drawn along the density that `masses`, the probabilities of the levels, suggest, or uniformly without them;
        `within` keeps to the values from `low` to `high`, of which every code's bin must have one.
        """
        codes = np.asarray(codes)
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.size:
            raise DataError(f"column {self.name!r}: codes must lie in 0..{self.size - 1}")
        absent = codes >= self.domain.size
        inside = np.where(absent, 0, codes).astype(np.int32)
        values = self.domain.draw(inside, rng, masses=masses, within=within)
        return pc.if_else(pa.array(absent), pa.scalar(None, values.type), values)

    @cached_property
    def cells(self) -> pa.Array:
        """The cell of every code of a column in which no value is drawn."""
        assert not self.draws_values
        return self.decode(np.arange(self.size, dtype=np.int32), np.random.default_rng(0))

    def find(self, value: object) -> int | None:
        """The code of a public value or label; None where there is no such level."""
        code = self.find_value(value)
        if code is None and self._labelled and isinstance(value, str):
            return next((code for code, shown in self._labelled.items() if shown == value), None)
        return code

    def find_value(self, value: object) -> int | None:
        """The same without the labels that the column gives its values."""
        if value is None or value == MISSING_LABEL:
            return self.size - 1 if self.missing == "level" else self._null_code
        if value in self.missing_codes.labels:
            return self.domain.size + self.missing_codes.labels.index(str(value))
        try:
            cell = flat(pa.array([plain_value(value)]))
            # A level by its own text is found without going through all levels.
            named = self.places.get(as_text(cell)[0].as_py()) if isinstance(self.domain, Listed) else None
            code = int(self._marks(cell)[0]) if named is None or value != value else named
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            return None
        if code >= 0:
            return code
        # The labels of bins of one value each are their values.
        unit_bins = isinstance(self.domain, Binned) and isinstance(self.domain.edges, range)
        return self.places.get(value) if isinstance(value, str) and not unit_bins else None

    def _kind_code(self, value: Level) -> int | None:
        """The code of a kind of missing, by the code that the column declares for it."""
        try:
            kind = int(self.missing_codes.codes(pa.array([value]))[0])
        except (pa.ArrowException, OverflowError):  # a number that no cell can hold
            return None
        return None if kind < 0 else self.domain.size + kind

    @cached_property
    def places(self) -> dict[str, int]:
        """The code of each level by its name."""
        return {label: code for code, label in reversed(tuple(enumerate(self.labels)))}

    def to_spec(self) -> dict[str, object]:
        """The declaration as plain values, what is default left out."""
        spec = {
            _KEYS.get(field.name, field.name): list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }
        return spec if self.value_labels is None else spec | {"labels": dict(self.value_labels)}

    @classmethod
    def from_spec(cls, name: str, spec: object) -> "Column":
        """The column that a schema file declares."""
        known = [_KEYS.get(field.name, field.name) for field in fields(cls) if field.name != "name"]
        plain = checked_spec(name, spec, known, KINDS)
        return cls(name, **{_FIELDS.get(key, key): value for key, value in plain.items()})

    def _marks(self, cells: pa.Array | pa.ChunkedArray) -> Marks:
        """Codes before any rule is applied, with marks for absent and unlisted cells."""
        return marks_of(cells, self._plain_marks, self.size)

    def _plain_marks(self, cells: pa.Array) -> Codes:
        """The marks of cells of one type."""
        if isinstance(self.domain, Binned):
            codes = self.domain.codes(cells, nearest=self.other == "nearest")
        else:
            codes = self.domain.codes(cells)
        codes[(codes < 0) & is_missing(cells, blank=True)] = _ABSENT  # unless a level is called so
        codes[is_missing(cells, blank=False)] = _ABSENT
        if self.missing_codes.size:
            kinds = self.missing_codes.codes(cells, dates=self.kind == "date")
            codes = np.where(kinds < 0, codes, kinds + np.int32(self.domain.size))
        return codes

    def judged(self, cells: pa.Array | pa.ChunkedArray) -> tuple[Bools, Bools, Codes]:
        """Which cells are missing, which hold what is not declared, and the codes of the others."""
        codes = self._marks(cells).astype(np.int32)
        return codes == _ABSENT, codes == _UNLISTED, codes

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
        code = self.find(self.other) if isinstance(self.domain, Listed) else self._kind_code(self.other)
        if code is None and self.other == "missing" and self.missing == "level":
            return self.size - 1
        if code is None and isinstance(self.domain, Binned):
            raise SchemaError(
                f"other ({self.other!r:.60}) must be refuse or nearest here, or missing beside missing: level, or one of missing_values"
            )
        if code is None:
            hint = did_you_mean(str(self.other), self.labels)
            raise SchemaError(
                f"other ({self.other!r:.60}) must be refuse or a declared level; add it to levels{hint}"
            )
        return code


def column(name: str, kind: Kind, **facts: Any) -> Column:
    """The column of this name and kind, with the facts of its declaration: `column("age", "integer", min=0, max=99)`."""
    return Column(name, kind, **facts)
