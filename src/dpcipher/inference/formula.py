"""Formulas of models: which columns each side needs, checked before anything is computed."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.schema.schema import Schema

Source = Literal["release", "joints", "sets"]

# Transforms whose result depends on all rows of a table, which a release does not have.
NEEDS_ROWS = ("bs", "cc", "center", "cr", "cs", "hashed", "lag", "poly", "scale", "standardize")
_QUOTED = re.compile("`([^`]*)`")
_UNDEFINED = re.compile("name '(.+?)' is not defined")
_FACTOR = re.compile("factor `(.+?)`")
_EMPTY = re.compile("nulls in `(.+?)`")
_OPERATOR = re.compile("Unknown operator '([<>=!]+)'")
_APART = re.compile("Missing operator between `(.+?)` and `(.+?)`")


@dataclass(frozen=True)
class ParsedFormula:
    """The two sides of a formula, the columns of each, and those that it uses as categories only.

    `source` is where the columns are.
    """

    text: str
    source: Source
    left: str
    right: str
    outcome: tuple[str, ...]
    predictors: tuple[str, ...]
    categories: frozenset[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The outcome's columns, then the predictors', each once."""
        return tuple(dict.fromkeys((*self.outcome, *self.predictors)))

    @property
    def plain_outcome(self) -> str | None:
        """The outcome where it is a column; None where it is an expression."""
        name = self.left.strip("`")
        return name if self.outcome == (name,) else None

    @property
    def has_intercept(self) -> bool:
        """Whether the terms have an intercept: always, unless they leave it out."""
        return any(str(term) == "1" for term in parsed(self.right, self.text))


def parse_formula(text: str, schema: Schema, source: Source = "release") -> ParsedFormula:
    """The formula of a model of the columns of a schema, or of several columns that are counted as one."""
    return read_formula(text, tuple(dict.fromkeys((*schema.names, *schema.attrs))), source)


def read_formula(text: str, known: Sequence[str], source: Source) -> ParsedFormula:
    """Split "outcome ~ terms" and find its columns; unknown names are refused with the nearest one."""
    left, right = split_formula(text)
    expressions = [
        [each for term in parsed(side, text) for each in _expressions(term)] for side in (left, right)
    ]
    uses = [[use for expression in side for use in _uses(expression)] for side in expressions]
    outcome, predictors = (tuple(dict.fromkeys(name for name, _ in side)) for side in uses)
    for name in (*outcome, *predictors):
        if name not in known:
            raise ParameterError(
                f"formula ({text!r}): {name!r} must be a column of the {source}{did_you_mean(name, known)}"
            )
    if not outcome or set(outcome) & set(predictors):
        raise ParameterError(
            f"formula ({text!r}) must have an outcome on the left that is not among its terms on the right"
        )
    if source == "release":
        _check_no_rows_needed([*expressions[0], *expressions[1]], text)
    numeric = {name for side in uses for name, as_category in side if not as_category}
    categories = frozenset(name for name, _ in uses[1]) - numeric
    return ParsedFormula(text, source, left, right, outcome, predictors, categories)


def split_formula(text: str) -> tuple[str, str]:
    """The two sides of "outcome ~ terms"."""
    left, tilde, right = (part.strip() for part in text.partition("~"))
    if not tilde or not left or not right:
        raise ParameterError(f"formula ({text!r}) must be 'outcome ~ terms'; try 'income ~ age + sex'")
    return left, right


def _check_no_rows_needed(expressions: Sequence[tuple[str, bool]], text: str) -> None:
    """Refuse transforms that need rows, which cells are not."""
    for words, plain in expressions:
        for called in () if plain else _called(words):
            if called in NEEDS_ROWS:
                raise ParameterError(
                    f"formula ({text!r}): {called} needs all rows of a table, which a release does not have; "
                    "write the numbers out, as in I((age - 40) / 10) or I(age ** 2), or np.maximum(age - 40, "
                    "0) for a bend; C(age) has any shape"
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


def with_intercept(right: str) -> str:
    """The terms of an ordinal model: its cut points are an intercept, also where the formula has none."""
    return f"{right} + 1"


def _reason(error: str) -> str:
    """Why formulaic cannot read a formula, on one line, and what to do about it."""
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


def evaluation_reason(error: Exception, formula: ParsedFormula) -> str:
    """Why a formula cannot be computed, in our own words: others may quote private cells."""
    from formulaic.errors import DataMismatchWarning

    reason = str(error)
    unknown, factor, empty = (pattern.search(reason) for pattern in (_UNDEFINED, _FACTOR, _EMPTY))
    if isinstance(error, DataMismatchWarning):
        return "the levels in C(…, levels=[…]) must be all levels of its column"
    if unknown and unknown[1] in formula.text:
        name = unknown[1]
        hint = f"; write np.{name}(…)" if hasattr(np, name) else ""
        return f"formulas know no function {name!r:.60}{hint}"
    if empty and empty[1] in formula.text:
        return not_finite(empty[1], formula)
    term = f"{factor[1]!r:.100}" if factor and factor[1] in formula.text else "a term"
    return f"{term} cannot be computed; arithmetic needs columns of numbers, and C(…) makes categories of any"


def not_finite(term: str, formula: ParsedFormula) -> str:
    """The rule and the advice for a term that is not a number in some rows or cells."""
    if formula.source == "release":
        return f"{term:.100} must be a finite number for every bin; give numbers for its bins with the option values, or another transform"
    return f"{term:.100} must be a finite number in every row; try another transform"


def quoted(name: str) -> str:
    """The name of a column as a formula takes it.

    >>> quoted("age"), quoted("marital status")
    ('age', '`marital status`')
    """
    return name if name.isidentifier() else f"`{name}`"


def columns_of(term: Any) -> tuple[str, ...]:
    """The columns that a term is about, each once."""
    return tuple(dict.fromkeys(name for expression in _expressions(term) for name, _ in _uses(expression)))


def _expressions(term: Any) -> Iterator[tuple[str, bool]]:
    """The expressions in a term, and whether each is the plain name of a column."""
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
    """The names in an expression that are not functions, and whether each stands in C(…)."""
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
