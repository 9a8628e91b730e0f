"""Models over m synthetic sets: one fit per set, one combined table."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError
from dpcipher.inference.coding_notes import intercept_notes, unit_notes
from dpcipher.inference.combine import ASSUMED, BIAS, FITS, ONE_SET, Rule, combine
from dpcipher.inference.design import columns_of_model, data_frames, design_matrices, identified, with_outcome
from dpcipher.inference.family import Family, family_of_cells
from dpcipher.inference.fitted import Models
from dpcipher.inference.formula import check_sides, columns_of_side, split_formula, with_intercept
from dpcipher.inference.logit import fit_logit, group_rows, is_separated
from dpcipher.inference.missing_rows import without_missing
from dpcipher.inference.notes import Note, Rank, in_short, listed
from dpcipher.inference.ordinal import fit_ordinal
from dpcipher.inference.outcome import numeric_levels
from dpcipher.inference.regressions import fit_poisson
from dpcipher.inference.set_rules import rule_of
from dpcipher.tables.domain import Floats

Fit = tuple[Floats, Floats]  # estimates and their variances

FIRTH = (
    "separation: some maximum-likelihood estimates are infinite in set(s) {sets}, so every set was fitted with Firth's penalty, "
    "which keeps them finite and shrinks them slightly"
)
COMBINED = {
    ONE_SET: Note(
        ONE_SET, "one set: the privacy noise is in no interval; fit the release, or sets=5", Rank.UNKNOWN
    ),
    FITS["sanitizations"]: Note(
        FITS["sanitizations"],
        "the rule is for independent sanitizations, not for draws of one release",
        Rank.ASSUMED,
    ),
    BIAS: Note(BIAS, "bias from shrinkage and clipping is in no interval", Rank.SENSITIVE),
    ASSUMED: Note(
        ASSUMED, "interactions that no table of the release shows are taken for none", Rank.SENSITIVE
    ),
}
ALIASED = "not identified in every set: {terms}; their levels are missing, or follow from other terms, in set(s) {sets}"


def fit_sets(
    sets: Any,
    formula: str,
    family: Family | None,
    *,
    rule: Rule | None,
    sanitizations: int | None,
    firth: bool | None,
    levels: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    drop_missing: bool = False,
    notes: Sequence[Note] = (),
    stamp: str,
) -> Models:
    """Fit one model to each of m data sets and combine the fits, by the `rule` that is asked for or that the sets say is theirs.

    `notes` are those about how the sets came about, `stamp` says who may see what is made of them.
    """
    frames = data_frames(sets)
    left, right = split_formula(formula)
    known = [str(name) for name in frames[0].columns]
    sides = columns_of_side(left, formula, known, "sets"), columns_of_side(right, formula, known, "sets")
    check_sides(formula, *sides)
    columns = [name for name in known if any(name in side for side in sides)]
    chosen, said = rule_of(sets if isinstance(sets, list | tuple) else [sets], rule, columns)
    frames, dates = columns_of_model(frames, columns, levels)
    frames, dropped = without_missing(frames, columns, drop=drop_missing)
    frames, outcome = with_outcome(frames, left, formula)
    family = family or family_of_cells([frame[outcome] for frame in frames])
    designs, terms = design_matrices(frames, with_intercept(right) if family == "ordinal" else right, formula)
    penalised = False
    penalty: list[Note] = []
    if family == "linear":
        fits = _linear(frames, outcome, designs)
    elif family == "poisson":
        fits = _poisson(frames, outcome, designs)
    elif family == "ordinal":
        fits, terms = _ordinal(frames, outcome, designs, terms)
    else:
        classes = _classes(frames, outcome, family)
        fits, penalised, penalty = _logits(frames, outcome, classes, designs, firth)
        if family == "multinomial":
            terms = tuple(f"{name}: {term}" for name in classes[1:] for term in terms)
    estimates, variances = (np.array(part) for part in zip(*fits, strict=True))
    combined = combine(estimates, variances, rule=chosen, sanitizations=sanitizations)
    every: list[Note] = [
        *penalty,
        *_unidentified(estimates, terms),
        *intercept_notes(right, formula, family),
        *unit_notes(dict.fromkeys(dates, "date")),
        *notes,
        *dropped,
        *said,
        *(COMBINED.get(note, Note(note)) for note in combined.notes),
    ]
    texts = tuple(note.text for note in every)
    models = Models(
        terms, family, estimates, variances, combined, penalised, texts, formula, brief=in_short(every)
    )
    return models.with_stamp(stamp)


def _poisson(frames: list[pd.DataFrame], outcome: str, designs: list[Floats]) -> list[Fit]:
    """Poisson regression with a log link and its classical variances."""
    fits = []
    for frame, x in zip(frames, designs, strict=True):
        y, keep = _numbers(frame, outcome, "poisson"), identified(x)
        if (y < 0).any():
            raise ParameterError(
                f"outcome ({outcome}) must be 0 or more for family='poisson'; try family='linear'"
            )
        size = np.sqrt((x[:, keep] ** 2).mean(axis=0))
        beta, variance, _ = fit_poisson(x[:, keep] / size, np.ones((1, len(y))), y[None])
        both = np.full((2, x.shape[1]), np.nan)
        both[:, keep] = beta[0] / size, variance[0] / size**2
        fits.append((both[0], both[1]))
    return fits


def _ordinal(
    frames: list[pd.DataFrame], outcome: str, designs: list[Floats], terms: tuple[str, ...]
) -> tuple[list[Fit], tuple[str, ...]]:
    """Proportional odds: cut points, then coefficients, and their names."""
    classes, slopes = (
        _classes(frames, outcome, "ordinal"),
        [t for t, name in enumerate(terms) if name != "Intercept"],
    )
    cuts, fits = len(classes) - 1, []
    for number, (frame, x) in enumerate(zip(frames, designs, strict=True), 1):
        keep = identified(np.c_[np.ones(len(x)), x[:, slopes]])[1:]
        kept = x[:, slopes][:, keep]
        size = np.sqrt((kept**2).mean(axis=0))
        rows, counts = group_rows(kept / size, _codes(frame[outcome], classes), len(classes))
        if not counts.sum(axis=0).all():
            raise ParameterError(
                f"outcome ({outcome}) must have every level in every set; set {number} lacks one"
            )
        beta, variance, _ = fit_ordinal(rows, counts[None])
        both = np.full((2, cuts + len(slopes)), np.nan)
        place = np.r_[np.ones(cuts, dtype=bool), keep]
        scale = np.r_[np.ones(cuts), size]
        both[:, place] = beta[0] / scale, variance[0] / scale**2
        fits.append((both[0], both[1]))
    names = (*(f"{low}|{high}" for low, high in pairwise(classes)), *(terms[t] for t in slopes))
    return fits, names


def _numbers(frame: pd.DataFrame, outcome: str, family: str) -> Floats:
    """The outcome as numbers. What it holds instead is not said: rows may be private ones."""
    column = frame[outcome]
    try:
        if isinstance(column.dtype, pd.CategoricalDtype):
            numbers = numeric_levels(column)
        else:
            numbers = np.asarray(pd.to_numeric(column), dtype=float)
    except (ValueError, TypeError, OverflowError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise ParameterError(
            f"outcome ({outcome}) must be a finite number in every row for family={family!r}; try family='logistic' or 'multinomial'"
        )
    return numbers


def _linear(frames: list[pd.DataFrame], outcome: str, designs: list[Floats]) -> list[Fit]:
    """Least squares and the classical variances of its coefficients."""
    fits = []
    for frame, x in zip(frames, designs, strict=True):
        y, keep = _numbers(frame, outcome, "linear"), identified(x)
        both, kept = np.full((2, x.shape[1]), np.nan), x[:, keep]
        inverse = np.linalg.inv(kept.T @ kept)
        beta = inverse @ (kept.T @ y)
        noise = float(((y - kept @ beta) ** 2).sum()) / max(len(y) - kept.shape[1], 1)
        both[:, keep] = beta, noise * np.diag(inverse)
        fits.append((both[0], both[1]))
    return fits


def _logits(
    frames: list[pd.DataFrame],
    outcome: str,
    classes: list[Any],
    designs: list[Floats],
    firth: bool | None,
) -> tuple[list[Fit], bool, list[Note]]:
    """The fit of every set, whether they are penalised, and a note if that was not asked for."""
    data = [
        group_rows(x, _codes(frame[outcome], classes), len(classes))
        for frame, x in zip(frames, designs, strict=True)
    ]
    fits = [fit_logit(x, counts, firth=bool(firth)) for x, counts in data]
    separated = [
        number
        for number, (fit, group) in enumerate(zip(fits, data, strict=True), 1)
        if not firth and (fit.extreme or not fit.converged) and is_separated(*group)
    ]
    if separated and firth is False:
        raise ParameterError(
            f"firth (False): set(s) {_list(separated)} are separated and have no finite fit; leave firth out"
        )
    if separated:
        fits = [fit_logit(x, counts, firth=True) for x, counts in data]
    notes = []
    if separated:
        short = "some set is separated: every fit has Firth's penalty and is slightly shrunk"
        notes.append(Note(FIRTH.format(sets=_list(separated)), short, Rank.UNSETTLED))
    return (
        [(fit.coefficients.ravel(), fit.variances.ravel()) for fit in fits],
        bool(firth or separated),
        notes,
    )


def _classes(frames: list[pd.DataFrame], outcome: str, family: str) -> list[Any]:
    """The levels of the outcome, the reference first."""
    column = frames[0][outcome]
    if isinstance(column.dtype, pd.CategoricalDtype):
        classes = list(column.cat.categories)
    else:
        classes = sorted({value for frame in frames for value in frame[outcome].unique()})
    if len(classes) < 2:
        raise ParameterError(
            f"outcome ({outcome}) must have at least 2 levels in the sets; model another column"
        )
    if family == "logistic" and len(classes) != 2:
        raise ParameterError(
            f"outcome ({outcome}) must have 2 levels for family='logistic', and has more; try family='multinomial'"
        )
    return classes


def _codes(values: pd.Series, classes: list[Any]) -> NDArray[np.int64]:
    codes = pd.Categorical(values, categories=classes).codes
    if (codes < 0).any():
        raise ParameterError(f"outcome ({values.name}) has missing values; drop those rows first")
    return np.asarray(codes, dtype=np.int64)


def _unidentified(estimates: Floats, terms: tuple[str, ...]) -> list[Note]:
    """A note on the terms that some set does not identify."""
    missing = np.isnan(estimates)
    if not missing.any():
        return []
    lost = [terms[place] for place in np.flatnonzero(missing.any(axis=0))]
    sets = _list((1 + np.flatnonzero(missing.any(axis=1))).tolist())
    text = ALIASED.format(terms=", ".join(lost), sets=sets)
    return [Note(text, f"not identified in every set: {listed(lost, 2)}", Rank.UNKNOWN)]


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
