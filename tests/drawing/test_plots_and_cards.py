"""Every object shows itself: one line of text, a card in a notebook, a plot; with the schema's words, escaped, and with its own numbers."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.drawing.card import Shown
from dpcipher.drawing.colours import PALETTE
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.drawing.html import rows
from dpcipher.drawing.maps import IMPOSSIBLE
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import NotPrivate, ParameterError, TableFileError, WorkloadError
from dpcipher.evaluation.compare import Comparison
from dpcipher.schema import Schema, Zero, column

ODD = "Male <b>&"
SCHEMA = Schema(
    (
        column("sex", "categorical", levels=["1", "2"], labels={"1": ODD, "2": "Female"}, title="Sex"),
        column("age", "integer", min=0, max=59, bins=6, unit="years"),
        column("job", "categorical", levels=["none", "part", "full"]),
        column("pay", "number", min=0, max=3000, bins=30),
    ),
    title="A town",
    zeros=(Zero({"age": {"max": 9}, "job": "full"}),),
)


def people(n: int = 400) -> pd.DataFrame:
    """Invented rows; no child has a full job."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 60, n)
    job = np.where(age < 10, "none", rng.choice(["none", "part", "full"], n))
    return pd.DataFrame(
        {"sex": rng.choice(["1", "2"], n), "age": age, "job": job, "pay": rng.uniform(0, 3000, n)}
    )


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each."""
    ledger = dc.Ledger.create(
        tmp_path_factory.mktemp("l") / "t.ledger", epsilon=9, unit="add-remove", name="town"
    )
    release = dc.measure(people(), SCHEMA, epsilon=4, unit="add-remove", ledger=ledger)
    joint = dc.solve(release)
    assert isinstance(joint, dc.Joint)
    fits = [
        {"method": name, "epsilon": epsilon, "repeat": repeat, "tvd_2": error / epsilon + repeat / 100, "seconds": 0.1}
        for name, error in (("far", 0.3), ("near", 0.1))
        for epsilon in (0.5, 1.0)
        for repeat in range(2)
    ]  # fmt: skip
    return {
        "schema": SCHEMA,
        "plan": dc.plan(SCHEMA, epsilon=1.0, unit="add-remove", n_rows=400),
        "auto": dc.plan(SCHEMA, workload="auto", epsilon=1.0, unit="add-remove"),
        "ledger": ledger,
        "release": release,
        "joint": joint,
        "trust": dc.trust(release),
        "posterior": dc.posterior(release, ("sex", "age"), draws=50, seed=1),
        "estimate": dc.estimate(release, lambda joint: joint[0].sum(), "sex", draws=50, seed=1),
        "combined": dc.combine([0.1, 0.2], [0.01, 0.02], rule="imputations"),
        "models": dc.fit_models(release, "job ~ age + sex", "multinomial", draws=50, seed=1),
        "scores": dc.evaluate(people(), joint.sample(400, seed=1), SCHEMA),
        "comparison": Comparison(pd.DataFrame(fits)),
        "fitted": dc.Independent(epsilon=1.0, unit="add-remove").fit(people(), SCHEMA),
    }


def singles() -> dc.Release:
    """Single columns alone."""
    schema = Schema(SCHEMA.columns[:1] + SCHEMA.columns[2:3])
    return dc.Release.from_tables({("sex",): [5, 6], ("job",): [3, 4, 4]}, schema, scale=1.0)


EVERY = ["schema", "posterior", "estimate", "combined", "plan", "auto", "ledger", "release", "joint", "trust", "models", "scores", "comparison", "fitted"]  # fmt: skip
CURATORS = ("scores", "comparison")


class Texts(HTMLParser):
    """The words of a page, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Remember it."""
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It closes the last one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Words are kept."""
        self.words.append(data)


@pytest.mark.parametrize("name", EVERY)
def test_an_object_is_one_line_of_text_and_a_card(objects: dict[str, Any], name: str) -> None:
    """Short, of closed elements, without markup of a level's name or a script, and with the watermark where one is due."""
    shown = objects[name]
    assert isinstance(shown, Shown)
    line, card = repr(shown), shown._repr_html_()
    assert "\n" not in line
    assert len(line) < 400
    parser = Texts()
    parser.feed(card)
    assert parser.open == []
    assert "<script" not in card
    assert "<b>&" not in card
    assert all((WATERMARK in text) == (name in CURATORS) for text in (line, card))


@pytest.mark.parametrize("name", EVERY[4:])
def test_an_object_draws_itself(objects: dict[str, Any], name: str, tmp_path: Path) -> None:
    """An SVG file that an XML reader takes, with a title, a description, colours for both schemes, and a file like it."""
    drawn = dc.plot(objects[name])
    root = ElementTree.fromstring(drawn.svg)
    tags = [item.tag.rpartition("}")[2] for item in root]
    assert tags[:3] == ["title", "desc", "style"]
    assert "prefers-color-scheme:dark" in drawn.svg
    assert drawn._repr_svg_() == drawn.svg
    assert all(svg in drawn._repr_html_() for svg in drawn.panels.values())
    path = drawn.save(tmp_path / "own" / "p.svg") if name in CURATORS else drawn.save(tmp_path / "p.svg")
    assert path.read_text(encoding="utf-8") == drawn.svg
    assert (WATERMARK in drawn.svg) == (name in CURATORS)


@pytest.mark.parametrize("name", CURATORS)
def test_a_plot_of_private_rows_is_kept_like_them(objects: dict[str, Any], name: str, tmp_path: Path) -> None:
    """In a folder of its own that nobody else opens; beside other files it is refused."""
    path = dc.plot(objects[name]).save(tmp_path / "own" / "p.svg")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other.txt").touch()
    with pytest.raises(NotPrivate, match="in use for something else"):
        dc.plot(objects[name]).save(tmp_path / "p.svg")


def told(drawn: Plot) -> list[str]:
    """What the pointer is told, shape by shape."""
    return [
        item.text or ""
        for group in ElementTree.fromstring(drawn.svg).iter()
        if not group.tag.endswith("}svg")
        for item in group
        if item.tag.endswith("}title")
    ]


def test_bars_tell_the_numbers_of_the_release(objects: dict[str, Any]) -> None:
    """Every level by its label, with estimate and interval as the release has them."""
    release = objects["release"]
    low, high = release.interval("sex")
    expected = [
        f"{label}: {rows(count)} (95 %: {rows(least)} to {rows(most)})"
        for label, count, least, most in zip(
            (ODD, "Female"), release.project("sex").tolist(), low.tolist(), high.tolist(), strict=True
        )
    ]
    drawn = dc.plot(release, "sex")
    assert told(drawn) == expected
    assert drawn.title == "sex: Sex"
    assert "age [years]" in dc.plot(release, "age").svg


def test_a_map_tells_every_cell_and_hatches_the_impossible(objects: dict[str, Any]) -> None:
    """In the order that was asked for; the cells of the structural zero hold no number."""
    release = objects["release"]
    counts = np.asarray(release.project(("job", "age")))
    cells = told(dc.plot(release, ("job", "age")))
    assert len(cells) == counts.size
    assert cells[1].startswith(f"none, 10–19: {rows(counts[0, 1])}")
    assert [cell for cell in cells if IMPOSSIBLE in cell] == [f"full, 0–9: {IMPOSSIBLE}"]
    turned = told(dc.plot(release, ("age", "job")))
    assert [cell for cell in turned if IMPOSSIBLE in cell] == [f"0–9, full: {IMPOSSIBLE}"]


def test_a_joint_draws_shares_of_any_columns(objects: dict[str, Any]) -> None:
    """They sum to one, up to what is rounded."""
    shares = [
        float(re.findall(r": ([\d.]+)", cell)[-1]) for cell in told(dc.plot(objects["joint"], ("sex", "pay")))
    ]
    assert sum(shares) == pytest.approx(100, abs=3)


def test_the_winner_comes_first_at_every_epsilon(objects: dict[str, Any]) -> None:
    """By name in the caption, and sorted."""
    drawn = dc.plot(objects["comparison"])
    assert [caption.split(": ")[1] for caption in drawn.panels] == ["near is best"] * 2
    assert all(svg.index(">near<") < svg.index(">far<") for svg in drawn.panels.values())


def test_programs_without_style_sheets_get_the_light_colours(objects: dict[str, Any]) -> None:
    """Every class that paints has its attribute beside it."""
    svg = dc.plot(objects["release"]).svg
    for kind, name in set(re.findall(r'class="([fl])-(\w+)"', svg)):
        attribute = "fill" if kind == "f" else "stroke"
        assert f'class="{kind}-{name}" {attribute}="{PALETTE[name][0]}"' in svg


@pytest.mark.parametrize(
    ("call", "error", "rule"),
    [
        (lambda o: dc.plot(3), ParameterError, "must be a plan, a release"),  # type: ignore[arg-type]
        (lambda o: dc.plot(o["release"], ("sex", "age", "job")), ParameterError, "one or two names"),
        (lambda o: dc.plot(o["joint"], ("sex", "age", "job")), ParameterError, "one or two names"),
        (lambda o: dc.plot(o["release"], "sx"), WorkloadError, "did you mean"),
        (lambda o: dc.plot(o["release"], ("sex", "jb")), WorkloadError, "did you mean"),
        (lambda o: dc.plot(singles(), ("sex", "job")), WorkloadError, "never measured together"),
        (lambda o: dc.plot(o["plan"], ("sex", "age", "job")), ParameterError, "no table holds them all"),
        (lambda o: dc.plot(o["ledger"], "sex"), ParameterError, "drawn as a whole"),
        (lambda o: dc.plot(o["models"], "pay"), ParameterError, "must be in a term"),
        (lambda o: dc.plot(o["scores"], "sx"), ParameterError, "in no scored table"),
        (lambda o: dc.plot(o["release"]).save("p.png"), ParameterError, "must end in .svg"),
        (
            lambda o: dc.plot(o["release"]).save("no/such/folder/p.svg"),
            TableFileError,
            "choose another place",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    objects: dict[str, Any], call: Callable[[dict[str, Any]], object], error: type[Exception], rule: str
) -> None:
    """Each with what to do instead."""
    with pytest.raises(error, match=rule):
        call(objects)


def test_a_ledger_that_cannot_be_read_still_shows_itself(tmp_path: Path) -> None:
    """Looking at it is no reason to fail."""
    ledger = dc.Ledger.create(tmp_path / "l.ledger", epsilon=1, unit="replace")
    (tmp_path / "l.ledger").write_text("nothing")
    assert "cannot be read" in repr(ledger)
    assert "cannot be read" in ledger._repr_html_()


def test_tables_intervals_and_answers_are_labelled(objects: dict[str, Any]) -> None:
    """With the labels of the schema for people, and with the values for programs."""
    release = objects["release"]
    table, bounds = release.project(("sex", "job")), release.interval("sex", level=0.9)
    assert table.frame["sex"].tolist() == ["1", "1", "1", "2", "2", "2"]
    assert table.to_frame(labels=True)["sex"].tolist()[::3] == [ODD, "Female"]
    assert table.project("sex").to_frame(labels=True)["sex"].tolist() == [ODD, "Female"]
    assert bounds.to_frame(labels=True).columns.tolist() == ["sex", "estimate", "low", "high"]
    assert "Female" in bounds._repr_html_()
    assert repr(bounds) == "<Interval of sex: cells 2>"
    answer = release.query(("sex", "age"), where={"sex": "2", "age": {"min": 30}})
    assert answer.label == "rows with sex = Female and age = min 30"
    assert str(answer).startswith("rows with sex = Female")
    assert (
        release.query("sex", share=True, where={"sex": ["1", "2"]}).label
        == f"share with sex = {ODD} or Female"
    )
    assert release.query("age", np.arange(6.0)).label == "weighted sum of age [years]"


def test_standard_errors_are_those_of_the_interval(objects: dict[str, Any]) -> None:
    """Half the width of an interval that zero does not cut, over 1.96."""
    release = objects["release"]
    low, high = (np.asarray(bound) for bound in release.interval("age"))
    whole = low > 0
    errors = np.asarray(release.std_error("age"))
    np.testing.assert_allclose(((high - low) / 2 / 1.959964)[whole], errors[whole], rtol=1e-5)


def test_every_drawable_is_public() -> None:
    """What `plot` names in its refusal is what there is."""
    kinds = {kind.__name__ for kind in Drawable.__subclasses__()}
    assert {"Release", "Joint", "Ledger", "Plan", "Models", "Trust", "Fitted"} <= kinds


def test_a_release_tells_at_a_glance_the_number_of_rows_that_its_solution_has() -> None:
    """Tables of other sizes and scales: the sums, weighed by their precision, are the total that reconciling gives."""
    schema = Schema.from_domain({"a": 2, "b": 3, "c": 5})
    rng = np.random.default_rng(1)
    tables = {
        attrs: rng.integers(900, 1100, shape)
        for attrs, shape in ((("a", "b"), (2, 3)), (("b", "c"), (3, 5)), (("c",), 5))
    }
    release = dc.Release.from_tables(tables, schema, scale={("a", "b"): 30.0, ("b", "c"): 10.0, ("c",): 50.0})
    assert f"rows about {release.n_rows:,}," in repr(release)
    assert len({int(counts.sum()) for counts in tables.values()} | {release.n_rows}) == 4
