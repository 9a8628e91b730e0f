"""The page about methods runs as it stands, and its worked example keeps the contract."""

import re
from pathlib import Path

import numpy as np
import pytest
from replaying import check_neighbours, neighbours
from test_contract import SCHEMA, planted

import dpcipher as dc
from dpcipher.methods import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"


def run_page() -> dict[str, object]:
    """Execute every Python block of the page in one namespace, as a module so that dataclasses find it."""
    names: dict[str, object] = {"__name__": "methods_page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


@pytest.fixture(scope="module")
def page() -> dict[str, object]:
    """What the page defines."""
    return run_page()


def test_the_page_runs(page: dict[str, object]) -> None:
    """Rows, a certificate and a comparison come out of it."""
    assert len(page["rows"]) == 500
    assert page["fitted"].statement.certificate["total"] == pytest.approx(1.0)
    assert list(page["found"].table().index) == ["cipher", "independent", "uniform"]
    assert "<svg" in page["picture"].svg


def test_the_worked_example_learns_and_keeps_its_promise(page: dict[str, object]) -> None:
    """The star recovers its tables with a large budget, and replay on neighbours finds nothing undeclared."""
    counts = planted(4000)
    from dpcipher.privacy.draws import Draws

    star = page["Star"](epsilon=3000.0, unit="replace", centre="c")
    fitted = star.fit_counts(counts, SCHEMA, draws=Draws.seeded(1)).joint.core.probabilities
    for pair, drop in (((0, 2), (1, 3)), ((2, 3), (0, 1))):
        assert np.abs(fitted.sum(axis=drop) - counts.sum(axis=drop) / 4000).sum() / 2 < 0.01, pair
    rng = np.random.default_rng(3)
    small = page["Star"](epsilon=1.0, unit="add-remove", centre="c")
    for seed in range(5):
        assert check_neighbours(small, counts, neighbours(counts, "add-remove", 1, rng), SCHEMA, seed) <= 1


def test_a_method_that_peeks_fails_the_replay() -> None:
    """A planted bug: the number of questions depends on a true count."""
    from dataclasses import dataclass
    from fractions import Fraction

    @dataclass(frozen=True)
    class Peeking(dc.Uniform):
        def _learn(self, session):
            for _ in range(1 + session._source.n_rows % 2):
                session.count_rows(Fraction(1, 2))
            return dc.Uniform._learn(dc.Uniform(1.0, unit="replace"), _Public(session))

    class _Public:
        def __init__(self, session):
            self.schema, self.kind, self.n_rows = session.schema, session.kind, 10

    counts = planted(400)
    with pytest.raises(AssertionError, match="depend on private rows"):
        check_neighbours(
            Peeking(1.0, unit="add-remove"),
            counts,
            neighbours(counts, "add-remove", 1, np.random.default_rng(1)),
            SCHEMA,
            0,
        )


def test_a_wrong_sensitivity_fails_the_replay() -> None:
    """A planted bug: half the scale that the unit needs."""
    from dataclasses import dataclass
    from fractions import Fraction

    from asking import Asked

    @dataclass(frozen=True)
    class Halved(dc.FullHistogram):
        def _learn(self, session):
            session.ask(Asked(lambda counts: 2 * counts.counts((0, 1, 2, 3)), 1, 1), Fraction(1))
            return dc.Uniform._learn(
                self, type("Open", (), {"schema": session.schema, "kind": session.kind, "n_rows": 10})
            )

    counts = planted(400)
    with pytest.raises(AssertionError, match="declared"):
        check_neighbours(
            Halved(1.0, unit="add-remove"),
            counts,
            neighbours(counts, "add-remove", 1, np.random.default_rng(1)),
            SCHEMA,
            0,
        )


def test_every_method_is_on_the_page() -> None:
    """The table names the whole registry."""
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}` | `{METHODS[name].__name__}`" not in text] == []
