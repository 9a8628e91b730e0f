"""Rules that labels state: which phrases are an age, which column it is of, and what becomes of rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcipher as dc
from dpcipher.errors import DataError
from dpcipher.schema import Schema
from dpcipher.schema.dictionaries.age_rules import Below, age_variable, below_age
from dpcipher.schema.dictionaries.variable import Variable

AGE = {"description": "Person's age", "values": {"min": 0, "max": 99}}


def imported(**entries):
    """The schema of a NIST dictionary with these columns beside an age."""
    return Schema.import_dictionary({"AGEP": AGE, **entries})


def texts(schema):
    """The rules of a schema as texts."""
    return [rule.text for rule in schema.rules]


@pytest.mark.parametrize(
    ("label", "years", "only"),
    [
        ("N/A (less than 15 years old)", 15, True),
        ("N/A (less than 15 years old", 15, True),
        ("N/A (age less than 15 years)", 15, True),
        ("n/a: under 18 years of age", 18, True),
        ("NA, younger than 5", 5, True),
        ("Not applicable (persons under 16)", 16, True),
        ("Not in universe (children under 3 years old)", 3, True),
        ("N/A - below the age of 21", 21, True),
        ("N/A (less than 16 years old, or last worked more than 5 years ago, or never worked)", 16, False),
        ("N/A (GQ/vacant/less than 5 years old)", 5, False),
        ("Inapplicable (aged < 12)", 12, True),
    ],
)
def test_a_plain_statement_is_read(label, years, only):
    """An age in any of its common wordings, alone or among alternatives."""
    assert below_age(label) == Below(years, only)


@pytest.mark.parametrize(
    "label",
    [
        "N/A",
        "N/A (GQ/vacant)",
        "Less than 15 years old",
        "N/A (less than 15)",
        "N/A (less than 15 employees)",
        "N/A (married less than 2 years)",
        "N/A (in the country less than 5 years)",
        "N/A (less than 16 years old and not at school)",
        "N/A (females less than 15 years old)",
        "N/A (less than 16 years old, not in the labour force)",
        "N/A (last worked less than 5 years ago)",
        "N/A (not less than 15 years old)",
        "N/A (15 years or older)",
        "N/A males (less than 15 years old)",
        "N/A (less than 3 years old or younger than 5)",
        "Nashville (under 15 years old)",
        "Named (under 15 years old)",
        None,
        15,
    ],
)
def test_anything_less_plain_is_left(label):
    """A condition beside the age, another thing counted in years, or no word that it does not apply."""
    assert below_age(label) is None


def test_one_column_is_the_age():
    """By its name before its title; an age in months, or two of them, is none."""
    named, titled = (
        Variable("AGE", "integer"),
        Variable("Q1", "integer", title="Age of the respondent, in years"),
    )
    house = Variable("HOUSE", "integer", title="Age of the house")
    assert age_variable([house, titled, named]) is named
    assert age_variable([house, titled]) is titled
    assert age_variable([house]) is None
    assert age_variable([Variable("AGE", "integer", unit="months")]) is None
    assert age_variable([titled, Variable("Q2", "integer", title="Age")]) is None
    assert age_variable([Variable("AGE", values=["young", "old"])]) is None


def test_labels_become_rules_and_edges():
    """Both directions where age is all that a label names, one where there are other reasons; open columns get the edges."""
    schema = imported(
        MSP={"description": "Status", "values": {"N": "N/A (less than 15 years old)", "1": "Married"}},
        JOB={
            "description": "Job",
            "values": {"N": "N/A (less than 16 years old, or never worked)", "1": "Farmer"},
        },
        PINCP={
            "description": "Income",
            "values": {"N": "N/A (less than 15 years old)", "min": 0, "max": 900000},
        },
        CODE={"description": "Codes found later"},
    )
    assert texts(schema) == [
        "AGEP < 15 -> MSP == 'N'",
        "AGEP >= 15 -> MSP != 'N'",
        "AGEP < 16 -> JOB == 'N'",
        "AGEP < 15 -> PINCP == 'N'",
        "AGEP >= 15 -> PINCP != 'N'",
    ]
    assert schema.column("AGEP").bins == "auto"
    assert schema.column("AGEP").edges == (15, 16)
    assert any("rule 3" in note and "the label of N of 'JOB'" in note for note in schema.provenance.notes)
    assert schema.needs_signature
    assert not schema.signed


@pytest.mark.parametrize(
    ("age", "values"),
    [
        ({"min": 18, "max": 99}, {"N": "N/A (less than 15 years old)", "1": "x"}),
        ({"min": 0, "max": 9}, {"N": "N/A (less than 15 years old)", "1": "x"}),
        ({"min": 1, "max": 99, "-1": "Not told"}, {"N": "N/A (less than 15 years old)", "1": "x"}),
        (
            {"min": 0, "max": 99},
            {"N": "N/A (less than 3 years old)", "M": "N/A (less than 5 years old)", "1": "x"},
        ),
    ],
)
def test_what_columns_cannot_say_is_no_rule(age, values):
    """An age outside the range, an age that is none, or two codes that contradict one another."""
    schema = Schema.import_dictionary({"AGEP": {"description": "Age", "values": age}, "Q": {"description": "Q", "values": values}})  # fmt: skip
    assert schema.rules == ()


def test_names_and_codes_are_quoted():
    """Columns with spaces, codes with quotes: the rule still means them."""
    fields = [
        {"name": "age in years", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {"name": "not", "categories": [{"value": "it's", "label": "NA (under 5 years old)"}, "yes"]},
    ]
    schema = Schema.import_dictionary({"fields": fields})
    assert texts(schema)[0] == "`age in years` < 5 -> `not` == 'it''s'"
    assert schema.rules[1].becomes == {"not": "(missing)"}


def test_rows_that_break_them_are_moved_or_refused_without_a_value():
    """A child takes the code; an adult who has it becomes missing where that is a level, else the table is refused."""
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 20, "required": True}},
        {
            "name": "work",
            "categories": [{"value": "N", "label": "N/A (less than 15 years old)"}, "yes", "no"],
        },
    ]
    schema = Schema.import_dictionary({"fields": fields})
    rows = pa.table({"age": [3, 3, 19, 19], "work": ["yes", "N", "N", "no"]})
    work = [schema.labels("work")[code] for code in schema.encode(rows)[:, 1]]
    assert work == ["N", "N", "(missing)", "no"]
    fields[1]["constraints"] = {"required": True}
    strict = Schema.import_dictionary({"fields": fields})
    assert strict.encode(rows.slice(0, 2)).shape == (2, 2)
    with pytest.raises(DataError, match=r"rule 2 .* are refused") as refused:
        strict.encode(rows)
    assert "19" not in str(refused.value)


def test_synthetic_rows_keep_what_labels_say():
    """From a dictionary to rows in which no child has an income, and no adult lacks one for being a child."""
    schema = imported(
        PINCP={
            "description": "Income",
            "values": {"N": "N/A (less than 15 years old)", "min": 0, "max": 900000},
        },
        SEX={"description": "Sex", "values": {"1": "Male", "2": "Female"}},
    ).sign("Ada Curator", "2024-01-31")
    rng = np.random.default_rng(1)
    ages = rng.integers(0, 100, 3000)
    income = np.where(ages < 15, "N", rng.integers(0, 90000, 3000).astype(str))
    people = pd.DataFrame({"AGEP": ages, "PINCP": income, "SEX": rng.integers(1, 3, 3000)})
    release = dc.measure(people, schema, epsilon=1.0, delta=1e-9, unit="add-remove")
    rows = dc.solve(release).sample(2000, seed=1)
    assert ((rows["AGEP"] < 15) == (rows["PINCP"] == "N")).all()
