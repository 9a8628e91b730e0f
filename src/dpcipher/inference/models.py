"""Models over m synthetic sets: one fit per set, one combined table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.errors import ParameterError, did_you_mean
from dpcipher.inference.combine import Combined, combine
from dpcipher.inference.design import data_frames, design_matrices, identified, split_formula
from dpcipher.inference.logit import fit_logit, group_rows, is_separated
from dpcipher.marginals.arrays import Floats

Fit = tuple[Floats, Floats]  # estimates and their variances
Family = Literal["logistic", "multinomial", "linear"]
FAMILIES: tuple[str, ...] = get_args(Family)

FIRTH = (
    "separation: some maximum-likelihood estimates are infinite in set(s) {sets}, so every set was fitted with Firth's penalty, "
    "which keeps them finite and shrinks them slightly"
)
ALIASED = "not identified in every set: {terms}; their levels are missing, or follow from other terms, in set(s) {sets}"


@dataclass(frozen=True)
class Models:
    """A model fitted to m sets: the combined inference, one row per parameter, and what to keep in mind.

    `estimates` and `variances` keep the m fits: sets by parameters, NaN where a set does not identify a parameter.
    """

    terms: tuple[str, ...]
    family: Family
    estimates: Floats
    variances: Floats
    combined: Combined
    firth: bool
    notes: tuple[str, ...]

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimate, standard error, degrees of freedom, interval and significance of every parameter."""
        low, high = self.combined.interval(level)
        columns = {
            "estimate": self.combined.estimate,
            "std_error": self.combined.std_error,
            "dof": self.combined.dof,
            "low": low,
            "high": high,
            "significant": self.combined.significant(level),
        }
        return pd.DataFrame(columns, index=pd.Index(self.terms, name="term"))

    def __str__(self) -> str:
        notes = "".join(f"\nnote: {note}" for note in self.notes)
        return f"{self.family} model over {self.combined.sets} set(s)\n{self.table().to_string()}{notes}"


def fit_models(
    sets: Any,
    formula: str,
    family: Family = "logistic",
    *,
    levels: Mapping[str, Sequence[Any]] | None = None,
    sanitizations: int | None = None,
    firth: bool | None = None,
) -> Models:
    """Fit one model to each of m data sets and combine the fits (`combine` has the rule and its limits).

    `sets` is a list of data frames, or one frame (then the variance leaves out the privacy noise, and a note says so). `formula`
    is "outcome ~ terms" in formulaic's notation; `levels` gives the order of a column's levels, the first being the
    reference, where it should not be the sorted one. `firth=None` penalises every set as soon as one is separated.
    """
    _check_family(family)
    frames = data_frames(sets, levels or {})
    outcome, right = split_formula(formula, frames[0])
    designs, terms = design_matrices(frames, right)
    notes: list[str] = []
    if family == "linear":
        fits, penalised = _linear(frames, outcome, designs), False
    else:
        classes = _classes(frames, outcome, family)
        fits, penalised, notes = _logits(frames, outcome, classes, designs, firth)
        if family == "multinomial":
            terms = tuple(f"{name}: {term}" for name in classes[1:] for term in terms)
    estimates, variances = (np.array(part) for part in zip(*fits, strict=True))
    combined = combine(estimates, variances, sanitizations=sanitizations)
    notes += [*_unidentified(estimates, terms), *combined.notes]
    return Models(terms, family, estimates, variances, combined, penalised, tuple(notes))


def _linear(frames: list[pd.DataFrame], outcome: str, designs: list[Floats]) -> list[Fit]:
    """Least squares and the classical variances of its coefficients."""
    fits = []
    for frame, x in zip(frames, designs, strict=True):
        y, keep = pd.to_numeric(frame[outcome]).to_numpy(dtype=float), identified(x)
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
) -> tuple[list[Fit], bool, list[str]]:
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
    notes = [FIRTH.format(sets=_list(separated))] if separated else []
    return (
        [(fit.coefficients.ravel(), fit.variances.ravel()) for fit in fits],
        bool(firth or separated),
        notes,
    )


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ParameterError(
            f"family ({family!r}) must be one of {', '.join(FAMILIES)}{did_you_mean(str(family), FAMILIES)}"
        )


def _classes(frames: list[pd.DataFrame], outcome: str, family: str) -> list[Any]:
    """The levels of the outcome, the reference first."""
    column = frames[0][outcome]
    if isinstance(column.dtype, pd.CategoricalDtype):
        classes = list(column.cat.categories)
    else:
        classes = sorted({value for frame in frames for value in frame[outcome].unique()})
    if family == "logistic" and len(classes) != 2:
        raise ParameterError(
            f"outcome ({outcome}) has {len(classes)} levels and must have 2 for family='logistic'; try family='multinomial'"
        )
    if len(classes) < 2:
        raise ParameterError(f"outcome ({outcome}) must have at least 2 levels")
    return classes


def _codes(values: pd.Series, classes: list[Any]) -> NDArray[np.int64]:
    codes = pd.Categorical(values, categories=classes).codes
    if (codes < 0).any():
        raise ParameterError(f"outcome ({values.name}) has missing values; drop those rows first")
    return np.asarray(codes, dtype=np.int64)


def _unidentified(estimates: Floats, terms: tuple[str, ...]) -> list[str]:
    """A note on the terms that some set does not identify."""
    missing = np.isnan(estimates)
    if not missing.any():
        return []
    lost = ", ".join(np.array(terms)[missing.any(axis=0)])
    return [ALIASED.format(terms=lost, sets=_list((1 + np.flatnonzero(missing.any(axis=1))).tolist()))]


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
