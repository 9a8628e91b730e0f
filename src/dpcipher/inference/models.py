"""Fit models: by formula, straight from a release or over m synthetic sets."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.inference.cells import Missing
from dpcipher.inference.combine import Rule, combine
from dpcipher.inference.design import check_family, make_regressions
from dpcipher.inference.fitted import Models, ReleaseFit
from dpcipher.inference.notes import (
    COMBINED,
    Note,
    in_short,
    intercept_notes,
    listed_sets,
    separation_notes,
    unidentified_notes,
)
from dpcipher.inference.regression import FAMILIES, Family, Fits, Regression
from dpcipher.inference.release_models import fit_release
from dpcipher.inference.sets import Sets, joints_among, sets_of_joints, sets_of_rows
from dpcipher.inference.unmeasured import Unmeasured
from dpcipher.joint.joint import Joint, check_seed
from dpcipher.posteriors.requests import check_draws
from dpcipher.posteriors.threads import one_thread
from dpcipher.release.release import Release

__all__ = ["FAMILIES", "Family", "Models", "ReleaseFit", "fit_models"]


def fit_models(
    sets: Any,
    formula: str,
    family: Family | None = None,
    *,
    levels: Mapping[str, Sequence[Any]] | None = None,
    draws: int | None = None,
    seed: int | None = None,
    missing: Missing | None = None,
    values: Mapping[str, Sequence[float]] | None = None,
    unmeasured: Unmeasured | None = None,
    rule: Rule | None = None,
    sanitizations: int | None = None,
    firth: bool | None = None,
    rows_from: str | None = None,
) -> Models:
    """Fit a model by formula to a release, with intervals that hold its noise; or to m synthetic data sets.

    `formula` is "outcome ~ terms" in formulaic's notation; `family` is one of logistic, multinomial, ordinal
    (proportional odds), linear and poisson (log link). By default it follows from the outcome: logistic for
    two classes, linear for numbers, ordinal for levels that rank, multinomial for others. `levels` gives the
    order of a column's levels, the first being the reference, where it should not be the declared one.

    From a **release**, the model is fitted to each of `draws` draws (1,000; 400 beyond 4,000 cells) of the
    joint distribution of its own columns, given all tables of the release that hold any of them
    (`posterior`): intervals hold the privacy noise and the sampling error of the rows. `missing="drop"`
    leaves out rows with a missing value in a column of the model, `"level"` keeps them where the column is a
    category. `values={"age": [...]}` are the numbers that stand for the bins of a column, by default their
    middles. Interactions that no measured table shows are left open, as far as a weak prior lets them go;
    `unmeasured="none"` takes those that the formula does not ask for to be none.

    **Sets** are a list of data frames, or one frame (then the variance leaves out the privacy noise, and a
    note says so): one fit per set, combined by `combine`, which has the rules and their limits. `rule` is the
    source of the sets: "sanitizations" or, for frames and files of `solve(release, draws=m)`, "imputations".
    Frames that were sampled from such draws, and their Parquet files, carry that mark; CSV files do not, and
    without `rule` are taken for sanitizations, as a note says. The joints that `solve` returns can be sets,
    too: one set of each is drawn with `seed`, coded as a release is (`values`, `levels`, `missing`), and has
    its rule. `missing="drop"` leaves out rows with a missing value, of joints by default. `firth=None`
    penalises every set as soon as one is separated. Rows without the mark of a release may be private, so the
    model is stamped CURATOR ONLY wherever it is shown; `rows_from` says on whose word they are synthetic or
    public, and removes the stamp.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> models = dc.fit_models(release, "ill ~ smokes", draws=100, seed=1)
    >>> models.frame["term"].tolist()
    ['Intercept', 'smokes']
    """
    check_family(family)
    _check_formula(formula)
    _check_lists("levels", levels)
    _check_lists("values", values)
    orders, numbers = levels or {}, values or {}
    kept: Missing = "drop" if missing is None else missing
    if isinstance(sets, Release):
        check_seed(seed)
        if draws is not None:
            check_draws(draws)
        _check_unused(
            "sets of rows", rule=rule, sanitizations=sanitizations, firth=firth, rows_from=rows_from
        )
        unseen: Unmeasured = "open" if unmeasured is None else unmeasured
        with one_thread():
            return fit_release(
                sets, formula, family, levels=orders, draws=draws, seed=seed, missing=kept, values=numbers, unmeasured=unseen
            )  # fmt: skip
    _check_sets(sets)
    _check_unused("a release", draws=draws, unmeasured=unmeasured)
    if joints := joints_among(sets):
        check_seed(seed)
        _check_unused("sets of rows", rows_from=rows_from)
        several = sets_of_joints(
            joints, formula, family, seed=seed, levels=orders, values=numbers, missing=kept
        )
    else:
        _check_unused("a release or its joints", seed=seed, values=values)
        _check_missing(missing)
        dropped = missing == "drop"
        several = sets_of_rows(
            sets, formula, family, levels=orders, drop_missing=dropped, rows_from=rows_from
        )
    return _fit_sets(several, rule=rule, sanitizations=sanitizations, firth=firth)


def _fit_sets(sets: Sets, *, rule: Rule | None, sanitizations: int | None, firth: bool | None) -> Models:
    """One fit per set, combined by the rule of the caller or of the sets."""
    formula = sets.formula
    chosen, about_rule = sets.rule(rule)
    regressions = make_regressions(formula, sets.frames, sets.family)
    first = regressions[0]
    if first.family == "ordinal":
        _check_every_class(formula.left, regressions)
    fits = _fits(regressions, firth=bool(firth))
    separated = [number for number, fit in enumerate(fits, 1) if fit.separated]
    if separated and firth is False:
        raise ParameterError(
            f"firth (False): set(s) {listed_sets(separated)} are separated and have no finite fit; leave "
            "firth out"
        )
    if separated:
        fits = _fits(regressions, firth=True)
    estimates = np.concatenate([fit.coefficients for fit in fits])
    variances = np.concatenate([fit.variances for fit in fits])
    combined = combine(estimates, variances, rule=chosen, sanitizations=sanitizations)
    notes: list[Note] = [
        *separation_notes(separated),
        *unidentified_notes(estimates, first.terms),
        *intercept_notes(formula, first.family),
        *sets.notes,
        *about_rule,
        *(COMBINED.get(note, Note(note)) for note in combined.notes),
    ]
    penalised = first.family in ("logistic", "multinomial") and bool(firth or separated)
    texts = tuple(note.text for note in notes)
    models = Models(
        first.terms,
        first.family,
        estimates,
        variances,
        combined,
        penalised,
        texts,
        formula.text,
        brief=in_short(notes),
    )
    return models.with_stamp(sets.stamp)


def _fits(regressions: Sequence[Regression], *, firth: bool) -> list[Fits]:
    """The fit of every set, each of whose rows weighs 1."""
    return [regression.fit(np.ones((1, len(regression.x))), firth=firth) for regression in regressions]


def _check_every_class(outcome: str, regressions: Sequence[Regression]) -> None:
    """Refuse an ordinal model of sets that lack a class: its cut points would be infinite."""
    for number, regression in enumerate(regressions, 1):
        if len(np.unique(regression.outcome)) < regression.classes:
            raise ParameterError(
                f"outcome ({outcome}) must have every level in every set; set {number} lacks one"
            )


def _check_missing(missing: Missing | None) -> None:
    if missing not in (None, "drop"):
        raise ParameterError(
            f"missing ({missing!r}) must be 'drop' for sets of rows; fill in the cells to keep them as a "
            "level"
        )


def _check_formula(formula: object) -> None:
    if not isinstance(formula, str):
        raise ParameterError(
            f"formula ({type(formula).__name__}) must be text, 'outcome ~ terms', and stand after the "
            "release or the sets; try 'income ~ age + sex'"
        )


def _check_lists(option: str, given: object) -> None:
    """Refuse options that are not a dictionary of lists, by column."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(
            f"{option} ({type(given).__name__}) must be a dictionary of lists; try "
            f"{option}={{'column': [...]}}"
        )
    for name, listed in (given or {}).items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise ParameterError(f"{option} of {name!r} ({type(listed).__name__}) must be a list")


def _check_sets(sets: Any) -> None:
    """Refuse paths, single joints and releases in a list, and say what to give instead."""
    if isinstance(sets, (str, PathLike)):
        raise ParameterError(
            f"sets ({str(sets)!r:.100}) must be a release or data frames and not a path; load it, with "
            "dc.Release.load(path) or pandas.read_csv(path)"
        )
    if isinstance(sets, Joint):
        raise ParameterError(
            "sets (Joint) must be a release or data frames: a joint alone does not know its noise. Give the "
            "release that it was made of, "
            "or the joints of dc.solve(release, draws=5)"
        )
    if isinstance(sets, (list, tuple)) and any(isinstance(item, Release) for item in sets):
        raise ParameterError(
            "sets (a list with a Release) must be the release itself; fit several one by one"
        )


def _check_unused(other: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} ({value!r:.60}) is for models from {other}; leave it out here")
