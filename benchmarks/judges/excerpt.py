"""The schema of NIST's Massachusetts excerpt, built from its public data dictionary: levels, bins and impossible combinations.

Nothing here is read from the rows. Bins were settled before any method was run, and are the same for every method: all peers get the
codes that this schema gives, and their codes become values again through it. The rules are those of the dictionary ("N/A (less than 15
years old)") and of the consistency constraints that NIST publishes with the excerpt; only our method can be told of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.schema.columns import Column
from dpcipher.schema.declared import column
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema

AGE = (0, 3, 5, 10, 15, 16, 18, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 99)
INCOME = (
    *(-9_000, 0, 1, 2_500, 5_000, 7_500, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000, 60_000),
    *(75_000, 100_000, 125_000, 150_000, 200_000, 300_000, 500_000, 1_341_000),
)
POVERTY = (0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 501, 502)
TOP_CODE = {"POVPIP": 501}  # a level of its own: five times the poverty line or more
WEIGHT = (1, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 300, 500, 1_000, 9_999)
MOST_CHILDREN, LARGEST_FAMILY = 9, 12

# The density of each area, as the Census Bureau publishes it.
DENSITY = {
    "25-00503": 2872.7,
    "25-00703": 2195.3,
    "25-01000": 2447.1,
    "25-01300": 1457.2,
    "25-02800": 3683.9,
}
# The last industry code of each category (the Census Bureau's list of industries, in order).
LAST_CODE = {
    "0": 290, "1": 490, "2": 690, "3": 770, "4": 3990, "5": 4590, "6": 5790, "7": 6390, "8": 6780, "9": 7190,
    "10": 7790, "11": 7890, "12": 8290, "13": 8470, "14": 8690, "15": 9290, "16": 9590, "17": 9870, "18": 9920,
}  # fmt: skip
MISSING = (
    "(missing)"  # how our schema calls the level of cells without a value, which the excerpt writes as N
)

FEATURES = {
    "industry": "PUMA SEX MSP HISP RAC1P OWN_RENT INDP_CAT EDU PINCP_DECILE",
    "demographic": "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE",
    "family": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF OWN_RENT PINCP_DECILE POVPIP",
    "simple": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT DENSITY INDP_CAT EDU PINCP PINCP_DECILE POVPIP "
    "DVET DREM DPHY DEYE DEAR",
    "all": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT DENSITY INDP INDP_CAT EDU PINCP PINCP_DECILE POVPIP "
    "DVET DREM DPHY DEYE DEAR PWGTP WGTP",
    "acs": "PUMA AGEP SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT DENSITY INDP_CAT EDU PINCP_DECILE DVET DREM DPHY DEYE DEAR",
}
"""The five feature sets with most submissions to the Collaborative Research Cycle, and `acs`, its simple set without the two incomes."""


def excerpt_schema(dictionary: Mapping[str, Any], industries: Sequence[str], names: Sequence[str]) -> Schema:
    """The schema of some columns; `industries` are the codes that the excerpt's own schema file lists."""
    every = tuple(_column(name, dictionary[name], industries) for name in dictionary)
    zeros = implied(Schema(every, zeros=tuple(rules(dictionary, industries))))
    kept = tuple(zero for zero in zeros if set(zero.impossible) <= set(names))
    return Schema(tuple(column for name in names for column in every if column.name == name), zeros=kept)


def _column(name: str, entry: Mapping[str, Any], industries: Sequence[str]) -> Column:
    """One column as the dictionary describes it."""
    cut = {"AGEP": AGE, "PWGTP": WEIGHT, "WGTP": (0, *WEIGHT)}
    if name in cut:
        return column(name, "integer", edges=cut[name])
    if name in ("PINCP", "POVPIP"):
        edges = INCOME if name == "PINCP" else POVERTY
        return column(name, "integer", edges=edges, missing="level")
    if name == "DENSITY":
        return column(name, "categorical", levels=tuple(sorted(DENSITY.values())))
    if name == "PUMA":
        return column(name, "categorical", levels=tuple(DENSITY))
    if name == "INDP":
        return column(name, "categorical", levels=tuple(industries))
    if name == "NOC":
        return _counted(name, range(MOST_CHILDREN + 1))
    if name == "NPF":
        return _counted(name, range(2, LARGEST_FAMILY + 1))
    levels = tuple(entry["values"])
    ordered = name in ("EDU", "PINCP_DECILE")
    return column(name, "ordinal" if ordered else "categorical", levels=_in_order(levels))


def _counted(name: str, values: range) -> Column:
    """N, then whole numbers; more than the last counts as the last."""
    return column(name, "ordinal", levels=("N", *map(str, values)), other=str(values[-1]))


def _in_order(levels: Sequence[str]) -> tuple[str, ...]:
    """N first, then by number."""
    return tuple(sorted(levels, key=lambda level: -1 if level == "N" else int(level)))


def rules(dictionary: Mapping[str, Any], industries: Sequence[str]) -> list[Zero]:
    """Combinations that the dictionary and NIST's published constraints rule out."""
    return [
        *_age_rules(dictionary),
        *_household_rules(),
        *_industry_rules(industries),
        *(
            _never(PUMA=area, DENSITY=[d for d in DENSITY.values() if d != own])
            for area, own in DENSITY.items()
        ),
    ]


def implied(schema: Schema) -> list[Zero]:
    """The rules for two columns, with those that follow from them by way of a third, which a feature set may leave out: N children mean group quarters, so no family."""
    possible: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for pair, mask in schema.zero_masks:
        possible[pair] = possible.get(pair, np.True_) & ~mask
    return [zero for pair, table in sorted(possible.items()) for zero in _zeros(schema, pair, table)]


def _zeros(schema: Schema, pair: tuple[int, ...], possible: NDArray[np.bool_]) -> Iterator[Zero]:
    """The impossible cells of a pair, levels of the first column with the same partners in one zero."""
    names = [schema.attrs[axis] for axis in pair]
    labels = [np.array(schema.labels(name)) for name in names]
    for partners in np.unique(possible, axis=0):
        if not partners.all():
            alike = labels[0][(possible == partners).all(axis=1)]
            yield Zero(dict(zip(names, (alike.tolist(), labels[1][~partners].tolist()), strict=True)))


def _never(**impossible: object) -> Zero:
    return Zero(impossible)


def _but(dictionary: Mapping[str, Any], name: str, *without: str) -> list[str]:
    """The levels of a column other than these."""
    return [level for level in dictionary[name]["values"] if level not in without]


def _age_rules(dictionary: Mapping[str, Any]) -> list[Zero]:
    """Whom a question is not asked for: N below an age, and only there."""
    child, adult = {"max": 14}, {"min": 15}
    some_income = {"min": INCOME[0], "max": INCOME[-1]}
    found = [
        _never(AGEP=child, PINCP=some_income),
        _never(AGEP=adult, PINCP=MISSING),
        _never(AGEP=child, DVET=_but(dictionary, "DVET", "N")),
        _never(AGEP={"max": 15}, INDP_CAT=_but(dictionary, "INDP_CAT", "N")),
        _never(AGEP=child, EDU="12"),
        _never(AGEP={"max": 4}, EDU=[str(level) for level in range(5, 13)]),
    ]
    for name, first in (("MSP", 15), ("PINCP_DECILE", 15), ("EDU", 3), ("DREM", 5), ("DPHY", 5)):
        found.append(_never(AGEP={"max": first - 1}, **{name: _but(dictionary, name, "N")}))
        found.append(_never(AGEP={"min": first}, **{name: "N"}))
    return found


def _household_rules() -> list[Zero]:
    """Group quarters have no owner, no family and no household weight; a family has more persons than children."""
    children = [str(number) for number in range(MOST_CHILDREN + 1)]
    persons = [str(number) for number in range(2, LARGEST_FAMILY + 1)]
    group, house = ["2", "3"], "1"
    found = [
        _never(HOUSING_TYPE=house, OWN_RENT="0"),
        _never(HOUSING_TYPE=group, OWN_RENT=["1", "2"]),
        _never(HOUSING_TYPE=group, NOC=children),
        _never(HOUSING_TYPE=house, NOC="N"),
        _never(HOUSING_TYPE=group, NPF=persons),
        _never(HOUSING_TYPE=group, WGTP={"min": 1}),
        _never(HOUSING_TYPE=house, WGTP={"max": 0}),
    ]
    smaller = {number: [p for p in persons if int(p) <= int(number)] for number in children}
    found += [_never(NOC=number, NPF=few) for number, few in smaller.items() if few]
    return found


def _industry_rules(industries: Sequence[str]) -> list[Zero]:
    """The category of an industry code is that of the range it lies in."""
    category = {code: _category(code) for code in industries}
    return [
        _never(INDP_CAT=own, INDP=[code for code in industries if category[code] != own])
        for own in ("N", *LAST_CODE)
    ] + [_never(AGEP={"max": 15}, INDP=[code for code in industries if code != "N"])]


def _category(code: str) -> str:
    return "N" if code == "N" else next(name for name, last in LAST_CODE.items() if int(code) <= last)
