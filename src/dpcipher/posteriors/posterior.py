"""The posterior: draws of the joint distribution of a few columns, given everything that a release says about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.joint.joint import check_seed
from dpcipher.posteriors.evidence import Evidence, gather
from dpcipher.posteriors.exact import fit_known, fitted_to, known_statistics, population_mode
from dpcipher.posteriors.log_linear import LogLinear, coarse_forms
from dpcipher.posteriors.mode import find_mode, find_table_mode
from dpcipher.posteriors.one_table import OneTableTarget, one_table
from dpcipher.posteriors.pair_sums import PairSums
from dpcipher.posteriors.population import draw_population
from dpcipher.posteriors.prior import Levels, levels_of
from dpcipher.posteriors.raking import open_interactions, rake
from dpcipher.posteriors.requests import check_draws, check_release, checked_columns
from dpcipher.posteriors.sampler import SamplerReport, sample
from dpcipher.posteriors.targets import Observations, PopulationTarget, Tables
from dpcipher.posteriors.threads import one_thread
from dpcipher.release.release import Release
from dpcipher.schema.conditions import Cover
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Floats, closure, maximal
from dpcipher.tables.query import Query

# More chains cost little while a table is small: NumPy's overhead is paid once for all of them.
CHAINS, FEW_CHAINS = 16, 8
FITTING_SWEEPS = 50
# Of a row, in every cell of a table: what is empty can then be fitted to any pairs.
EMPTY = 1e-6
CHOSEN = "the tables were chosen by looking at the data: what was measured is covered as usual, since its noise does not depend on the choice, but pairs that were not chosen are "
CHOSEN_CLOSED = "taken for unrelated, however weakly related they are, and intervals that rest on them do not cover; interactions=2 leaves them open"
CHOSEN_OPEN = "left open, and what is said about them is mostly the prior's"
CHOSEN_ALL = "the tables were chosen by looking at the data; every pair of these columns was measured, so nothing rests on the choice"


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Released, Shown):
    """Draws of the joint distribution over `columns`, one along the first axis.

    `draws` are of the population, the sampling error of the rows included, or with `population=False` of the table's own proportions.
    `table_draws` are always the latter: draw i of the population was drawn given `table_draws[i]`, so that the spread of a function of
    `table_draws` is the privacy noise's, and the rest of the spread over `draws` comes from sampling. `rows` is the number of rows. `assumed`
    names the smallest sets of columns whose interaction no table shows: it is taken for none.
    """

    columns: tuple[str, ...]
    schema: Schema
    draws: Floats
    table_draws: Floats
    rows: Floats
    population: bool
    assumed: tuple[tuple[str, ...], ...]
    report: SamplerReport
    notes: tuple[str, ...] = ()

    @property
    def levels(self) -> list[Levels]:
        """How many levels every column has, and how many of them are ordered."""
        return [levels_of(self.schema, name) for name in self.columns]

    def _card(self) -> Card:
        from dpcipher.posteriors.shown import card

        return card(self)


def posterior(
    release: Release,
    columns: str | Sequence[str],
    draws: int = 100,
    seed: int | None = None,
    *,
    population: bool = True,
    interactions: int | Sequence[Sequence[str]] | None = None,
) -> Posterior:
    """Draws of the joint distribution of a few columns, given every table of a release that holds any of them.

    `population=True` draws the distribution that the rows are a sample of, `population=False` the proportions of the private table
    itself. The model is log-linear with the interactions that the measured tables show; `interactions` adds others, an order or
    sets of columns, that only the prior knows of. Chains that have not converged are a `SolveError`, never an answer.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> drawn = dc.posterior(release, ("smokes", "ill"), draws=50, seed=1)
    >>> drawn.draws.shape
    (50, 2, 2)
    """
    check_release(release)
    check_draws(draws)
    check_seed(seed)
    cover = release.schema.cover(checked_columns(columns))
    evidence = gather(release, cover.axes)
    shown = evidence.measured
    tables = maximal([*shown, *_added(release.schema, cover, interactions)])
    queries = [*evidence.queries, *(Query(axes) for axes in tables if axes not in shown)]
    model = LogLinear(evidence.levels, tuple(tables), evidence.possible, coarse_forms(tables, queries))
    rng = np.random.default_rng(seed)
    shape = (draws, *evidence.shape)
    with one_thread():
        own, rows, whole, report = _sample(evidence, model, draws, population, rng)
        if model.forms:  # what differs inside groups of levels
            opening = int(rng.integers(2**32))
            own, whole = (
                open_interactions(joints.reshape(shape), model.levels, tuple(model.forms), queries, opening)
                for joints in (own, whole)
            )
    folded = [np.ascontiguousarray(cover.fold_stack(part.reshape(shape))) for part in (own, whole)]
    assumed = _assumed(shown, tables, cover)
    return Posterior(
        cover.names,
        _restricted(release.schema, cover.names),
        folded[1] if population else folded[0],
        folded[0],
        rows,
        population,
        assumed,
        report,
        (*unseen_notes(release, assumed), *_group_notes(model, cover), *_row_notes(evidence, rows)),
    )


# The tables' own proportions, their rows, the population's proportions (or the tables' again), and the report.
Drawn = tuple[Floats, Floats, Floats, SamplerReport]


def _chains(model: LogLinear) -> int:
    return CHAINS if model.is_dense else FEW_CHAINS


def _sample(
    evidence: Evidence, model: LogLinear, draws: int, population: bool, rng: np.random.Generator
) -> Drawn:
    """Draws given the evidence, in the way that fits it."""
    statistics, target = known_statistics(evidence, model), one_table(evidence, model)
    if statistics is not None:
        return _sample_known(statistics, evidence, model, draws, population, rng)
    if target is None:
        drawn = _sample_tables(Tables(model, evidence), draws, population, rng)
    else:
        drawn = _sample_one_table(target, evidence, draws, population, rng)
    if evidence.one_table is not None and len(evidence.shape) > 2:
        return _with_pairs_cut_off(drawn, evidence, population, rng)
    return drawn


def _sample_known(
    statistics: Floats,
    evidence: Evidence,
    model: LogLinear,
    draws: int,
    population: bool,
    rng: np.random.Generator,
) -> Drawn:
    """From exact tables, which leave nothing unknown but the population."""
    chains, rows = _chains(model), float(evidence.n_rows or 0)
    target = PopulationTarget(model, np.repeat(statistics[None], chains, axis=0), np.full(chains, rows))
    start = population_mode(model, statistics, rows)
    sampled = sample(target, start, draws=draws, chains=chains, rng=rng)
    own = np.repeat(fitted_to(evidence).reshape(1, -1), draws, axis=0)
    whole = model.probabilities(sampled.points) if population else own
    return own, np.full(draws, rows), whole, sampled.report


def _sample_tables(tables: Observations, draws: int, population: bool, rng: np.random.Generator) -> Drawn:
    """The rows' own table given what was seen of it, then the population given the table."""
    evidence, (target, mode) = tables.evidence, find_table_mode(tables)
    model = target.model
    sampled = sample(target, mode, draws=draws, chains=_chains(model), rng=rng)
    coefficients, rows = target.split(sampled.points)
    own = model.probabilities(coefficients).reshape(-1, *evidence.shape)
    own = fit_known(own, evidence.exact_tables, sweeps=FITTING_SWEEPS).reshape(draws, -1)
    whole = own
    if population:
        whole = model.probabilities(draw_population(model, coefficients, rows[:, None] * own, rng))
    return own, rows, whole, sampled.report


def _sample_one_table(
    target: OneTableTarget, evidence: Evidence, draws: int, population: bool, rng: np.random.Generator
) -> Drawn:
    """From one table of all columns: the population first, then the table given it."""
    target, mode = find_mode(target, evidence)
    sampled = sample(target, mode, draws=draws, chains=_chains(target.model), rng=rng)
    whole = target.model.probabilities(target.split(sampled.points)[0])
    counts = target.draw_tables(sampled.points, rng)
    rows = counts.sum(axis=1)
    own = np.where(rows[:, None] > 0, counts / np.maximum(rows, 1.0)[:, None], whole)
    if target.n_rows is not None:
        rows = np.full(draws, target.n_rows)
    return own, rows, whole if population else own, sampled.report


def _with_pairs_cut_off(
    drawn: Drawn, evidence: Evidence, population: bool, rng: np.random.Generator
) -> Drawn:
    """Draws from one table of all columns, fitted to pairs that were drawn from what the table says about pairs alone.

    A prior that is a little wrong about every cell is wrong about their sums in one direction, where the noise of many cells cancels out. So what
    cells say goes no further than interactions of three and more columns: pairs are cut off from it (Plummer 2015).
    """
    own, _, whole, report = drawn
    pairs = list(combinations(range(len(evidence.shape)), 2))
    sums = PairSums(LogLinear(evidence.levels, tuple(pairs), evidence.possible), evidence)
    own_pairs, rows, whole_pairs, of_pairs = _sample_tables(sums, len(own), population, rng)
    fitted = [
        rake(cells.reshape(-1, *evidence.shape), goal.reshape(-1, *evidence.shape), list(map(Query, pairs)))
        for cells, goal in ((own + EMPTY * whole, own_pairs), (whole, whole_pairs))
    ]
    own, whole = (joints.reshape(len(joints), -1) for joints in fitted)
    return own, rows, whole if population else own, report.and_then(of_pairs)


def _added(schema: Schema, cover: Cover, interactions: int | Sequence[Sequence[str]] | None) -> list[Axes]:
    """The sets of columns that `interactions` adds, by their place among the columns."""
    if interactions is None:
        return []
    places = range(len(cover.axes))
    if isinstance(interactions, (int, np.integer)) and not isinstance(interactions, bool):
        if interactions < 1:
            raise ParameterError(
                f"interactions ({interactions}) must be an order of 1 or more, or sets of columns; try interactions=3"
            )
        return list(combinations(places, min(int(interactions), len(places))))
    if isinstance(interactions, str) or not isinstance(interactions, Sequence):
        raise ParameterError(
            f"interactions ({interactions!r}) must be an order or a list of sets of columns, such as [('a', 'b', 'c')]"
        )
    sets = [schema.axes(attrs) for attrs in interactions]
    if any(axis not in cover.axes for axes in sets for axis in axes):
        raise WorkloadError(
            f"interactions must name columns among those asked for ({', '.join(cover.names)}); add the others there"
        )
    return [tuple(cover.axes.index(axis) for axis in axes) for axes in sets]


def _assumed(shown: Sequence[Axes], tables: Sequence[Axes], cover: Cover) -> tuple[tuple[str, ...], ...]:
    """The smallest sets of columns that no measured table holds together, by name."""
    known, attrs = set(closure(shown)), cover.attrs
    missing: list[Axes] = []
    for order in range(2, len(cover.axes) + 1):
        new = [axes for axes in combinations(range(len(cover.axes)), order) if axes not in known]
        missing += [axes for axes in new if not any(set(less) < set(axes) for less in missing)]
        if order > max(map(len, known)):
            break
    return tuple(tuple(attrs[place] for place in axes) for axes in missing)


def _restricted(schema: Schema, names: tuple[str, ...]) -> Schema:
    """The schema of these columns alone, in their order."""
    known = set(names)
    return Schema(
        tuple(schema.column(name) for name in names),
        tuple(zero for zero in schema.zeros if set(zero.impossible) | set(zero.becomes) <= known),
        rules=tuple(
            rule
            for rule, bound in zip(schema.rules, schema.compiled.declared, strict=True)
            if set(bound.columns) | set(rule.becomes) <= known
        ),
    )


def unseen_notes(release: Release, assumed: Sequence[tuple[str, ...]], *, opened: bool = False) -> list[str]:
    """What no table shows, and whether it is taken for none or was left open."""
    if not assumed:
        return selection_notes(release, assumed, opened=opened)
    listed = "; ".join(" × ".join(attrs) for attrs in assumed[:6]) + ("; …" if len(assumed) > 6 else "")
    what = (
        "left open, as far as a weak prior lets it go"
        if opened
        else "taken for none, which the release cannot check"
    )
    return [
        f"no table shows the interaction of {listed}: it is {what}",
        *selection_notes(release, assumed, opened=opened),
    ]


def selection_notes(release: Release, assumed: Sequence[tuple[str, ...]], *, opened: bool) -> list[str]:
    """What it means that tables were chosen by looking at the data, if they were: without a round of looking, by their size alone."""
    selection = release.statement.certificate.get("selection")
    if not selection or not selection["rounds"]:
        return []
    if not any(len(attrs) == 2 for attrs in assumed):
        return [CHOSEN_ALL]
    return [CHOSEN + (CHOSEN_OPEN if opened else CHOSEN_CLOSED)]


def _group_notes(model: LogLinear, cover: Cover) -> list[str]:
    """What was measured in groups of levels alone."""
    sets = [axes for axes in maximal(list(model.forms)) if axes in model.forms]
    if not sets:
        return []
    listed = "; ".join(" × ".join(cover.attrs[place] for place in axes) for axes in sets)
    return [
        f"{listed} was measured in groups of levels: what differs inside a group is left open, as far as a weak prior lets it go"
    ]


def _row_notes(evidence: Evidence, rows: Floats) -> list[str]:
    """A warning where the noise outweighs the data."""
    if evidence.n_rows is not None or rows.std() <= 0.25 * rows.mean():
        return []
    return [
        f"the number of rows is hardly known ({rows.mean():.0f} ± {rows.std():.0f}): the noise outweighs the data, and the prior shows in every answer"
    ]
