"""The schema: public facts about a table, which everything else is measured against."""

import datetime
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import STAMP_KEY, UNSIGNED
from dpcipher.drawing.groups import Groups, group_levels
from dpcipher.errors import (
    ConditionError,
    ParameterError,
    SchemaError,
    SizeError,
    WorkloadError,
    did_you_mean,
    warn,
)
from dpcipher.schema import files, rows
from dpcipher.schema.codebooks.frictionless import write_frictionless
from dpcipher.schema.codebooks.read import Form, read_codebook
from dpcipher.schema.columns import Column
from dpcipher.schema.conditions import Cover, allowed_levels
from dpcipher.schema.cut import Cut
from dpcipher.schema.document import (
    CURATORS_KEYS,
    Provenance,
    SignOff,
    is_domain,
    read_document,
    sized_column,
    write_document,
)
from dpcipher.schema.format import PLAIN, FileFormat
from dpcipher.schema.open_bins import OpenBins
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.schema.rules.compiled import Rules, bind, read_rules, thresholds
from dpcipher.schema.rules.rule import Rule, Zero
from dpcipher.schema.shown import card
from dpcipher.schema.words import check_line
from dpcipher.tables.domain import Axes, Bools, CodeColumn, Codes, Domain, Floats
from dpcipher.tables.query import Groups as LevelGroups

FOUND_NOTES = (
    "edges found privately (bins: auto)",
    "levels found privately (levels: discover)",
)  # as notes of a release begin


@dataclass(frozen=True, repr=False)
class Schema(Shown):
    """The columns of a table in order, and the combinations that cannot be.

    `attrs` are the names of the columns, in order: what is measured. `person` names the column of the table
    that says whose row each is, where there is one; `measure` takes it only when it is told so, and warns when it is not.

    >>> schema = Schema.from_domain({"age": 85, "sex": 2})
    >>> schema.attrs, schema.shape
    (('age', 'sex'), (85, 2))
    """

    columns: tuple[Column, ...]
    zeros: tuple[Zero, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    title: str | None = None
    description: str | None = None
    format: FileFormat = PLAIN
    rules: tuple[Rule, ...] = ()
    person: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "zeros", tuple(self.zeros))
        for name in ("title", "description", "person"):
            if getattr(self, name) is not None:
                check_line(name, getattr(self, name))
        self._check_names()
        object.__setattr__(self, "columns", tuple(map(self._with_cuts_of_zeros, self.columns)))
        if self.rules or self.zeros:
            object.__setattr__(self, "rules", read_rules(self.rules))
            self._check_rules()
        if self.is_open:
            self._check_open()

    def _check_names(self) -> None:
        if not self.columns:
            raise SchemaError("columns ([]) must hold at least one column")
        name, times = Counter(self.names).most_common(1)[0]
        if times > 1:
            raise SchemaError(f"column {name!r} must be declared once; remove the repeat")

    def _check_rules(self) -> None:
        """Find the columns and levels of all rules and zeros; rules must leave some row possible."""
        if self.compiled.declared:
            self.compiled.check_possible()

    def _check_open(self) -> None:
        """Let open columns have the edges that rules need, and refuse now what any bins that are found would be refused for."""
        if self.rules:
            columns = tuple(
                column.with_cuts(thresholds(self.compiled, self.zeros, column))
                if isinstance(column, OpenBins)
                else column
                for column in self.columns
            )
            object.__setattr__(self, "columns", columns)
            for name in ("_by_name", "compiled"):
                self.__dict__.pop(name, None)
        _ = self.stand_in()

    def _with_cuts_of_zeros(self, column: Column) -> Column:
        """An open column with the edges that structural zeros need."""
        zeros = [zero.impossible for zero in self.zeros if isinstance(zero.impossible, Mapping)]
        wanted = [impossible[column.name] for impossible in zeros if column.name in impossible]
        if not isinstance(column, OpenBins) or not wanted:
            return column
        return column.with_cuts(cut for condition in wanted for cut in column.cuts_of(condition))

    def __hash__(self) -> int:
        return hash(self.columns)

    @property
    def stamp(self) -> str:
        """That it is for the curator alone, until what may have been read off rows is signed."""
        return UNSIGNED if self.needs_signature and not self.signed else ""

    def _card(self) -> Card:
        conditions = {"rule": len(self.rules), "structural zero": len(self.zeros)}
        return card(self.title, self.columns, conditions, waits=bool(self.stamp))

    # What is measured

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the table, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        """What is measured: the columns, in order."""
        return self.names

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many levels each column has."""
        return tuple(column.size for column in self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _axis(self) -> dict[str, int]:
        return {attr: axis for axis, attr in enumerate(self.attrs)}

    @cached_property
    def known_groups(self) -> dict[tuple[str, str], tuple[LevelGroups, list[int]]]:
        """Groups of levels that were read, by attribute and by what was written: many tables have the same."""
        return {}

    def column(self, name: str) -> Column:
        """The column of that name."""
        if name not in self._by_name:
            raise SchemaError(
                f"column {name!r:.100} is not in the schema{did_you_mean(str(name), self.names)}"
            )
        return self._by_name[name]

    def labels(self, attr: str) -> tuple[str, ...]:
        """The name of each level of a column."""
        return self.column(attr).labels

    def shown_labels(self, attr: str) -> tuple[str, ...]:
        """The name of each level on pages and plots: the labels of values where they have some."""
        return self.column(attr).shown_labels

    def heading(self, attr: str) -> str:
        """A column on pages and plots: its name, title and unit."""
        return self.column(attr).heading

    def groups(self, attr: str, most: int) -> Groups:
        """The levels of a column, as at most `most` that a picture can show."""
        return group_levels(self.shown_labels(attr), self.column(attr).ordered_levels, most)

    def axes(self, attrs: str | Sequence[str]) -> Axes:
        """The axis number of each attribute, ascending; one name stands for itself."""
        attrs = (attrs,) if isinstance(attrs, str) else attrs
        axes = sorted(self._axis_of(attr) for attr in attrs)
        if len(set(axes)) < len(axes):
            raise WorkloadError(
                f"columns ({', '.join(attrs)}) must name each column once; remove the repeats"
            )
        return tuple(axes)

    def attrs_on(self, axes: Sequence[int]) -> tuple[str, ...]:
        """The attributes with these numbers."""
        return tuple(self.attrs[axis] for axis in axes)

    def _axis_of(self, attr: str) -> int:
        if attr in self._axis:
            return self._axis[attr]
        raise WorkloadError(f"column {attr!r:.100} is not in the schema{did_you_mean(str(attr), self.names)}")

    def n_cells(self, attrs: Sequence[str]) -> int:
        """How many cells the table of these attributes has."""
        return math.prod(self.shape[axis] for axis in self.axes(attrs))

    def cover(self, names: str | Sequence[str]) -> Cover:
        """The axes of these columns, with the order of their names."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        axes, columns = self.axes(wanted), [self.column(name) for name in wanted]
        order = tuple(axes.index(self._axis[name]) for name in wanted)
        labels, shown = (
            tuple(column.labels for column in columns),
            tuple(column.shown_labels for column in columns),
        )
        return Cover(wanted, axes, order, labels, shown)

    def allowed(self, given: Mapping[str, object]) -> dict[int, Bools]:
        """The levels of each touched axis that `given` allows, such as {"sex": "F"} or {"age": {"min": 18}}."""
        masks = allowed_levels(self._by_name, given)
        for axes, zero in self.zero_masks:
            if set(axes) <= set(masks) and zero[np.ix_(*(masks[axis] for axis in axes))].all():
                raise ConditionError(
                    f"given ({', '.join(given)}) asks for a structural zero of the schema; change it"
                )
        return masks

    @cached_property
    def zero_masks(self) -> tuple[tuple[Axes, Bools], ...]:
        """The structural zeros, what rules make of them, and what follows from both: axes, and True where no row can be."""
        return self.compiled.zero_masks if self.rules or self.zeros else ()

    @cached_property
    def domain(self) -> Domain:
        """The attributes as the algebra of tables knows them: names, numbers of levels, impossible cells."""
        return Domain(self.attrs, self.shape, self.zero_masks)

    @cached_property
    def compiled(self) -> Rules:
        """The rules and structural zeros with their columns and levels found: as masks, and as checks of rows where tables cannot hold them."""
        return bind(self.rules, self.zeros, self._by_name)

    def thresholds(self, column: str) -> tuple[float | str, ...]:
        """The values at which rules and structural zeros cut an integer, number, date or time column: its bins must end there."""
        own = self.column(column)
        return (
            tuple(map(own.scale.declared, thresholds(self.compiled, self.zeros, own)))
            if isinstance(own, Cut)
            else ()
        )

    # Open columns

    @property
    def is_open(self) -> bool:
        """Whether there are columns whose bins or levels `measure` will find; until then they have the size of the most that may be found."""
        return any(column.is_open for column in self.columns)

    @property
    def discovers(self) -> bool:
        """Whether there are columns whose levels `measure` will find, which takes a delta."""
        return any(column.discovers for column in self.columns)

    def on_grid(self) -> "Schema":
        """The schema on which rows are coded before bins are found, with the grid of every open column: itself, unless it is open."""
        return self._grid

    @cached_property
    def _grid(self) -> "Schema":
        if not self.is_open:
            return self
        columns = (
            column.on_grid() if isinstance(column, OpenBins | OpenLevels) else column
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def stand_in(self) -> "Schema":
        """A closed schema with as many bins and levels as may be found, what a plan counts with; itself where none is open."""
        if not self.is_open:
            return self
        return self.closed(
            {
                column.name: list(column.domain.edges)
                for column in self.columns
                if isinstance(column, OpenBins)
            },
            levels={column.name: column.largest for column in self.columns if isinstance(column, OpenLevels)},
        )

    def closed(
        self,
        edges: Mapping[str, Sequence[float]] = MappingProxyType({}),
        *,
        levels: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> "Schema":
        """The schema with the edges and levels that were found for its open columns: an ordinary one, fit to be declared next year.

        A sign-off of the open one holds, since what was added is a private answer.
        """
        columns = tuple(_closed(column, edges, levels) for column in self.columns)
        if columns == self.columns:
            return self
        told = dict(zip(FOUND_NOTES, (edges, levels), strict=True))
        notes = tuple(f"{what}: {', '.join(names)}" for what, names in told.items() if names)
        provenance = replace(self.provenance, notes=(*self.provenance.notes, *notes))
        closed = replace(self, columns=columns, provenance=provenance)
        sign_off = self.provenance.sign_off
        if not self.signed or sign_off is None:
            return closed
        signed = replace(closed.provenance, sign_off=replace(sign_off, hash=closed.fingerprint()))
        return replace(closed, provenance=signed)

    def recoded(self, codes: Codes, grid: "Schema") -> Codes:
        """Codes on a grid as those of this closed schema, whose edges are among its points; cells beyond the ends go to the end bins."""
        out = np.array(codes)
        for axis, (fine, column) in enumerate(zip(grid.columns, self.columns, strict=True)):
            if isinstance(fine, Cut) and isinstance(column, Cut) and fine.domain != column.domain:
                out[:, axis] = column.domain.homes(fine.domain, column.size)[codes[:, axis]]
        return out

    # Rows

    def encode(self, table: pa.RecordBatch | pa.Table) -> Codes:
        """Rows as codes, one column for each attribute; columns are contiguous in memory."""
        out = np.empty((table.num_rows, len(self.columns)), dtype=np.int32, order="F")
        for axis, own in enumerate(self.encode_columns(table)):
            out[:, axis] = own
        return out

    def encode_columns(self, table: pa.RecordBatch | pa.Table) -> list[CodeColumn]:
        """The codes of each column, each in the narrowest integer that holds them."""
        return rows.encode_columns(self.columns, self.compiled, table)

    def decode(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        masses: Mapping[str, Floats] | None = None,
        dictionaries: bool = False,
    ) -> pa.Table:
        """Codes as rows again, with the columns and types of the user's table.

        `masses`, the probabilities of the levels of some columns, say how values are spread inside their bins; elsewhere they are uniform.
        With `dictionaries`, texts come as dictionary arrays.
        """
        return rows.decode(
            self.columns, self.by_column(codes), rng, masses=masses or {}, dictionaries=dictionaries
        )

    def by_column(self, codes: Codes) -> dict[str, Codes]:
        """The codes of each column, by name."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.columns):
            raise ParameterError(
                f"codes must have one column for each of the {len(self.columns)} attributes, not {codes.shape}"
            )
        return {name: codes[:, axis] for axis, name in enumerate(self.names)}

    # Private rows, which the curator alone reads

    @staticmethod
    def draft(
        data: object,
        *,
        dictionary: str | PathLike[str] | Mapping[str, object] | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> "Schema":
        """Guess a schema from rows, for a person to correct. As private as the rows, and refused by `measure` until it is signed.

        Columns that a data `dictionary` describes are taken from there, as `import_dictionary` takes them. `tell=print` says about how many persons there are, where a column seems to say whose row each is: for the curator alone.

        >>> import pandas as pd
        >>> Schema.draft(pd.DataFrame({"age": [18, 25, 40] * 24, "sex": ["F", "M"] * 36})).names
        ('age', 'sex')
        """
        from dpcipher.curator.draft import draft

        return draft(data, dictionary=dictionary, tell=tell)

    def check(self, data: object) -> Any:
        """Compare private rows with the schema: every mismatch of every column at once. Curator only."""
        from dpcipher.curator.check import check

        return check(self, data)

    # Files

    @classmethod
    def from_domain(cls, sizes: Mapping[str, int]) -> "Schema":
        """A schema for integer-coded data: column c holds 0..sizes[c]-1."""
        return cls(tuple(sized_column(name, size) for name, size in sizes.items()))

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> "Schema":
        """The schema that `to_dict`, a schema file or a {column: size} domain describes."""
        if isinstance(plain, Mapping):  # what somebody was told of a draft is no part of it
            plain = {key: value for key, value in plain.items() if key != STAMP_KEY}
        if is_domain(plain):
            return cls.from_domain(plain)  # type: ignore[arg-type]
        read = read_document(plain)
        return cls(
            read.columns,
            read.zeros or (),
            read.provenance,
            read.title,
            read.description,
            read.format,
            read.rules or (),
            read.person,
        )

    def to_dict(self) -> dict[str, object]:
        """The schema as plain values, fit for JSON."""
        words = {key: getattr(self, key) for key in ("title", "description", "person")}
        return write_document(self.columns, self.zeros, self.rules, self.provenance, self.format, **words)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Schema":
        """Read a schema file: YAML or JSON by its extension, or the domain JSON of private-pgm."""
        try:
            schema = cls.from_dict(files.read(path))
        except (SchemaError, SizeError) as wrong:
            raise type(wrong)(f"{path}: {wrong}") from None
        for name in (c.name for c in schema.columns if isinstance(c, OpenLevels) and c.lets_anything):
            warn(
                f"column {name!r}: its pattern lets any text of a cell be published that many people share, names and addresses too; say which"
            )
        return schema

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the schema as YAML or JSON, by the extension of the path; `force` replaces a file that is there already."""
        files.write(path, self.to_dict(), awaiting=self.needs_signature and not self.signed, force=force)

    @classmethod
    def import_dictionary(
        cls,
        source: str | PathLike[str] | Mapping[str, object],
        *,
        form: Form = "auto",
        table: str | None = None,
        open_ranges: bool = False,
    ) -> "Schema":
        """The schema that a data dictionary describes: a Frictionless table schema, a DDI codebook, NIST's data_dictionary.json or SDV metadata.

        What it leaves open is found privately by `measure`; with `open_ranges` so are all ranges. A dictionary may have been computed from the rows, so a person must
        sign what it states: the notes say where each fact came from.
        """
        try:
            return cls.from_dict(read_codebook(source, form=form, table=table, open_ranges=open_ranges))
        except (SchemaError, SizeError) as wrong:
            if isinstance(source, Mapping):
                raise
            raise type(wrong)(f"{source}: {wrong}") from None

    def to_frictionless(self) -> dict[str, object]:
        """The schema as a Frictionless table schema, from which `import_dictionary` makes the same columns again."""
        return self._stamped(write_frictionless(self.to_dict()))

    # Provenance

    @property
    def drawn_from_data(self) -> bool:
        """Whether this is a draft that was read off private rows."""
        return self.provenance.drawn_from_data

    @property
    def needs_signature(self) -> bool:
        """Whether a person must say that it holds nothing private: rows, or a dictionary that may come from them, had a part in it."""
        return self.drawn_from_data or self.provenance.imported_from is not None

    @property
    def signed(self) -> bool:
        """Whether a person has signed off exactly this schema."""
        sign_off = self.provenance.sign_off
        return sign_off is not None and sign_off.hash == self.fingerprint()

    def fingerprint(self) -> str:
        """SHA-256 of the schema, without its sign-off and what else is for its curator."""
        kept = {key: value for key, value in self.to_dict().items() if key not in CURATORS_KEYS}
        return _digest(kept)

    def as_drafted(self) -> "Schema":
        """The schema with a hash of its columns, so that a person who signs it notices that nothing was changed."""
        drafted_as = _digest(self.to_dict()["columns"])
        return replace(self, provenance=replace(self.provenance, drafted_as=drafted_as))

    @property
    def untouched(self) -> bool:
        """Whether the columns are those of the draft, with every level and range as it was read off the rows."""
        return self.provenance.drafted_as == _digest(self.to_dict()["columns"])

    def sign(self, name: str, date: str | datetime.date, *, unchanged: bool = False) -> "Schema":
        """The schema with a person's word that it holds nothing private; any later edit voids it.

        A draft whose columns are as they were read off the rows is refused, unless `unchanged` says that this is meant. The notes of a draft tell about
        rows: they go.
        """
        if self.untouched and not unchanged:
            raise SchemaError(
                "the columns are as they were drafted from the rows; change what is not public knowledge, or use unchanged=True: then you say that "
                "every level and range, as it is, could have been written without looking at the rows"
            )
        signed = self.without_notes() if self.drawn_from_data else self
        sign_off = SignOff(name, str(date), self.fingerprint())
        return replace(signed, provenance=replace(signed.provenance, sign_off=sign_off, drafted_as=None))

    def without_notes(self) -> "Schema":
        """The schema without what a draft or a dictionary noted for its curator: no signature covers it, so it is in no release. What a release noted stays."""
        notes = tuple(note for note in self.provenance.notes if note.startswith(FOUND_NOTES))
        provenance = replace(self.provenance, notes=notes, drafted_as=None)
        return self if provenance == self.provenance else replace(self, provenance=provenance)

    def require_signed(self) -> None:
        """Refuse a draft that nobody has signed off, or that was edited since."""
        if not self.needs_signature or self.signed:
            return
        state = "was edited after its sign-off" if self.provenance.sign_off else "has not been signed off"
        origin = "drawn from data" if self.drawn_from_data else "imported from a dictionary"
        raise SchemaError(
            f"the schema was {origin} and {state}, so it may reveal private values; "
            "check every level and range, then sign it: dpcipher schema sign FILE --name NAME"
        )


def _digest(plain: object) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _closed(
    column: Column, edges: Mapping[str, Sequence[float]], levels: Mapping[str, Sequence[str]]
) -> Column:
    if isinstance(column, OpenLevels) and column.name in levels:
        return column.closed(levels[column.name])
    if isinstance(column, OpenBins) and column.name in edges:
        return column.closed(edges[column.name])
    return column
