"""Schema files: what is saved is what is loaded, and what is wrong is refused."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema import Provenance, Schema, Zero, column

# Texts that some YAML reader takes for something else, beside arbitrary ones.
words = st.sampled_from(
    ["yes", "NO", "n", "Y", "on", "01", "0x1F", "1e5", "1_000", "12:30", "~", "null", "", " x", "a: b", "#"]
)
words |= st.text(max_size=6)
listed = st.one_of(
    st.lists(words, min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6, unique=True),
    st.just([True, False]),
)
kinds = st.one_of(
    st.builds(dict, kind=st.just("categorical"), levels=listed),
    st.builds(
        dict,
        kind=st.just("number"),
        edges=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=5, unique=True).map(sorted),
    ),
    st.builds(
        dict, kind=st.just("integer"), min=st.integers(-50, 0), max=st.integers(9, 99), bins=st.integers(1, 9)
    ),
    st.just({"kind": "date", "min": "2020-01-01", "max": "2024-12-31", "bins": 5, "other": "nearest"}),
    st.just({"kind": "boolean", "missing": "level"}),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    specs=st.dictionaries(words.filter(bool), kinds, min_size=1, max_size=5), drawn=st.booleans(), note=words
)
def test_saved_is_loaded(specs, drawn, note, tmp_path):
    """YAML and JSON give back the same schema and the same fingerprint, whatever the names and levels."""
    try:
        columns = tuple(column(name, **spec) for name, spec in specs.items())
    except SchemaError:  # two levels that read the same, such as -0.0 and 0.0
        return
    schema = Schema(columns, provenance=Provenance(drawn, None, (note,) if note else ()))
    for ending in ("yaml", "json"):
        schema.save(tmp_path / f"s.{ending}", force=True)
        loaded = Schema.load(tmp_path / f"s.{ending}")
        assert loaded == schema
        assert loaded.fingerprint() == schema.fingerprint()


def test_zeros_and_signature_are_saved(tmp_path):
    """Nothing of a schema is lost on the way to a file and back."""
    schema = Schema(
        (column("a", "boolean"), column("b", "integer", min=0, max=9), column("c", "boolean")),
        zeros=(Zero({"a": [True], "b": {"max": 3}}, {"a": False}),),
        provenance=Provenance(drawn_from_data=True),
    ).sign("Ada Lovelace", "2024-05-01")
    for ending in ("yml", "json"):
        schema.save(tmp_path / f"s.{ending}", force=True)
        assert Schema.load(tmp_path / f"s.{ending}") == schema
        assert Schema.load(tmp_path / f"s.{ending}").signed
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_a_column_may_be_called_refuse(tmp_path):
    """Names are not mistaken for rules."""
    schema = Schema((column("refuse", "categorical", levels=["refuse", "level"], other="level"),))
    schema.save(tmp_path / "s.yaml", force=True)
    assert Schema.load(tmp_path / "s.yaml") == schema


def test_an_edit_in_the_file_voids_the_signature(tmp_path):
    """Changing one number in a signed draft is noticed."""
    path = tmp_path / "s.yaml"
    drawn = Schema((column("age", "integer", min=17, max=93),), provenance=Provenance(drawn_from_data=True))
    drawn.sign("Ada", "2024-05-01").save(path, force=True)
    Schema.load(path).require_signed()
    path.write_text(path.read_text().replace("max: 93", "max: 94"))
    with pytest.raises(SchemaError, match="edited after its sign-off"):
        Schema.load(path).require_signed()


def test_a_draft_says_so_at_the_top_and_how_to_sign(tmp_path):
    """Whoever opens an unsigned draft reads first that it is not private."""
    path = tmp_path / "s.yaml"
    drawn = Schema((column("age", "integer", min=17, max=93),), provenance=Provenance(drawn_from_data=True))
    drawn.save(path, force=True)
    text = path.read_text()
    assert text.startswith("# CURATOR ONLY. DRAFT, DRAWN FROM PRIVATE DATA")
    assert "dpcipher schema sign" in text
    drawn.sign("Ada", "2024-05-01").save(path, force=True)
    assert "DRAFT" not in path.read_text()


def test_a_person_writes_yaml_by_hand(tmp_path):
    """Unquoted no, 01 and dates are the texts they look like."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns:\n"
        "  smoker: {kind: categorical, levels: [yes, no]}\n"
        "  code: {kind: categorical, levels: [01, 02, N]}\n"
        "  stage: {kind: ordinal, levels: [1, 2, 3]}\n"
        "  flag: {kind: categorical, levels: [true, false]}\n"
        "  born: {kind: date, min: 1990-01-01, max: 1999-12-31, bins: 10}\n"
        "  income: {kind: number, edges: [0, 1e4, 2.5e4]}\n"
    )
    columns = {column.name: column for column in Schema.load(path).columns}
    assert columns["smoker"].levels == ("yes", "no")
    assert columns["code"].levels == ("01", "02", "N")
    assert columns["stage"].levels == (1, 2, 3)
    assert columns["flag"].levels == (True, False)
    assert columns["born"].labels[0] == "1990-01-01..1990-12-31"
    assert columns["income"].edges == (0, 10000.0, 25000.0)


def test_the_domain_json_of_private_pgm_is_read(tmp_path):
    """{column: size} is a schema of integer codes."""
    path = tmp_path / "domain.json"
    path.write_text('{"age": 85, "income>50K": 2}')
    assert Schema.load(path) == Schema.from_domain({"age": 85, "income>50K": 2})
    path.write_text('{"age": 85, "sex": 0}')
    with pytest.raises(SchemaError, match="from 1 up"):
        Schema.load(path)


BAD_FILES = [
    ("s.yaml", "columns: [", "line 1"),
    ("s.yaml", "", "mapping"),
    ("s.yaml", "- a", "mapping"),
    ("s.yaml", "columns:\n  a: {kind: boolean}\n  a: {kind: boolean}\n", "twice"),
    ("s.yaml", "columns: &x {a: {kind: boolean}}\nzeros: *x\n", "aliases"),
    ("s.yaml", "columns: {a: !!python/object/apply:os.getpid []}", "line 1"),
    ("s.yaml", "columns: {a: {kind: boolean, level: [1]}}", "did you mean 'levels'"),
    ("s.yaml", "columns: {a: {levels: [1]}}", "kind is missing"),
    ("s.yaml", "columns: {a: boolean}", "must be a mapping"),
    ("s.yaml", "columns: {a: {kind: boolean}}\nzero: []", "did you mean 'zeros'"),
    ("s.yaml", "columns: {a: {kind: boolean}}\nzeros: [{a: true}]", "impossible"),
    ("s.yaml", "columns: {a: {kind: boolean}}\ncompounds: [a]", "list the tables to measure"),
    (
        "s.yaml",
        "columns: {a: {kind: integer, edges: [0, 9], searched: [auto, auto]}}",
        "judged by their bins",
    ),
    ("s.yaml", "columns: {a: {kind: boolean}}\nversion: 99", "newer dpcipher"),
    ("s.yaml", "columns: {a: {kind: boolean}}\ndrawn_from_data: maybe", "true or false"),
    ("s.yaml", "columns: {a: {kind: boolean}}\nsign_off: Ada", "name, date and hash"),
    ("s.yaml", "columns: {}", "at least one column"),
    ("s.json", '{"columns": {"a": {"kind": "boolean"}, "a": {"kind": "boolean"}}}', "twice"),
    ("s.json", "{", "JSON"),
    ("s.json", "[" * 100_000, "JSON"),
    ("s.json", "{}", "key columns"),
    ("s.txt", "columns: {}", "must end in"),
]


@pytest.mark.parametrize(("name", "text", "hint"), BAD_FILES)
def test_a_wrong_file_is_refused(name, text, hint, tmp_path):
    """The error names the file and what to correct."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SchemaError, match=hint) as caught:
        Schema.load(path)
    assert name in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path):
    """Absent files, folders, other encodings and places where nothing can be written."""
    with pytest.raises(SchemaError, match="no such file"):
        Schema.load(tmp_path / "absent.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(SchemaError, match="no such file"):
        Schema.load(tmp_path / "folder.yaml")
    (tmp_path / "latin.yaml").write_bytes("columns: {é: {kind: boolean}}".encode("latin-1"))
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.load(tmp_path / "latin.yaml")
    with pytest.raises(SchemaError, match="cannot be written"):
        Schema.from_domain({"a": 2}).save(tmp_path / "absent" / "s.yaml")


def test_a_size_error_keeps_its_kind_and_names_the_file(tmp_path):
    """Too many levels in a file is still a matter of size."""
    path = tmp_path / "s.json"
    path.write_text('{"age": 10000000000}')
    with pytest.raises(SizeError, match=r"s\.json"):
        Schema.load(path)


def test_labels_may_be_keyed_by_numbers_as_they_stand_in_the_rows(tmp_path):
    """`17.5: under 20` needs no quotes, as `1: Male` needs none."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns: {age: {kind: ordinal, levels: [17.5, 22], labels: {17.5: under 20, 22: 20 to 24}}}"
    )
    assert Schema.load(path).shown_labels("age") == ("under 20", "20 to 24")
