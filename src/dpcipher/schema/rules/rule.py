"""Rules as a schema declares them: a text, a map or a structural zero, and where rows go that break them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

import numpy as np

from dpcipher.errors import ConditionError, SchemaError, SizeError, did_you_mean
from dpcipher.files.json import product_within
from dpcipher.schema.columns import Column
from dpcipher.schema.conditions import column_mask, level_code
from dpcipher.schema.rules.comparisons import with_known_levels
from dpcipher.schema.rules.logic import (
    Determined,
    Either,
    Formula,
    Inside,
    Literal,
    PrivateCodes,
    columns_of,
)
from dpcipher.schema.rules.sentence import Columns, read_sentence
from dpcipher.tables.domain import Bools, CodeColumn

MAX_MAPPED = 2**18
_SHOWN = 60
_FORM = "a rule must be a text such as 'age < 15 -> status == single', {rule: text, …} or {determines: {city: state}, map: {…}}"
_ZERO_FORM = "a structural zero must be {impossible: {column: levels, …}, becomes: {column: level}}"
_BREAKING = ("refuse", "follow")
MAX_ZERO_CELLS = 2**27  # of a table with structural zeros; above, rows are checked instead
MAX_ZERO_LEVELS = 2**23  # that a larger zero lists


@dataclass(frozen=True)
class Rule:
    """What no row may break: a `text`, or a column that `determines` another through a `map` from its levels.

    A private row that breaks it is refused, or moved: to the levels of `becomes`, or (`breaking="follow"`) to the one level that the rule leaves. It is moved or
    refused by its own levels alone, so that one row more or less changes no other row.
    """

    text: str = ""
    determines: Mapping[str, str] = field(default_factory=dict)
    map: Mapping[str, object] = field(default_factory=dict)
    breaking: OneOf["refuse", "follow"] = "refuse"
    becomes: Mapping[str, object] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """A rule in few words."""
        if self.text or not isinstance(self.determines, Mapping):
            return str(self.text)
        return ", ".join(f"{left} determines {right}" for left, right in self.determines.items())

    @classmethod
    def from_spec(cls, spec: object) -> "Rule":
        """The rule that a schema file declares; binding it sees whether it fits the columns."""
        if isinstance(spec, Rule):
            return spec
        if isinstance(spec, str):
            return cls(spec)
        if not isinstance(spec, Mapping):
            raise SchemaError(_FORM)
        kinds = ({"rule"}, {"determines", "map"})
        if not any(need <= set(spec) <= need | {"breaking", "becomes"} for need in kinds):
            raise SchemaError(_FORM)
        return cls(
            spec.get("rule", ""),
            spec.get("determines", {}),
            spec.get("map", {}),
            spec.get("breaking", "refuse"),
            spec.get("becomes") or {},
        )

    def to_spec(self) -> object:
        """The declaration as plain values: a text alone where that says it all."""
        if self.text and self.breaking == "refuse" and not self.becomes:
            return self.text
        plain: dict[str, object] = {
            "rule": self.text,
            "determines": dict(self.determines),
            "map": dict(self.map),
        }
        plain |= {
            "breaking": self.breaking if self.breaking != "refuse" else "",
            "becomes": dict(self.becomes),
        }
        return {key: value for key, value in plain.items() if value}

    def bound(self, number: int, columns: Columns) -> "BoundRule":
        """The rule with its columns and levels found; `number` says which it is in errors, from 1 up."""
        try:
            self._check()
            formula, claim = self._formula(columns)
            rule = BoundRule(number, self.name, formula, claim, self._moves(columns))
            return rule if self.breaking == "refuse" else rule.following(columns)
        except (SchemaError, SizeError, ConditionError) as wrong:
            kind = SizeError if isinstance(wrong, SizeError) else SchemaError
            raise kind(f"rule {number} ({self.name!r:.{_SHOWN}}): {wrong}") from None

    def _check(self) -> None:
        if not isinstance(self.text, str):
            raise SchemaError(_FORM)
        if bool(self.text) == bool(self.determines) or bool(self.map) != bool(self.determines):
            raise SchemaError(_FORM)
        if self.breaking not in _BREAKING:
            raise SchemaError(
                f"breaking ({self.breaking!r:.60}) must be refuse or follow; rows cannot be dropped"
            )
        if not isinstance(self.becomes, Mapping) or (self.becomes and self.breaking == "follow"):
            raise SchemaError("becomes must be {column: level}, and stand without breaking: follow")

    def _formula(self, columns: Columns) -> tuple[Formula, Formula]:
        """The whole rule, and its claim alone."""
        if self.determines:
            claim: Formula = Literal(_determined(self.determines, self.map, columns))
            return claim, claim
        return read_sentence(self.text, columns)

    def _moves(self, columns: Columns) -> dict[str, int]:
        return {name: level_code(_known(name, columns), level) for name, level in self.becomes.items()}


@dataclass(frozen=True)
class Zero:
    """A structural zero, the rule that no row meets all conditions of `impossible` at once; one that does is moved to `becomes`, or refused."""

    impossible: Mapping[str, object]
    becomes: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_spec(cls, spec: object) -> "Zero":
        """The structural zero that a schema file declares; binding it sees whether it fits the columns."""
        if not isinstance(spec, Mapping) or not {"impossible"} <= set(spec) <= {"impossible", "becomes"}:
            raise SchemaError(_ZERO_FORM)
        return cls(spec["impossible"], spec.get("becomes") or {})

    def to_spec(self) -> dict[str, object]:
        """The declaration as plain values."""
        return {"impossible": self.impossible, **({"becomes": self.becomes} if self.becomes else {})}

    def bound(self, number: int, columns: Columns) -> "BoundRule":
        """The zero with its columns and levels found; `number` says which it is in errors, from 1 up."""
        if not (
            isinstance(self.impossible, Mapping) and self.impossible and isinstance(self.becomes, Mapping)
        ):
            raise SchemaError(_ZERO_FORM)
        try:
            self._check_sizes(columns)
            chosen = {
                name: column_mask(_known(name, columns), wanted) for name, wanted in self.impossible.items()
            }
            moves = {name: level_code(_known(name, columns), level) for name, level in self.becomes.items()}
        except (SchemaError, SizeError, ConditionError) as wrong:
            kind = SizeError if isinstance(wrong, SizeError) else SchemaError
            raise kind(f"structural zero {number}: {wrong}") from None
        if moves and all(chosen[name][moves[name]] for name in moves if name in chosen):
            raise SchemaError(
                f"becomes of structural zero {number} must leave it: name a level that `impossible` does not list"
            )
        formula = Literal(Inside(chosen), negated=True)
        return BoundRule(number, "", formula, formula, moves)

    def _check_sizes(self, columns: Columns) -> None:
        """Judge the sizes before any mask is made: a few bytes can name columns of millions of levels."""
        sizes = [_known(name, columns).size for name in self.impossible]
        if product_within(sizes, MAX_ZERO_CELLS) is None and sum(sizes) > MAX_ZERO_LEVELS:
            raise SizeError("it touches too many cells; name fewer columns in it")
        for name, wanted in self.impossible.items():
            listed = wanted if isinstance(wanted, list | tuple) else ()
            nested = any(isinstance(level, list | tuple | Mapping) for level in listed)
            if nested or len(listed) > columns[name].size:
                raise SchemaError(f"a structural zero must list levels of {name!r}, each once")


@dataclass(frozen=True, eq=False)
class BoundRule:
    """A rule, or a structural zero, with its columns and levels found: a formula, and the codes that broken rows are moved to."""

    number: int
    name: str
    formula: Formula
    claim: Formula
    moves: Mapping[str, int]
    map: Determined | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads, each once."""
        return columns_of(self.formula)

    @property
    def claimed(self) -> tuple[str, ...]:
        """The columns that it says something about; the others are its condition."""
        if isinstance(self.claim, Literal) and isinstance(self.claim.atom, Determined):
            return (self.claim.atom.right,)
        if self.zero is not None:
            return tuple(name for name in self.columns if name in self.moves)
        return columns_of(self.claim)

    @property
    def zero(self) -> Mapping[str, Bools] | None:
        """The levels that a structural zero forbids together, by column; None of any other rule."""
        return None if self._inside is None else self._inside.chosen

    @property
    def _inside(self) -> Inside | None:
        atom = self.claim.atom if isinstance(self.claim, Literal) else None
        return atom if isinstance(atom, Inside) else None

    def broken(self, view: PrivateCodes) -> Bools:
        """Which rows break it for certain."""
        return self.formula.truth(view).broken if self._inside is None else self._inside.rows(view)

    @property
    def refusal(self) -> str:
        """What is said of rows that break it: the public condition, and never a value or a count."""
        names = [repr(name) for name in self.columns]
        what = (
            f"in structural zero {self.number}"
            if self.zero is not None
            else f"that break rule {self.number} ({self.name:.60})"
        )
        follow = "" if self.zero is not None else " or breaking: follow"
        return (
            f"column{'s' if len(names) > 1 else ''} {', '.join(names)}: rows {what} are refused; say where they go with becomes{follow}, "
            "or correct them; `dpcipher schema check SCHEMA --data DATA` lists them, for the curator alone"
        )

    def move(self, codes: Mapping[str, CodeColumn], rows: Bools) -> None:
        """Give some rows the levels that the rule says, in place."""
        for name, code in self.moves.items():
            codes[name][rows] = code
        if self.map is not None:
            starts = codes[self.map.left][rows].astype(np.int64) * self.map.width
            places = np.searchsorted(
                self.map.pairs, starts
            )  # the one pair of this level: a level left out breaks nothing
            codes[self.map.right][rows] = self.map.pairs[places] - starts

    def following(self, columns: Columns) -> "BoundRule":
        """Broken rows take the only level that the claim leaves, in each of its columns."""
        claim = self.claim
        if isinstance(claim, Literal) and isinstance(claim.atom, Determined):
            if len(np.unique(claim.atom.pairs // claim.atom.width)) < len(claim.atom.pairs):
                raise SchemaError("breaking: follow needs a map to one level each; use becomes, or refuse")
            return replace(self, map=claim.atom)
        parts = claim.parts if not isinstance(claim, Literal | Either) else (claim,)
        return replace(self, moves=dict(_only_level(part, columns) for part in parts))


def _only_level(claim: Formula, columns: Columns) -> tuple[str, int]:
    names = columns_of(claim)
    if len(names) == 1:
        column = columns[names[0]]
        view = PrivateCodes(columns, {column.name: np.arange(column.size)})
        left = np.flatnonzero(~claim.truth(view).broken)
        if len(left) == 1:
            return column.name, int(left[0])
    raise SchemaError(
        "breaking: follow needs a claim that leaves one level of a column, as in -> status == single; use becomes, or refuse"
    )


def _determined(determines: object, levels: object, columns: Columns) -> Determined:
    """The pairs of levels that a map allows."""
    if not isinstance(determines, Mapping) or len(determines) != 1 or not isinstance(levels, Mapping):
        raise SchemaError(
            "determines must be {column: column}, and map a mapping from levels of the first to levels of the second"
        )
    [(first, second)] = determines.items()
    left, right = _known(first, columns), _known(second, columns)
    if left.name == right.name:
        raise SchemaError("a column cannot determine itself")
    if len(levels) > MAX_MAPPED or max(left.size, right.size) > MAX_MAPPED:
        raise SizeError(f"a map may have at most {MAX_MAPPED} levels")
    mapped = np.zeros(left.size, dtype=np.bool_)
    pairs: set[int] = set()
    for level, allowed in levels.items():
        code = level_code(left, level)
        mapped[code] = True
        each = allowed if isinstance(allowed, list | tuple) else [allowed]
        if not each or len(each) > right.size:
            raise SchemaError(f"the map must give levels of {right.name!r}, each once")
        pairs |= {code * right.size + level_code(right, value) for value in each}
    return Determined(left.name, right.name, right.size, mapped, np.array(sorted(pairs), dtype=np.int64))


def _known(name: object, columns: Columns) -> Column:
    if not isinstance(name, str) or name not in columns:
        raise SchemaError(f"column {name!r:.60} is not in the schema{did_you_mean(str(name), columns)}")
    return with_known_levels(columns[name])
