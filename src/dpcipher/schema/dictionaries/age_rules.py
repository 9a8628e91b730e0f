"""Rules that a dictionary states in its labels: a code called "N/A (less than 15 years old)" is that of everybody below 15, and of nobody else.

Only plain statements are taken. What stands beside the words "not applicable" is split into its alternatives, and one of them must be an age and nothing else. "Less than 16 years old, or never worked"
says what everybody below 16 has, but not that others do not have it; "less than 16 years old and at school" says neither.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcipher.schema.dictionaries.variable import AUTO, DISCOVER, Variable
from dpcipher.schema.levels import MISSING_LABEL

MAX_RULES = 100  # some list every cell of a column's grid, which the bounds of a schema allow about so often
LONGEST = 800  # characters of the names and the code in a rule

_NOT_APPLICABLE = re.compile(
    r"(?i)\W*(?:n/?a\b|n\.a\.|not applicable\b|inapplicable\b|does not apply\b|not in universe\b|niu\b)"
)
_ALTERNATIVES = re.compile(r"(?i)[;/]|,?\s+or\s")
_JOINED = re.compile(r"(?i)\band\b|&|\bexcept|\bunless\b|\bbut\b")
_PEOPLE = (
    r"(?:for )?(?:persons?|people|children|child|respondents?|individuals?|those)(?: who are| that are)? "
)
_BELOW = r"(?:less than|under|below|younger than|<)"
_YEARS = r"[- ](?:years?|yrs?)"
_AGE = re.compile(
    rf"(?i)(?:{_PEOPLE})?{_BELOW} ?(\d{{1,3}}){_YEARS}[- ](?:old|of age)"
    rf"|{_PEOPLE}{_BELOW} ?(\d{{1,3}})(?:{_YEARS})?"
    rf"|(?:{_PEOPLE})?(?:age|aged) (?:is |of )?{_BELOW} ?(\d{{1,3}})(?:{_YEARS}(?: old)?)?"
    rf"|(?:{_PEOPLE})?(?:under|below) (?:the )?age (?:of )?(\d{{1,3}})"
    rf"|(?:{_PEOPLE})?younger than (\d{{1,3}})(?:{_YEARS})?"
)
_AGE_NAME = re.compile(r"(?i)age|agep|age[_ ]?(?:in[_ ]?)?(?:years|yrs)")
_AGE_TITLE = re.compile(
    r"(?i)(?:(?:the )?(?:person|respondent|individual|patient|participant|subject)(?:['\u2019]?s)? )?"
    r"(?:current )?age(?: of (?:the )?(?:person|respondent|individual|patient|participant|subject))?(?:,? \(?in (?:completed |whole )?years\)?)?"
)


@dataclass(frozen=True)
class Below:
    """A label says that everybody below so many `years` has its code, and whether `only` they do."""

    years: int
    only: bool


def age_rules(variables: Sequence[Variable]) -> tuple[list[dict[str, object]], list[str]]:
    """The rules that follow from the labels of the variables, and a note of where each came from."""
    age = age_variable(variables)
    rules: list[dict[str, object]] = []
    notes: list[str] = []
    if age is None:
        return rules, notes
    for variable, code, below in _stated(one for one in variables if one is not age):
        made = _rules(age, variable, code, below) if len(rules) < MAX_RULES else []
        first, origin = len(rules) + 1, f"from the label of {code} of {variable.name!r}"
        rules += made
        notes += [f"rule {number} ({rule['rule']}): {origin}" for number, rule in enumerate(made, first)]
        notes += [] if made else [f"no rule {origin}: it names an age, but the two columns cannot say it"]
    return rules, notes


def age_variable(variables: Sequence[Variable]) -> Variable | None:
    """The one number that is an age in years, by its name or else by its title; None where there is none, or more than one."""
    numbers = [one for one in variables if one.kind in ("integer", "number") and one.values is None]
    numbers = [one for one in numbers if not one.left_out and not _counts_otherwise(one)]
    for fits in (_named_age, _titled_age):
        found = [one for one in numbers if fits(one)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _named_age(variable: Variable) -> bool:
    return bool(_AGE_NAME.fullmatch(variable.name.strip()))


def _titled_age(variable: Variable) -> bool:
    return any(
        _AGE_TITLE.fullmatch(str(text).strip(" .:?")) for text in (variable.title, variable.description)
    )


def _counts_otherwise(variable: Variable) -> bool:
    """Whether the age is one in months or days."""
    words = f"{variable.title} {variable.description} {variable.unit}".lower()
    return bool(re.search(r"\b(?:months?|weeks?|days?)\b", words))


def _stated(variables: Iterable[Variable]) -> Iterator[tuple[Variable, str, Below]]:
    """The variables with a code that people below an age have, and what its label says; not where two codes say so."""
    for variable in variables:
        labels = variable.labels.items()
        found = [(code, below) for code, label in labels if (below := below_age(label))]
        if len(found) == 1:
            yield variable, *found[0]


def below_age(label: object) -> Below | None:
    """What a label says about an age, if it does.

    >>> below_age("N/A (less than 15 years old)"), below_age("N/A (less than 16 years old, or never worked)")
    (Below(years=15, only=True), Below(years=16, only=False))
    >>> below_age("N/A (less than 16 years old and at school)")
    """
    text = " ".join(str(label).split())
    start = _NOT_APPLICABLE.match(text)
    if start is None or _JOINED.search(text):
        return None
    parts = [part.strip(" ()[]:,.-") for part in _ALTERNATIVES.split(text[start.end() :])]
    found = [match for part in parts if (match := _AGE.fullmatch(part))]
    if len(found) != 1:
        return None
    return Below(int(next(years for years in found[0].groups() if years)), len(parts) == 1)


def _rules(age: Variable, variable: Variable, code: str, below: Below) -> list[dict[str, object]]:
    """The rules, where the columns can say them: an age with an edge at these years, and a level for the code.

    A younger row takes the code. An older row that has it becomes missing where there is such a level, and is refused, before anything is charged, where there is none.
    """
    spec, names = variable.spec(), age.name + variable.name
    if age.declared or variable.declared or "`" in names or len(names) + len(code) > LONGEST:
        return []
    if not _has_edge(age.spec(), below.years) or not _has_level(spec, code):
        return []
    years, column = _quoted(age.name), _quoted(variable.name)
    level = "'" + code.replace("'", "''") + "'"
    younger: dict[str, object] = {"rule": f"{years} < {below.years} -> {column} == {level}"}
    older: dict[str, object] = {"rule": f"{years} >= {below.years} -> {column} != {level}"}
    younger["breaking"] = "follow"
    if spec.get("missing") == "level":
        older["becomes"] = {variable.name: MISSING_LABEL}
    return [younger, older] if below.only else [younger]


def _has_edge(spec: Mapping[str, Any], years: int) -> bool:
    """Whether a bin can end there: inside the range, bins are still to be found or every whole number is one."""
    low, high = (None if spec[side] == AUTO else spec[side] for side in ("min", "max"))
    inside = (low is None or low < years) and (high is None or years <= high)
    # A special value is an age too where it is none below zero; one among the ages below could leave a bin empty.
    return inside and all(
        value > years or (low is not None and 0 <= value < low) for value in spec.get("special", ())
    )


def _has_level(spec: Mapping[str, Any], code: str) -> bool:
    levels = spec.get("levels")
    listed = levels if isinstance(levels, list) else []
    return levels != DISCOVER and code in [str(level) for level in (*listed, *spec.get("missing_values", ()))]


def _quoted(name: str) -> str:
    """A column as rules write it: in backquotes unless it is a plain word."""
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name not in ("and", "or", "not", "in", "is")
    return name if plain else f"`{name}`"
