"""Schemas from data dictionaries: what each format says, what is left open, what a person must sign; and Frictionless, there and back."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import missing
from dpcipher.cli import main
from dpcipher.errors import ParameterError, SchemaError
from dpcipher.io.write import write_table
from dpcipher.schema import Schema, column
from dpcipher.schema.codebooks.ddi import read_ddi
from dpcipher.schema.codebooks.read import read_codebook
from dpcipher.schema.codebooks.variable import SHORT_TEXT

NIST = {
    "SEX": {"description": "Person's gender", "values": {"1": "Male", "2": "Female"}},
    "NOC": {
        "description": "Own children",
        "values": {"N": "N/A (GQ/vacant)", "0": "None", "min": 1, "max": 19},
    },
    "POVPIP": {"description": "Poverty", "values": {"N": "N/A", "min": 0, "max": 500, "501": "above 5 x"}},
    "DENSITY": {"description": "Density", "values": {"min": 16.3, "max": 52864.7}},
    "INDP": {"description": "Industry codes", "details": "271 codes", "link": "somewhere"},
}
DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5">
  <stdyDscr><citation><titlStmt><titl>A  survey</titl></titlStmt></citation></stdyDscr>
  <dataDscr>
    <var ID="V1" name="AGE" intrvl="contin" dcml="0" measUnit="years">
      <labl level="variable">Age of
        respondent</labl>
      <valrng><range UNITS="INT" min="0" max="120"/></valrng>
      <invalrng><item VALUE="-9"/><range UNITS="INT" min="998" max="999"/></invalrng>
      <sumStat type="min">18</sumStat><sumStat type="max">97</sumStat>
      <varFormat type="numeric"/>
    </var>
    <var ID="V2" name="REGION" intrvl="discrete">
      <labl>Region</labl>
      <catgry><catValu>1</catValu><labl>Ontario</labl><catStat type="freq">450</catStat></catgry>
      <catgry><catValu>2</catValu><labl>Quebec</labl></catgry>
      <catgry missing="Y" missType="inap"><catValu>9</catValu><labl>Not asked</labl></catgry>
      <varFormat type="numeric"/>
    </var>
    <var ID="V3" name="INCOME" intrvl="contin" dcml="2">
      <qstn><qstnLit>How much do you earn?</qstnLit></qstn>
      <sumStat type="max">1234567</sumStat>
      <varFormat type="numeric"/>
    </var>
    <var ID="V4" name="JOB"><varFormat type="character"/></var>
    <var ID="V5" name="SEEN" ><varFormat type="character" category="date"/></var>
    <var ID="V6" name="HEALTH" nature="ordinal">
      <catgry><catValu>1</catValu></catgry><catgry><catValu>2</catValu></catgry>
    </var>
  </dataDscr>
</codeBook>"""
SDV = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest",
    "columns": {
        "guest": {"sdtype": "id", "regex_format": "G_[0-9]{3}"},
        "email": {"sdtype": "email", "pii": True},
        "rewards": {"sdtype": "boolean"},
        "room": {"sdtype": "categorical"},
        "rate": {"sdtype": "numerical"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "checkin": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        "checkout": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    },
}
FRICTIONLESS = {
    "fields": [
        {"name": "id", "type": "string", "constraints": {"unique": True}},
        {
            "name": "sex",
            "type": "string",
            "title": "Sex",
            "categories": [{"value": "F", "label": "Female"}, "M"],
        },
        {"name": "size", "type": "string", "categories": ["S", "L"], "categoriesOrdered": True},
        {
            "name": "rooms",
            "type": "integer",
            "constraints": {"minimum": 1, "exclusiveMaximum": 10, "required": True},
        },
        {"name": "rent", "type": "number", "constraints": {"minimum": "0"}, "unit": "EUR"},
        {"name": "moved", "type": "datetime", "constraints": {"minimum": "1990-01-01T00:00:00"}},
        {"name": "odd", "type": "date", "format": "%d/%m/%y"},
        {"name": "pets", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {"name": "owns", "type": "boolean", "missingValues": ["", {"value": "-9", "label": "No answer"}]},
        {
            "name": "floor",
            "type": "integer",
            "missingValues": ["-9"],
            "constraints": {"minimum": 0, "maximum": 9},
        },
        {"name": "place", "type": "geopoint"},
        {"name": "job", "type": "string", "description": "What they do"},
    ],
    "missingValues": ["", "NA"],
}


DISCOVER = {"levels": "discover", "pattern": SHORT_TEXT, "max_length": 40}


def columns(plain):
    """The declarations by name."""
    return {column["name"]: {key: value for key, value in column.items() if key != "name"} for column in plain["columns"]}  # fmt: skip


def test_the_nist_dictionary_becomes_columns():
    """Codes are levels, N is a kind of missing, ranges hold their named values, and what has no values is found privately."""
    expected = {
        "SEX": {"kind": "categorical", "levels": [1, 2], "labels": {"1": "Male", "2": "Female"}, "title": "Person's gender"},
        "NOC": {"kind": "integer", "min": 0, "max": 19, "missing_values": ["N"], "labels": {"N": "N/A (GQ/vacant)", "0": "None"}, "title": "Own children"},
        "POVPIP": {"kind": "integer", "min": 0, "max": 500, "bins": "auto", "special": [501], "missing_values": ["N"], "labels": {"N": "N/A", "501": "above 5 x"}, "title": "Poverty"},
        "DENSITY": {"kind": "number", "min": 16.3, "max": 52864.7, "bins": "auto", "decimals": 1, "title": "Density"},
        "INDP": {"kind": "categorical", **DISCOVER, "title": "Industry codes", "description": "271 codes"},
    }  # fmt: skip
    plain = read_codebook(NIST)
    assert columns(plain) == expected
    assert plain["imported_from"] == "(nist)"


def test_every_fact_says_where_it_came_from():
    """One note for each variable: what the dictionary states, and what is left open."""
    notes = dict(note.split(": ", 1) for note in read_codebook(NIST)["notes"])
    assert "may have been computed from the rows" in notes["'DENSITY'"]
    assert notes["'INDP'"] == "levels left open: found privately"
    opened = columns(read_codebook(NIST, open_ranges=True))
    assert opened["DENSITY"] == {
        "kind": "number",
        "min": "auto",
        "max": "auto",
        "bins": "auto",
        "title": "Density",
    }


def test_a_codebook_becomes_columns(tmp_path):
    """Declared ranges and categories are taken; statistics, which were computed from the rows, are not."""
    (tmp_path / "book.xml").write_text(DDI, encoding="utf-8")
    plain = read_codebook(tmp_path / "book.xml")
    expected = {
        "AGE": {"kind": "integer", "min": 0, "max": 120, "bins": "auto", "missing_values": [-9, 998, 999], "missing": "level", "title": "Age of respondent", "unit": "years"},
        "REGION": {"kind": "categorical", "levels": [1, 2], "missing_values": [9], "missing": "level", "labels": {"1": "Ontario", "2": "Quebec", "9": "Not asked"}, "title": "Region"},
        "INCOME": {"kind": "number", "min": "auto", "max": "auto", "bins": "auto", "decimals": 2, "missing": "level", "description": "How much do you earn?"},
        "JOB": {"kind": "categorical", **DISCOVER, "missing": "level"},
        "SEEN": {"kind": "date", "min": "auto", "max": "auto", "bins": "auto", "missing": "level"},
        "HEALTH": {"kind": "ordinal", "levels": [1, 2], "missing": "level"},
    }  # fmt: skip
    assert columns(plain) == expected
    assert (plain["title"], plain["imported_from"]) == ("A survey", "book.xml (ddi)")
    assert "1234567" not in json.dumps(plain)
    assert "450" not in json.dumps(plain)


BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><codeBook><dataDscr><var name="&c;"/></dataDscr></codeBook>'
FETCH = '<!DOCTYPE a SYSTEM "file:///etc/passwd"><codeBook/>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "document type"),
        (FETCH, "document type"),
        ("<codeBook><var>", "not readable as XML"),
        ("<codeBook/>", "has none"),
        ("<a>" * 100 + "</a>" * 100, "nested"),
    ],
)
def test_a_hostile_codebook_is_refused(tmp_path, text, words):
    """No entity is declared, fetched or expanded, and nothing nests without end."""
    (tmp_path / "book.xml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=words):
        read_codebook(tmp_path / "book.xml")


def test_sdv_metadata_states_nothing_that_needs_a_signature():
    """Types alone: everything is found privately; ids, personal texts and dates that cannot be read are left out, and said to be."""
    plain = read_codebook(SDV)
    open_range = {"min": "auto", "max": "auto", "bins": "auto", "missing": "level"}
    assert columns(plain) == {
        "rewards": {"kind": "boolean", "missing": "level"},
        "room": {"kind": "categorical", **DISCOVER, "missing": "level"},
        "rate": {"kind": "number", **open_range},
        "nights": {"kind": "integer", **open_range},
        "checkin": {"kind": "date", **open_range},
    }
    assert "imported_from" not in plain
    assert [note.split()[2] for note in plain["notes"] if note.startswith("left out")] == ["'guest'", "'email'", "'checkout'"]  # fmt: skip


def test_a_dictionary_of_several_tables_needs_a_name():
    """SDV's V1 and a data package; the name is checked."""
    several = {
        "METADATA_SPEC_VERSION": "V1",
        "tables": {"a": SDV, "b": {"columns": {"x": {"sdtype": "boolean"}}}},
    }
    with pytest.raises(SchemaError, match=r"2 tables \(a, b\)"):
        read_codebook(several)
    assert columns(read_codebook(several, table="b")) == {"x": {"kind": "boolean", "missing": "level"}}
    package = {"resources": [{"name": "homes", "schema": FRICTIONLESS}, {"name": "other", "schema": {"fields": [{"name": "x", "type": "boolean"}]}}]}  # fmt: skip
    assert columns(read_codebook(package, table="other")) == {"x": {"kind": "boolean", "missing": "level"}}
    with pytest.raises(SchemaError, match="did you mean"):
        read_codebook(package, table="home")


def test_a_frictionless_schema_becomes_columns():
    """Types, categories, constraints and missing values of both versions of the standard."""
    plain = read_codebook(FRICTIONLESS)
    missing = {"missing": "level", "missing_values": ["NA"]}
    assert columns(plain) == {
        "sex": {
            "kind": "categorical",
            "levels": ["F", "M"],
            **missing,
            "labels": {"F": "Female"},
            "title": "Sex",
        },
        "size": {"kind": "ordinal", "levels": ["S", "L"], **missing},
        "rooms": {"kind": "integer", "min": 1, "max": 9, "missing_values": ["NA"]},
        "rent": {"kind": "number", "min": 0, "max": "auto", "bins": "auto", **missing, "unit": "EUR"},
        "moved": {"kind": "date", "min": "1990-01-01", "max": "auto", "bins": "auto", **missing},
        "pets": {"kind": "categorical", "levels": ["nein", "ja"], **missing},
        "owns": {
            "kind": "boolean",
            "missing": "level",
            "missing_values": [-9],
            "labels": {"-9": "No answer"},
        },
        "floor": {"kind": "integer", "min": 0, "max": 9, "missing_values": [-9]},
        "job": {"kind": "categorical", **DISCOVER, **missing, "description": "What they do"},
    }
    assert len(plain["notes"]) == len(FRICTIONLESS["fields"])


def example() -> Schema:
    """A schema with everything that is declared by hand."""
    return Schema(
        (
            column("sex", "categorical", levels=["F", "M"], labels={"F": "Female", "N": "Not asked"}, missing_values=["N"], title="Sex"),
            column("size", "ordinal", levels=["S", "L"], missing="level", other="L"),
            column("code", "categorical", levels=[1, 2], labels={1: "one"}),
            column("share", "ordinal", levels=[0.5, 1.5]),
            column("rooms", "integer", min=1, max=9, missing_values=[-9, "N"], missing="level"),
            column("rent", "number", min=0, max=10, bins=4, unit="EUR", other="nearest"),
            column("area", "number", edges=[0, 1.5, 9]),
            column("moved", "date", min="2020-01-01", max="2024-12-31", bins=5, description="When they came"),
            column("owns", "boolean", missing="level"),
        ),
        title="Homes",
    )  # fmt: skip


def test_frictionless_there_and_back():
    """What is exported is imported as the same columns, through JSON."""
    plain = json.loads(json.dumps(example().to_frictionless()))
    back = Schema.import_dictionary(plain)
    assert back.columns == example().columns
    assert back.title == "Homes"
    opened = columns(read_codebook(plain, open_ranges=True))
    assert opened["area"] == {"kind": "number", "min": "auto", "max": "auto", "bins": "auto"}


def test_what_is_exported_is_a_table_schema_of_the_standard():
    """By the rules of the specification: types and constraints it knows, bounds of the field's own type, every level among the categories and the enum."""
    types = {"string", "number", "integer", "boolean", "object", "array", "list", "datetime", "date", "time", "year", "yearmonth", "duration", "geopoint", "geojson", "any"}  # fmt: skip
    known = {"required", "unique", "minimum", "maximum", "enum", "pattern", "minLength", "maxLength"}
    exported = example().to_frictionless()
    assert exported["missingValues"] == [""]
    for field, declared in zip(exported["fields"], example().columns, strict=True):
        assert field["name"] == declared.name
        assert field["type"] in types
        rules = field.get("constraints", {})
        assert set(rules) <= known
        assert rules.get("required", False) == (declared.missing == "refuse" and not declared.missing_values)
        for code in field.get("missingValues", []):
            assert isinstance(code["value"] if isinstance(code, dict) else code, str)
        if "levels" in declared.to_spec():
            values = [one["value"] if isinstance(one, dict) else one for one in field["categories"]]
            assert values == list(declared.levels) == rules["enum"]
        assert field["dpcipher"]["kind"] == declared.kind
    by_name = {field["name"]: field for field in exported["fields"]}
    assert by_name["area"]["constraints"] == {"required": True, "minimum": 0, "maximum": 9}
    assert by_name["sex"]["missingValues"] == ["N"]


def awkward() -> Schema:
    """Columns whose rows a validator could refuse: codes for missing values, values outside the range, times, texts that begin formulas."""
    return Schema(
        (
            *example().columns,
            column("pay", "number", edges=[0, 1.5, 9], special=[-5, 99.5], missing_values=[-9]),
            column("left", "date", min="2020-01-01", max="2024-12-31", bins=5, missing_values=["9999-12-31", "N"]),
            column("rang", "time", min="08:00", max="12:00", bins=5),
            column("slept", "time", min="20:00", max="22:59:59", bins=3, step="00:15", special=["08:00"], missing_values=["N"]),
            column("voted", "boolean", missing_values=["X", -9]),
            column("agreed", "categorical", levels=[True, False], missing_values=[7]),
            column("sign", "categorical", levels=["=1+1", "-", "a"], missing_values=["-x", "="]),
            column("note", "categorical", levels=["", "a"]),
        )
    )  # fmt: skip


def test_the_validator_of_the_standard_takes_our_own_rows(tmp_path):
    """Rows with every level of every column, as we write them, under the table schema that we export."""
    try:
        import frictionless
    except ImportError:
        missing("frictionless", "frictionless is not installed; pip install 'dpcipher[dev]'")
    schema = awkward()
    codes = np.column_stack([np.arange(60) % column.size for column in schema.columns]).astype(np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of texts that begin formulas, and of the validator's own
        write_table(tmp_path / "rows.csv", schema.decode(codes, np.random.default_rng(0)))
        exported = frictionless.Schema.from_descriptor(json.loads(json.dumps(schema.to_frictionless())))
        checked = frictionless.Resource(path="rows.csv", basepath=str(tmp_path), schema=exported)
        assert checked.validate().flatten(["rowNumber", "fieldName", "note"]) == []
        (tmp_path / "rows.csv").write_text((tmp_path / "rows.csv").read_text().replace('"F"', '"D"'))
        assert not checked.validate().valid
    assert Schema.import_dictionary(schema.to_frictionless()).columns == schema.columns


@pytest.mark.parametrize("ours", [{"edges": [0, 10]}, "number", None, []])
def test_a_part_of_a_column_under_our_key_is_refused(ours):
    """The key holds the whole column, so that nothing is said twice; the message says what to do."""
    field = {"name": "pay", "type": "number", "dpcipher": ours}
    with pytest.raises(
        SchemaError, match=r"field 'pay': dpcipher must hold the whole column.* take the key out"
    ):
        read_codebook({"fields": [field]})


def test_an_imported_schema_waits_for_a_signature(tmp_path):
    """It is refused until signed, the file says why, and an edit voids the signature."""
    kept = {name: NIST[name] for name in ("SEX", "NOC")}
    (tmp_path / "d.json").write_text(json.dumps(kept), encoding="utf-8")
    run = CliRunner().invoke(
        main, ["schema", "import", str(tmp_path / "d.json"), "-o", str(tmp_path / "s.yaml")]
    )
    assert run.exit_code == 0, run.output
    assert "schema sign" in run.output
    text = (tmp_path / "s.yaml").read_text(encoding="utf-8")
    assert text.startswith("# CURATOR ONLY. IMPORTED FROM A DATA DICTIONARY, NOT SIGNED YET")
    assert "may have been computed from the rows" in text
    schema = Schema.load(tmp_path / "s.yaml")
    assert schema == Schema.import_dictionary(tmp_path / "d.json")
    with pytest.raises(SchemaError, match="imported from a dictionary and has not been signed off"):
        schema.require_signed()
    schema.sign("Ada", "2024-01-31").require_signed()
    shown = CliRunner().invoke(main, ["schema", "show", str(tmp_path / "s.yaml")]).output
    assert "IMPORTED FROM A DICTIONARY, NOT SIGNED" in shown


def test_schema_export_writes_what_can_be_imported(tmp_path):
    """The two commands, one after the other."""
    example().save(tmp_path / "s.yaml")
    for args in (["export", "s.yaml", "-o", "f.json"], ["import", "f.json", "-o", "back.yaml"]):
        run = CliRunner().invoke(
            main, ["schema", *(str(tmp_path / arg) if "." in arg else arg for arg in args)]
        )
        assert run.exit_code == 0, run.output
    assert Schema.load(tmp_path / "back.yaml").columns == example().columns


@pytest.mark.parametrize(
    ("text", "words"),
    [("[1]", "JSON object"), ("{", "not readable as JSON"), ('{"a": 1}', "no dictionary that can be read"), ('{"fields": [1]}', "fields, each with a name"), ('{"METADATA_SPEC_VERSION": "V0"}', "must have columns")],
)  # fmt: skip
def test_what_is_no_dictionary_is_refused_with_its_name(tmp_path, text, words):
    """The file is named, and what was expected."""
    (tmp_path / "d.json").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=f"d.json: .*{words}"):
        Schema.import_dictionary(tmp_path / "d.json")
    with pytest.raises(ParameterError, match="form"):
        Schema.import_dictionary(tmp_path / "d.json", form="spss")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.import_dictionary(Path(tmp_path / "nowhere.json"))


def codebook(attributes, ranges=""):
    """The column of a codebook with one numeric variable."""
    var = f'<var name="x" {attributes}>{ranges}<varFormat type="numeric"/></var>'
    [variable] = read_ddi(f"<codeBook><dataDscr>{var}</dataDscr></codeBook>".encode(), None).variables
    return variable


@pytest.mark.parametrize(
    ("attributes", "units", "kind", "decimals"),
    [
        ('intrvl="contin" dcml="2"', "", "number", 2),
        ('intrvl="contin" dcml="0"', "", "integer", None),
        ('intrvl="contin"', "", "number", None),
        ('intrvl="contin"', 'UNITS="INT"', "integer", None),
        ('intrvl="contin"', 'UNITS="REAL"', "number", None),
        ('intrvl="discrete"', "", "integer", None),
        ('intrvl="contin" dcml="15"', "", "number", None),
    ],
)
def test_a_codebook_says_whether_values_are_whole(attributes, units, kind, decimals):
    """By the decimals, then by the units of its range; continuous alone says neither, and a note asks."""
    variable = codebook(attributes, f'<valrng><range {units} min="0" max="900"/></valrng>')
    spec = variable.spec()
    assert (spec["kind"], spec.get("decimals")) == (kind, decimals)
    asked = any("kind: integer if" in note for note in variable.notes)
    assert asked == (kind == "number" and "dcml" not in attributes and not units)
    assert Schema.from_dict({"columns": {"x": spec}}).names == ("x",)


def test_a_range_that_is_not_whole_is_none_of_whole_numbers():
    """Whatever its units say."""
    half = codebook('intrvl="contin"', '<valrng><range UNITS="INT" min="0.5" max="9"/></valrng>').spec()
    assert (half["kind"], half["min"]) == ("number", 0.5)


def package(dialect, *fields, **resource):
    """The plain schema of a data package with one resource."""
    schema = {"fields": [{"name": "sex", "categories": ["F", "M"]}, *fields]}
    return read_codebook({"resources": [{"name": "a", "dialect": dialect, "schema": schema, **resource}]})


def test_the_dialect_becomes_the_format():
    """Separator, quotes, encoding and the marks in numbers; a plain file needs none."""
    pay = {"name": "pay", "type": "number", "decimalChar": ",", "groupChar": "."}
    assert package({"delimiter": ";", "quoteChar": "'"}, pay, encoding="ISO-8859-1")["format"] == {
        "separator": ";",
        "encoding": "latin-1",
        "decimal": ",",
        "thousands": ".",
        "quote": "'",
    }
    assert package({"groupChar": "."}, {"name": "b", "type": "number", "decimalChar": ","})["format"] == {
        "decimal": ",",
        "thousands": ".",
    }
    assert package({"delimiter": ";", "decimalChar": ","})["format"] == {"separator": ";", "decimal": ","}
    plain = package({"delimiter": ",", "header": True, "lineTerminator": "\r\n"}, encoding="utf-8")
    assert plain["format"] == {"separator": ","}
    assert not [note for note in plain["notes"] if note.startswith("left out")]


@pytest.mark.parametrize(
    ("dialect", "resource", "note"),
    [
        ({"delimiter": "||"}, {}, "separator"),
        ({"header": False}, {}, "'header'"),
        ({"commentChar": "#"}, {}, "'commentChar'"),
        ("dialect.json", {}, "another file"),
        ({}, {"encoding": "klingon"}, "encoding"),
        ({"decimalChar": ",", "groupChar": ","}, {}, "thousands"),
    ],
)
def test_what_a_format_cannot_say_is_noted(dialect, resource, note):
    """Nothing of a dialect is dropped in silence."""
    left_out = [text for text in package(dialect, **resource)["notes"] if text.startswith("left out")]
    assert len(left_out) == 1
    assert note in left_out[0]


def test_numbers_written_in_two_ways_are_noted():
    """One field with a decimal comma beside one with a point: no format holds both."""
    two = package({}, {"name": "a", "type": "number", "decimalChar": ","}, {"name": "b", "type": "number"})
    assert "format" not in two
    assert "left out: decimalChar" in two["notes"][0]


@pytest.mark.parametrize(("stated", "longest"), [(20, 20), (100, 40), (0, 40), (True, 40), (None, 40)])
def test_no_longer_text_is_published_than_the_dictionary_allows(stated, longest):
    """`maxLength` counts where it is shorter than ours."""
    fields = [{"name": "city", "type": "string", "constraints": {"maxLength": stated}}]
    assert columns(read_codebook({"fields": fields}))["city"]["max_length"] == longest
