"""Do regressions from one release cover on real populations: rows drawn from Adult and from the ACS excerpt?

usage: DPCIPHER_DATA=FOLDER python benchmarks/models_real.py [repeats=300] [pairs | auto | page]

n = 5,000 rows are drawn with replacement from a real table, which is the population: the true coefficients are those of the same regression on all
of it, in the same coding. The model's own columns are measured once, as all pairs or as `auto` chooses. Beside the posterior stand the naive analysis of
synthetic rows and the original rows. Finished repeats are kept in a journal. Noise is seeded: nothing here is private.
"""

import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import exp
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from common import RESULTS, Codes, Floats, asked_repeats, data_folder, markdown, write_page

from dpcipher.errors import DpcipherError
from dpcipher.evaluation.runs import Journal
from dpcipher.inference.design import make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.models import fit_models
from dpcipher.inference.release_models import draw_coefficients
from dpcipher.inference.unmeasured import measured_terms
from dpcipher.methods.cipher import Cipher
from dpcipher.posteriors.raking import rake
from dpcipher.privacy.draws import Draws
from dpcipher.schema.bins import Bins
from dpcipher.schema.schema import Schema
from dpcipher.tables.query import Query

N_ROWS, POWERS, FIRST, DRAWS = 5_000, (-2, -1, 0, 1, 2), (-1, 0, 2), 200
METHODS = ("fit_models", "fit_models, closed", "naive", "original rows")
MISFIT = (
    "## What exact pairs cannot say\n\nThe joint with the population's own pairs and no larger interaction, against the population itself: this much of an error no "
    "noise causes and no budget cures. It is why interactions that no table shows are left open by default."
)
READING = (
    "## Reading it\n\nEvery cell has its 300 repeats.\n\n"
    "From all pairs the intervals cover within .93 and .97 on average from ε = e⁻¹ on, and .97 to .99 at e⁻², where the noise leaves much to the prior and intervals are eight times as wide as those of the original rows; the worst coefficient at least .91, but for one: hours in Adult at e², .89 (with a standard error of .02). There is next to no noise there, and the exact "
    "pairs of the population themselves miss that coefficient by .8 standard errors (below): leaving larger interactions open mends a part of it, and no budget for pairs could mend the rest. A whole table (`auto`) does.\n\n"
    "From what `auto` chose they cover within .93 and .98 on average from ε = e⁻¹ on, the worst coefficient at least .90, and .98 to .995 at e⁻². "
    "`auto` takes the full table of 960 cells of Adult from ε = 1 on, and that of 800 cells of ACS from e⁻¹ on. At e⁻² it takes all pairs of ACS, and one to eight of the fifteen pairs of Adult: three of five terms are not measured there, "
    "and left open, which makes intervals wide (15 times those of the original rows) and honest; taken for none (`closed`), they would cover .979 on average and .93 at worst. The first six repeats of ACS at e⁻¹ had slopes that were off by 1.4 of their standard errors, since a prior that is a little wrong about every cell is "
    "wrong about their sums. Five of them were looked at for the reason; pairs are now drawn from what the table says about pairs alone, and these repeats were made anew. So ACS at e⁻¹ is no untouched evidence about that. "
    "What is left there, .94 on average and .90 for sex in the linear model, and .98 in the logistic model, is the prior of pairs: slopes lie .3 to .7 standard errors too far out, because a walk with the standard deviation 2 lets nearly empty cells be emptier than they are. With half of it they "
    "moved in by .2 to .9 in eight repeats that were looked at, and intervals became a twentieth to a tenth shorter. A scale that is learnt from the data would be the remedy; it is not built.\n\n"
    "Under two former priors, which took ordered levels for unrelated, a few repeats of this study had the ACS logistic model's slopes short by 1 to 1.7 standard errors at ε ≤ 1, and coverages of .75 to .91. That is how the fault was seen. The prior of now, a walk along "
    "ordered levels, was settled on [generated populations](models_trends.md), and all repeats on this page were made with it; but the first 53 of ACS and 47 of Adult at ε = e⁻¹ and 1 had unrelated levels in the interactions of three "
    "columns that are left open, which at these ε make 0 to 4 % of the width. The columns `closed` do not depend on that. That last change was looked for after 44 repeats in which the ACS logistic model covered .914 at e² (closed .909), and chosen among three on generated populations; "
    "the repeats at e² were then made anew from the same rows and noise. The ACS excerpt is therefore no untouched evidence about either prior, and part of the rise at e² is that of the further repeats, as `closed` shows."
)

ADULT = {
    "income": {"kind": "categorical", "levels": ["low", "high"]},
    "age": {"kind": "integer", "edges": [17, 26, 36, 46, 56, 90]},
    "education": {"kind": "integer", "edges": [1, 9, 10, 13, 16]},
    "hours": {"kind": "integer", "edges": [1, 35, 41, 51, 99]},
    "sex": {"kind": "categorical", "levels": ["F", "M"]},
    "marital": {"kind": "categorical", "levels": ["married", "never", "other"]},
}
ACS = {
    "decile": {"kind": "integer", "min": 0, "max": 9},
    "age": {"kind": "integer", "edges": [15, 30, 45, 60, 75, 100]},
    "sex": {"kind": "categorical", "levels": ["M", "F"]},
    "school": {"kind": "integer", "edges": [1, 5, 6, 9, 12]},
    "difficulty": {"kind": "categorical", "levels": ["no", "yes"]},
}


def adult() -> pd.DataFrame:
    """Adult's six columns of the model, from the integer codes (age from 16, years of education and hours from 1)."""
    rows = pd.read_csv(data_folder() / "adult" / "adult.csv")
    return pd.DataFrame(
        {
            "income": np.where(rows["income>50K"] == 1, "high", "low"),
            "age": np.clip(rows["age"] + 16, 17, 90),
            "education": rows["education-num"] + 1,
            "hours": rows["hours-per-week"] + 1,
            "sex": np.where(rows["sex"] == 1, "M", "F"),
            "marital": np.select(
                [rows["marital-status"] == 0, rows["marital-status"] == 2], ["married", "never"], "other"
            ),
        }
    )


def acs() -> pd.DataFrame:
    """Five columns of the ACS excerpt, persons with an income decile (15 and older)."""
    rows = pd.read_csv(data_folder() / "nist_ma2019" / "ma2019.csv", keep_default_na=False)
    rows = rows[(rows["PINCP_DECILE"] != "N") & (rows["EDU"] != "N") & (rows["DPHY"] != "N")]
    return pd.DataFrame(
        {
            "decile": rows["PINCP_DECILE"].astype(int),
            "age": np.clip(rows["AGEP"].astype(int), 15, 100),
            "sex": np.where(rows["SEX"].astype(int) == 1, "M", "F"),
            "school": rows["EDU"].astype(int),
            "difficulty": np.where(rows["DPHY"].astype(int) == 1, "yes", "no"),
        }
    )


@dataclass(frozen=True, eq=False)
class Study:
    """A population, its schema, how it is measured, and the models."""

    name: str
    rows: pd.DataFrame
    schema: Schema
    workload: int | str
    models: tuple[tuple[str, Any], ...]

    def coded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows as a model of a release sees them: numbers at the middle of their bins."""
        out = {}
        for column in self.schema.columns:
            values = rows[column.name].to_numpy()
            if isinstance(column.domain, Bins):
                edges = np.asarray(column.domain.edges, dtype=float)
                values = ((edges[:-1] + edges[1:] - 1) / 2)[np.searchsorted(edges, values, side="right") - 1]
                out[column.name] = values
            else:
                out[column.name] = pd.Categorical(values, categories=list(column.labels))
        return pd.DataFrame(out)

    def bounds(self, rows: pd.DataFrame, formula: str, family: Any) -> Floats:
        """The lower and upper bounds of the regression on rows."""
        return self.table(rows, formula, family)[["low", "high"]].to_numpy().T

    def table(self, rows: pd.DataFrame, formula: str, family: Any) -> pd.DataFrame:
        """The regression on rows."""
        return fit_models(self.coded(rows), formula, family).table()


def studies() -> list[Study]:
    """All of them; the models of one study share its releases."""
    people, persons = Schema.from_dict({"columns": ADULT}), Schema.from_dict({"columns": ACS})
    income = (("income ~ age + education + hours + sex + marital", "logistic"),)
    both = (
        ("decile ~ age + sex + school", "linear"),
        ("difficulty ~ age + sex + school + decile", "logistic"),
    )
    return [
        Study("Adult, all pairs", adult(), people, 2, income),
        Study("Adult, auto", adult(), people, "auto", income),
        Study("ACS, all pairs", acs(), persons, 2, both),
        Study("ACS, auto", acs(), persons, "auto", both),
    ]


def populations() -> list[Study]:
    """One study of each population."""
    return [study for study in studies() if study.workload != "auto"]


@lru_cache(maxsize=8)
def original(study: Study, repeat: int) -> tuple[Codes, list[Floats]]:
    """The rows of a repeat, coded, and the bounds of every model on them: the same for every epsilon."""
    rng = np.random.default_rng([14, repeat])
    rows = study.rows.iloc[rng.integers(0, len(study.rows), N_ROWS)].reset_index(drop=True)
    codes = study.schema.encode(pa.Table.from_pandas(rows, preserve_index=False))
    return codes, [study.bounds(rows, *model) for model in study.models]


def one_repeat(study: Study, power: int, repeat: int) -> dict[str, Any]:
    """Bounds of every model and method on one table, and the processor time of each model from the release."""
    codes, own = original(study, repeat)
    method = Cipher(exp(power), unit="add-remove", workload=study.workload)
    fitted = method.fit_counts(
        codes, study.schema, draws=Draws.seeded(1000 * repeat + 10 + power), codes=True
    )
    synthetic = fitted.sample(N_ROWS, seed=repeat, independent=True)
    item: dict[str, Any] = {"study": study.name, "power": power, "repeat": repeat, "models": []}
    for model, bounds in zip(study.models, own, strict=True):
        ours, measured, seconds = from_release(study, fitted.release, model, repeat)
        every = [
            *(np.full_like(bounds, np.nan) if part is None else part for part in ours),
            study.bounds(synthetic, *model),
            bounds,
        ]
        item["models"].append(
            {
                "bounds": [np.round(part, 5).tolist() for part in every],
                "measured": measured,
                "seconds": round(seconds, 2),
            }
        )
    return item


def from_release(
    study: Study, release: Any, model: tuple[str, Any], seed: int
) -> tuple[tuple[Floats | None, Floats | None], list[bool], float]:
    """Bounds as `fit_models(release, …, draws=DRAWS)` gives them, open and closed; which terms were measured; processor time. None for a refusal."""
    started = time.process_time()
    task = make_task(study.schema, *model)
    try:
        fit = draw_coefficients(release, task, draws=DRAWS, seed=seed)
    except DpcipherError:
        return (None, None), [], time.process_time() - started
    open_bounds = np.stack(DrawSummary(fit.beta).interval())
    closed = open_bounds if fit.closed is None else np.stack(fit.closed.interval())
    return (open_bounds, closed), measured_terms(task, fit.measured).tolist(), time.process_time() - started


def journal() -> Journal:
    """The journal of the study."""
    settings = {"n_rows": N_ROWS, "draws": DRAWS, "methods": METHODS}
    path = RESULTS / "models_real.jsonl"
    return Journal(path, settings, refusal="results/models_real.jsonl is of another study; remove it")


def run(repeats: int, wanted: set[str]) -> None:
    """Every repeat that is not there yet of the wanted ways to measure; some budgets first, all studies side by side."""
    book = journal()
    every = [study for study in studies() if ("auto" if study.workload == "auto" else "pairs") in wanted]
    done = {(item["study"], item["power"], item["repeat"]) for item in book.finished()}
    for powers in FIRST, tuple(set(POWERS) - set(FIRST)):
        for repeat, study, power in product(range(repeats), every, powers):
            if (study.name, power, repeat) not in done:
                book.append(one_repeat(study, power, repeat))


def page(command: str) -> None:
    """The page of results."""
    gathered: dict[tuple[str, int, int], list[Any]] = defaultdict(list)
    for item in journal().finished():
        for number, model in enumerate(item["models"]):
            gathered[item["study"], item["power"], number].append(model)
    lines = []
    for study in studies():
        for number, (formula, family) in enumerate(study.models):
            truth = study.table(study.rows, formula, family)["estimate"].to_numpy()
            for power in POWERS:
                found = gathered[study.name, power, number]
                if found:
                    lines.append(_line(study, number, power, truth, found))
    head = [
        "population and tables", "model", "ε", "repeats", "coverage / worst", "width / original", "closed: coverage / worst", "closed: width / original", "naive coverage / worst",
        "naive width / original", "original's coverage / worst", "measured terms", "refused", "seconds",
    ]  # fmt: skip
    models = "\n".join(
        f"- {family}: `{formula}`" for study in populations() for formula, family in study.models
    )
    text = (
        f"Nominal 95 % intervals of all coefficients of a model from **one** release of its own columns, n = {N_ROWS:,} rows drawn from the population, pure ε, add-remove. The true "
        'coefficients are those of the whole population in the same coding; nothing makes its joint a log-linear model of pairs. `coverage` has its Monte Carlo standard error, `worst` is the worst coefficient. `closed` takes what no table shows for none (`unmeasured="none"`). Terms that '
        f"`auto` did not measure are left open, which makes their intervals wide: `measured terms` is the share that was. {DRAWS} draws, fewer than the default. Seeds: 14, repeat.\n\n{models}"
    )
    write_page(
        "models_real",
        "Models from one release of real populations",
        command,
        [text, markdown(head, lines), READING, MISFIT, misfit()],
    )


def misfit() -> str:
    """What exact pairs cannot say: the coefficients of the closest joint without larger interactions, in standard errors of n rows."""
    lines = []
    for study in populations():
        shape, axes = study.schema.shape, range(len(study.schema.shape))
        codes = study.schema.encode(pa.Table.from_pandas(study.rows, preserve_index=False))
        cells = np.ravel_multi_index(tuple(codes.T), shape)
        joint = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(codes)
        closest = rake(np.ones((1, *shape)), joint[None], [Query(pair) for pair in combinations(axes, 2)])[0]
        for formula, family in study.models:
            task = make_task(study.schema, formula, family)
            order = [study.schema.attrs.index(name) for name in task.formula.columns]
            true, near = task.fit(
                np.stack([np.einsum(one, list(axes), order) for one in (joint, closest)])
            ).coefficients
            error = study.table(study.rows, formula, family)["std_error"] * np.sqrt(len(codes) / N_ROWS)
            shifts = ", ".join(
                f"{term} {shift:+.2f}" for term, shift in zip(task.terms, (near - true) / error, strict=True)
            )
            lines.append([study.name.split(",")[0], family, shifts])
    return markdown(["population", "model", f"shift in standard errors of {N_ROWS:,} rows"], lines)


def _line(study: Study, number: int, power: int, truth: Floats, found: list[Any]) -> list[str]:
    bounds = np.array([item["bounds"] for item in found], dtype=float)  # repeats, methods, (low, high), terms
    low, high = bounds[:, :, 0], bounds[:, :, 1]
    hits = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
    by_term, width = np.nanmean(hits, axis=0), np.nanmedian(high - low, axis=0)
    error = float(np.nanstd(np.nanmean(hits[:, 0], axis=1), ddof=1) / len(found) ** 0.5)
    ratio = (width / width[-1]).mean(axis=1)
    measured = [np.mean(item["measured"]) for item in found if item["measured"]]
    words = [f"{cover.mean():.3f} / {cover.min():.2f}" for cover in by_term]
    return [
        study.name,
        study.models[number][1],
        f"e^{power}",
        str(len(found)),
        f"{by_term[0].mean():.3f} ± {error:.3f} / {by_term[0].min():.2f}",
        f"{ratio[0]:.2f}",
        words[1],
        f"{ratio[1]:.2f}",
        words[2],
        f"{ratio[2]:.2f}",
        words[3],
        f"{np.mean(measured):.0%}",
        f"{np.mean(np.isnan(low[:, 0, 0])):.1%}",
        f"{np.mean([item['seconds'] for item in found]):.2f}",
    ]


if __name__ == "__main__":
    repeats = asked_repeats(300)
    if "page" not in sys.argv:
        run(repeats, {"pairs", "auto"} & set(sys.argv) or {"pairs", "auto"})
    page(f"python benchmarks/models_real.py {repeats}")
