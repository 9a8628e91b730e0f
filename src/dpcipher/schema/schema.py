"""The schema: public facts about a table, which everything else is measured against."""

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import STAMP_KEY, UNSIGNED
from dpcipher.drawing.groups import Groups, group_levels
from dpcipher.errors import SchemaError, SizeError, WorkloadError, did_you_mean, warn
from dpcipher.schema import consistent, files, rows, shown, spec
from dpcipher.schema.codebooks.frictionless import write_frictionless
from dpcipher.schema.codebooks.read import Form, read_codebook
from dpcipher.schema.column import Column
from dpcipher.schema.condition import Cover, allowed_levels, cover
from dpcipher.schema.format import PLAIN, FileFormat
from dpcipher.schema.open_column import AUTO, with_cuts, with_thresholds
from dpcipher.schema.open_schema import (
    FOUND_NOTES,
    bins_of_cells,
    closed_schema,
    grid_schema,
    judging_schema,
    stand_in_schema,
)
from dpcipher.schema.rows import Zero
from dpcipher.schema.rules import compiled
from dpcipher.schema.rules.compiled import Compiled
from dpcipher.schema.rules.implied import zero_masks
from dpcipher.schema.rules.rule import BoundRule, Rule
from dpcipher.schema.spec import Provenance, SignOff
from dpcipher.schema.text_column import lets_anything
from dpcipher.schema.words import check_text, joined
from dpcipher.tables.domain import Axes, Bools, CodeColumn, Codes, Domain, Floats
from dpcipher.tables.query import Groups as LevelGroups


@dataclass(frozen=True, repr=False)
class Schema(Shown):
    """The columns of a table in order, the compounds among them, and the combinations that cannot be.

    What is measured are the `attrs`: the columns, with each compound standing where its first part stood. `person` names the column of the table
    that says whose row each is, where there is one; `measure` takes it only when it is told so, and warns when it is not.

    >>> schema = Schema.from_domain({"age": 85, "sex": 2})
    >>> schema.attrs, schema.shape
    (('age', 'sex'), (85, 2))
    """

    columns: tuple[Column, ...]
    compounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zeros: tuple[Zero, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    title: str | None = None
    description: str | None = None
    format: FileFormat = PLAIN
    rules: tuple[Rule, ...] = ()
    person: str | None = None

    # Reading rows belongs to the curator's room, so the package itself puts the functions here.
    draft: ClassVar[Callable[..., "Schema"]]
    check: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "compounds", {name: tuple(parts) for name, parts in self.compounds.items()})
        object.__setattr__(self, "zeros", tuple(self.zeros))
        check_text("title", self.title)
        check_text("description", self.description)
        check_text("person", self.person)
        conditions = [zero.impossible for zero in self.zeros]
        object.__setattr__(self, "columns", with_thresholds(self.columns, conditions))
        consistent.check_names(self)
        consistent.check_compounds(self)
        consistent.check_zeros(self)
        object.__setattr__(self, "rules", compiled.read_rules(self.rules))
        if self.bound_rules:
            compiled.check_possible(self)
        if self.is_open:
            self._check_open()
        for rule in self.bound_rules:
            consistent.require_levels(self, "a rule", rule.columns)

    def _check_open(self) -> None:
        """Let open columns have the edges that rules need, and refuse now what any bins that are found would be refused for."""
        if self.rules:
            columns = tuple(
                with_cuts(column, self.thresholds(column.name)) if column.bins == AUTO else column
                for column in self.columns
            )
            object.__setattr__(self, "columns", columns)
            for name in ("_by_name", "bound_rules", "compiled"):
                self.__dict__.pop(name, None)
        _ = stand_in_schema(self)

    def __hash__(self) -> int:
        return hash(self.columns)

    @property
    def stamp(self) -> str:
        """That it is for the curator alone, until what may have been read off rows is signed."""
        return UNSIGNED if self.needs_signature and not self.signed else ""

    def _card(self) -> Card:
        return shown.card(self)

    # What is measured

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the table, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        """What is measured: the columns in order, a compound standing where its first part stood."""
        home = {part: name for name, parts in self.compounds.items() for part in parts}
        return tuple(dict.fromkeys(home.get(name, name) for name in self.names))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many levels each attribute has."""
        return tuple(math.prod(part.size for part in self.parts(attr)) for attr in self.attrs)

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

    def parts(self, attr: str) -> tuple[Column, ...]:
        """The columns an attribute is made of: one, or the parts of a compound."""
        return tuple(self.column(name) for name in self.compounds.get(attr, (attr,)))

    def labels(self, attr: str) -> tuple[str, ...]:
        """The name of each level of an attribute, or of a column inside a compound."""
        return joined(part.labels for part in self.parts(attr))

    def shown_labels(self, attr: str) -> tuple[str, ...]:
        """The name of each level on pages and plots: the labels of values where they have some."""
        return joined(part.shown_labels for part in self.parts(attr))

    def heading(self, attr: str) -> str:
        """An attribute on pages and plots: its name, with the title and unit of a column."""
        return attr if attr in self.compounds else self.column(attr).heading

    def groups(self, attr: str, most: int) -> Groups:
        """The levels of an attribute, or of a column inside a compound, as at most `most` that a picture can show; of a compound none have an order."""
        ordered = 0 if attr in self.compounds else self.column(attr).ordered_levels
        return group_levels(self.shown_labels(attr), ordered, most)

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
        hint = did_you_mean(str(attr), self.attrs)
        for name, parts in self.compounds.items():
            if attr in parts:
                hint = f"; it is part of the compound {name!r}: use that"
        raise WorkloadError(f"column {attr!r} is not among what is measured{hint}")

    def n_cells(self, attrs: Sequence[str]) -> int:
        """How many cells the table of these attributes has."""
        return math.prod(self.shape[axis] for axis in self.axes(attrs))

    def cover(self, names: str | Sequence[str]) -> Cover:
        """The attributes that cover these columns, and the way to sum the rest out."""
        return cover(self, names)

    def allowed(self, given: Mapping[str, object]) -> dict[int, Bools]:
        """The levels of each touched axis that `given` allows, such as {"sex": "F"} or {"age": {"min": 18}}."""
        return allowed_levels(self, given)

    @cached_property
    def zero_masks(self) -> tuple[tuple[Axes, Bools], ...]:
        """The structural zeros, what rules make of them, and what follows from both: axes, and True where no row can be."""
        return zero_masks(self)

    @cached_property
    def domain(self) -> Domain:
        """The attributes as the algebra of tables knows them: names, numbers of levels, impossible cells."""
        return Domain(self.attrs, self.shape, self.zero_masks)

    @cached_property
    def bound_rules(self) -> tuple[BoundRule, ...]:
        """The rules with their columns and levels found."""
        return compiled.bind_rules(self.rules, self._by_name)

    @cached_property
    def compiled(self) -> Compiled:
        """The rules as masks, and as checks of rows where tables cannot hold them."""
        return compiled.compile_rules(self, self.bound_rules)

    def thresholds(self, column: str) -> tuple[str | int | float, ...]:
        """The values at which rules and structural zeros cut an integer, number or date column: its bins must end there."""
        return compiled.thresholds(self, column)

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
        """The schema on which rows are coded before bins are found: itself, unless it is open."""
        return self._grid

    def stand_in(self) -> "Schema":
        """A closed schema with as many bins as may be found in every open column, what a plan counts with; itself where none is open."""
        return stand_in_schema(self) if self.is_open else self

    @cached_property
    def judging(self) -> "Schema":
        """The schema by whose codes private rows are judged: itself, or with the grid on which its bins were found, where rules compare columns."""
        return judging_schema(self)

    @cached_property
    def bins_of_cells(self) -> Mapping[int, Codes]:
        """By axis, the code of each level of `judging` where it has other ones."""
        return bins_of_cells(self.judging, self)

    @cached_property
    def _grid(self) -> "Schema":
        return grid_schema(self)

    def closed(
        self,
        edges: Mapping[str, Sequence[float]] = MappingProxyType({}),
        *,
        levels: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> "Schema":
        """The schema with the edges and levels that were found for its open columns: an ordinary one, fit to be declared next year."""
        return closed_schema(self, edges, levels)

    # Rows

    def encode(self, table: pa.RecordBatch | pa.Table) -> Codes:
        """Rows as codes, one column for each attribute."""
        return rows.encode(self, table)

    def encode_columns(self, table: pa.RecordBatch | pa.Table) -> list[CodeColumn]:
        """The same codes, each column in the narrowest integer that holds them."""
        return rows.encode_columns(self, table)

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
        return rows.decode(self, codes, rng, masses=masses, dictionaries=dictionaries)

    # Files

    @classmethod
    def from_domain(cls, sizes: Mapping[str, int]) -> "Schema":
        """A schema for integer-coded data: column c holds 0..sizes[c]-1."""
        return cls(tuple(spec.sized_column(name, size) for name, size in sizes.items()))

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> "Schema":
        """The schema that `to_dict`, a schema file or a {column: size} domain describes."""
        if isinstance(plain, Mapping):  # what somebody was told of a draft is no part of it
            plain = {key: value for key, value in plain.items() if key != STAMP_KEY}
        if spec.is_domain(plain):
            return cls.from_domain(plain)  # type: ignore[arg-type]
        parts = spec.read_parts(plain)  # which sees whether it is a mapping at all
        words = {key: plain.get(key) for key in ("title", "description", "person")}
        form = FileFormat.from_spec(plain.get("format"))
        return cls(*parts, **words, format=form, rules=spec.listed_rules(plain))  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """The schema as plain values, fit for JSON."""
        plain = spec.write_parts(self.columns, self.compounds, self.zeros, self.provenance, self.rules)
        words = {key: getattr(self, key) for key in ("title", "description", "person")}
        more = {**words, "format": self.format.to_spec()}
        return plain | {key: value for key, value in more.items() if value}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Schema":
        """Read a schema file: YAML or JSON by its extension, or the domain JSON of private-pgm."""
        try:
            schema = cls.from_dict(files.read(path))
        except (SchemaError, SizeError) as wrong:
            raise type(wrong)(f"{path}: {wrong}") from None
        for name in (column.name for column in schema.columns if lets_anything(column)):
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
        kept = {key: value for key, value in self.to_dict().items() if key not in spec.CURATORS_KEYS}
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
