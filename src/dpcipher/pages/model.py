"""A page about one model fitted to a release: its coefficients, what they rest on, and the release behind them."""

from pathlib import Path

import pandas as pd

from dpcipher.drawing.curator_only import PUBLISHABLE
from dpcipher.drawing.html import bullets, facts, figure, page, paragraphs, table
from dpcipher.errors import NotPrivate, ReleaseError
from dpcipher.files import beside, check_output, write_text
from dpcipher.inference import shown
from dpcipher.inference.fitted import Models
from dpcipher.pages import words
from dpcipher.pages.columns import dictionary
from dpcipher.pages.report import PAGES, check_target
from dpcipher.pages.words import certificate
from dpcipher.release.release import Release

LINE = "A line is an interval that holds the privacy noise and the sampling error of the rows, a dot its estimate."
OPEN = (
    "Interactions that no measured table shows are left open, as far as a weak prior lets them go; the pale bar is the interval when they are taken "
    "for none, which the release cannot check."
)
PER_UNIT = "The slope of a number is per unit of it, and may look small beside the steps between levels."
READ = (
    "p is twice the share of draws beyond 0. Noise is the share of an estimate's variance that comes from the privacy noise and from what was not measured; "
    "the rest is sampling, and would be there without any protection."
)


def model_report(
    models: Models, release: Release, path: str | Path, *, level: float = 0.95, force: bool = False
) -> Path:
    """Write a page about a model from a release, for everybody to read; it sees no private row. `force` replaces a page that is there already."""
    target = Path(path)
    if models.stamp:
        raise NotPrivate(
            f"models ({models.formula}) must be fitted to a release to be published: {models.stamp}"
        )
    check_page(release, target, force=force)
    try:
        return write_text(target, render(models, release, level=level), force=force)
    except OSError as error:
        raise _unwritable(target, error) from None


def check_page(release: Release, target: Path, *, force: bool = False) -> None:
    """Refuse a page that could not be written, or must not be published, before anything is fitted for it."""
    check_output(target, endings=PAGES, force=force)
    check_target(release, target)
    try:
        with beside(target):
            pass
    except OSError as error:
        raise _unwritable(target, error) from None


def _unwritable(target: Path, error: OSError) -> ReleaseError:
    return ReleaseError(f"report ({target}) cannot be written: {error.strerror}; choose another place")


def render(models: Models, release: Release, *, level: float = 0.95) -> str:
    """The text of the page."""
    named = shown.with_labels(models, release.schema)
    plot = figure(shown.coefficient_plot(named, level), f"{100 * level:g} % intervals")
    sections = {
        "In short": _cards(models, release),
        "Coefficients": paragraphs(_read(models)) + plot + shown.coefficient_table(named, level),
        "What to keep in mind": bullets(named.notes),
    }
    if models.release is not None and len(models.release.bins):
        sections["Bins of numbers"] = _bins(models.release.bins)
    sections |= dictionary(release.schema)
    sections["How people are protected"] = paragraphs(words.protection(release))
    sections["Certificate"] = certificate(release)
    data = release.schema.title or "a protected release"
    article = "An" if models.family == "ordinal" else "A"
    budget = f", {words.budget_symbols(release.statement)}" if release.statement.budget else ""
    lead = f"{article} {models.family} model fitted to {data}{budget}: estimates and intervals that hold the privacy noise."
    return page(f"{models.formula}", PUBLISHABLE, sections, lead=lead)


def _read(models: Models) -> list[str]:
    """How to read the plot and the table: of what this model has, and of nothing else."""
    fit = models.release
    line = f"{LINE} {OPEN}" if fit is not None and fit.closed is not None else LINE
    per_unit = [PER_UNIT] if fit is not None and len(fit.bins) else []
    return [line, *per_unit, READ]


def _cards(models: Models, release: Release) -> str:
    numbers = {
        "Model": models.family,
        "Privacy budget": words.budget_symbols(release.statement),
        "Rows": f"{release.n_rows:,}",
        "Parameters": f"{len(models.terms):,}",
        "Draws": f"{len(models.estimates):,}",
    }
    says = shown.headline(models)
    return facts(numbers, style="cards") + paragraphs([f"{says[0].upper()}{says[1:]}."])


def _bins(bins: pd.DataFrame) -> str:
    says = (
        "By how many standard errors each coefficient would move if all rows had the first or the last value of their bin, or were spread evenly over it "
        "with no relation to the other columns inside it."
    )
    heads = ["term", "column with bins", "low ends", "high ends", "spread"]
    lines = [
        (row["term"], row["column"], *(f"{row[name]:+.2f}" for name in ("low", "high", "spread")))
        for row in bins.to_dict(orient="records")
    ]
    return paragraphs([says]) + table(heads, lines)
