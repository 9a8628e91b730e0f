"""Every public name explains itself with an example, and every example is run."""

import doctest
import inspect
from pathlib import Path

import pytest

import dpcipher as dc

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", dc.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    """A first sentence, and an example in the docstring of its own, which `--doctest-modules` runs."""
    public = getattr(dc, name)
    text = inspect.getdoc(public) or ""
    assert text.split("\n")[0].endswith((".", ":"))
    assert doctest.DocTestParser().get_examples(text), f"{name} has no example"


def test_examples_are_run() -> None:
    """pytest collects the docstrings of the package as tests."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "--doctest-modules" in settings
    assert 'testpaths = ["src", "experiments", "tests"]' in settings


def test_the_reference_page_has_every_public_name() -> None:
    """docs/reference.md shows each once, a class with its members."""
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in dc.__all__:
        kind = "autoclass" if inspect.isclass(getattr(dc, name)) else "autofunction"
        assert page.count(f".. {kind}:: dpcipher.{name}\n") == 1, name
