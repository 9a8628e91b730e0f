"""A posterior as people first see it: a card with its columns, its draws and how the sampler ended."""

import numpy as np

from dpcipher.drawing.card import Card
from dpcipher.drawing.html import rows
from dpcipher.posteriors.posterior import Posterior


def card(posterior: Posterior) -> Card:
    """What was drawn of which columns, the likeliest cells, and what to keep in mind."""
    spread = float(posterior.rows.std())
    about = "about " if spread > 0 else ""
    margin = f" ± {rows(spread)}" if spread > 0 else ""
    return Card(
        "Posterior",
        {
            "Columns": " × ".join(posterior.columns),
            "Draws": f"{len(posterior.draws):,}",
            "Of": "the population" if posterior.population else "the table itself",
            "Rows": f"{about}{rows(float(posterior.rows.mean()))}{margin}",
            "Cells": f"{posterior.draws[0].size:,}",
        },
        (*posterior.columns, "share", "std. error"),
        _cells(posterior),
        of_lines=posterior.draws[0].size,
        notes=[
            f"Sampler: {posterior.report}.",
            *(f"{note[0].upper()}{note[1:]}." for note in posterior.notes),
        ],
    )


def _cells(posterior: Posterior) -> list[tuple[str, ...]]:
    """The likeliest cells by the labels of their levels, with their shares."""
    means, errors = posterior.draws.mean(axis=0), posterior.draws.std(axis=0)
    labels = [posterior.schema.shown_labels(name) for name in posterior.columns]
    largest = np.argsort(-means, axis=None, kind="stable")[: Card.most]
    places = [tuple(int(code) for code in np.unravel_index(place, means.shape)) for place in largest]
    return [
        (
            *(words[code] for words, code in zip(labels, place, strict=True)),
            f"{100 * means[place]:.3g} %",
            f"{100 * errors[place]:.2g} %",
        )
        for place in places
    ]
