"""Which tables to measure, judged on the schema."""

from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.errors import SizeError, WorkloadError
from dpcipher.schema import Schema, Workload, crossed

SCHEMA = Schema.from_domain({"age": 5, "sex": 2, "race": 3})


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=7), data=st.data())
def test_an_order_is_every_subset(sizes, data):
    """An order k gives each k-subset once, with its cells."""
    schema = Schema.from_domain({f"a{i}": size for i, size in enumerate(sizes)})
    order = data.draw(st.integers(1, len(sizes)))
    workload = Workload.parse(schema, order)
    expected = list(combinations(range(len(sizes)), order))
    assert [tuple(f"a{i}" for i in axes) for axes in expected] == list(workload.tables)
    assert [prod(sizes[i] for i in axes) for axes in expected] == list(workload.cells)
    assert sum(workload.cells) == workload.n_cells


def test_listed_tables_take_the_order_of_the_schema():
    """Tables keep their place; the names inside follow the schema."""
    workload = Workload.parse(SCHEMA, [["sex", "age"], ("race",)])
    assert workload.tables == (("age", "sex"), ("race",))
    assert workload == Workload.parse(SCHEMA, workload)


def test_closure_and_maximal_sets():
    """The closure holds every subset once, the maximal sets are those no other table covers."""
    workload = Workload.parse(SCHEMA, [("age",), ("age", "sex"), ("race",), ("age", "race")])
    assert {("age",), ("sex",), ("race",), ("age", "sex"), ("age", "race")} == set(workload.closure())
    assert len(set(workload.closure())) == len(workload.closure())
    assert workload.maximal() == (("age", "sex"), ("age", "race"))


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        (0, "from 1 to 3"),
        (-1, "from 1 to 3"),
        (4, "from 1 to 3"),
        (True, "an order such as 2"),
        (2.0, "an order such as 2"),
        (None, "an order such as 2"),
        ("age", "an order such as 2"),
        ([], "at least one"),
        ([()], "tuple of column names"),
        (["age", "sex"], "tuple of column names"),
        ([("age", "sxe")], "did you mean 'sex'"),
        ([("age", "age")], "once"),
        ([("age", "sex"), ("sex", "age"), ("race",)], "twice"),
        ([("age", "sex")], "omits the column 'race'"),
        ([("age", 3), ("sex",), ("race",)], "is not in the schema"),
    ],
)
def test_a_wrong_workload_is_refused(spec, hint):
    """Each with what to do about it."""
    with pytest.raises(WorkloadError, match=hint):
        Workload.parse(SCHEMA, spec)


@pytest.mark.parametrize(
    ("sizes", "spec"),
    [
        ([10] * 1000, 5),
        ([10**9, 10**9], 2),
        ([1] * 2000, 1000),
        ([2] * 5000, 2500),
        ([2**14, 2**14], [("a0", "a1")]),
        ([4000] * 10, 2),
    ],
)
def test_sizes_are_judged_without_enumerating(sizes, spec):
    """Schemas whose tables could never be built are refused all the same."""
    schema = Schema.from_domain({f"a{i}": size for i, size in enumerate(sizes)})
    with pytest.raises(SizeError, match="at most"):
        Workload.parse(schema, spec)


def test_crossed_groups_are_the_tables_of_the_papers_second_experiment() -> None:
    """Pairs of five groups of its seven columns: one 4-way, six 3-way and three 2-way tables, of 216 cells."""
    risks = [
        "IndustrialRisk",
        "ManagementRisk",
        "FinancialFlexibility",
        "Credibility",
        "Competitiveness",
        "OperatingRisk",
    ]
    columns = {name: {"kind": "categorical", "levels": ["P", "A", "N"]} for name in risks}
    schema = Schema.from_dict({"columns": {**columns, "Class": {"kind": "boolean"}}})
    groups = [
        ("Class", "Credibility"),
        ("IndustrialRisk", "Competitiveness"),
        *(risks[place] for place in (1, 2, 5)),
    ]
    workload = Workload.parse(schema, crossed(groups))
    assert sorted(map(len, workload.tables)) == [2] * 3 + [3] * 6 + [4]
    assert workload.n_cells == 216
    assert crossed(groups, order=1) == [group if isinstance(group, tuple) else (group,) for group in groups]
