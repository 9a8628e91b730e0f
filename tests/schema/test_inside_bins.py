"""Values drawn inside bins: on the grid, along the density, never a special value."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.stats import expon, norm, wasserstein_distance

import dpcipher as dc
from dpcipher.errors import SchemaError
from dpcipher.schema.declared import column
from dpcipher.schema.inside_bins import Spread
from dpcipher.schema.scale import Grid

RNG = np.random.default_rng


def test_the_curve_is_scipys_monotone_cubic():
    """Inside the bins the cumulative probability is that of scipy's PCHIP interpolator."""
    edges, masses = np.array([0.0, 2.0, 5.0, 6.0, 10.0]), np.array([0.1, 0.3, 0.2, 0.4])
    spread = Spread.smooth(edges, masses, single=0.0)
    bins, uniforms = np.repeat(np.arange(4), 9), np.tile(np.linspace(0.1, 0.9, 9), 4)
    cumulative = PchipInterpolator(edges, np.concatenate([[0.0], np.cumsum(masses)]))
    expected = np.concatenate([[0.0], np.cumsum(masses)])[bins] + uniforms * masses[bins]
    assert np.allclose(expected, cumulative(spread.draw(bins, uniforms)), atol=1e-9)


@given(masses=st.lists(st.floats(0, 1), min_size=1, max_size=30), share=st.floats(0, 1))
def test_points_stay_in_their_bins_and_in_order(masses, share):
    """Whatever the masses, a larger share lies at a larger point, and both inside the bin."""
    edges = np.cumsum(np.arange(1, len(masses) + 2))
    bins = np.arange(len(masses))
    spread = Spread.smooth(edges, np.array(masses), single=1.0)
    lower, upper = (spread.draw(bins, np.full(len(masses), u)) for u in (share / 2, share))
    assert (edges[:-1] <= lower).all()
    assert (lower <= upper + 1e-9).all()
    assert (upper <= edges[1:]).all()


def test_bins_that_say_nothing_about_one_another_stay_uniform():
    """Where every other bin is empty, the neighbours of a bin say nothing about its inside."""
    spread = Spread.smooth(np.arange(0, 420, 10), np.tile([1.0, 0.0, 5.0, 0.3], 11)[:41], single=1.0)
    assert np.allclose(spread.left, 1.0)
    assert np.allclose(spread.right, 1.0)


def test_the_tails_of_exponential_columns_are_exponential():
    """Two bins of an exponential column, the second with a far end: its values have the column's own quantiles, also from the right to the left."""
    edges, scale, shares = np.array([0.0, 30.0, 1000.0]), 20.0, np.linspace(0.05, 0.95, 10)
    masses = -np.diff(np.exp(-edges / scale))
    upper = expon(loc=30.0, scale=scale)
    expected = upper.ppf(shares * upper.cdf(1000.0))
    bins = np.ones(10, dtype=np.int64)
    spread = Spread.smooth(edges, masses, single=0.0)
    mirrored = Spread.smooth(-edges[::-1], masses[::-1], single=0.0)
    assert np.allclose(spread.draw(bins, shares), expected)
    assert np.allclose(mirrored.draw(bins - 1, 1 - shares), -expected)
    within = spread.draw(bins, shares, within=(50.0, 90.0))
    assert np.allclose(within, upper.ppf(upper.cdf(50) + shares * (upper.cdf(90) - upper.cdf(50))))


@pytest.mark.parametrize("width", [100.0, 1e5])
def test_an_end_however_far_keeps_its_values_beside_its_neighbour(width):
    """The density falls by exp(7,000) and more over the end bin: every value is finite, in the bin and near the full one, at both ends."""
    edges = np.array([0.0, 1.0, width * 70])
    uniforms = np.array([0.0, 0.3, 0.999999, 1.0])
    bins = np.ones(4, dtype=np.int64)
    right = Spread.smooth(edges, np.array([0.99, 0.01]), single=0.0).draw(bins, uniforms)
    left = Spread.smooth(-edges[::-1], np.array([0.01, 0.99]), single=0.0).draw(bins - 1, uniforms)
    for distance in (right, -left):
        assert np.all((distance >= 1) & (distance < 12))
    assert np.allclose(right[1:3] - 1, -np.log1p(-uniforms[1:3]) / np.log(100))


@pytest.mark.parametrize("draw", [lambda r: r.lognormal(5, 1, 20_000), lambda r: 300 * r.random(20_000)])
def test_a_generous_bound_does_not_draw_values_far_out(draw):
    """The last of 15 bins reaches from the column's top twentieth to a public bound of ten thousand: values stay near the column's own."""
    data = np.clip(draw(RNG(0)), 0, 10_000)
    edges = np.array([0, *np.quantile(data, np.linspace(0.05, 0.95, 14)), 10_000])
    masses = np.histogram(data, edges)[0] / len(data)
    bins = np.repeat(np.arange(15), np.histogram(data, edges)[0])
    uniforms = RNG(1).random(len(bins))
    even, bent = (
        wasserstein_distance(data, spread.draw(bins, uniforms))
        for spread in (Spread.uniform(edges), Spread.smooth(edges, masses, single=0.0))
    )
    assert bent < even / 10


def test_an_atom_does_not_bend_its_neighbours():
    """A bin of one value, such as zero, says nothing about the density beside it."""
    with_atom = Spread.smooth(np.array([0, 1, 101, 201, 301]), np.array([0.9, 0.05, 0.03, 0.02]), single=1.0)
    without = Spread.smooth(np.array([1, 101, 201, 301]), np.array([0.05, 0.03, 0.02]), single=1.0)
    assert np.allclose(with_atom.left[1:], without.left)
    assert np.allclose(with_atom.right[1:], without.right)


def test_drawn_values_are_nearer_to_a_smooth_column_than_uniform_ones():
    """The values of a normal column in ten bins: a quarter of the Wasserstein distance that uniform values have."""
    declared = column("x", "integer", min=0, max=99, bins=10)
    data = np.clip(np.round(norm.ppf((np.arange(20_000) + 0.5) / 20_000, 50, 12)), 0, 99)
    codes = declared.encode(pa.array(data))
    masses = np.bincount(codes, minlength=10) / len(codes)
    even = wasserstein_distance(data, declared.decode(codes, RNG(0)).to_numpy())
    bent = wasserstein_distance(data, declared.decode(codes, RNG(0), masses=masses).to_numpy())
    assert bent < even / 4


def test_a_joint_draws_along_its_own_density():
    """The rows of a solved release follow the bins beside them, alone or in a table with another column."""
    columns = (column("x", "integer", min=0, max=29, bins=3), column("s", "categorical", levels=("a", "b")))
    counts = {("x", "s"): np.repeat([3000.0, 2000.0, 1000.0], 2).reshape(3, 2)}
    schema = dc.Schema(columns)
    rows = dc.solve(dc.Release.from_tables(counts, schema, scale=0)).sample(60_000, seed=1)
    first = Counter(rows["x"])
    assert sum(first[v] for v in range(5)) > 1.1 * sum(first[v] for v in range(5, 10))


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        ({"kind": "integer", "step": 10, "edges": [0, 25, 60]}, {0, 10, 20, 30, 40, 50, 60}),
        ({"kind": "number", "step": 0.25, "min": 0, "max": 1, "bins": 2}, {0, 0.25, 0.5, 0.75, 1}),
        ({"kind": "number", "decimals": 1, "edges": [0.05, 0.15, 0.35]}, {0.1, 0.2, 0.3}),
        ({"kind": "number", "decimals": 0, "edges": [0, 2, 4]}, {0, 1, 2, 3, 4}),
        ({"kind": "integer", "edges": [0, 3, 6], "special": [0, 5, 99]}, {0, 1, 2, 3, 4, 5, 6, 99}),
        ({"kind": "number", "edges": [0, 2], "decimals": 0, "special": [0.5, 2]}, {0, 0.5, 1, 2}),
    ],
)
def test_every_value_of_the_grid_is_drawn_and_no_other(facts, values):
    """Drawn values are multiples of the step, or have so many decimals, and belong to the level they are drawn for."""
    declared = column("c", **facts, missing="level")
    codes = np.tile(np.arange(declared.size - 1, dtype=np.int32), 2_000)
    drawn = declared.decode(codes, RNG(1))
    assert values == set(drawn.to_pylist())
    assert codes.tolist() == declared.encode(drawn).tolist()


@given(step=st.sampled_from([0.01, 0.05, 0.1, 0.3, 1, 2.5]), low=st.integers(-1000, 1000))
def test_values_of_a_step_are_written_as_people_write_them(step, low):
    """0.15 is 0.15, not 0.15000000000000002."""
    declared = column("x", "number", edges=[low, low + 7, low + 50], step=step)
    drawn = declared.decode(np.repeat([0, 1], 50).astype(np.int32), RNG(2)).to_pylist()
    assert all(len(repr(value)) <= 8 for value in drawn)


def test_numbers_without_decimals_get_those_that_their_edges_warrant():
    """Whole dollars for bins of 50,000; three decimals for halves; as declared where the edges have more."""
    assert column("x", "number", min=0, max=1_000_000, bins=20).domain.grid == Grid(1, 1)
    assert column("x", "number", edges=[0, 0.5, 1]).domain.grid == Grid(1, 1000)
    assert column("x", "number", edges=[0, 1000.25, 9000]).domain.grid == Grid(1, 100)
    assert column("x", "number", min=0, max=1e-20, bins=2).domain.grid is None


def test_special_values_are_levels_of_their_own():
    """They are coded before the bins, wherever they lie, and named by their value; missing still comes last."""
    declared = column(
        "d", "integer", min=0, max=99, bins=2, special=[-1, 0, 999], missing="level", other="nearest"
    )
    assert declared.labels == ("0..49", "50..99", "-1", "0", "999", "(missing)")
    assert declared.encode(pa.array([-1, 0, 1, 99, 999, 998, -2, None])).tolist() == [2, 3, 0, 1, 4, 1, 0, 5]
    assert [declared.find(value) for value in (0, "999", "50..99", None)] == [3, 4, 1, 5]
    assert declared.to_spec()["special"] == [-1, 0, 999]
    assert column(**declared.to_spec()) == declared


def test_no_code_for_a_missing_value_is_drawn():
    """A value inside a bin must not read as missing; one that is special too is refused."""
    declared = column("d", "integer", min=-10, max=9, bins=2, missing_values=[-9, "N"])
    codes = np.repeat([0, 1], 500).astype(np.int32)
    drawn = declared.values(codes, RNG(0))
    assert set(drawn.to_pylist()) == set(range(-10, 10)) - {-9}
    with pytest.raises(SchemaError, match="missing_values"):
        column("d", "integer", min=-10, max=9, bins=2, missing_values=[-9, "N"], special=[-9])


def test_a_range_asks_for_the_special_values_in_it():
    """{min, max} allows the bins and the special values between."""
    schema = dc.Schema((column("d", "integer", min=0, max=99, bins=2, special=[-1, 60, 999]),))
    assert schema.allowed({"d": {"min": 50}})[0].tolist() == [False, True, False, True, True]


def test_rules_know_special_values():
    """A rule may name a special value, also of a number column, and judges it by its own size; a bin that is partly allowed stays."""
    spend = {"kind": "number", "edges": [0, 100, 1000], "special": [0, 9999]}
    columns = {"spend": spend, "club": {"kind": "categorical", "levels": ["yes", "no"]}}
    schema = dc.Schema.from_dict(
        {"columns": columns, "rules": ["spend == 0 -> club == no", "club == no -> spend < 1000"]}
    )
    possible = np.ones((4, 2), dtype=bool)
    for axes, mask in schema.zero_masks:
        assert axes == (0, 1)
        possible &= ~mask
    assert possible.tolist() == [[True, True], [True, True], [False, True], [True, False]]


def test_special_dates_come_back_as_dates():
    """A date that stands for never is a level of its own."""
    declared = column("d", "date", min="2020-01-01", max="2020-12-31", bins=12, special=["9999-12-31"])
    drawn = declared.decode(np.array([0, 12], dtype=np.int32), RNG(0))
    assert drawn.type == pa.date32()
    assert str(drawn[1]) == "9999-12-31"


@pytest.mark.parametrize(("low", "high"), [(20, 20), (17, 23), (0, 99), (20.0, 25.5)])
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_values_within_a_part_of_a_bin(kind, low, high):
    """A range asked for inside a bin is kept to, and all of it is used."""
    declared = column("x", kind, edges=[0, 50, 100], special=[21])
    codes = np.zeros(3_000, dtype=np.int32)
    drawn = declared.decode(codes, RNG(0), masses=np.array([0.8, 0.1, 0.1]), within=(low, high)).to_numpy()
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    assert (drawn != 21).all()
    assert drawn.max() - drawn.min() >= 0.8 * (min(high, 49) - low) - 1
    assert declared.encode(pa.array(drawn)).tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kind": "number", "edges": [0, 1], "decimals": 2, "step": 1}, "twice"),
        ({"kind": "integer", "edges": [0, 9], "decimals": 2}, "integers have none"),
        ({"kind": "number", "edges": [0, 9], "decimals": True}, "from 0 to 15"),
        ({"kind": "number", "edges": [0, 1e12], "decimals": 9}, "too fine"),
        ({"kind": "integer", "edges": [0, 9], "step": 0.5}, "must be whole"),
        ({"kind": "integer", "edges": [0, 9], "step": -1}, "above 0"),
        ({"kind": "integer", "edges": [0, 3, 5, 9], "step": 5}, "a value in every bin"),
        ({"kind": "integer", "edges": [1, 3, 9], "step": 5}, "a value in every bin"),
        ({"kind": "integer", "edges": [0, 1, 9], "special": [0]}, "a value in every bin"),
        ({"kind": "integer", "min": 0, "max": 9, "special": [0]}, "a level of its own already"),
        ({"kind": "integer", "min": 0, "max": 9, "step": 2}, "a level of its own already"),
        ({"kind": "integer", "edges": [0, 9], "special": [20, 20]}, "each value once"),
        ({"kind": "integer", "edges": [0, 9], "special": 20}, "must be a list"),
        ({"kind": "integer", "edges": [0, 9], "special": [0.5]}, "must be whole"),
        (
            {"kind": "date", "edges": ["2020-01-01", "2021-01-01"], "step": 7},
            "integer, number and time columns",
        ),
        ({"kind": "ordinal", "levels": [1, 2], "special": [1]}, "integer, number, date and time"),
    ],
)
def test_what_cannot_be_meant_is_refused(facts, words):
    """Each rule names itself."""
    with pytest.raises(SchemaError, match=words):
        column("c", **facts)


def test_models_use_special_values_as_they_are():
    """The value that stands for a special level is that level's own."""
    low, high = column("d", "integer", min=0, max=99, bins=2, special=[-1]).domain.ends
    assert (low.tolist(), high.tolist()) == ([0, 50, -1], [49, 99, -1])
