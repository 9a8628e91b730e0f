"""From two columns to three: pairs, the equations of one step, and what the printed algorithm does to them."""

from itertools import combinations

import numpy as np
from pieces import arrow, counts, grid, noisy, picture, town

import dpcipher as dc
from dpcipher.drawing.svg import element, text
from dpcipher.tables.domain import Floats


def pairs() -> str:
    """A table of three columns, counted as its three pairs, with noise."""
    schema, rows = town()
    parts = [text(20, 30, "the rows", class_="ink head"), text(20, 48, "age, school, work", class_="soft")]
    for place, (_, row) in enumerate(rows.head(7).iterrows()):
        parts.append(text(20, 78 + 20 * place, ", ".join(row), class_="ink"))
    parts += [text(20, 78 + 20 * 7, "… 400 of them", class_="soft"), arrow(160, 130, 200)]
    left = 270.0
    for place, attrs in enumerate(combinations(schema.attrs, 2)):
        table = counts(schema, rows, attrs)
        size = 44
        names = [schema.labels(name) for name in attrs]
        parts.append(text(left - 46, 30, " × ".join(attrs), class_="ink head"))
        parts.append(grid(left, 66, table, size=size, rows=names[0], columns=names[1]))
        parts.append(text(left - 46, 222, "with noise", class_="b"))
        parts.append(grid(left, 250, noisy(table, 6, 20 + place), size=size, rows=names[0], columns=names[1]))
        left += 160
    return picture(
        720,
        400,
        parts,
        title="Pairs instead of the whole table",
        description="Rows of three columns are counted in three tables of two columns each; below, the same tables with noise on every cell.",
    )


def equations() -> str:
    """The step from pairs to a third column: one unknown for every cell, tied by sums that the pairs give."""
    schema, rows = town()
    base = counts(schema, rows, ("age", "school"))
    tables = {attrs: counts(schema, rows, attrs) for attrs in combinations(schema.attrs, 2)}
    joint = dc.solve(dc.Release.from_tables(tables, schema, scale=0), engine="table")
    share = np.asarray(joint.project(("age", "school", "work")))
    found = share[..., 1] / share.sum(axis=-1)
    age, school = schema.labels("age"), schema.labels("school")
    parts = [
        text(20, 30, "known: people", class_="ink head"),
        grid(76, 70, base, size=54, rows=age, columns=school),
        text(230, 150, "×", class_="soft", font_size=20),
        text(258, 30, "wanted: the share in work", class_="ink head"),
        grid(314, 70, found, size=54, words="{:.2f}".format, rows=age, columns=school),
        text(460, 30, "tied by: people in work", class_="ink head"),
        text(460, 62, "each row of products adds up to", class_="soft"),
    ]
    for place, (name, value) in enumerate(zip(age, tables["age", "work"][:, 1], strict=True)):
        parts.append(text(470, 102 + 54 * place, f"{name}: {value:.0f}", class_="a"))
    parts.append(text(460, 250, "each column of products to", class_="soft"))
    for place, value in enumerate(tables["school", "work"][:, 1]):
        parts.append(text(314 + 54 * place + 26, 250, f"{value:.0f}", anchor="middle", class_="a"))
    return picture(
        720,
        275,
        parts,
        title="One step of the solver",
        description="Six unknown shares of people in work, one for each age and school, tied by three sums over school and two sums over age.",
    )


def bias() -> str:
    """With exact pairs there is no noise to blame: what is left is the algorithm."""
    rng = np.random.default_rng(5)
    schema = dc.Schema.from_domain({"a": 2, "b": 2, "c": 3, "d": 3})
    errors: dict[str, Floats] = {"as printed": np.zeros(3), "weighted and centred": np.zeros(3)}
    repeats = 20
    for _ in range(repeats):
        truth = _in_pairs(schema.shape, rng)
        axes = list(combinations(range(4), 2))
        tables = {
            tuple(schema.attrs[k] for k in pair): 500 * truth.sum(axis=tuple({0, 1, 2, 3} - set(pair)))
            for pair in axes
        }
        release = dc.Release.from_tables(tables, schema, scale=0)
        for label, engine in (("as printed", "paper"), ("weighted and centred", "table")):
            joint = dc.solve(release, engine=engine)
            errors[label] += [_distance(joint, truth, order) / repeats for order in (1, 2, 3)]
    scale = 400 / max(values.max() for values in errors.values())
    parts = [text(20, 30, "Exact pairs in, no noise at all: what comes out wrong", class_="ink head")]
    for group, order in enumerate(("one column", "two columns", "three columns")):
        top = 58 + 76 * group
        parts.append(text(20, top + 30, order, class_="soft"))
        for place, (label, values) in enumerate(errors.items()):
            style = ("b", "a")[place]
            long = max(values[group] * scale, 1.5)
            parts.append(
                element("rect", x=130, y=top + 26 * place, width=long, height=20, rx=3, class_=style)
            )
            parts.append(
                text(138 + long, top + 26 * place + 15, f"{values[group]:.4f}  {label}", class_="ink")
            )
    parts.append(
        text(
            20,
            298,
            "mean total variation distance of all tables of so many columns; 20 random tables of 2 × 2 × 3 × 3 with dependence in pairs",
            class_="soft",
            font_size=11,
        )
    )
    return picture(
        720,
        315,
        parts,
        title="Why the literal algorithm is biased",
        description="; ".join(
            f"{label}: {', '.join(f'{value:.4f}' for value in values)} for one, two and three columns"
            for label, values in errors.items()
        ),
    )


def _in_pairs(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """A random joint whose columns depend on one another in pairs and no further, so that pairs are all there is to know."""
    logs = np.zeros(shape)
    for pair in combinations(range(len(shape)), 2):
        wide = [size if axis in pair else 1 for axis, size in enumerate(shape)]
        logs = logs + 0.6 * rng.standard_normal(wide)
    table = np.exp(logs)
    return np.asarray(table / table.sum())


def _distance(joint: dc.Joint, truth: Floats, order: int) -> float:
    """Mean total variation distance of all tables of an order."""
    found = []
    for kept in combinations(range(truth.ndim), order):
        table = np.asarray(joint.project(tuple(joint.schema.attrs[k] for k in kept)))
        found.append(0.5 * np.abs(table - truth.sum(axis=tuple(set(range(truth.ndim)) - set(kept)))).sum())
    return float(np.mean(found))
