"""Columns that one condition ties together: what zeros that follow from the rules are worth.

usage: python benchmarks/tied.py [repeats=12]

Generated people of whom children have no income, marital status or schooling. The same rows and seeds are released and solved with the rules as they are written,
and with the zeros that follow from them (`Schema.zero_masks`).
"""

import numpy as np
import pandas as pd
import pyarrow as pa
from common import Codes, Floats, asked_repeats, markdown, table, tvd_rows, write_page

from dpcipher.methods.cipher import Cipher
from dpcipher.privacy.draws import Draws
from dpcipher.schema.rules import zeros
from dpcipher.schema.schema import Schema

N_ROWS, EPSILONS, DELTA = 8_000, (0.5, 1.0, 3.0), 1e-9
AGES = (0, 3, 5, 10, 15, 16, 18, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 100)
TIED = {  # levels, and the age from which a person has one
    "marital": (6, 15),
    "decile": (10, 15),
    "income": (18, 15),
    "school": (12, 3),
    "memory": (2, 5),
    "walking": (2, 5),
    "industry": (19, 16),
}
OTHERS = {"sex": 2, "tenure": 3, "area": 5}
WAYS = {"as written": 0, "and what follows": zeros.MOST_WORK}


def schema() -> Schema:
    """Columns that are N below an age, and only there."""
    columns: dict[str, object] = {"age": {"kind": "integer", "edges": AGES}}
    rules: list[object] = []
    for name, (levels, first) in TIED.items():
        columns[name] = {"kind": "categorical", "levels": [*map(str, range(levels)), "N"]}
        rules += [f"age < {first} -> {name} == N", f"age >= {first} -> {name} != N"]
    for name, levels in OTHERS.items():
        columns[name] = {"kind": "categorical", "levels": [*map(str, range(levels))]}
    return Schema.from_dict({"columns": columns, "rules": rules})


def people(repeat: int) -> pd.DataFrame:
    """Rows whose columns follow age and one hidden score, each as far as chance has it."""
    rng = np.random.default_rng([13, repeat])
    age = np.clip(rng.gamma(2.2, 17, N_ROWS).astype(int), 0, 99)
    score = rng.normal(size=N_ROWS)

    def cut(levels: int) -> np.ndarray:
        own = rng.normal() * (score + 0.02 * (age - 40)) + rng.normal(size=N_ROWS)
        ends = np.quantile(own, np.cumsum(rng.dirichlet(np.full(levels, 1.5)))[:-1])
        return np.searchsorted(ends, own).astype(str)

    tied = {name: np.where(age < first, "N", cut(levels)) for name, (levels, first) in TIED.items()}
    return pd.DataFrame({"age": age, **tied, **{name: cut(levels) for name, levels in OTHERS.items()}})


def errors(facts: Schema, codes: Codes, epsilon: float, repeat: int) -> Floats:
    """The TVD of 1-, 2- and 3-way tables of synthetic rows, and how far the share of children is off, by what the income says."""
    method = Cipher(epsilon, delta=DELTA, unit="add-remove", workload="auto")
    fitted = method.fit_counts(codes, facts, draws=Draws.seeded(repeat), codes=True)
    drawn = coded(facts, fitted.sample(N_ROWS, seed=repeat))
    axis = (facts.attrs.index("income"),)
    children = [table(rows, facts.shape, axis)[-1] / N_ROWS for rows in (codes, drawn)]
    return np.array([*tvd_rows(codes, drawn, facts.shape), abs(children[0] - children[1])])


def coded(facts: Schema, rows: pd.DataFrame) -> Codes:
    """Rows as codes."""
    return facts.encode(pa.Table.from_pandas(rows, preserve_index=False))


def lines(repeats: int) -> list[list[str]]:
    """One line for each epsilon and way."""
    found = []
    for epsilon in EPSILONS:
        for way, work in WAYS.items():
            zeros.MOST_WORK = work
            facts = schema()
            each = np.array(
                [errors(facts, coded(facts, people(repeat)), epsilon, repeat) for repeat in range(repeats)]
            )
            error = each.std(axis=0, ddof=1) / repeats**0.5
            cells = [f"{mean:.4f} ± {se:.4f}" for mean, se in zip(each.mean(axis=0), error, strict=True)]
            found.append([f"{epsilon:g}", way, *cells])
            print(*found[-1], flush=True)
    return found


if __name__ == "__main__":
    asked = asked_repeats(12)
    head = ["ε", "zeros", "1-way", "2-way", "3-way", "share of children off by"]
    text = (
        f"{N_ROWS:,} generated people, eleven columns, seven of which are N below an age and only there; δ = 10⁻⁹, add-remove, `auto`, seeds 0 to {asked - 1} for rows and noise. Mean total variation "
        "distance of synthetic rows, with its standard error. *As written*: a rule makes zeros of its own two columns alone, so that rows are drawn in which one column says child and another does not, and no age is left for them: "
        "they are dropped, and children with them. *And what follows*: no row with one N alone can be drawn, and the tables of all seven columns together say how many children there are."
    )
    write_page(
        "tied",
        "Columns that one condition ties",
        f"python benchmarks/tied.py {asked}",
        [text, markdown(head, lines(asked))],
    )
