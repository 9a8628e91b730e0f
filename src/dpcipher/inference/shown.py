"""Fitted models for people: as text, as HTML for a notebook or a page, as a coefficient plot."""

import math
import re
from collections.abc import Callable, Sequence

import pandas as pd

from dpcipher.drawing import html
from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.forest import Estimate, forest_plot
from dpcipher.drawing.plot import Plot
from dpcipher.drawing.svg import element, standalone
from dpcipher.errors import ParameterError
from dpcipher.inference.drawn import Drawn
from dpcipher.inference.fitted import Models

HEADS = {
    "term": "term",
    "estimate": "estimate",
    "std_error": "std. error",
    "low": "low",
    "high": "high",
    "p": "p",
    "noise_share": "noise",
    "measured": "measured",
    "closed_low": "closed low",
    "closed_high": "closed high",
}
AXIS = {
    "linear": "in units of the outcome",
    "poisson": "log rate ratio",
    "logistic": "log odds ratio",
    "multinomial": "log odds ratio against the first class",
    "ordinal": "log odds ratio of a higher class",
}
NOISE_SAYS = "noise: the share of the variance that comes from the privacy noise and from what was not measured; the rest is sampling"


def headline(models: Models) -> str:
    """One line: which model, fitted to what."""
    name = f"{models.family} model" + (f" {models.formula}" if models.formula else "")
    if models.release is None:
        return f"{name}, over {counted(models.combined.sets, 'set')}"
    return f"{name}, from one release: {len(models.estimates):,} draws of the joint of {len(models.release.columns)} columns"


def as_text(models: Models, level: float = 0.95) -> str:
    """The table and the notes, as `print` shows them."""
    body = _cells(models, level)
    lines = [*pd.DataFrame(body, columns=_heads(models, level)).to_string(index=False).split("\n")]
    if models.release is not None:
        lines.append(NOISE_SAYS)
    notes = [f"note: {note}" for note in models.notes]
    return "\n".join([headline(models), *lines, *notes])


def card(models: Models, level: float = 0.95) -> Card:
    """The same for a notebook: coefficient plot, table, notes."""
    sets = (
        {"Draws": f"{len(models.estimates):,}"}
        if models.release is not None
        else {"Sets": f"{models.combined.sets}"}
    )
    table = coefficient_table(models, level)
    return Card(
        f"{models.family.capitalize()} model {models.formula}".strip(),
        {
            "Parameters": f"{len(models.terms):,}",
            **sets,
            "Fitted to": "one release" if models.release is not None else "sets of rows",
        },
        below=f"{html.key_list(_key(models, level))}{standalone(coefficient_plot(models, level))}{table}{notes_list(models)}",
    )


def draw(models: Models, columns: tuple[str, ...] | None) -> Plot:
    """The coefficient plot, or that of the terms of some columns."""
    kept = [
        term for term in models.terms if columns is None or set(columns) & _columns(models, term, columns)
    ]
    if not kept:
        raise ParameterError(
            f"columns ({', '.join(columns or ())}) must be in a term of the model, one of {', '.join(models.terms[:8])}"
        )
    title = f"{models.family.capitalize()} model {models.formula}".strip()
    return Plot(title, {title: coefficient_plot(models, terms=kept)}, _key(models))


def _key(models: Models, level: float = 0.95) -> dict[str, str]:
    """What the signs of the plot stand for; the pale bar only where there is one."""
    line, dot = (
        element("path", d="M0 7H22", class_="l-bar", stroke_width=3),
        element("circle", cx=11, cy=7, r=5, class_="f-bar"),
    )
    key = {f"estimate and {100 * level:g} % interval": line + dot}
    if models.release is not None and models.release.closed is not None:
        pale = element("path", d="M0 7H22", class_="l-pale", stroke_width=9)
        key["if what no table shows is taken for none"] = pale
    return key


def _columns(models: Models, term: str, asked: Sequence[str]) -> set[str]:
    """The columns that a term names, outside the names of its levels and of the outcome's class."""
    factors = term.partition(": ")[2] if models.family == "multinomial" else term
    factors = re.sub(r"\[.*?\](?=:|$)", "", factors)
    known = {*asked, *(models.release.columns if models.release is not None else ())}
    # The longest first: "marital status" is not "status".
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    return set(re.findall(rf"(?<![\w.])(?:{names})(?![\w.])", factors))


def coefficient_table(models: Models, level: float = 0.95) -> str:
    """The parameters as an HTML table."""
    caption = f"Estimates with {100 * level:g} % intervals"
    return html.table(_heads(models, level), _cells(models, level), caption=caption)


def notes_list(models: Models) -> str:
    """The notes as an HTML list."""
    first = [] if models.release is None else [NOISE_SAYS]
    return html.bullets([*first, *models.notes])


def coefficient_plot(models: Models, level: float = 0.95, *, terms: Sequence[str] | None = None) -> str:
    """Estimates and intervals of all or some terms; intercepts and cut points, on a scale of their own, are left to the table."""
    frame = models.to_frame(level)
    frame = frame if terms is None else frame[frame["term"].isin(terms)]
    free = frame[~frame["term"].str.contains(r"(?:^|: )Intercept$|\|", regex=True)]
    shown = free if len(free) else frame
    closed = "closed_low" in shown
    lines = [
        Estimate(
            row["term"],
            row["estimate"],
            row["low"],
            row["high"],
            (row["closed_low"], row["closed_high"]) if closed and math.isfinite(row["closed_low"]) else None,
        )
        for row in shown.to_dict(orient="records")
    ]
    title = f"Coefficients of {models.formula or models.family} with {100 * level:g} % intervals"
    return forest_plot(lines, title=title, axis=AXIS[models.family])


def _heads(models: Models, level: float) -> list[str]:
    return [HEADS[name] for name in models.to_frame(level).columns]


def _cells(models: Models, level: float) -> list[list[str]]:
    frame = models.to_frame(level)
    show: dict[str, Callable[..., str]] = {
        "term": str,
        "p": _p_of(models),
        "noise_share": lambda share: "" if math.isnan(share) else f"{100 * share:.0f} %",
        "measured": lambda marked: "yes" if marked else "NO",
    }
    return [
        [show.get(name, _number)(value) for name, value in row.items()]
        for row in frame.to_dict(orient="records")
    ]


def _number(value: float) -> str:
    """Four figures, or a dash where nothing is known."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def _p_of(models: Models) -> Callable[[float], str]:
    """p-values, with "<" where there are too few draws to tell them from 0."""
    least = 2 / (len(models.estimates) + 1) if isinstance(models.combined, Drawn) else 1e-4

    def show(p: float) -> str:
        if math.isnan(p):
            return "–"
        return f"<{least:.2g}" if p <= least * 1.0001 else f"{p:.3g}"

    return show
