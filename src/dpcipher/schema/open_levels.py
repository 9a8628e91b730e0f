"""Columns with `levels: discover`, whose levels `measure` finds privately: it publishes texts of cells that many people share.

A text can be found only if it fits the declared `pattern` as a whole and is no longer than `max_length`: both are obligatory, since what is found is
published as it stands in the cells. Everything else, and what is not found, becomes the level `other`, which such a column always has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import SchemaError
from dpcipher.files.codec import Rule, is_whole
from dpcipher.schema.columns import Categorical, Kind, Listed
from dpcipher.schema.cut import Integer
from dpcipher.schema.levels import Levels
from dpcipher.tables.domain import Bools

DISCOVER = "discover"
OTHER = "other"  # the level of what is not found, unless `other` gives it another name
MAX_FOUND = 256  # levels, unless `max_levels` says otherwise
MOST_FOUND = 2**14
LONGEST = 200  # characters of a level
_LONGEST_PATTERN = 1000
# The most texts that a private dictionary can number: codes are 32-bit integers.
MOST_CODES = 2**31 - 3
# What no level holds, whatever the pattern says: control characters, line ends, halves of characters; and what looks like a level for missing cells.
_UNFIT = r"[\pC\p{Zl}\p{Zp}]|\A\(missing"
_ANYTHING = ("Jane Doe, 1 Main St.", "jane@example.org", "+1 555-0100", "!?;#")
NEEDS = "; try {kind: categorical, levels: discover, pattern: '[A-Z]{2}[0-9]*', max_length: 10}"


def _from_1(name: str, most: int, example: int, *, optional: bool) -> Rule:
    return Rule(
        f"must be a whole number from 1 to {most} with levels: discover; try {name}: {example}",
        lambda number: optional if number is None else 1 <= number <= most,
    )


@dataclass(frozen=True, kw_only=True)
class OpenLevels(Listed):
    """A categorical column whose levels are found: texts that match `pattern`, of at most `max_length` characters, at most `max_levels` beside those to `keep`.

    Until they are found, its domain has as many levels as may be found: what a plan counts with.
    """

    pattern: Any = None
    max_length: Annotated[int | None, _from_1("max_length", LONGEST, 40, optional=False)] = None
    max_levels: Annotated[int | None, _from_1("max_levels", MOST_FOUND, 256, optional=True)] = None
    keep: tuple[Any, ...] = ()

    levels: ClassVar[str] = DISCOVER
    is_open: ClassVar[bool] = True
    discovers: ClassVar[bool] = True

    @property
    def kind(self) -> Kind:
        """The kind of the column that it becomes."""
        return "categorical"

    def _check(self) -> None:
        if self.other == "refuse":
            object.__setattr__(self, "other", OTHER)
        self._check_pattern()
        for level in self.keep:
            if not isinstance(level, str) and not is_whole(level):
                raise SchemaError(f"keep ({level!r:.60}) must hold texts or whole numbers; quote it")
        if not isinstance(self.other, str) or self.other in ("", "nearest", "missing"):
            raise SchemaError(
                f"other ({self.other!r:.60}) must be the name of the level of what is not found; try other: other"
            )
        super()._check()

    def _check_pattern(self) -> None:
        pattern = self.pattern
        if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST_PATTERN:
            raise SchemaError(
                f"pattern ({pattern!r:.60}) must be a regular expression that says which texts may be published{NEEDS}"
            )
        try:
            # By itself first, so that no half of it closes our own bracket.
            pc.match_substring_regex(pa.array([""]), pattern)
            pc.match_substring_regex(pa.array([""]), self._whole)
        except (pa.ArrowInvalid, UnicodeEncodeError):
            raise SchemaError(
                f"pattern ({pattern!r:.60}) must be a regular expression (RE2: no look-around, no back-references){NEEDS}"
            ) from None

    @property
    def _whole(self) -> str:
        """The pattern as one that the whole text must match, in RE2: time in proportion to the text, whatever the pattern."""
        return rf"\A(?:{self.pattern})\z"

    @property
    def lets_anything(self) -> bool:
        """Whether its pattern says nothing: names, addresses and mere signs all fit it."""
        return bool(pc.all(pc.match_substring_regex(pa.array(_ANYTHING), self._whole)).as_py())

    @cached_property
    def domain(self) -> Levels:
        """As many levels as may be found."""
        return Levels(self._levels(self.largest))

    @property
    def most(self) -> int:
        """The most texts that may be found."""
        return MAX_FOUND if self.max_levels is None else self.max_levels

    @property
    def largest(self) -> tuple[str, ...]:
        """A name for every text that may be found."""
        return tuple(f"(found {number + 1})" for number in range(self.most))

    def _levels(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*map(str, self.keep), *texts, str(self.other))))

    def closed(self, texts: Sequence[str] = ()) -> Categorical:
        """The column with the levels that were found: the kept ones, those, and `other`."""
        kept = ("missing", "other", "missing_values", "value_labels", "title", "description", "unit")
        facts = {key: getattr(self, key) for key in kept}
        return Categorical(self.name, levels=self._levels(texts), **facts)

    def on_grid(self) -> Integer:
        """The column of the numbers that a private dictionary gives to cells until levels are found; every cell has one, missing ones included."""
        return Integer(self.name, min=0, max=MOST_CODES - 1)

    def fits(self, texts: pa.Array) -> Bools:
        """Which texts may be found, each by itself: of the declared pattern, short enough, and fit to be written to a file."""
        whole = pc.match_substring_regex(texts, self._whole)
        short = pc.less_equal(pc.utf8_length(texts), self.max_length)
        good = pc.and_not(pc.and_(whole, short), pc.match_substring_regex(texts, _UNFIT))
        return np.array(pc.fill_null(good, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
