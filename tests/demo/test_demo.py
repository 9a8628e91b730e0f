"""The demo runs end to end, its files open with other people's tools, and its page keeps to itself."""

import re
import shutil
import struct
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from conftest import missing
from dpcipher.demo.people import SCHEMA, invent_people
from dpcipher.demo.story import FILES, Told, tell
from dpcipher.privacy.ledger import Ledger


@pytest.fixture(scope="module", name="told")
def the_story(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The demo, told once for all tests."""
    return tell(tmp_path_factory.mktemp("demo") / "out", say=lambda _: None)


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
        if tag not in ("meta", "br", "rect", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.words.append(data)


def test_every_file_is_there_and_opens(told: Told) -> None:
    """With pandas, pyarrow and a YAML reader that know nothing of dpcipher."""
    folder = told.folder
    assert sorted(file.name for file in folder.iterdir()) == sorted(name for name, _ in FILES)
    private, rows = pd.read_csv(folder / "people.csv"), pd.read_csv(folder / "synthetic.csv")
    assert (
        list(rows.columns)
        == list(private.columns)
        == list(yaml.safe_load((folder / "people.yaml").read_text())["columns"])
    )
    assert len(rows) == told.n_rows
    cells = pq.read_table(folder / "people.release.parquet").to_pandas()
    assert cells.groupby("table").size().sum() == 482
    assert Ledger.open(folder / "people.ledger").spent.as_dict() == {"epsilon": "1"}


def test_synthetic_rows_have_every_kind_of_column(told: Told) -> None:
    """Integers stay whole, booleans true or false, dates dates, missing values missing."""
    rows = pd.read_csv(told.folder / "synthetic.csv")
    assert pd.api.types.is_integer_dtype(rows["age"])
    assert pd.api.types.is_bool_dtype(rows["employed"])
    assert pd.to_datetime(rows["joined"], format="%Y-%m-%d").dt.year.between(2015, 2024).all()
    assert rows["income"].isna().any()
    assert rows["school"].isna().any()
    assert set(rows["region"]) <= {"coast", "hills", "plain", "town"}


def test_synthetic_rows_keep_the_dependence(told: Told) -> None:
    """Schooling pays and the old joined early, in the synthetic rows as in the invented ones."""
    rows = pd.read_csv(told.folder / "synthetic.csv", parse_dates=["joined"])
    income = rows.groupby("school")["income"].mean()
    assert income["university"] > 1.3 * income["primary"]
    assert rows["age"].corr(rows["joined"].astype("int64")) < -0.2


def test_the_page_needs_nothing_from_elsewhere(told: Told) -> None:
    """No links, no scripts, no imports; one picture for each column and six for pairs; tags closed."""
    text = (told.folder / "summary.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.links == []
    assert not any(word in text for word in ("http", "<script", "@import", "url("))
    assert text.count("<svg") == 7 + 6
    assert page.open == []


def test_the_page_states_the_promise_in_words(told: Told) -> None:
    """Budget, unit, noise and status, for readers who know no formula."""
    words = " ".join(" ".join(Page((told.folder / "summary.html").read_text(encoding="utf-8")).words).split())
    assert "Protects the presence of any one row." in words
    assert "epsilon = 1 (pure differential privacy)" in words
    assert "Discrete Laplace noise of scale 21 was added to every cell" in words
    assert "certified" in words


def test_the_page_is_made_without_private_rows(told: Told) -> None:
    """No invented person's exact income shows up in it."""
    text = (told.folder / "summary.html").read_text(encoding="utf-8")
    incomes = pd.read_csv(told.folder / "people.csv")["income"].dropna().astype(str)
    shown = set(Page(text).words)
    drawn = set(pd.read_csv(told.folder / "synthetic.csv")["income"].dropna().round(2).astype(str))
    assert not (set(incomes) - drawn) & shown


def test_a_second_run_starts_afresh(told: Told) -> None:
    """An earlier demo's folder is reused; its ledger does not fill up."""
    again = tell(told.folder, say=lambda _: None)
    assert again.ledger.spent.as_dict() == {"epsilon": "1"}


def test_nobody_elses_folder_is_touched(tmp_path: Path) -> None:
    """A folder with files of its own, or with a real ledger, is refused and left as it was."""
    (tmp_path / "people.csv").write_text("mine")
    with pytest.raises(ValueError, match="must be new, empty, or an earlier demo's folder"):
        tell(tmp_path, say=lambda _: None)
    Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="replace", name="my people")
    with pytest.raises(ValueError, match="must be new, empty, or an earlier demo's folder"):
        tell(tmp_path, say=lambda _: None)
    assert (tmp_path / "people.csv").read_text() == "mine"


def test_the_people_are_the_same_every_time_and_fit_their_schema() -> None:
    """Invented from a fixed seed; the schema declares every value they have."""
    pd.testing.assert_frame_equal(invent_people(300), invent_people(300))
    columns = yaml.safe_load(SCHEMA)["columns"]
    people = invent_people()
    assert set(people["region"]) == set(columns["region"]["levels"])
    assert people["age"].between(columns["age"]["min"], columns["age"]["max"]).all()
    assert people["income"].dropna().between(0, 200).all()


@pytest.fixture
def browser() -> str:
    """Chromium, where it is installed."""
    path = shutil.which("chromium")
    if path is None:
        missing("browser", "chromium is not installed")
    return str(path)


@pytest.mark.browser
def test_the_page_fits_a_phone(told: Told, browser: str, tmp_path: Path) -> None:
    """At the width of a phone nothing sticks out: the document is no wider than the window."""
    page = (told.folder / "summary.html").read_text(encoding="utf-8")
    probe = "<script>document.title = document.documentElement.scrollWidth + ' of ' + window.innerWidth</script></body>"
    (tmp_path / "page.html").write_text(page.replace("</body>", probe), encoding="utf-8")
    frame = f'<iframe src="{tmp_path / "page.html"}" style="width:390px;height:800px;border:0"></iframe>'
    (tmp_path / "phone.html").write_text(
        f"<body>{frame}<script>onload = () => document.title = frames[0].document.title</script></body>",
        encoding="utf-8",
    )
    dom = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom", tmp_path / "phone.html"],
        capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    widths = re.search(r"<title>(\d+) of (\d+)</title>", dom)
    assert widths is not None
    assert int(widths[1]) <= int(widths[2]) == 390


@pytest.mark.browser
def test_the_page_draws_something(told: Told, browser: str, tmp_path: Path) -> None:
    """A screenshot is a picture of the asked size that is not blank: it does not compress to nothing."""
    shot = tmp_path / "shot.png"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,2000", f"--screenshot={shot}", told.folder / "summary.html"],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    content = shot.read_bytes()
    assert struct.unpack(">II", content[16:24]) == (1280, 2000)
    assert len(content) > 50_000
