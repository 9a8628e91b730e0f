"""The publishable report: one self-contained page made from a release and synthetic rows, and from nothing else."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.drawing.curator_only import MARKED_CURATOR, PUBLISHABLE
from dpcipher.drawing.figures import charts, column_figure, legend
from dpcipher.drawing.groups import EXPLAINED, MOST_BARS
from dpcipher.drawing.html import bullets, facts, folded, page, paragraphs, rows, table
from dpcipher.errors import NotPrivate, ReleaseError, warn
from dpcipher.files import check_output, write_text
from dpcipher.inference.combine import word_of
from dpcipher.io.source import coded_rows
from dpcipher.joint.origin import RowDigest, marks
from dpcipher.pages import words
from dpcipher.pages.columns import dictionary
from dpcipher.pages.matching import Match, closest, match_tables, matching, scaled
from dpcipher.pages.pairs import pairs, strongest_pairs
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.release.shown import column_series
from dpcipher.release.signature import Key, Verification, trusted_keys, verify
from dpcipher.tables.domain import Codes

__all__ = [
    "Match",
    "cards",
    "check_target",
    "columns",
    "match_tables",
    "pairs",
    "render",
    "report",
    "strongest_pairs",
]

MOST_COLUMNS = 60
MARKED = "The synthetic rows are marked as made from this release. Anybody can write such a mark: it tells mistakes, not lies."
PAGES = (".html", ".htm")


def report(
    release: Release | str | Path,
    synthetic: Any,
    path: str | Path,
    *,
    key: Key | Iterable[Key] = (),
    ledger: Ledger | str | Path | None = None,
    rows_from: str | None = None,
    force: bool = False,
) -> Path:
    """Write a page about a release and the synthetic rows made from it, for everybody to read.

    It sees no private row, so it may be published with the release: rows that do not say that they were drawn from this release, or were changed since, are
    refused unless `rows_from` says in words where they came from, which the page then quotes. (Anybody can write such a mark.) The page says "certified" only where a public `key` that you trust signed the
    release's file, or a `ledger` at hand paid for it; else "as stated by the file". A release that either refutes is refused, and so are one that
    is stamped NOT PRIVATE and a folder that holds a curator's files. `force` replaces a page that is there already.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> page = dc.report(release, dc.solve(release).sample(500, seed=1), f"{folder.name}/report.html")
    >>> page.name
    'report.html'
    >>> folder.cleanup()
    """
    given = (release, synthetic, ledger)
    target = check_output(path, endings=PAGES, force=force, inputs=given)
    verification = _verification(release, key, ledger)
    shown = verification.release
    check_target(shown, target)
    codes = coded_rows(synthetic, shown.schema, "synthetic", ours=True)
    text = render(shown, codes, verification, origin=_origin(shown, synthetic, codes, rows_from))
    try:
        return write_text(target, text, force=force)
    except OSError as error:
        raise ReleaseError(
            f"report ({target}) cannot be written: {error.strerror}; choose another place"
        ) from None


def _origin(release: Release, synthetic: Any, codes: Codes, rows_from: str | None) -> str:
    """A sentence on where the rows came from. Rows of another release are refused, and so are rows of which nobody says that they are of this one."""
    digest = RowDigest(len(release.schema.attrs)).add(codes).text
    found = {mark.release for mark in marks(synthetic) if mark.rows == digest}
    if release.checksum in found:
        return MARKED
    if found:
        raise ReleaseError(
            "synthetic rows are marked as made from another release; draw rows from this one, or name the release that they are from"
        )
    if rows_from is None:
        raise NotPrivate(
            "synthetic rows have no mark of this release, or were changed since they were drawn: they may be private, and a publishable page would "
            "show their counts. Draw them with dpcipher synth or sample; if they are from this release, say on whose word with rows_from='WORDS'"
        )
    word_of(rows_from)
    return f"That the synthetic rows come from this release is on this word alone: {rows_from.strip()}"


def _verification(
    release: Release | str | Path, key: Key | Iterable[Key], ledger: Ledger | str | Path | None
) -> Verification:
    """Who answers for the release. One that was altered is refused; one that nobody confirms is shown, and said to be so."""
    keys = trusted_keys(key)
    if not keys and ledger is None:
        return Verification(release if isinstance(release, Release) else Release.load(release))
    verification = verify(release, keys=keys, ledger=ledger)
    reasons = "; ".join(f"{check.word}: {check.meaning}" for check in verification.checks if not check.passed)
    if verification.contradicted:
        raise ReleaseError(f"release cannot be what it states, so no page is written ({reasons})")
    if not verification.confirmed:
        warn(f"the page does not say certified: nothing confirms the release ({reasons})")
    return verification


def render(
    release: Release, synthetic: Codes, verification: Verification | None = None, *, origin: str = ""
) -> str:
    """The text of the page; `origin` says where the synthetic rows come from."""
    known = verification or Verification(release)
    matches = match_tables(release, synthetic)
    gap, close = closest(matches)
    may, may_not = words.conclusions(release)
    sections = {
        "In short": cards(release, len(synthetic), known, gap=gap)
        + paragraphs([close, *([origin] if origin else []), *words.summary(release, len(synthetic))]),
        "How people are protected": paragraphs(words.protection(release)),
        "How large the noise is": paragraphs(words.noise(release)),
        "Every column": columns(release, synthetic),
        "Columns two by two": pairs(release, synthetic),
        "Do the synthetic rows match the release": matching(matches),
        "What may be concluded": f'<div class="may"><div><h3>You may</h3>{bullets(may)}</div><div><h3>You may not</h3>{bullets(may_not)}</div></div>',
        **dictionary(release.schema),
        "Certificate" if known.confirmed else "What the file states": words.certificate(release, known),
    }
    title = release.schema.title or "Privacy-protected data"
    return page(title, PUBLISHABLE, sections, lead=words.lead(release, len(synthetic)))


def check_target(release: Release, target: Path) -> None:
    """Refuse to write a page to be published about noise that could be repeated, or among a curator's files."""
    if not release.statement.may_be_released:
        raise NotPrivate(
            f"release (status {release.statement.status}) was made with seeded noise, so a page about it must not be published; "
            "use dpcipher.measure, whose noise cannot be seeded"
        )
    if (target.parent / MARKED_CURATOR).exists():
        raise NotPrivate(
            f"folder ({target.parent}) is marked curator only; a publishable page must not lie there. Name another"
        )


def cards(release: Release, n_synthetic: int, verification: Verification, *, gap: str = "") -> str:
    """The budget, the sizes and the status of a release at a glance."""
    counted = "estimate" if release.reconciled.total_variance else "public"
    numbers = {
        "Privacy budget": words.budget_symbols(release.statement),
        f"Rows ({counted}{words.of_rows(release)})": rows(release.reconciled.total),
        "Synthetic rows": f"{n_synthetic:,}",
        "Columns": f"{len(release.schema.attrs):,}",
        "Measured tables": f"{len(release.workload):,}",
        **({"Largest gap": gap} if gap else {}),
        "Status": verification.status,
    }
    return facts(numbers, style="cards")


def columns(release: Release, synthetic: Codes) -> str:
    """Every column: the released counts with their intervals, and the synthetic rows beside them."""
    attrs = release.schema.attrs
    says = [
        f"Bars are the released estimates; whiskers hold the true count{words.of_rows(release)} in about 19 cases out of 20; triangles or ticks are the synthetic rows, scaled to the same total. An estimate can fall below zero: the noise is left as it is, so that sums stay right; its interval begins at 0."
    ]
    if max(release.schema.shape) > MOST_BARS:
        says.append(EXPLAINED)
    drawn = charts(
        (_column(release, synthetic, axis) for axis in range(len(attrs))[:MOST_COLUMNS]), flowing=True
    )
    hidden = len(attrs) - MOST_COLUMNS
    more = f"{hidden} more columns are in the release and are left out here to keep the page small."
    key = legend(bar="released estimate", whisker="95 % margin", mark="synthetic rows")
    return paragraphs(says) + key + drawn + paragraphs([more] if hidden > 0 else [])


def _column(release: Release, synthetic: Codes, axis: int) -> str:
    name = release.schema.attrs[axis]
    heading, table_, query = release.schema.heading(name), release.project(name), release.finest((axis,))
    assert query is not None  # every column is in a measured table
    counts = np.asarray(table_, dtype=float)
    low, high = (np.asarray(bound, dtype=float) for bound in release.interval((name,)))
    drawn = scaled(release, synthetic, query)
    lines = [
        (label, rows(estimate), f"{rows(least)} to {rows(most)}", rows(count))
        for label, estimate, least, most, count in zip(
            table_.shown[0], *(values.tolist() for values in (counts, low, high, drawn)), strict=True
        )
    ]
    heads = ["level", "estimate", "95 % interval", "synthetic, scaled"]
    numbers = folded(f"Numbers of {heading}", table(heads, lines[: 4 * MOST_BARS]))
    return column_figure(column_series(release, name, drawn), numbers)
