"""How the pages become a site: `make docs`. Nothing is fetched, and every warning is an error.

The root of the sources is the repository, so that a link from a page to a benchmark, a test or a line of code leads somewhere in the site as it does
in a clone. The pages stay plain Markdown: the navigation is the list below, not a directive in the index.
"""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# The navigation: a heading, and the pages under it in their order.
NAVIGATION: dict[str, list[str]] = {
    "Start": ["docs/start", "docs/first-table"],
    "Guides": [
        "docs/guides/schema",
        "docs/guides/budget",
        "docs/guides/every-year",
        "docs/guides/published-tables",
        "docs/guides/models",
        "docs/guides/conditions",
        "docs/guides/large-tables",
        "docs/guides/compare",
        "docs/guides/add-a-method",
        "docs/guides/audit",
        "docs/guides/publish",
        "docs/guides/other-tools",
    ],
    "How it works": ["docs/how/idea", "docs/how/noise", "docs/how/engines", "docs/how/selection"],
    "In depth": [
        "docs/files",
        "docs/dictionaries",
        "docs/bins",
        "docs/levels",
        "docs/rules",
        "docs/order",
        "docs/plan",
        "docs/selection",
        "docs/rows",
        "docs/spark",
        "docs/models",
        "docs/evaluate",
        "docs/methods",
        "docs/reports",
    ],
    "Privacy": [
        "docs/plain-words",
        "docs/privacy",
        "docs/threats",
        "docs/audit",
        "docs/evidence",
        "docs/signing",
        "SECURITY",
    ],
    "Paper": ["docs/reproduction"],
    "Benchmarks": ["benchmarks/README"],
    "Reference": ["docs/reference", "docs/cli", "docs/glossary"],
    "The project": ["docs/architecture", "docs/dependencies", "CONTRIBUTING", "CHANGELOG"],
}

# A page that is in no list stands at the end of those that go deeper, rather than nowhere.
_LISTED = {page for pages in NAVIGATION.values() for page in pages} | {"docs/index"}
_PAGES = sorted(page.relative_to(ROOT).with_suffix("").as_posix() for page in (ROOT / "docs").rglob("*.md"))
NAVIGATION["In depth"] += [page for page in _PAGES if page not in _LISTED]

project = "dpcipher"
author = "The dpcipher developers"
copyright = "the dpcipher developers; Apache-2.0"
version = release = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]  # type: ignore[index]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "benchmarks/README.md", "benchmarks/results/*.md", "README.md", "*.md"]
exclude_patterns = [".*", "**/.*", "build", "dist", "demo-out", "src", "tests", "typing_tests"]
nitpicky = False
suppress_warnings = ["myst.header"]

myst_enable_extensions: list[str] = []
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autoclass_content = "class"

html_theme = "furo"
html_title = "dpcipher"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def _toctree(caption: str, pages: list[str]) -> str:
    """The part of the navigation under one heading, as a directive."""
    there = [page for page in pages if (ROOT / f"{page}.md").exists()]
    entries = "\n".join(f"/{page}" for page in there)
    return f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def _results() -> str:
    """The pages of results under the benchmarks."""
    pages = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    return (
        "\n\n```{toctree}\n:hidden:\n\n"
        + "\n".join(f"/benchmarks/results/{page.stem}" for page in pages)
        + "\n```\n"
    )


def _folders(text: str, folder: Path) -> str:
    """Links to a folder lead to the page or the file that opens it; a site has no listing of folders."""

    def opened(link: re.Match[str]) -> str:
        target = folder / link[2]
        for first in ("README.md", "__init__.py"):
            if target.is_dir() and (target / first).exists():
                return f"{link[1]}{link[2].rstrip('/')}/{first})"
        return f"`{link[0][1 : link[0].index(']')]}`" if target.is_dir() else link[0]

    return re.sub(r"(\[[^\]]*\]\()([^)#\s]+)\)", opened, text)


def _read(app: Any, name: str, source: list[str]) -> None:
    """Before a page is parsed: links to folders, and the navigation behind the index."""
    source[0] = _folders(source[0], (ROOT / name).parent)
    if name == root_doc:
        source[0] += "".join(_toctree(caption, pages) for caption, pages in NAVIGATION.items())
    if name == "benchmarks/README":
        source[0] += _results()
    if name == "README":
        source[0] = "---\norphan: true\n---\n" + source[0]


def _front_page(app: Any, failed: Exception | None) -> None:
    """An index at the top of the site, which leads to the first page."""
    if failed is None:
        (Path(app.outdir) / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><title>dpcipher</title>'
            '<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">dpcipher</a>\n',
            encoding="utf-8",
        )


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("build-finished", _front_page)
