"""Whatever a dictionary holds, it becomes a schema or is refused in our own words."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcipher.errors import DpcipherError
from dpcipher.schema import Schema
from dpcipher.schema.codebooks.ddi import read_ddi
from dpcipher.schema.codebooks.read import read_codebook

TEXTS = st.sampled_from(["", "N", "-9", "1", "2.5", "min", "max", "nan", "2024-01-31", "x" * 400, "age", "N/A (less than 2 years old)", "a\nb", "\u202e", "<b>", "true"])  # fmt: skip
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), TEXTS)  # fmt: skip
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6)  # fmt: skip


def entries(*keys):
    """Objects with some of the keys that a format knows, holding anything."""
    return st.dictionaries(st.sampled_from(keys), ANYTHING, max_size=len(keys))


FIELD = entries("name", "type", "constraints", "categories", "missingValues", "title", "unit", "dpcipher", "format", "trueValues", "falseValues").map(lambda field: {"name": "a", **field})  # fmt: skip
RULED = st.tuples(FIELD, st.sampled_from(["string", "integer", "number", "date", "time", "boolean"]), entries("minimum", "maximum", "enum", "pattern", "required", "unique", "exclusiveMinimum")).map(lambda three: {**three[0], "type": three[1], "constraints": three[2]})  # fmt: skip
FORMS = {
    "frictionless": st.fixed_dictionaries({"fields": st.lists(FIELD | RULED | ANYTHING, max_size=3), "missingValues": ANYTHING, "primaryKey": ANYTHING}, optional={"dialect": entries("delimiter", "quoteChar", "decimalChar", "header") | ANYTHING, "encoding": ANYTHING}),
    "sdv": st.fixed_dictionaries({"columns": st.dictionaries(TEXTS, entries("sdtype", "datetime_format", "computer_representation") | ANYTHING, max_size=3)}),
    "nist": st.dictionaries(TEXTS, st.fixed_dictionaries({"description": ANYTHING}, optional={"values": ANYTHING, "details": ANYTHING}), max_size=3),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_json_is_read_or_refused(form, data):
    """Only our own errors, for the reader and for the schema that would follow."""
    plain = data.draw(FORMS[form])
    with contextlib.suppress(DpcipherError):
        read = read_codebook(plain, form=form)
        assert json.loads(json.dumps(read)) == read
        Schema.from_dict(read)


ATTRIBUTES = st.dictionaries(st.sampled_from(["name", "ID", "intrvl", "dcml", "nature", "measUnit", "missing", "VALUE", "min", "max", "type", "category", "files"]), st.sampled_from(["", "1", "-9", "contin", "Y", "date", "numeric", "character", "1e400", "x" * 600]), max_size=4)  # fmt: skip


def element(children):
    """An element of a codebook, with any attributes and children."""
    names = st.sampled_from(["var", "catgry", "catValu", "labl", "valrng", "invalrng", "range", "item", "varFormat", "txt", "sumStat"])  # fmt: skip
    return st.builds(written, names, ATTRIBUTES, st.lists(children, max_size=3))


def written(name, attributes, children):
    """One element as XML."""
    told = " ".join(f"{key}='{value}'" for key, value in attributes.items())
    return f"<{name} {told}>{''.join(children)}</{name}>"


CODEBOOK = st.recursive(st.sampled_from(["", "1", "N", "text"]), element, max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(inside=CODEBOOK)
def test_any_codebook_is_read_or_refused(inside, tmp_path_factory):
    """Elements in any order and depth."""
    book = f'<codeBook><dataDscr><var name="a">{inside}</var></dataDscr></codeBook>'
    with contextlib.suppress(DpcipherError):
        assert read_ddi(book.encode(), None).variables
    path = Path(tmp_path_factory.getbasetemp()) / "fuzzed.xml"
    path.write_text(book, encoding="utf-8")
    with contextlib.suppress(DpcipherError):
        Schema.from_dict(read_codebook(path))
