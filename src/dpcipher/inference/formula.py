"""Formulas over the columns of a schema: which columns each term needs, checked before anything is computed."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.schema.bins import Bins
from dpcipher.schema.schema import Schema

# Transforms whose result depends on all rows of a table; a release has cells, and its draws differ in what rows they hold.
NEEDS_ROWS = ("bs", "cc", "center", "cr", "cs", "hashed", "lag", "poly", "scale", "standardize")
_QUOTED = re.compile("`([^`]*)`")
_UNDEFINED = re.compile("name '(.+?)' is not defined")
_FACTOR = re.compile("(?:factor|nulls in) `(.+?)`")
_OPERATOR = re.compile("Unknown operator '([<>=!]+)'")
_APART = re.compile("Missing operator between `(.+?)` and `(.+?)`")


@dataclass(frozen=True)
class ParsedFormula:
    """The two sides of a formula, the columns each needs, those that it only uses as categories, and those with bins."""

    text: str
    left: str
    right: str
    outcome: tuple[str, ...]
    predictors: tuple[str, ...]
    categories: frozenset[str]
    binned: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """The outcome's columns, then the predictors', each once."""
        return tuple(dict.fromkeys((*self.outcome, *self.predictors)))

    @property
    def plain_outcome(self) -> str | None:
        """The outcome where it is a column as it stands; None where it is an expression."""
        name = self.left.strip("`")
        return name if self.outcome == (name,) else None


def parse_formula(text: str, schema: Schema) -> ParsedFormula:
    """The formula of a model of cells, which have no transforms of all rows."""
    formula = read_formula(text, schema, "release")
    _check_no_rows_needed(formula.left, formula.right, text)
    return formula


def read_formula(text: str, schema: Schema, whose: str) -> ParsedFormula:
    """Split "outcome ~ terms" and find its columns; a name that the schema does not know is refused with the nearest one."""
    left, right = split_formula(text)
    known = (*schema.names, *(name for name in schema.attrs if name not in schema.names))
    outcome, terms = (
        [use for expression in _factors(side, text) for use in _uses(expression)] for side in (left, right)
    )
    sides = columns_of_side(left, text, known, whose), columns_of_side(right, text, known, whose)
    check_sides(text, *sides)
    numeric = {name for name, as_category in (*outcome, *terms) if not as_category}
    categories = frozenset(name for name, _ in terms) - numeric
    binned = frozenset(column.name for column in schema.columns if isinstance(column.domain, Bins))
    return ParsedFormula(text, left, right, sides[0], sides[1], categories, binned)


def split_formula(text: str) -> tuple[str, str]:
    """The two sides of "outcome ~ terms"."""
    left, tilde, right = (part.strip() for part in text.partition("~"))
    if not tilde or not left or not right:
        raise ParameterError(f"formula ({text!r}) must be 'outcome ~ terms'; try 'income ~ age + sex'")
    return left, right


def columns_of_side(side: str, text: str, known: Sequence[str], whose: str) -> tuple[str, ...]:
    """The columns that one side of a formula uses, each once; a name that is not `known` is refused with the nearest one."""
    names = dict.fromkeys(name for expression in _factors(side, text) for name, _ in _uses(expression))
    for name in names:
        if name not in known:
            raise ParameterError(
                f"formula ({text!r}): {name!r} must be a column of the {whose}{did_you_mean(name, known)}"
            )
    return tuple(names)


def check_sides(text: str, outcome: Sequence[str], terms: Sequence[str]) -> None:
    """Refuse an outcome that is about no column, or that is among the terms."""
    if not outcome or set(outcome) & set(terms):
        raise ParameterError(
            f"formula ({text!r}) must have an outcome on the left that is not among its terms on the right"
        )


def _check_no_rows_needed(left: str, right: str, text: str) -> None:
    """Refuse transforms that cells alone do not have."""
    for words, plain in (*_factors(left, text), *_factors(right, text)):
        for called in () if plain else _called(words):
            if called in NEEDS_ROWS:
                raise ParameterError(
                    f"formula ({text!r}): {called} needs all rows of a table, which a release does not have; "
                    "write the numbers out, as in I((age - 40) / 10) or I(age ** 2), or np.maximum(age - 40, 0) for a bend; C(age) has any shape"
                )


def _called(words: str) -> list[str]:
    """The functions in an expression."""
    tree = ast.parse(_QUOTED.sub("_", words).strip(), mode="eval")
    return [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def parsed(side: str, text: str) -> Any:
    """One side of a formula as formulaic's terms."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        terms = Formula(side)
    except (FormulaicError, SyntaxError) as error:
        raise ParameterError(f"formula ({text!r}) cannot be read: {_reason(str(error))}") from None
    if not isinstance(terms, Sequence):
        surplus = "the second '~'" if "~" in side else "'|'"
        raise ParameterError(
            f"formula ({text!r}) must have one outcome and one list of terms; leave out {surplus}"
        )
    if any(words.startswith("offset(") for term in terms for words, _ in _expressions(term)):
        raise ParameterError(f"formula ({text!r}): offset(…) is not supported; leave it out")
    return terms


def has_intercept(right: str, text: str) -> bool:
    """Whether terms have an intercept: always, unless they leave it out."""
    return any(str(term) == "1" for term in parsed(right, text))


def with_intercept(right: str) -> str:
    """Terms as an ordinal model has them: its cut points are an intercept, also where a formula leaves it out, and categories are coded beside it."""
    return f"{right} + 1"


def _reason(error: str) -> str:
    """What formulaic says of a formula that it cannot read, on one line, and what to do about it."""
    reason = re.sub(r"\s+", " ", re.sub("\x1b\\[[0-9;]*m|⧛|⧚", "", error))
    if "`.`" in reason:
        return "'.' stands for no columns here; name the columns instead of '.'"
    if _OPERATOR.match(reason):
        return "a condition needs braces, as {age > 40}"
    apart = _APART.match(reason)
    if apart:
        first, second = apart.groups()
        return f"there is no + between {first!r} and {second!r}; a name with a space needs backticks, as `{first} {second}`"
    return f"{reason:.120}"


def evaluation_reason(error: Exception, text: str) -> str:
    """Which term of a formula cannot be computed, in words of our own: formulaic and NumPy quote cells."""
    reason = str(error)
    unknown, factor = _UNDEFINED.search(reason), _FACTOR.search(reason)
    if unknown and unknown[1] in text:
        name = unknown[1]
        hint = f"; write np.{name}(…)" if hasattr(np, name) else ""
        return f"formulas know no function {name!r:.60}{hint}"
    term = f"{factor[1]!r:.100}" if factor and factor[1] in text else "a term"
    return f"{term} cannot be computed of them; arithmetic needs columns of numbers, and C(…) makes categories of any"


def quoted(name: str) -> str:
    """The name of a column as a formula takes it.

    >>> quoted("age"), quoted("marital status")
    ('age', '`marital status`')
    """
    return name if name.isidentifier() else f"`{name}`"


def columns_of(term: Any) -> tuple[str, ...]:
    """The columns that a term is about, each once."""
    return tuple(dict.fromkeys(name for expression in _expressions(term) for name, _ in _uses(expression)))


def _factors(side: str, text: str) -> Iterator[tuple[str, bool]]:
    """The expressions of one side, and whether each is the plain name of a column."""
    for term in parsed(side, text):
        yield from _expressions(term)


def _expressions(term: Any) -> Iterator[tuple[str, bool]]:
    for factor in term.factors:
        if factor.eval_method.value != "literal":
            yield factor.expr, factor.eval_method.value == "lookup"


def _uses(expression: tuple[str, bool]) -> list[tuple[str, bool]]:
    """The columns in an expression, and whether each is used as a category: in C(…)."""
    words, plain = expression
    if plain:
        return [(words, False)]
    quoted: list[str] = []

    def place(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"_quoted_{len(quoted) - 1}"

    tree = ast.parse(_QUOTED.sub(place, words).strip(), mode="eval")
    return [(_name(name, quoted), category) for name, category in _names(tree.body)]


def _name(name: str, quoted: list[str]) -> str:
    return quoted[int(name.removeprefix("_quoted_"))] if name.startswith("_quoted_") else name


def _names(node: ast.AST, category: bool = False) -> Iterator[tuple[str, bool]]:
    """The names in an expression that are not functions."""
    if isinstance(node, ast.Call):
        inside = ast.unparse(node.func) == "C"
        for number, argument in enumerate((*node.args, *(word.value for word in node.keywords))):
            if not inside or number == 0:  # what follows in C(…) are contrasts and levels
                yield from _names(argument, inside)
    elif isinstance(node, ast.Name):
        yield node.id, category
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)
