"""Every category of the paper's Table 1, and the bars."""

import re

import numpy as np
import pandas as pd
import pytest

from dpcipher.drawing.card import CuratorOnly
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.errors import ParameterError
from dpcipher.inference.sss import CATEGORIES, COLOURS, draw, sss

# The columns of Table 1: do the signs match, is the original significant, is the synthetic one; and its heading.
TABLE_1 = [
    (True, True, True, "Best"),
    (True, False, False, "Best"),
    (False, False, False, "Neutral"),
    (True, True, False, "II+"),
    (True, False, True, "I+"),
    (False, True, False, "II-"),
    (False, False, True, "I-"),
    (False, True, True, "Worst"),
]


@pytest.mark.parametrize(("match", "original", "synthetic", "category"), TABLE_1)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_column_of_the_papers_table(
    match: bool, original: bool, synthetic: bool, category: str, sign: float
) -> None:
    """Each of the eight columns gives its heading, whichever sign the original has."""
    found = sss(([sign], [original]), ([sign if match else -sign], [synthetic]))
    assert found.categories.tolist() == [category]


def test_all_seven_categories_at_once() -> None:
    """Vectorised over parameters: counts and shares of the whole table."""
    match, original, synthetic, names = (list(column) for column in zip(*TABLE_1, strict=True))
    found = sss((np.ones(8), original), (np.where(match, 2.0, -2.0), synthetic))
    assert found.categories.tolist() == names
    assert found.counts == {name: 2 if name == "Best" else 1 for name in CATEGORIES}
    assert sum(found.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("pair", [(0.0, 0.0), (0.0, 1.0), (-1.0, 0.0)])
def test_an_estimate_of_zero_matches_nothing(pair: tuple[float, float]) -> None:
    """sgn(0) is no sign, not even equal to itself."""
    assert sss(([pair[0]], [False]), ([pair[1]], [False])).categories.tolist() == ["Neutral"]


def test_one_original_against_many_repetitions() -> None:
    """The sides are broadcast: 3 parameters against 4 repetitions of them."""
    found = sss(
        (np.array([1.0, -1.0, 1.0]), np.array([True, False, True])),
        (np.ones((4, 3)), np.ones((4, 3), dtype=bool)),
    )
    assert found.counts == {"Best": 8, "II+": 0, "I+": 0, "II-": 0, "I-": 4, "Neutral": 0, "Worst": 0}


def test_tables_of_fitted_models_are_taken_as_they_are() -> None:
    """A frame with estimate and significant is a side."""
    side = pd.DataFrame({"estimate": [1.0], "significant": [True]})
    assert sss(side, side).counts["Best"] == 1


@pytest.mark.parametrize(
    ("synthetic", "rule"),
    [
        (([1.0, 2.0, 3.0], [True, True, True]), "must broadcast"),
        (([1.0, 2.0], [1, 0]), "true or false"),
        (([1.0, np.nan], [True, False]), "finite"),
        (([1.0, 2.0], [True]), "shape of its estimates"),
    ],
)
def test_sides_that_do_not_fit_are_refused(synthetic: object, rule: str) -> None:
    """Each check fires."""
    with pytest.raises(ParameterError, match=rule):
        sss(([1.0, 2.0], [True, True]), synthetic)  # type: ignore[arg-type]


def test_the_bars_have_the_papers_colours_and_the_right_lengths() -> None:
    """Best is red and half the bar, Worst is purple and half of it; segments of share 0 are not drawn."""
    found = sss(([1.0, 1.0], [True, True]), ([1.0, -1.0], [True, True]))
    drawn = re.findall(
        r'<rect x="([\d.]+)" y="8" width="([\d.]+)" height="20" fill="([^"]+)"', draw({"CIPHER": found})
    )
    assert [colour for _, _, colour in drawn] == [COLOURS["Best"], COLOURS["Worst"]]
    assert float(drawn[0][1]) == float(drawn[1][1])
    assert float(drawn[1][0]) == pytest.approx(float(drawn[0][0]) + float(drawn[0][1]), abs=0.11)


def test_the_colours_are_the_papers() -> None:
    """Red, orange, yellow, green, blue, gray, purple: told apart by their dominant channels."""
    rgb = {name: tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for name, colour in COLOURS.items()}
    assert tuple(rgb) == CATEGORIES
    for name in ("Best", "II+", "I+"):
        assert max(rgb[name]) == rgb[name][0]
        assert min(rgb[name]) == rgb[name][2]
    assert rgb["Best"][1] < rgb["II+"][1] < rgb["I+"][1]
    assert max(rgb["II-"]) == rgb["II-"][1]
    assert max(rgb["I-"]) == rgb["I-"][2]
    assert len(set(rgb["Neutral"])) == 1
    assert min(rgb["Worst"]) == rgb["Worst"][1]


def test_the_result_is_marked_curator_only() -> None:
    """In type and in text."""
    found = sss(([1.0], [True]), ([1.0], [True]))
    assert isinstance(found, CuratorOnly)
    assert str(found).startswith(WATERMARK)
