"""Readings of a text inside an engine: as a number, a truth value, a day or a second; null where it is none. No cast here can fail.

Stability. A reading is an expression of one cell, so it depends on that cell alone; and since no cell can make it fail, no cell reaches another
row, or the log of a server. DuckDB has TRY_CAST. PostgreSQL 15 has none (ibis writes a plain CAST in its place), so there a pattern looks first, and
the cast goes over `numeric`, which holds whatever the pattern lets through.
"""

from abc import ABC, abstractmethod
from typing import final

from dpcipher.curator.warehouse import patterns
from dpcipher.curator.warehouse.expressions import Expr, double, ibis

LONGEST = 400  # characters of a text that PostgreSQL reads as a number
_OVERFLOW = 2**1024 - 2**970  # the first number that rounds to infinity
_UNDERFLOW = "2.4703282292062328e-324"  # numbers up to here round to zero


class Reader(ABC):
    """Reads texts and decimals as numbers, the way of one engine."""

    @abstractmethod
    def number(self, text: Expr) -> Expr:
        """A number or a truth value, with space around it."""

    @abstractmethod
    def decimal(self, cell: Expr) -> Expr:
        """A decimal as the nearest float; null for a NaN among decimals."""


@final
class TryCastReader(Reader):
    """For engines with TRY_CAST."""

    def number(self, text: Expr) -> Expr:
        """The pattern says what is a number; the cast only reads its digits."""
        digits = text.re_extract(patterns.NUMBER, 1).try_cast("float64")
        return ibis.cases((text.re_search(patterns.NUMBER), digits), *_words(text), else_=None)

    def decimal(self, cell: Expr) -> Expr:
        """Over its digits: a direct cast may round twice."""
        return cell.cast("string").try_cast("float64")


@final
class GuardedReader(Reader):
    """For PostgreSQL, whose casts abort a query and quote the cell in the server's log."""

    def number(self, text: Expr) -> Expr:
        """Short digits at once; longer ones over `numeric`; exponents of more than four digits by what they must be."""
        near = text.re_extract(patterns.NEAR_NUMBER, 1).cast("decimal")
        return ibis.cases(
            (text.re_search(patterns.SHORT_NUMBER), text.cast("float64")),
            *_words(text),
            (text.length() > LONGEST, None),
            (text.re_search(patterns.NEAR_NUMBER), _in_range(near)),
            (text.re_search(patterns.FAR_ZERO), double(0.0)),
            (text.re_search(patterns.FAR_DOWN), double(0.0)),
            (text.re_search(patterns.FAR_UP), double(float("inf"))),
            (text.re_search(patterns.FAR_BELOW), double(float("-inf"))),
            else_=None,
        )

    def decimal(self, cell: Expr) -> Expr:
        """`numeric` has a NaN, and numbers beyond every float."""
        return ibis.cases((cell.cast("string") == "NaN", None), else_=_in_range(cell))


def _in_range(number: Expr) -> Expr:
    """A `numeric` as a float; what no float holds is infinite or zero before the cast could say so."""
    largest = ibis.literal(str(_OVERFLOW)).cast("decimal")
    least = ibis.literal(_UNDERFLOW).cast("decimal")
    return ibis.cases(
        (number >= largest, double(float("inf"))),
        (number <= -largest, double(float("-inf"))),
        (number.abs() <= least, double(0.0)),
        else_=number.cast("float64"),
    )


def _words(text: Expr) -> tuple[tuple[Expr, Expr], ...]:
    return (
        (text.re_search(patterns.TRUE), double(1.0)),
        (text.re_search(patterns.FALSE), double(0.0)),
        (text.re_search(patterns.INFINITE), double(float("inf"))),
        (text.re_search(patterns.MINUS_INFINITE), double(float("-inf"))),
    )


def truth_of(text: Expr, number: Expr) -> Expr:
    """1.0 and 0.0 for the words of truth, another number for a number."""
    return ibis.cases(
        (text.re_search(patterns.TRUE_WORD), double(1.0)),
        (text.re_search(patterns.FALSE_WORD), double(0.0)),
        else_=number,
    )


def day_of(text: Expr) -> Expr:
    """ISO dates as days since 1970-01-01. Counted in whole numbers: no engine is asked whether it knows a date."""
    year, month, day = (
        text.substr(start, length).try_cast("int64") for start, length in ((0, 4), (5, 2), (8, 2))
    )
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    return ibis.cases(
        (text.re_search(patterns.LEAP_DAY), ibis.cases((leap, _days(year, month, day)), else_=None)),
        (text.re_search(patterns.DAY), _days(year, month, day)),
        else_=None,
    )


def _days(year: Expr, month: Expr, day: Expr) -> Expr:
    """Days since 1970-01-01 of a day of the Gregorian calendar; the year begins in March, so that leap days come last."""
    early = month <= 2
    year = ibis.cases((early, year - 1), else_=year)
    month = ibis.cases((early, month + 9), else_=month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469


def second_of(text: Expr) -> Expr:
    """Times of day as seconds since midnight; parts of a second and a date before it are dropped."""
    hour, minute, second = (
        ibis.coalesce(text.re_extract(patterns.TIME, group).nullif(""), "0").try_cast("int64")
        for group in (1, 2, 3)
    )
    seconds = hour * 3600 + minute * 60 + second
    return ibis.cases((text.re_search(patterns.TIME), seconds), else_=None)


def owner_of(text: Expr) -> Expr:
    """Whose row it is, as `dpcipher.schema.cells.as_id` reads it: whole numbers however they are written; null for nobody."""
    trimmed = trimmed_of(text)
    digits = trimmed.re_extract(patterns.ID_DIGITS, 1)
    named = ibis.cases(
        ((digits == "") | digits.isnull(), "0"),
        (trimmed.re_search("^-"), ibis.literal("-") + digits),
        else_=digits,
    )
    return ibis.cases(
        (trimmed.lower().isin(patterns.BLANK_ID), None),
        (trimmed.re_search(patterns.WHOLE_ID), named),
        else_=trimmed,
    )


def trimmed_of(text: Expr) -> Expr:
    """Without white space at its ends."""
    ends = f"^[{patterns.WHITE}]+|[{patterns.WHITE}]+$"
    return text.re_replace(ends, "")
