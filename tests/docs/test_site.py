"""The documentation site: it builds without a warning, fetches nothing, and can be searched from the file system."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conftest import missing

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")):
        missing("docs", "Sphinx and its theme are not installed; pip install 'dpcipher[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-c", "docs"]
    command += ["-d", str(folder / "trees"), ".", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_the_site(site: Path) -> None:
    """Each page of docs/ and of the results has its page there, and the top leads to the first of them."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks" / "results").glob("*.md")]
    assert len(pages) > 60
    assert [page for page in pages if not (site / page.relative_to(ROOT).with_suffix(".html")).exists()] == []
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


def test_pages_fetch_nothing(site: Path) -> None:
    """No script, style, image or font comes from outside; a link that a person may follow is no fetch."""
    pages = list(site.rglob("*.html"))
    outside = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=\"(?:https?:)?//|<link[^>]+href=\"(?:https?:)?//"
    )
    assert [page.name for page in pages if outside.search(page.read_text(encoding="utf-8"))] == []
    styles = re.compile(r"url\(['\"]?(?:https?:)?//|@import\s+['\"]?http")
    assert [
        page.name for page in site.rglob("*.css") if styles.search(page.read_text(encoding="utf-8"))
    ] == []


def test_links_lead_to_pages_of_the_site(site: Path) -> None:
    """Every relative link and image of every page is a file of the site."""
    broken = []
    for page in site.rglob("*.html"):
        for target in re.findall(r"(?:href|src)=\"([^\"#?]+)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append((page.name, target))
    assert broken == []


@pytest.mark.browser
def test_search_works_from_the_file_system(site: Path) -> None:
    """A browser that opens search.html as a file finds the page about the witness of a ledger."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        missing("browser", "no Chromium on the path")
    command = [
        str(browser),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=10000",
        "--dump-dom",
    ]
    address = (site / "search.html").as_uri() + "?q=witness"
    page = subprocess.run([*command, address], capture_output=True, text=True, check=True, timeout=180).stdout
    assert "docs/files.html" in page[page.index('id="search-results"') :]


def test_pictures_are_drawn_small_and_described() -> None:
    """Each is made by docs/drawings/draw.py, has words for screen readers and for both grounds, and weighs little."""
    names = set(
        re.findall(
            r'^    "([\w-]+)": \w+,$', (ROOT / "docs/drawings/draw.py").read_text(), flags=re.MULTILINE
        )
    )
    pictures = {picture.stem: picture for picture in PICTURES.glob("*.svg")}
    assert set(pictures) == names
    for picture in pictures.values():
        drawn = ElementTree.parse(picture).getroot()
        kinds = [part.tag.rpartition("}")[2] for part in drawn]
        assert kinds.index("title") + 1 == kinds.index("desc")
        assert re.search(r"prefers-color-scheme:\s*dark", picture.read_text())
        assert picture.stat().st_size < 40_000
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert [name for name in names if f"pictures/{name}.svg)" not in pages] == []
