"""The text of a rule, read by hand in one pass: from words to comparisons of columns of the schema.

    rule        = claim | condition "->" claim
    condition, claim = all { "or" all }
    all         = part { "and" part }
    part        = "not" part | "(" claim ")" | comparison
    comparison  = operand ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
                | name ["not"] "in" "[" value { "," value } "]"
                | name "is" ["not"] "missing"

A word stands for a column or a level, whichever there is; 'quotes' make it a level, `backquotes` a column. Nothing of the text is ever run. Depth and
length are bounded, since a release from anybody may hold rules.
"""

import re
from collections.abc import Mapping
from typing import NoReturn

from dpcipher.errors import SchemaError, did_you_mean
from dpcipher.schema.columns import Column
from dpcipher.schema.rules import comparisons
from dpcipher.schema.rules.comparisons import Token, with_known_levels, wrong_at
from dpcipher.schema.rules.logic import Either, Every, Formula, Literal, opposite

MAX_TEXT = 2**14
MAX_DEPTH = 32
_SIGNS = ("==", "!=", "<=", ">=", "<", ">")
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KEYWORDS = ("and", "or", "not", "in", "is")
_TOKEN = re.compile(
    r"""\s*(?:(?P<arrow>->)|(?P<sign>==|!=|<=|>=|<|>|[()\[\],])
    |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"|`(?P<name>[^`]+)`
    |(?P<word>(?:(?!->)[^\s()\[\],<>=!'"`])+))""",
    re.VERBOSE,
)

Columns = Mapping[str, Column]


def read_sentence(text: str, columns: Columns) -> tuple[Formula, Formula]:
    """The whole rule as a formula over the columns of a schema, and its claim alone."""
    if not isinstance(text, str) or not text.strip():
        raise SchemaError("it must be a text such as 'age < 15 -> status == single'")
    if len(text) > MAX_TEXT:
        raise SchemaError(
            f"its text must have at most {MAX_TEXT} characters; use determines, or several rules"
        )
    return _Reader(text, columns).sentence()


def _tokens(text: str) -> list[Token]:
    tokens, start = [], 0
    end = len(text.rstrip())
    while start < end:
        match = _TOKEN.match(text, start)
        if match is None:
            _refuse_character(text, start)
        kind = match.lastgroup or ""
        value, position = match[kind], match.start(kind) + 1
        if kind in ("single", "double"):
            quote = "'" if kind == "single" else '"'
            tokens.append(Token("text", value.replace(2 * quote, quote), position - 1))
        elif kind == "word":
            tokens.append(Token("word", value, position))
        else:
            tokens.append(Token("name" if kind == "name" else "sign", value, position))
        start = match.end()
    return [*tokens, Token("end", "", end + 1)]


def _refuse_character(text: str, start: int) -> NoReturn:
    start += len(text[start:]) - len(text[start:].lstrip())
    hint = {"=": "; equality is written ==", "!": "; use not, or !="}.get(text[start], "")
    hint = "; a quote is not closed" if text[start] in "'\"`" else hint
    raise SchemaError(f"at {start + 1}: {text[start]!r} cannot stand here{hint}")


class _Reader:
    """Goes through the tokens once, from left to right."""

    def __init__(self, text: str, columns: Columns) -> None:
        self._tokens = _tokens(text)
        self._columns = columns
        self._place = 0
        self._depth = 0

    def sentence(self) -> tuple[Formula, Formula]:
        """The formula of the text, and its claim."""
        first = self._some()
        claim = self._some() if self._took("->") else None
        if self._next.kind != "end":
            self._refuse(
                "and, or, -> or the end must follow; a rule has one ->, and 0 <= a < 5 is written 0 <= a and a < 5"
            )
        return (first, first) if claim is None else (Either((opposite(first), claim)), claim)

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _took(self, text: str) -> bool:
        """Step over a sign or a keyword, if it comes next."""
        comes = self._next.kind in ("sign", "word") and self._next.text == text
        self._place += comes
        return comes

    def _refuse(self, why: str) -> NoReturn:
        token = self._next
        here = f"{token.text!r:.60}" if token.kind != "end" else "the end"
        raise SchemaError(f"at {token.position}, {here}: {why}")

    def _some(self) -> Formula:
        parts = [self._all()]
        while self._took("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _all(self) -> Formula:
        parts = [self._part()]
        while self._took("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _part(self) -> Formula:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"brackets and not may be nested at most {MAX_DEPTH} deep")
        if self._took("not"):
            part = opposite(self._part())
        elif self._took("("):
            part = self._some()
            if not self._took(")"):
                self._refuse("a bracket must be closed with )")
        else:
            part = self._comparison()
        self._depth -= 1
        return part

    def _comparison(self) -> Formula:
        left = self._operand("a column must stand here, as in age < 15", keywords=False)
        if self._next.kind == "sign" and self._next.text in _SIGNS:
            sign = self._take().text
            return self._compared(left, sign, self._operand(f"a value or a column must follow {sign}"))
        if self._took("is"):
            negated = self._took("not")
            if not self._took("missing"):
                self._refuse("only missing may follow is; use == to compare with a level")
            return Literal(comparisons.is_missing(self._column(left)), negated)
        negated = self._took("not")
        if not self._took("in"):
            self._refuse("a comparison must follow: ==, !=, <, <=, >, >=, in [..], not in [..] or is missing")
        formula = comparisons.is_one_of(self._column(left), self._levels())
        return opposite(formula) if negated else formula

    def _levels(self) -> tuple[Token, ...]:
        if not self._took("["):
            self._refuse("in must be followed by levels in brackets, as in [N, 0]")
        levels = [self._operand("a level must stand here")]
        while self._took(","):
            levels.append(self._operand("a level must follow the comma"))
        if not self._took("]"):
            self._refuse("levels must be separated by commas, and end with ]")
        return tuple(levels)

    def _operand(self, why: str, *, keywords: bool = True) -> Token:
        """A word or a quoted one. After a sign every word is a value, so that the states IN and or need no quotes."""
        token = self._next
        if token.kind in ("sign", "end") or (
            not keywords and token.kind == "word" and token.text in _KEYWORDS
        ):
            self._refuse(why)
        return self._take()

    def _compared(self, left: Token, sign: str, right: Token) -> Formula:
        first, second = self._maybe_column(left), self._maybe_column(right)
        if first is not None and second is not None:
            comparisons.check_ambiguous(first, right)
            comparisons.check_ambiguous(second, left)
            return Literal(comparisons.of_columns(first, sign, second, right))
        if second is not None:
            return comparisons.with_value(second, _MIRRORED[sign], left)
        return comparisons.with_value(self._column(left), sign, right)

    def _maybe_column(self, token: Token) -> Column | None:
        is_column = token.kind == "name" or (token.kind == "word" and token.text in self._columns)
        return self._column(token) if is_column else None

    def _column(self, token: Token) -> Column:
        if token.kind == "text" or token.text not in self._columns:
            hint = did_you_mean(token.text, self._columns)
            raise wrong_at(token, f"column {token.text!r:.60} is not in the schema{hint}")
        return with_known_levels(self._columns[token.text])
