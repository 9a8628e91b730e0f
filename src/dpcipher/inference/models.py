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
from dpcipher.inference.logit import Grouped, fit_logit, is_separated

Floats = NDArray[np.float64]
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
    designs, names = design_matrices(frames, right)
    if family == "linear":
        return _linear(frames, outcome, designs, names, sanitizations)
    return _logits(frames, outcome, designs, names, family, sanitizations, firth)


def _linear(
    frames: list[pd.DataFrame],
    outcome: str,
    designs: list[Floats],
    names: tuple[str, ...],
    sanitizations: int | None,
) -> Models:
    fits = []
    for frame, x in zip(frames, designs, strict=True):
        y, keep = pd.to_numeric(frame[outcome]).to_numpy(dtype=float), identified(x)
        fits.append(_scatter(*_ols(x[:, keep], y), keep))
    return _assemble(names, "linear", fits, False, [], sanitizations)


def _ols(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Least squares and the classical variances of its coefficients."""
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ (x.T @ y)
    noise = float(((y - x @ beta) ** 2).sum()) / max(len(y) - x.shape[1], 1)
    return beta, noise * np.diag(inverse)


def _logits(
    frames: list[pd.DataFrame],
    outcome: str,
    designs: list[Floats],
    names: tuple[str, ...],
    family: Family,
    sanitizations: int | None,
    firth: bool | None,
) -> Models:
    classes = (
        list(frames[0][outcome].cat.categories)
        if hasattr(frames[0][outcome], "cat")
        else _numbers(frames, outcome)
    )
    _check_classes(classes, family, outcome)
    keeps = [identified(x) for x in designs]
    data = [
        Grouped.of(x[:, keep], _codes(frame[outcome], classes), len(classes))
        for frame, x, keep in zip(frames, designs, keeps, strict=True)
    ]
    plain = [] if firth else [fit_logit(one) for one in data]
    apart = [
        number for number, (one, fit) in enumerate(zip(data, plain, strict=False), 1)
        if (fit.extreme or not fit.converged) and is_separated(one)
    ]  # fmt: skip
    penalise = bool(apart) if firth is None else firth
    if apart and not penalise:
        raise ParameterError(
            f"firth (False): set(s) {_list(apart)} are separated and have no finite fit; leave firth out"
        )
    fits = [fit_logit(one, firth=True) for one in data] if penalise else plain
    stretched = [np.tile(keep, len(classes) - 1) for keep in keeps]
    values = [
        _scatter(f.coefficients.ravel(), np.diag(f.covariance), keep)
        for f, keep in zip(fits, stretched, strict=True)
    ]
    terms = names if family == "logistic" else tuple(f"{c}: {term}" for c in classes[1:] for term in names)
    return _assemble(
        terms, family, values, penalise, [FIRTH.format(sets=_list(apart))] if apart else [], sanitizations
    )


def _assemble(
    terms: tuple[str, ...],
    family: Family,
    fits: list[tuple[Floats, Floats]],
    firth: bool,
    notes: list[str],
    sanitizations: int | None,
) -> Models:
    estimates, variances = (np.array(part) for part in zip(*fits, strict=True))
    combined = combine(estimates, variances, sanitizations=sanitizations)
    missing = np.isnan(estimates)
    if missing.any():
        lost = ", ".join(term for term, gone in zip(terms, missing.any(axis=0), strict=True) if gone)
        notes = [
            *notes,
            ALIASED.format(terms=lost, sets=_list((1 + np.flatnonzero(missing.any(axis=1))).tolist())),
        ]
    return Models(terms, family, estimates, variances, combined, firth, (*notes, *combined.notes))


def _scatter(estimate: Floats, variance: Floats, keep: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    both = np.full((2, len(keep)), np.nan)
    both[0, keep], both[1, keep] = estimate, variance
    return both[0], both[1]


def _check_family(family: str) -> None:
    if family not in FAMILIES:
        raise ParameterError(
            f"family ({family!r}) must be one of {', '.join(FAMILIES)}{did_you_mean(str(family), FAMILIES)}"
        )


def _check_classes(classes: list[Any], family: str, outcome: str) -> None:
    if family == "logistic" and len(classes) != 2:
        raise ParameterError(
            f"outcome ({outcome}) has {len(classes)} levels and must have 2 for family='logistic'; try family='multinomial'"
        )
    if len(classes) < 2:
        raise ParameterError(f"outcome ({outcome}) must have at least 2 levels")


def _numbers(frames: list[pd.DataFrame], outcome: str) -> list[Any]:
    return sorted({value for one in frames for value in one[outcome].unique()})


def _codes(values: pd.Series, classes: list[Any]) -> NDArray[np.int64]:
    codes = pd.Categorical(values, categories=classes).codes
    if (codes < 0).any():
        raise ParameterError(f"outcome ({values.name}) has missing values; drop those rows first")
    return np.asarray(codes, dtype=np.int64)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
