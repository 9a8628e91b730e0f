"""The text of a rule, read by hand: what it compares, before any name is looked up.

    rule        = claim | condition "->" claim
    condition, claim = all { "or" all }
    all         = part { "and" part }
    part        = "not" part | "(" claim ")" | comparison
    comparison  = operand ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
                | name ["not"] "in" "[" value { "," value } "]"
                | name "is" ["not"] "missing"

A word stands for a column or a level, whichever there is; 'quotes' make it a level, `backquotes` a column. Nothing is evaluated here, and
nothing of the text is ever run. Depth and length are bounded, since a release from anybody may hold rules.
"""

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from dpcipher.errors import SchemaError

MAX_TEXT = 2**14
MAX_DEPTH = 32
COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_KEYWORDS = ("and", "or", "not", "in", "is")
_TOKEN = re.compile(
    r"""\s*(?:(?P<arrow>->)|(?P<sign>==|!=|<=|>=|<|>|[()\[\],])
    |'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"|`(?P<name>[^`]+)`
    |(?P<word>(?:(?!->)[^\s()\[\],<>=!'"`])+))""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A piece of the text, and where it starts (the first character is number 1)."""

    kind: Literal["sign", "word", "text", "name", "end"]
    text: str
    position: int


@dataclass(frozen=True)
class Comparison:
    """Two operands and the sign between them."""

    left: Token
    sign: str
    right: Token


@dataclass(frozen=True)
class Membership:
    """A column has one of the levels listed."""

    column: Token
    levels: tuple[Token, ...]


@dataclass(frozen=True)
class Absence:
    """The value of a column is missing."""

    column: Token


@dataclass(frozen=True)
class Not:
    """The opposite."""

    part: "Phrase"


@dataclass(frozen=True)
class All:
    """Every part holds."""

    parts: tuple["Phrase", ...]


@dataclass(frozen=True)
class Some:
    """At least one part holds."""

    parts: tuple["Phrase", ...]


Phrase = Comparison | Membership | Absence | Not | All | Some


@dataclass(frozen=True)
class Sentence:
    """A rule as read: the claim holds wherever the condition does, or everywhere."""

    claim: Phrase
    condition: Phrase | None = None


def read_rule(text: str) -> Sentence:
    """What a rule says.

    >>> read_rule("age < 15 -> status == single").claim.right.text
    'single'
    """
    if not isinstance(text, str) or not text.strip():
        raise SchemaError("it must be a text such as 'age < 15 -> status == single'")
    if len(text) > MAX_TEXT:
        raise SchemaError(
            f"its text must have at most {MAX_TEXT} characters; use determines, or several rules"
        )
    return _Reader(text).sentence()


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

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0
        self._depth = 0

    def sentence(self) -> Sentence:
        first = self._some()
        if not self._took("->"):
            self._end()
            return Sentence(first)
        claim = self._some()
        self._end()
        return Sentence(claim, first)

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _took(self, text: str) -> bool:
        """Step over a sign or a keyword, if it comes next."""
        found = self._next.kind in ("sign", "word") and self._next.text == text
        self._place += found
        return found

    def _end(self) -> None:
        if self._next.kind != "end":
            self._refuse(
                "and, or, -> or the end must follow; a rule has one ->, and 0 <= a < 5 is written 0 <= a and a < 5"
            )

    def _refuse(self, why: str) -> NoReturn:
        token = self._next
        here = f"{token.text!r:.60}" if token.kind != "end" else "the end"
        raise SchemaError(f"at {token.position}, {here}: {why}")

    def _some(self) -> Phrase:
        parts = [self._all()]
        while self._took("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _all(self) -> Phrase:
        parts = [self._part()]
        while self._took("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _part(self) -> Phrase:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"brackets and not may be nested at most {MAX_DEPTH} deep")
        if self._took("not"):
            part: Phrase = Not(self._part())
        elif self._took("("):
            part = self._some()
            if not self._took(")"):
                self._refuse("a bracket must be closed with )")
        else:
            part = self._comparison()
        self._depth -= 1
        return part

    def _comparison(self) -> Phrase:
        left = self._operand("a column must stand here, as in age < 15", keywords=False)
        if self._next.kind == "sign" and self._next.text in COMPARISONS:
            sign = self._take().text
            return Comparison(left, sign, self._operand(f"a value or a column must follow {sign}"))
        if self._took("is"):
            negated = self._took("not")
            if not self._took("missing"):
                self._refuse("only missing may follow is; use == to compare with a level")
            return Not(Absence(left)) if negated else Absence(left)
        negated = self._took("not")
        if not self._took("in"):
            self._refuse("a comparison must follow: ==, !=, <, <=, >, >=, in [..], not in [..] or is missing")
        return Not(Membership(left, self._levels())) if negated else Membership(left, self._levels())

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
