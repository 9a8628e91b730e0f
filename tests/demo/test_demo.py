"""The demo runs end to end, its files open with other people's tools, and its page keeps to itself."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.demo.run import FILES, DemoRun, run_demo
from dpcipher.drawing.curator_only import check_folder
from dpcipher.errors import NotPrivate
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release


@pytest.fixture(scope="module", name="run")
def run_of_the_demo(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, run once for all tests."""
    return run_demo(tmp_path_factory.mktemp("demo") / "out", say=lambda _: None)


class Page(HTMLParser):
    """What a page refers to, the words it shows, and whether its tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember references and open tags."""
        self.links += [
            str(value) for name, value in attrs if name in ("src", "href", "action", "data", "srcset")
        ]
        if tag not in ("meta", "link", "br", "rect", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.words.append(data)


def test_every_file_is_there_and_opens(run: DemoRun) -> None:
    """With pandas, pyarrow and a YAML reader that know nothing of dpcipher."""
    folder = run.folder
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)
    private, rows = pd.read_csv(folder / "people.csv"), pd.read_csv(folder / "synthetic.csv")
    assert (
        list(rows.columns)
        == list(private.columns)
        == list(yaml.safe_load((folder / "people.yaml").read_text())["columns"])
    )
    assert len(rows) == run.n_rows
    cells = pq.read_table(folder / "people.release.parquet").to_pandas()
    assert cells.groupby("table").size().sum() == 482
    assert Ledger.open(folder / "people.ledger").spent.as_dict() == {"epsilon": "1"}


def test_synthetic_rows_have_every_kind_of_column(run: DemoRun) -> None:
    """Integers stay whole, booleans true or false, dates dates, missing values missing."""
    rows = pd.read_csv(run.folder / "synthetic.csv")
    assert pd.api.types.is_integer_dtype(rows["age"])
    assert pd.api.types.is_bool_dtype(rows["employed"])
    assert pd.to_datetime(rows["joined"], format="%Y-%m-%d").dt.year.between(2015, 2024).all()
    assert rows["income"].isna().any()
    assert rows["school"].isna().any()
    assert set(rows["region"]) <= {"coast", "hills", "plain", "town"}


def test_synthetic_rows_keep_the_dependence(run: DemoRun) -> None:
    """Schooling pays and the old joined early, in the synthetic rows as in the invented ones."""
    rows = pd.read_csv(run.folder / "synthetic.csv", parse_dates=["joined"])
    income = rows.groupby("school")["income"].mean()
    assert income["university"] > 1.3 * income["primary"]
    assert rows["age"].corr(rows["joined"].astype("int64")) < -0.2


def test_the_page_needs_nothing_from_elsewhere(run: DemoRun) -> None:
    """No links but inside the page, no scripts, no imports; one picture for each column and three for each of six pairs; tags closed."""
    text = (run.folder / "summary.html").read_text(encoding="utf-8")
    page = Page(text)
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert not re.search(r"https?:|//[a-z]|<script|@import|url\(", text)
    assert text.count('<svg class="dpc" viewBox="0 0 360 ') == text.count('role="img"') == 7 + 3 * 6
    assert page.open == []


def test_the_page_says_to_programs_that_it_may_be_published(run: DemoRun, tmp_path: Path) -> None:
    """So that a curator's files are not laid beside it."""
    alone = tmp_path / "summary.html"
    alone.write_bytes((run.folder / "summary.html").read_bytes())
    with pytest.raises(NotPrivate, match=r"summary\.html, which is publishable"):
        check_folder(tmp_path)


def test_released_and_synthetic_counts_stand_side_by_side(run: DemoRun) -> None:
    """The number of a level in the synthetic file is the number beside its released estimate, scaled to the same total."""
    text = (run.folder / "summary.html").read_text(encoding="utf-8")
    release = Release.load(run.folder / "people.release.parquet")
    rows = pd.read_csv(run.folder / "synthetic.csv")["region"].value_counts()
    for level, estimate in zip(
        release.schema.labels("region"), np.asarray(release.project(("region",))), strict=True
    ):
        line = re.search(
            rf'<th scope="row">{level}</th><td>([\d,]+)</td><td>[^<]*</td><td>([\d,]+)</td>', text
        )
        assert line is not None
        assert int(line[1].replace(",", "")) == round(float(estimate))
        assert int(line[2].replace(",", "")) == pytest.approx(rows[level], abs=1)


def test_the_page_states_the_promise_in_words(run: DemoRun) -> None:
    """Budget, unit, noise and status, for readers who know no formula."""
    words = " ".join(" ".join(Page((run.folder / "summary.html").read_text(encoding="utf-8")).words).split())
    assert "Protects the presence of any one row." in words
    assert "epsilon = 1 (pure differential privacy)" in words
    assert (
        "Every count carries discrete Laplace noise of scale 21 (a standard deviation of 30 rows)." in words
    )
    assert "certified" in words


def test_the_page_is_made_without_private_rows(run: DemoRun) -> None:
    """No invented person's exact income shows up in it."""
    text = (run.folder / "summary.html").read_text(encoding="utf-8")
    incomes = pd.read_csv(run.folder / "people.csv")["income"].dropna().astype(str)
    shown = set(Page(text).words)
    drawn = set(pd.read_csv(run.folder / "synthetic.csv")["income"].dropna().round(2).astype(str))
    assert not (set(incomes) - drawn) & shown


def test_a_second_run_starts_afresh(run: DemoRun) -> None:
    """An earlier demo's folder is reused; its ledger does not fill up."""
    again = run_demo(run.folder, say=lambda _: None)
    assert again.ledger.spent.as_dict() == {"epsilon": "1"}


def test_nobody_elses_folder_is_touched(tmp_path: Path) -> None:
    """A folder with files of its own, or with a real ledger, is refused and left as it was."""
    (tmp_path / "people.csv").write_text("mine")
    with pytest.raises(ValueError, match="must be new, empty, or an earlier demo's folder"):
        run_demo(tmp_path, say=lambda _: None)
    Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="replace", name="my people")
    with pytest.raises(ValueError, match="must be new, empty, or an earlier demo's folder"):
        run_demo(tmp_path, say=lambda _: None)
    assert (tmp_path / "people.csv").read_text() == "mine"


def test_the_people_are_the_same_every_time_and_fit_their_schema() -> None:
    """Invented from a fixed seed; the schema declares every value they have."""
    pd.testing.assert_frame_equal(invent_people(300), invent_people(300))
    columns = yaml.safe_load(SCHEMA)["columns"]
    people = invent_people()
    assert set(people["region"]) == set(columns["region"]["levels"])
    assert people["age"].between(columns["age"]["min"], columns["age"]["max"]).all()
    assert people["income"].dropna().between(0, 200).all()
