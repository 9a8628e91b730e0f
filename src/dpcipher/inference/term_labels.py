"""The terms of a model with the labels of the values that they name, for people: SEX[T.2] becomes SEX[Female]."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from dpcipher.inference.fitted import Models
from dpcipher.schema.schema import Schema


def with_labels(models: Models, schema: Schema) -> Models:
    """The same model with labels in its terms and in the notes about them; the outcome's classes and cut points too."""
    names = {column.name: _changed(column.labels, column.shown_labels) for column in schema.columns}
    outcome = models.formula.partition("~")[0].strip().strip("`")
    classes = names.get(outcome, {})
    terms = tuple(_term(term, names, classes) for term in models.terms)
    both = dict(zip(models.terms, terms, strict=True))
    return replace(models, terms=terms, notes=_notes(models.notes, both), brief=_notes(models.brief, both))


def _notes(notes: tuple[str, ...], terms: Mapping[str, str]) -> tuple[str, ...]:
    """The notes with the terms that have labels, the longest first: one may be a part of another."""
    changed = sorted((term for term in terms if terms[term] != term), key=len, reverse=True)
    if not changed:
        return notes
    named = re.compile("|".join(map(re.escape, changed)))
    return tuple(named.sub(lambda found: terms[found[0]], note) for note in notes)


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


def _labelled(labels: Mapping[str, str], found: re.Match[str]) -> str:
    return f"{found[1]}[{labels[found[2]]}]" if found[2] in labels else found[0]
