"""Every page in a real browser: nothing fetched, nothing complained of, charts drawn, readable on a phone, usable by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import Browser, chromium

import dpcipher as dc
import pages
from dpcipher.demo.run import run_demo
from dpcipher.evaluation.audit import Audit
from dpcipher.evaluation.check import Check
from dpcipher.evaluation.compare import Comparison
from dpcipher.evaluation.pages import audit_page, curator_report
from dpcipher.evaluation.scores import evaluate
from dpcipher.pages.model import model_report
from dpcipher.pages.report import report

pytestmark = pytest.mark.browser

PHONE, DESKTOP = 390, 1280
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")

# Every image a reader should see: its size, and how many of its shapes have one.
DRAWN = """[...document.querySelectorAll('svg[role=img]')].map(svg => {
  const box = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll('rect, path')].filter(s => { const b = s.getBBox(); return b.width + b.height > 0; });
  return {width: box.width, height: box.height, shapes: shapes.length,
          title: svg.querySelector('title').textContent, label: svg.getAttribute('aria-label')};
})"""
# Words in an image that stick out of it, and so would be cut.
CUT = """[...document.querySelectorAll('svg[role=img] text')].filter(t => {
  const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();
  return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
}).map(t => t.textContent)"""
SCROLLS_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests here."""
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def publishable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publishable report."""
    path = tmp_path_factory.mktemp("public") / "report.html"
    return report(pages.release(), pages.people(1), path, rows_from="invented here")


@pytest.fixture(scope="module")
def curators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The curator's report, with a model."""
    private, made = pages.people(0), pages.people(1)
    scores = evaluate(private, made, pages.SCHEMA, limit=30, formula="owner ~ sex + work")
    return curator_report(scores, private, made, pages.SCHEMA, tmp_path_factory.mktemp("curator") / "only")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's page."""
    return run_demo(tmp_path_factory.mktemp("demo") / "out", say=lambda _: None).folder / "summary.html"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison."""
    fits = [
        {"method": name, "epsilon": epsilon, "repeat": repeat, "tvd_1": 0.1 / epsilon, "linf_1": 0.02, "seconds": 0.1}
        for name in ("cipher", "mwem")
        for epsilon in (0.1, 1.0)
        for repeat in range(2)
    ]  # fmt: skip
    return Comparison(pd.DataFrame(fits)).write_page(tmp_path_factory.mktemp("compare") / "only")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model."""
    table = np.random.default_rng(0).integers(50, 150, (2, 2, 3))
    tables = {("y", "a"): table.sum(2), ("y", "b"): table.sum(1), ("a", "b"): table.sum(0)}
    release = dc.Release.from_tables(tables, dc.Schema.from_domain({"y": 2, "a": 2, "b": 3}), scale=1.0)
    models = dc.fit_models(release, "y ~ C(a) + b", seed=1, draws=50)
    return model_report(models, release, tmp_path_factory.mktemp("model") / "model.html")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an audit that failed in one place."""
    checks = (
        Check("samplers", "discrete Laplace noise of scale 3", "p", 1e-7, 0.3, 1000),
        Check(
            "methods", "cipher on its worst neighbour, with a name that is long", "epsilon", 1.0, 0.8, 1000
        ),
        Check("methods", "another", "epsilon", 1.0, 2.0, 1000, violation="more than is claimed"),
    )
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    path.write_text(audit_page(Audit(checks, 3.0)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cards and plots as a notebook shows them, on a page that has no colours of its own."""
    release = pages.release()
    joint = dc.solve(dc.Release.from_tables({("sex", "owner"): [[9, 5], [4, 8]]}, dc.Schema.from_domain({"sex": 2, "owner": 2}), scale=0))  # fmt: skip
    assert isinstance(joint, dc.Joint)
    scores = evaluate(pages.people(0), pages.people(1), pages.SCHEMA, limit=10)
    plan = dc.plan(pages.SCHEMA, epsilon=1.0, unit="add-remove", n_rows=3000)
    shown = [release, joint, scores, plan, pages.SCHEMA, dc.trust(release), release.interval("work"), release.project(("sex", "work"))]  # fmt: skip
    drawn = [
        *(dc.plot(release, columns) for columns in ("work", "age", ("sex", "work"), ("age", "score"), None)),
        *(dc.plot(thing) for thing in (joint, scores, plan, dc.trust(release))),
    ]
    body = "".join(part._repr_html_() for part in (*shown, *drawn))
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
    path.write_text(f'<!DOCTYPE html><html lang="en"><head>{head}<title>n</title></head><body>{body}</body></html>', encoding="utf-8")  # fmt: skip
    return path


EVERY = ["publishable", "curators", "demo", "comparison", "model", "audited", "notebook"]


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", EVERY)
def test_all_text_has_enough_contrast(
    browser: Browser, which: str, scheme: str, width: int, request: pytest.FixtureRequest
) -> None:
    """Every text, in images too, against what is painted behind it: 4.5 to 1, or 3 to 1 where it is large (WCAG 1.4.3)."""
    look(browser, request.getfixturevalue(which), scheme, width)
    measured = browser.evaluate(CONTRAST)
    assert measured["failures"] == []
    assert measured["seen"] >= 30


def test_a_dark_notebook_is_dark_whatever_the_system_prefers(browser: Browser, notebook: Path) -> None:
    """JupyterLab says so on its body."""
    look(browser, notebook, "light", DESKTOP)
    paper = "getComputedStyle(document.querySelector('div.dpc')).backgroundColor"
    light = browser.evaluate(paper)
    browser.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert browser.evaluate(paper) != light
    assert browser.evaluate(CONTRAST)["failures"] == []


def test_planted_pale_text_is_noticed(browser: Browser, publishable: Path, tmp_path: Path) -> None:
    """On paper, and inside a cell of a map."""
    text = publishable.read_text(encoding="utf-8")
    for number, planted in enumerate(
        (".kind { color: #999 !important }", ".dpc .f-th8 { fill: #335 !important }")
    ):
        bad = tmp_path / f"{number}.html"
        bad.write_text(text.replace("</style>", planted + "</style>", 1), encoding="utf-8")
        look(browser, bad, "light", DESKTOP)
        assert len(browser.evaluate(CONTRAST)["failures"]) >= 1


def look(browser: Browser, page: Path, scheme: str, width: int) -> None:
    """Open a page in a scheme of colours, on a screen that is as high as the page."""
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=wanted)
    browser.open(page, width=width)
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    height = browser.evaluate("document.documentElement.scrollHeight")
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.call("Emulation.setDeviceMetricsOverride", **metrics)


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize(
    ("which", "images"),
    [
        ("publishable", 20),
        ("curators", 20),
        ("demo", 7 + 3 * 6),
        ("comparison", 6),
        ("model", 1),
        ("audited", 2),
        ("notebook", 9),
    ],
)
def test_a_page_opens_quietly_and_draws_its_charts(
    browser: Browser, which: str, images: int, width: int, request: pytest.FixtureRequest
) -> None:
    """No console message, no request but the file itself, every image of a visible size, no words cut, no sideways scrolling."""
    page: Path = request.getfixturevalue(which)
    browser.open(page, width=width)
    drawn = browser.evaluate(DRAWN)
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.resolve().as_uri()]
    assert len(drawn) >= images
    for one in drawn:
        assert one["width"] > 250
        assert one["height"] > 20
        assert one["shapes"] >= 1
        assert one["title"]
        assert one["label"].startswith(one["title"])
    assert browser.evaluate(CUT) == []
    assert not browser.evaluate(SCROLLS_SIDEWAYS)
    assert len(browser.screenshot()) > 2_500 * images


def test_a_planted_fetch_and_a_planted_script_are_noticed(
    browser: Browser, publishable: Path, tmp_path: Path
) -> None:
    """The check above fails on a page that asks for something, and the page's own policy blocks it."""
    bad = tmp_path / "bad.html"
    text = publishable.read_text(encoding="utf-8")
    planted = '<img src="other.png" alt=""><script>console.log("here")</script></body>'
    bad.write_text(text.replace("</body>", planted), encoding="utf-8")
    browser.open(bad, width=DESKTOP)
    browser.evaluate("1")
    assert len(browser.complaints) >= 2
    assert "Content Security Policy" in str(browser.complaints)


def test_a_level_with_markup_in_its_name_is_only_text(browser: Browser, publishable: Path) -> None:
    """The name of a level is shown, never run."""
    browser.open(publishable, width=DESKTOP)
    assert browser.evaluate("document.querySelectorAll('script').length") == 0
    assert pages.SPITEFUL in browser.evaluate("document.body.textContent")


def test_the_page_can_be_used_by_keyboard(browser: Browser, publishable: Path) -> None:
    """Tab reaches the skip link, the contents and the first details; Enter opens them; the focus is visible."""
    browser.open(publishable, width=DESKTOP)
    reached = []
    for _ in range(12):
        browser.press("Tab", 9)
        reached.append(
            browser.evaluate("document.activeElement.tagName + ' ' + document.activeElement.textContent")
        )
    assert reached[0] == "A Skip to the text"
    assert reached[1] == "A In short"
    assert any(one.startswith("SUMMARY") for one in reached)
    while not browser.evaluate("document.activeElement.tagName").startswith("SUMMARY"):
        browser.press("Tab", 9)
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert not browser.evaluate("document.activeElement.parentElement.open")
    browser.press("Enter", 13)
    assert browser.evaluate("document.activeElement.parentElement.open")


def test_every_printed_page_of_the_curators_report_has_the_watermark(
    browser: Browser, curators: Path
) -> None:
    """In print the watermark is fixed, which a browser repeats on every page, and it stays visible."""
    browser.open(curators, width=DESKTOP)
    browser.call("Emulation.setEmulatedMedia", media="print")
    style = browser.evaluate(
        "(() => { const s = getComputedStyle(document.querySelector('.watermark')); return [s.position, s.display, s.visibility, +s.opacity > .2]; })()"
    )
    browser.call("Emulation.setEmulatedMedia", media="")
    assert style == ["fixed", "block", "visible", True]
    assert browser.evaluate("document.querySelector('.watermark').textContent").startswith("CURATOR ONLY")


def test_print_shows_what_is_folded(browser: Browser, publishable: Path) -> None:
    """Printing a closed list of numbers still prints the numbers: the PDF is longer than without them."""
    browser.open(publishable, width=DESKTOP)

    def pages_in_print() -> int:
        import base64

        return base64.b64decode(browser.call("Page.printToPDF")["data"]).count(b"/Type /Page\n")

    whole = pages_in_print()
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.remove())")
    assert whole > pages_in_print() > 0
