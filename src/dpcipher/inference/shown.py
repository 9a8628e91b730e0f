"""Results for people: models as one screen, in full, as HTML and as a plot; estimates as cards."""

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd

from dpcipher.drawing import html
from dpcipher.drawing.card import Card, counted
from dpcipher.drawing.forest import DotLine, forest_plot
from dpcipher.drawing.plot import Plot
from dpcipher.drawing.svg import element, standalone
from dpcipher.errors import ParameterError
from dpcipher.inference.combine import Combined
from dpcipher.inference.estimate import DrawSummary, Estimate
from dpcipher.inference.fitted import Models
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

HEADS = {
    "term": "term",
    "estimate": "estimate",
    "std_error": "std. error",
    "low": "low",
    "high": "high",
    "p": "p",
    "noise_share": "noise",
    "measured": "measured",
    "trust": "trust",
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
# A screen has 24 lines of 80 characters; the last line is the prompt's.
LINES, WIDTH = 23, 79
MOST_NOTES, SHORTEST_TERM = 3, 16
TRUST = {
    "good": "noise is at most half of the variance",
    "noisy": "noise is more than half of the variance",
    "weak": "shaped by the prior",
    "unmeasured": "no table shows it",
    "unknown": "not identified",
}
MORE = "print(models.details)"
# Intercepts and cut points, which are on a scale of their own.
LEVEL_OF_OUTCOME = r"(?:^|: )Intercept$|\|"
NOISE_MEANING = (
    "noise: the share of the variance that comes from the privacy noise and from what was not measured; the "
    "rest is sampling"
)


def headline(models: Models) -> str:
    """One line: which model, fitted to what."""
    name = f"{models.family} model" + (f" {models.formula}" if models.formula else "")
    if models.release is None:
        return f"{name}, over {counted(models.combined.sets, 'set')}"
    draws = f"{len(models.estimates):,} draws of the joint of {len(models.release.columns)} columns"
    return f"{name}, from one release: {draws}"


def as_text(models: Models, level: float = 0.95, *, more: str = MORE) -> str:
    """The first screen, as `print` shows it: term, estimate, interval, trust, the first notes.

    `more` is how to see the rest.
    """
    head = _wrapped(_title(models))
    legend = _wrapped(_legend(models))
    notes = [_clipped(f"note: {note}", WIDTH) for note in models.brief[:MOST_NOTES]]
    left = LINES - len(head) - len(legend) - len(notes) - 2 - -(-len(models.stamp) // WIDTH)
    lines = _lines(models, level)
    kept = _first(models.terms, left)
    table = _aligned([_brief_heads(models, level), *(lines[place] for place in kept)])
    return "\n".join([*head, *table, *_cut(lines, kept), *legend, *notes, _rest(models, more)])


def in_full(models: Models, level: float = 0.95) -> str:
    """All columns of the table and all notes in full."""
    body = _cells(models, level)
    lines = [*pd.DataFrame(body, columns=_heads(models, level)).to_string(index=False).split("\n")]
    if models.release is not None:
        lines.append(NOISE_MEANING)
    return "\n".join([headline(models), *lines, *(f"note: {note}" for note in models.notes)])


def card(models: Models, level: float = 0.95) -> Card:
    """The first view for a notebook: coefficient plot, table, the first notes."""
    draws = "Draws" if models.release is not None else "Sets"
    lines, kept = _lines(models, level), _first(models.terms, LINES)
    caption = f"Estimates with {100 * level:g} % intervals"
    table = html.table(_brief_heads(models, level), [lines[place] for place in kept], caption=caption)
    legend = [text for text in (_legend(models),) if text]
    notes = html.bullets([*_cut(lines, kept), *models.brief[:MOST_NOTES], *legend, _rest(models, MORE)])
    shown = [models.terms[place] for place in kept]
    plot = standalone(coefficient_plot(models, level, terms=shown))
    return Card(
        f"{models.family.capitalize()} model {models.formula}".strip(),
        {
            "Parameters": f"{len(models.terms):,}",
            draws: f"{len(models.estimates):,}",
            "Fitted to": "one release" if models.release is not None else "sets of rows",
        },
        below=f"{html.key_list(_key(models, level))}{plot}{table}{notes}",
    )


def _title(models: Models) -> str:
    """Which model, fitted to what, without the draws."""
    name = f"{models.family} model" + (f" {models.formula}" if models.formula else "")
    return f"{name}, from one release" if models.release is not None else headline(models)


def _first(terms: Sequence[str], most: int) -> list[int]:
    """The places of the terms of the first view: all of them, or as many slopes as there are lines for."""
    if len(terms) <= most:
        return list(range(len(terms)))
    slopes = [place for place, term in enumerate(terms) if not re.search(LEVEL_OF_OUTCOME, term)]
    return slopes[: most - 1]


def _cut(lines: Sequence[object], kept: Sequence[int]) -> list[str]:
    """How many terms the first view leaves out."""
    return [f"… and {counted(len(lines) - len(kept), 'more term')}"] if len(kept) < len(lines) else []


def _brief_heads(models: Models, level: float) -> list[str]:
    return ["term", "estimate", f"{100 * level:g} % interval", *(["trust"] if models.trust else [])]


def _lines(models: Models, level: float) -> list[list[str]]:
    """Term, estimate, interval and a word on trust of every parameter."""
    frame = models.to_frame(level)
    bounds = [
        "–" if math.isnan(low) else f"{_number(low)} to {_number(high)}"
        for low, high in zip(frame["low"], frame["high"], strict=True)
    ]
    columns = [list(frame["term"]), [_number(value) for value in frame["estimate"]], bounds]
    return [list(line) for line in zip(*columns, *([models.trust] if models.trust else []), strict=True)]


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table on a screen: long terms are cut so that the rest fits, numbers stand to the right."""
    others = [max(len(line[place]) for line in lines) for place in range(1, len(lines[0]))]
    most = max(WIDTH - sum(others) - 2 * len(others), SHORTEST_TERM)
    width = min(most, max(len(line[0]) for line in lines))
    rows = []
    for term, *rest in lines:
        cells = [text.rjust(others[place]) for place, text in enumerate(rest[:2])]
        rows.append("  ".join([_clipped(term, width).ljust(width), *cells, *rest[2:]]))
    return rows


def _legend(models: Models) -> str:
    """The meaning of the words on trust that occur."""
    return (
        "trust: "
        + "; ".join(f"{word} = {meaning}" for word, meaning in TRUST.items() if word in models.trust)
        if models.trust
        else ""
    )


def _rest(models: Models, more: str) -> str:
    hidden = len(models.notes) - len(models.brief[:MOST_NOTES])
    rest = f"p-values and {counted(hidden, 'more note')}" if hidden > 0 else "p-values and the notes in full"
    return f"{rest}: {more}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False)


def _clipped(text: str, width: int) -> str:
    """The text, or its start and its end: of a term the level stands at the end."""
    if len(text) <= width:
        return text
    end = width // 2 if text.endswith("]") else 0
    return f"{text[: width - end - 1]}…{text[len(text) - end :]}"


def draw(models: Models, columns: tuple[str, ...] | None) -> Plot:
    """The coefficient plot, or that of the terms of some columns."""
    kept = [
        term for term in models.terms if columns is None or set(columns) & _columns(models, term, columns)
    ]
    if not kept:
        raise ParameterError(
            f"columns ({', '.join(columns or ())}) must be in a term of the model, one of "
            f"{', '.join(models.terms[:8])}"
        )
    title = f"{models.family.capitalize()} model {models.formula}".strip()
    return Plot(title, {title: coefficient_plot(models, terms=kept)}, _key(models))


def _key(models: Models, level: float = 0.95) -> dict[str, str]:
    """The meaning of the signs of the plot; of the pale bar only where there is one."""
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


def coefficient_plot(models: Models, level: float = 0.95, *, terms: Sequence[str] | None = None) -> str:
    """Estimates and intervals of all or some terms; intercepts and cut points are in the table alone."""
    frame = models.to_frame(level)
    frame = frame if terms is None else frame[frame["term"].isin(terms)]
    free = frame[~frame["term"].str.contains(LEVEL_OF_OUTCOME, regex=True)]
    shown = free if len(free) else frame
    closed = "closed_low" in shown
    lines = [
        DotLine(
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
        "trust": str,
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
    least = 2 / (len(models.estimates) + 1) if isinstance(models.combined, DrawSummary) else 1e-4

    def show(p: float) -> str:
        if math.isnan(p):
            return "–"
        return f"<{least:.2g}" if p <= least * 1.0001 else f"{p:.3g}"

    return show


def estimate_card(estimate: Estimate) -> Card:
    """A card of one number with its error, or of the first of several."""
    values = (estimate.estimate, estimate.std_error, *estimate.interval())
    facts = {"Draws": f"{len(estimate.values):,}"}
    if shape := estimate.estimate.shape:
        numbers = {"Numbers": f"{estimate.estimate.size:,}", "Shape": " × ".join(map(str, shape))}
        facts = numbers | facts
    share = {"Noise": (estimate.noise_share, ".0%")}
    return _numbers_card("Estimate", values, share, facts, estimate.notes)


def combined_card(combined: Combined) -> Card:
    """A card of one combined estimate, or of the first of several."""
    values = (combined.estimate, combined.std_error, *combined.interval())
    title = "Combined estimates" if combined.estimate.ndim else "Combined estimate"
    dof = {"Degrees of freedom": (combined.dof, ".4g")}
    facts = {"Sets": f"{combined.sets:,}", "Rule": combined.rule}
    return _numbers_card(title, values, dof, facts, combined.notes)


def _numbers_card(
    title: str,
    values: Sequence[Floats],
    more: Mapping[str, tuple[Floats, str]],
    facts: Mapping[str, str],
    notes: Sequence[str],
) -> Card:
    """Estimates with errors and intervals, and one more number of each, by its name with its format."""
    heads = (*("Estimate", "Std. error", "Low (95 %)", "High (95 %)"), *more)
    columns = [*((value, ".4g") for value in values), *more.values()]

    def figures(place: tuple[int, ...]) -> list[str]:
        return [f"{float(np.asarray(value)[place]):{shape}}" for value, shape in columns]

    shape, sentences = values[0].shape, [f"{note[0].upper()}{note[1:]}." for note in notes]
    if not shape:
        return Card(title, {**dict(zip(heads, figures(()), strict=True)), **facts}, notes=sentences)
    lines = [[", ".join(map(str, place)), *figures(place)] for place in islice(np.ndindex(shape), Card.most)]
    return Card(
        title, facts, tuple(head.lower() for head in ("Place", *heads)), lines, values[0].size, sentences
    )


def with_labels(models: Models, schema: Schema) -> Models:
    """A model with labels in its terms, classes and notes, for people: SEX[T.2] becomes SEX[Female]."""
    names = {column.name: _changed(column.labels, column.shown_labels) for column in schema.columns}
    outcome = models.formula.partition("~")[0].strip().strip("`")
    classes = names.get(outcome, {})
    terms = tuple(_term(term, names, classes) for term in models.terms)
    both = dict(zip(models.terms, terms, strict=True))
    return replace(
        models, terms=terms, notes=_with_terms(models.notes, both), brief=_with_terms(models.brief, both)
    )


def _with_terms(notes: tuple[str, ...], terms: Mapping[str, str]) -> tuple[str, ...]:
    """The notes with the terms that have labels, the longest first: one may be a part of another."""
    changed = sorted((term for term in terms if terms[term] != term), key=len, reverse=True)
    if not changed:
        return notes
    named = re.compile("|".join(map(re.escape, changed)))
    return tuple(named.sub(lambda match: terms[match[0]], note) for note in notes)


def _changed(levels: tuple[str, ...], shown: tuple[str, ...]) -> dict[str, str]:
    return (
        {}
        if levels == shown
        else {level: text for level, text in zip(levels, shown, strict=True) if level != text}
    )


def _term(term: str, names: Mapping[str, Mapping[str, str]], classes: Mapping[str, str]) -> str:
    for level, text in classes.items():
        if term.startswith(f"{level}: "):
            term = text + term[len(level) :]
            break
    else:
        low, cut, high = term.partition("|")
        term = f"{classes.get(low, low)}{cut}{classes.get(high, high)}" if cut else term
    for name, labels in names.items():
        # As it stands, or in C(…), with contrasts or without.
        place = rf"(?<![\w.])({re.escape(name)}(?:`?(?:, [^\[\]]*)?\))?)\[T\.(.*?)\](?=:|$)"
        term = re.sub(place, partial(_labelled, labels), term)
    return term


def _labelled(labels: Mapping[str, str], match: re.Match[str]) -> str:
    return f"{match[1]}[{labels[match[2]]}]" if match[2] in labels else match[0]
