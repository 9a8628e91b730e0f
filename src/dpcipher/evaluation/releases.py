"""`measure` on neighbours: everything it offers, recorded and replayed from a frame, with a person's rows come or changed.

The questions must cost no more than they declare; the release, its certificate, progress and warnings must follow from the answers alone.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaln, gammaln

from dpcipher.curator.measure import measure
from dpcipher.evaluation.check import Check, describe, replay_check
from dpcipher.evaluation.replay import record
from dpcipher.methods import MultinomialDirichlet
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.terms import Unit
from dpcipher.release.release import Release
from dpcipher.request.request import Auto
from dpcipher.schema.grouped import Grouped
from dpcipher.schema.schema import Schema

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ReleaseSubject:
    """`measure` with some options, the rows it is audited on, and the rows that one person may have; more of them than count, where they are capped."""

    name: str
    schema: Schema
    rows: pd.DataFrame
    own: Sequence[Row]
    options: Mapping[str, Any]
    unit: Unit
    beyond: int = 0

    @cached_property
    def budget(self) -> Budget:
        """The whole budget."""
        amounts = {name: self.options.get(name) for name in ("epsilon", "delta", "rho")}
        return Budget.parse(**amounts, may_fail=self.schema.discovers)

    def measure(self, data: Any, schema: Schema, progress: Callable[[str], None]) -> Release:
        """The release."""
        unit, max_rows = self.unit.relation, self.unit.max_rows
        return measure(data, schema, progress=progress, unit=unit, max_rows=max_rows, **self.options)

    def tables(self) -> Iterator[pd.DataFrame]:
        """The table, and its neighbours."""
        number = self.unit.max_rows + self.beyond
        persons = [pd.DataFrame([row] * number) for row in self.own]
        others = [pd.concat([self.rows, person], ignore_index=True) for person in persons]
        yield from others if self.unit.relation == "replace" else [self.rows, *others]


def release_checks(rng: np.random.Generator) -> Iterator[Check]:
    """Every option of `measure`, and rows from a posterior that may fail."""
    for unit in (Unit("add-remove"), Unit("add-remove", 3), Unit("replace", 3)):
        yield failing_urn_check(unit)
    for asked in _subjects():
        yield replay_check(
            "releases",
            asked.name,
            asked.unit,
            asked,
            list(asked.tables()),
            asked.schema,
            int(rng.integers(2**31)),
        )


def failing_urn_check(unit: Unit) -> Check:
    """Rows from a posterior with delta, by the prior that the bounds of the draws show.

    From one row of a person to the next, an output tells more than its part of epsilon where a cell is drawn too often; the beta-binomial law says how
    probable that is, for any number of rows in the cell. Steps add up, each with e^epsilon of those before it.
    """
    drawn, shape = 40, (4, 4, 4)
    schema, rows = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)}), _chain(3, 4, 50)
    method = MultinomialDirichlet(3.0, delta=1e-6, unit=unit.relation, max_rows=unit.max_rows, n_rows=drawn)
    run = record(method, rows, schema, seed=0)
    step = run.bounds[1] - run.bounds[0]
    cells, (event,) = math.prod(shape), run.events
    prior = (run.bounds[0] / step - len(rows)) / cells
    each = math.sqrt(2 * event["cost"]) / unit.max_rows
    held = range(max(1, math.ceil(drawn / math.expm1(each))))
    told = max(
        _drawn_more(math.expm1(each) * (prior + n), drawn, prior + n + 1, (cells - 1) * prior) for n in held
    )
    found = told * sum(math.exp(each * earlier) for earlier in range(unit.max_rows))
    delta = float(Fraction(event["delta"]))
    return Check(
        "releases", "multinomial-Dirichlet: delta of its rows", describe(unit), delta, found, len(held)
    )


def _drawn_more(limit: float, n_rows: int, a: float, b: float) -> float:
    """The probability that more than `limit` of the rows are drawn from a cell: the tail of the beta-binomial law."""
    k = np.arange(math.floor(limit) + 1, n_rows + 1)
    ways = gammaln(n_rows + 1) - gammaln(k + 1) - gammaln(n_rows - k + 1)
    return float(np.exp(ways + betaln(k + a, n_rows - k + b) - betaln(a, b)).sum())


def _chain(columns: int, levels: int, n_rows: int) -> pd.DataFrame:
    """Columns of which each is like the one before."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, levels, (n_rows, columns))
    for place in range(1, columns):
        codes[:, place] = np.where(rng.random(n_rows) < 0.7, codes[:, place - 1], codes[:, place])
    return pd.DataFrame(codes, columns=[f"c{place}" for place in range(columns)])


def _coded(name: str, columns: int, levels: int, n_rows: int, unit: Unit, **options: Any) -> ReleaseSubject:
    """A chain of columns, and persons in a corner or across it, where nobody else is."""
    rows = _chain(columns, levels, n_rows)
    rows = rows[(rows["c0"] != 0) | (rows["c1"] != 1)]
    own = [dict.fromkeys(rows, level) for level in (0, levels - 1)]
    across = {column: place % levels for place, column in enumerate(rows)}
    schema = Schema.from_domain(dict.fromkeys(rows, levels))
    return ReleaseSubject(name, schema, rows, [*own, across], options, unit)


def _subjects() -> Iterator[ReleaseSubject]:
    """The options of `measure`, each on a table of its own."""
    one, several, replaced = Unit("add-remove"), Unit("add-remove", 3), Unit("replace", 2)
    weights = {("c0", "c1"): 3.0, ("c2",): 1.0}
    yield _coded(
        "weights and sets", 3, 3, 200, replaced, workload=list(weights), weights=weights, sets=2, epsilon=2.0
    )
    groups = Grouped(("c0", "c1"), c0=[0, 2], c1=[[0, 3], [1, 2]])
    yield _coded(
        "levels in groups", 3, 4, 200, replaced, workload=[("c0",), groups, ("c1", "c2")], epsilon=2.0
    )
    yield _coded("triples in sets", 4, 2, 200, several, workload=3, sets=3, epsilon=2.0, delta=1e-6)
    yield _coded("quadruples", 5, 2, 200, replaced, workload=4, rho=0.5)
    yield from _persons()
    yield from _open_schemas(several, replaced)
    yield _coded("small table", 4, 3, 1_000, one, workload=Auto(), epsilon=2.0)
    yield _coded("pairs that span", 16, 3, 800, one, workload=Auto(max_order=2), epsilon=0.5)
    yield _coded(
        "centred, in sets", 8, 3, 1_000, one, workload=Auto(max_cells=20), sets=2, epsilon=3.0, delta=1e-6
    )
    yield _coded("larger tables", 14, 2, 1_000, replaced, workload=Auto(max_cells=100), epsilon=90.0)
    yield _coded("to predict", 8, 3, 1_000, replaced, workload=Auto(predict="c3"), rho=1.0)


def _open_schemas(several: Unit, replaced: Unit) -> Iterator[ReleaseSubject]:
    """Bins and ranges that the session chooses."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": rng.integers(20, 60, 800), "pay": np.round(rng.lognormal(8, 1, 800))})
    own = [{"age": 0, "pay": 0.0}, {"age": 98, "pay": 1e6}, {"age": 40, "pay": 3_000.0}]
    age = {"kind": "integer", "min": 0, "max": 99, "bins": "auto"}
    pay = {"kind": "number", "min": 0, "max": 1_000_000, "bins": "auto", "max_bins": 12}
    ends = {"min": "auto", "max": "auto"}
    bins = Schema.from_dict({"columns": {"age": age, "pay": pay}})
    ranges = Schema.from_dict({"columns": {"age": age, "pay": pay | ends}})
    yield ReleaseSubject("bins found", bins, rows, own, {"epsilon": 2.0}, several)
    yield ReleaseSubject(
        "bins found, in sets", bins, rows, own, {"epsilon": 2.0, "delta": 1e-6, "sets": 2}, replaced
    )
    yield ReleaseSubject("range found", ranges, rows, own, {"rho": 1.0}, replaced)


def _persons() -> Iterator[ReleaseSubject]:
    """Persons with more rows than count, with declared levels and with levels that are found, of which two texts compete for one place."""
    counts = {("common", 0): 300, ("usual", 1): 300, ("rare", 0): 4}
    texts = [(text, c) for (text, c), number in counts.items() for _ in range(number)]
    rows = pd.DataFrame(texts, columns=["text", "c"]).assign(id=[f"p{place}" for place in range(len(texts))])
    own = [{"text": text, "c": 1, "id": "one"} for text in ("rare", "usual", "common", "lone")]
    c = {"kind": "integer", "min": 0, "max": 1}
    listed = {"kind": "categorical", "levels": ["common", "usual", "other"], "other": "other"}
    found = {
        "kind": "categorical",
        "levels": "discover",
        "pattern": "[a-z]+",
        "max_length": 8,
        "max_levels": 1,
    }
    declared = Schema.from_dict({"columns": {"text": listed, "c": c}})
    discovered = Schema.from_dict({"columns": {"text": found, "c": c}})
    for unit in (Unit("add-remove", 3), Unit("replace", 3)):
        yield ReleaseSubject("persons", declared, rows, own, {"epsilon": 2.0, "person": "id"}, unit, 4)
        options = {"epsilon": 8.0, "delta": 1e-4, "person": "id"}
        yield ReleaseSubject("levels found, one at most", discovered, rows, own, options, unit, 4)
