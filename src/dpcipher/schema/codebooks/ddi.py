"""DDI Codebook 2.5 (and 2.1): the variables of an XML codebook.

The file may be anybody's, so it is read without a document type: no entity is declared, fetched or expanded, and sizes are bounded. Statistics in it (`sumStat`,
`catStat`) were computed from the rows, and nothing of them is taken.
"""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from dpcipher.errors import SchemaError
from dpcipher.schema.codebooks.variable import (
    Codebook,
    Variable,
    VariableKind,
    as_bound,
    as_number,
    choose_table,
    whole_levels,
)

MAX_ELEMENTS, MAX_DEPTH = 2_000_000, 64
MAX_INVALID = 50  # whole numbers of an invalid range that are listed one by one


def read_ddi(text: bytes, table: str | None) -> Codebook:
    """The variables of a codebook."""
    book = _parse(text)
    variables = [node for node in book.iter("var") if node.get("name") or node.get("ID")]
    if not variables:
        raise SchemaError("a DDI codebook must describe variables (dataDscr/var); this file has none")
    homes: dict[str, list[Element]] = {}
    for node in variables:
        homes.setdefault(node.get("files") or "", []).append(node)
    return Codebook(
        "ddi", [_variable(node) for node in choose_table(homes, table)], _text(book.find(".//stdyDscr//titl"))
    )


def _parse(text: bytes) -> Element:
    """The tree of elements, by their names without namespaces."""
    parser, builder, open_names = expat.ParserCreate(None, "}"), TreeBuilder(), []
    left = iter(range(MAX_ELEMENTS))

    def start(name: str, attributes: dict[str, str]) -> None:
        open_names.append(_local(name))
        if next(left, None) is None or len(open_names) > MAX_DEPTH:
            raise SchemaError(
                f"the XML has more than {MAX_ELEMENTS:,} elements, or is nested more than {MAX_DEPTH} deep"
            )
        builder.start(open_names[-1], {_local(key): value for key, value in attributes.items()})

    def refuse(*_: object) -> None:
        raise SchemaError("the XML must not have a document type (DOCTYPE); remove it")

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: builder.end(open_names.pop())
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as wrong:
        raise SchemaError(f"is not readable as XML (line {wrong.lineno}); correct the file") from None
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _variable(node: Element) -> Variable:
    codes = {code: cat for cat in node.iter("catgry") if (code := _text(cat.find("catValu"))) is not None}
    missing = {code for code, cat in codes.items() if cat.get("missing", "N").lower() in ("y", "true", "1")}
    missing_order = [code for code in codes if code in missing] + [
        code for code in _invalid(node) if code not in missing
    ]
    valid = [code for code in codes if code not in missing_order]
    labels = {code: label for code, cat in codes.items() if (label := _text(cat.find("labl")))}
    form = node.find("varFormat")
    kind = _kind(node, form, valid)
    low, high = _range(node, kind)
    listed = _listed(node, kind, valid, low, high)
    singles = () if listed is not None else tuple(n for code in valid if (n := as_number(code)) is not None)
    return Variable(
        node.get("name") or node.get("ID") or "",
        kind,
        values=whole_levels(listed) if listed and kind != "text" else listed,
        ordered=node.get("nature") == "ordinal",
        low=low,
        high=high,
        singles=singles if kind in ("integer", "number") else (),
        missing=missing_order,
        blank=True,
        labels={code: label for code, label in labels.items() if code in missing_order or code in valid},
        title=_text(node.find("labl")),
        description=_text(node.find("txt")) or _text(node.find("qstn/qstnLit")),
        unit=node.get("measUnit"),
        decimals=_decimals(node),
        source="its categories" if listed is not None else "its valid range (valrng)",
        notes=_notes(node, kind if listed is None else "text"),
    )


def _decimals(node: Element) -> int | None:
    """The number of decimals (`dcml`), where it is stated."""
    decimals = as_number(node.get("dcml"))
    return decimals if isinstance(decimals, int) else None


def _notes(node: Element, kind: VariableKind) -> tuple[str, ...]:
    notes = []
    if kind == "number" and _decimals(node) is None and "REAL" not in _units(node):
        notes.append("continuous, its decimals are not stated: kind: integer if its values are whole")
    if node.find("sumStat") is not None or node.find(".//catStat") is not None:
        notes.append("statistics in the dictionary were not used")
    return tuple(notes)


def _units(node: Element) -> set[str]:
    """Whether its valid ranges are said to be of whole numbers (INT) or not (REAL, or ends that are not whole)."""
    ranges = node.findall("valrng/range")
    ends = [as_number(end) for part in ranges for key, end in part.items() if key.startswith(("min", "max"))]
    stated = {units for part in ranges if (units := part.get("UNITS"))}
    return {"REAL"} if any(isinstance(end, float) for end in ends) else stated


def _kind(node: Element, form: Element | None, valid: list[str]) -> VariableKind:
    category = "" if form is None else form.get("category", "")
    if category in ("date", "time"):
        return "date" if category == "date" else "time"
    if form is not None and form.get("type") == "character":
        return "text"
    if form is None and valid and any(as_number(code) is None for code in valid):
        return "text"
    decimals, units = _decimals(node), _units(node)
    whole = (
        decimals == 0
        if decimals is not None
        else units == {"INT"} or (not units and node.get("intrvl") != "contin")
    )
    return "integer" if whole else "number"


def _listed(
    node: Element, kind: VariableKind, valid: list[str], low: object, high: object
) -> list[str] | None:
    """The levels, unless they are but a few named values of a number."""
    items = [value for item in node.findall("valrng/item") if (value := item.get("VALUE")) is not None]
    levels = list(dict.fromkeys([*valid, *items]))
    if not levels or node.get("intrvl") == "contin":
        return None
    if kind in ("integer", "number") and isinstance(low, int | float) and isinstance(high, int | float):
        return levels if kind == "integer" and len(levels) > high - low else None
    return levels


def _range(node: Element, kind: VariableKind) -> tuple[object, object]:
    """The range that the dictionary declares as valid."""
    lows, highs = [], []
    for part in node.findall("valrng/range"):
        lows.append(as_bound(kind, part.get("min", part.get("minExclusive"))))
        highs.append(as_bound(kind, part.get("max", part.get("maxExclusive"))))
    return _extreme(lows, min), _extreme(highs, max)


def _extreme(bounds: list[object], which: object) -> object:
    return None if not bounds or None in bounds else which(bounds)  # type: ignore[operator]


def _invalid(node: Element) -> Iterable[str]:
    """The codes that are declared invalid: one by one, or the whole numbers of a short range."""
    for item in node.findall("invalrng/item"):
        if (value := item.get("VALUE")) is not None and value.strip():
            yield value.strip()
    for part in node.findall("invalrng/range"):
        low, high = as_number(part.get("min")), as_number(part.get("max"))
        if isinstance(low, int) and isinstance(high, int) and 0 <= high - low < MAX_INVALID:
            yield from map(str, range(low, high + 1))


def _text(node: Element | None) -> str | None:
    return None if node is None else " ".join("".join(node.itertext()).split()) or None
