"""The terms of a model with the labels of the values that they name, for people: SEX[T.2] becomes SEX[Female]."""

from collections.abc import Mapping
from dataclasses import replace

from dpcipher.inference.fitted import Models
from dpcipher.schema.schema import Schema


def with_labels(models: Models, schema: Schema) -> Models:
    """The same model with labels in its terms; the outcome's classes and cut points too."""
    names = {column.name: _changed(column.labels, column.shown_labels) for column in schema.columns}
    outcome = models.formula.partition("~")[0].strip()
    classes = names.get(outcome, {})
    return replace(models, terms=tuple(_term(term, names, classes) for term in models.terms))


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
        for level, text in labels.items():
            for before in (f"{name}[", f"{name})["):
                term = term.replace(f"{before}T.{level}]", f"{before}{text}]")
    return term
