"""The publishable report: what it says, what it must not contain, and when it refuses."""

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pages
from dpcipher.curator.measure import measure
from dpcipher.drawing.colours import GAP, HEAT, PALETTE, SERIES, contrast
from dpcipher.errors import DpcipherWarning, NotPrivate, ParameterError, ReleaseError
from dpcipher.io.source import coded_rows
from dpcipher.pages.report import match_tables, render, report, strongest_pairs
from dpcipher.pages.words import certificate, noise
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.release.signature import create_key, sign
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query

WORD = "invented for these tests"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the invented release."""
    path = report(
        pages.release(), pages.people(1), tmp_path_factory.mktemp("public") / "r.html", rows_from=WORD
    )
    return path.read_text(encoding="utf-8")


class Balanced(HTMLParser):
    """Counts unclosed and unopened tags."""

    VOID = ("meta", "link", "br", "img", "hr", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Remember what was opened."""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It must be the last that was opened."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_markup_is_balanced(text: str) -> None:
    """Every tag is closed, in order."""
    parser = Balanced()
    parser.feed(text)
    assert (parser.open, parser.wrong) == ([], [])


def test_ten_columns_stay_light(text: str) -> None:
    """Less than a megabyte, with columns of 100 and 200 levels among them."""
    assert len(text.encode()) < 1_000_000


def test_nothing_outside_is_named(text: str) -> None:
    """No address, no script, no event handler, no form; links lead inside the page."""
    assert not re.search(r"https?:|//[a-z]|<script|\son\w+=|<form|<iframe|@import|url\(", text)
    assert all(target.startswith("#") for target in re.findall(r'<a [^>]*href="([^"]+)"', text))
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    assert all(target[1:] in ids for target in re.findall(r'<a [^>]*href="([^"]+)"', text))


def test_every_column_is_shown_with_its_margins(text: str) -> None:
    """The numbers of a column are the release's own estimate and interval."""
    release = pages.release()
    low, high = release.interval(("sex",))
    expected = (
        f"<td>{np.asarray(release.project(('sex',)))[0]:,.0f}</td><td>{low[0]:,.0f} to {high[0]:,.0f}</td>"
    )
    assert f'<th scope="row">F</th>{expected}' in text
    for name in release.schema.attrs:
        assert f"Numbers of {name}" in text


def test_the_promise_is_in_words_and_in_the_certificate(text: str) -> None:
    """Who is protected, how strongly (e³ is 20.1), by which noise, under which checksum."""
    for words in (
        "Protects the presence of any one row.",
        "at most 20.1 times as likely, or as unlikely, as it would have been without those rows",
        "may be held against one of them",
        "discrete Laplace noise of scale 15",
        "epsilon = 3",
        pages.release().checksum,
        "privacy map of opendp",
    ):
        assert words in text


NOTE = {"rounds": 1, "candidates": 61, "shortlist": 50, "share": "1/20", "tables": 55}


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (NOTE, "45 of 61 candidate tables (after a shortlist of 50); 5 % of the budget went to the choice"),
        ({**NOTE, "shortlist": 61}, "45 of 61 candidate tables; 5 % of the budget went to the choice"),
        (
            {**NOTE, "rounds": 0, "shortlist": 0},
            "45 of 61 candidate tables, by their size and the noise alone; 5 %",
        ),
    ],
)
def test_the_certificate_says_how_tables_were_chosen(note: dict[str, object], said: str) -> None:
    """Single columns are no candidates and are not counted; where tables were given, nothing is said."""
    given = pages.release()
    stated = replace(given.statement, certificate={**given.statement.certificate, "selection": note})
    assert said in certificate(Release(given.schema, given.measurements, stated))
    assert "Choice of tables" not in certificate(given)


def test_tables_in_groups_of_levels_are_said_and_listed() -> None:
    """How many there are in the text, each with its own noise in the list of tables; of other releases nothing."""
    given = pages.release()
    query = Query(given.schema.axes("score"), (Groups.runs((0, 15), 30),))
    runs = Measurement(query, np.array([10, 20]), Noise("laplace", 7.5))
    coarse = Release(given.schema, (*given.measurements, runs), given.statement)
    assert "score (2 groups)</th><td>2</td><td>10.6" in certificate(coarse)
    assert any("Levels are in groups in 1 table" in text for text in noise(coarse))
    assert "groups" not in certificate(given)
    assert not any("in groups" in text for text in noise(given))


def test_a_page_without_evidence_says_as_stated_by_the_file(text: str) -> None:
    """The file states certified; the page does not, anywhere, nor has it a certificate."""
    assert "certified" not in text
    assert "as stated by the file: noise by OpenDP" in text
    assert "no signature and no ledger was checked" in text
    assert ">Certificate<" not in text


@pytest.fixture(name="signed")
def signed_folder(tmp_path: Path) -> Path:
    """The invented release as a file, signed by Ada; Bob has a key too."""
    path = pages.release().save(tmp_path / "r.parquet")
    for name in ("ada", "bob"):
        create_key(tmp_path / name)
    sign(path, tmp_path / "ada.key")
    return tmp_path


def test_a_signature_of_a_trusted_key_certifies_the_page(signed: Path) -> None:
    """Its card, its certificate, and whose key it was."""
    path = report(
        signed / "r.parquet", pages.people(1), signed / "r.html", key=signed / "ada.pub", rows_from=WORD
    )
    shown = path.read_text(encoding="utf-8")
    assert "<dt>Status</dt><dd>certified</dd>" in shown
    assert "certified: noise by OpenDP" in shown
    assert "signature: signed, by ada.pub (key" in shown
    assert ">Certificate<" in shown
    assert "as stated by the file" not in shown


def test_a_page_that_nothing_confirms_warns_and_names_no_folder(signed: Path) -> None:
    """An unknown key, a release without a signature: the page is written, and says on whose word it is."""
    for name, word in (("r", "signed by an unknown key"), ("s", "not signed")):
        pages.release().save(signed / f"{name}.parquet", force=True)
        with pytest.warns(DpcipherWarning, match=word):
            path = report(
                signed / f"{name}.parquet",
                pages.people(1),
                signed / f"{name}.html",
                key=[signed / "bob.pub"],
                rows_from=WORD,
            )
        shown = path.read_text(encoding="utf-8")
        assert f"the file&#x27;s own (signature: {word})" in shown
        assert "<dt>Status</dt><dd>as stated by the file</dd>" in shown
        assert str(signed) not in shown


def test_no_page_is_written_about_an_altered_release(signed: Path) -> None:
    """Other counts under the same signature."""
    given = pages.release()
    other = replace(given.measurements[0], values=given.measurements[0].values + 1)
    Release(given.schema, (other, *given.measurements[1:]), given.statement).save(
        signed / "r.parquet", force=True
    )
    with pytest.raises(ReleaseError, match="cannot be what it states, so no page is written"):
        report(
            signed / "r.parquet", pages.people(1), signed / "r.html", key=signed / "ada.pub", rows_from=WORD
        )
    assert not (signed / "r.html").exists()


def test_a_ledger_at_hand_certifies_the_page(tmp_path: Path) -> None:
    """Also of a release in memory; another ledger does not."""
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=1, unit="add-remove")
    other = Ledger.create(tmp_path / "m.ledger", epsilon=1, unit="add-remove")
    rows = pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1, 2, 0] * 25})
    schema = Schema.from_domain({"a": 2, "b": 3})
    release = measure(rows, schema, epsilon=1, unit="add-remove", ledger=ledger)
    assert (
        "<dd>certified</dd>"
        in report(release, rows, tmp_path / "r.html", ledger=ledger, rows_from=WORD).read_text()
    )
    with pytest.warns(DpcipherWarning, match="another ledger"):
        path = report(release, rows, tmp_path / "s.html", ledger=tmp_path / "m.ledger", rows_from=WORD)
    assert "certified" not in path.read_text(encoding="utf-8")
    assert other.spent.as_dict() == {"epsilon": "0"}


def test_markup_in_a_level_is_escaped(text: str) -> None:
    """A level's name is text wherever it appears."""
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_same_inputs_give_the_same_bytes(text: str) -> None:
    """Nothing in the page depends on the time or on what was drawn before."""
    told = f"That the synthetic rows come from this release is on this word alone: {WORD}"
    again = render(pages.release(), coded_rows(pages.people(1), pages.SCHEMA, "synthetic"), origin=told)
    assert again == text


def test_the_match_is_in_units_of_the_release_own_noise() -> None:
    """Gaps of one table recomputed from value counts and the interval's half width; tables come worst first."""
    release, made = pages.release(), pages.people(1)
    found = match_tables(release, coded_rows(made, pages.SCHEMA, "synthetic"))
    one = next(m for m in found if m.attrs == ("sex", "owner"))
    counts = pd.crosstab(made["sex"], made["owner"]).to_numpy() * release.reconciled.total / len(made)
    sigma = np.sqrt(release.reconciled.variance(release.schema.axes(("sex", "owner"))))
    gaps = np.abs(counts - np.asarray(release.project(("sex", "owner")))) / sigma
    assert one.rms == pytest.approx(np.sqrt((gaps**2).mean()), rel=1e-5)
    assert one.largest == pytest.approx(gaps.max(), rel=1e-5)
    assert [m.rms for m in found] == sorted((m.rms for m in found), reverse=True)


def test_the_truth_itself_is_one_sigma_away() -> None:
    """The private rows as synthetic ones: RMS near 1, and 95 % of cells within 2 sigmas."""
    found = match_tables(pages.release(), coded_rows(pages.people(0), pages.SCHEMA, "synthetic"))
    cells = sum(one.cells for one in found)
    assert np.sqrt(sum(one.rms**2 * one.cells for one in found) / cells) == pytest.approx(1, abs=0.05)
    assert sum(one.within * one.cells for one in found) / cells == pytest.approx(0.95, abs=0.015)


def test_the_pair_that_depends_comes_first() -> None:
    """Owner depends on sex and on nothing else."""
    release = pages.release()
    first = strongest_pairs(release)[0]
    assert {release.schema.attrs[axis] for axis in first} == {"sex", "owner"}


def test_a_release_stamped_not_private_is_refused(tmp_path: Path) -> None:
    """Seeded noise protects nobody, so there is nothing to publish."""
    seeded = replace(pages.release(), statement=replace(pages.release().statement, status="NOT PRIVATE"))
    with pytest.raises(NotPrivate, match="seeded"):
        report(seeded, pages.people(1), tmp_path / "r.html", rows_from=WORD)
    assert not list(tmp_path.iterdir())


def test_a_curators_folder_is_refused(tmp_path: Path) -> None:
    """Publishable and curator-only files do not lie together."""
    (tmp_path / "CURATOR-ONLY.txt").touch()
    with pytest.raises(NotPrivate, match="curator only"):
        report(pages.release(), pages.people(1), tmp_path / "r.html", rows_from=WORD)


def test_impossible_targets_and_empty_rows_are_refused(tmp_path: Path) -> None:
    """With a message that says what to do."""
    with pytest.raises(ReleaseError, match="choose another place"):
        report(pages.release(), pages.people(1), tmp_path / "absent" / "r.html", rows_from=WORD)
    with pytest.raises(ParameterError, match="at least one row"):
        report(pages.release(), pages.people(1).iloc[:0], tmp_path / "r.html", rows_from=WORD)


def test_a_full_disk_leaves_the_earlier_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is complete or absent, and an earlier one stays as it was."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "r.html").write_text("the earlier page")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReleaseError, match="No space left on device; choose another place"):
        report(pages.release(), pages.people(1), tmp_path / "r.html", rows_from=WORD, force=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the earlier page"]


def test_a_column_of_many_levels_says_how_many_are_drawn(text: str) -> None:
    """The caption names the cut, and no other column has one."""
    assert re.findall(r"<figcaption>([^<]*) \(the first (\d+) of 200 levels\)", text) == [("code", "119")]


def test_somebody_elses_tables_are_described_as_declared(tmp_path: Path) -> None:
    """No budget is known, a total is public, one table has no noise, and the page says all of that."""
    schema = Schema.from_domain({"a": 2, "b": 3})
    declared = Release.from_tables(
        {("a",): [30, 70], ("b",): [20, 30, 50]}, schema, scale={("a",): 0, ("b",): 2.0}, n_rows=100
    )
    made = pd.DataFrame({"a": [0] * 3 + [1] * 7, "b": [0, 1, 1, 2, 2, 2, 2, 2, 0, 1]})
    shown = report(declared, made, tmp_path / "r.html", rows_from=WORD).read_text(encoding="utf-8")
    assert "exactly 100 rows, a number that is public" in shown
    assert "not certified" in shown
    assert "No two columns were measured together" in shown


def test_a_wide_release_says_what_it_leaves_out(tmp_path: Path) -> None:
    """Eighty columns: sixty charts, and a sentence about the rest."""
    schema = Schema.from_domain({f"c{k}": 2 for k in range(80)})
    wide = Release.from_tables({(name,): [5, 6] for name in schema.attrs}, schema, scale=1.0)
    made = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 80)), columns=list(schema.attrs))
    shown = report(wide, made, tmp_path / "r.html", rows_from=WORD).read_text(encoding="utf-8")
    assert "20 more columns are in the release" in shown
    assert shown.count("<figure>") == 60


def test_text_and_charts_have_enough_contrast_in_both_schemes() -> None:
    """Text 4.5 to 1 and shapes 3 to 1 against the paper (WCAG 1.4.3 and 1.4.11)."""
    for scheme in (0, 1):
        colour = {name: pair[scheme] for name, pair in PALETTE.items()}
        for name in ("ink", "soft", "link", "bad", "good"):
            assert contrast(colour[name], colour["paper"]) >= 4.5
        for name in ("ink", "soft", "link"):
            assert contrast(colour[name], colour["box"]) >= 4.5
        assert contrast(colour["ink"], colour["alarm"]) >= 4.5
        assert contrast(colour["soft"], colour["faint"]) >= 4.5
        for name in ("bar", "mark", "hatch", *(f"s{number}" for number in range(SERIES))):
            assert contrast(colour[name], colour["paper"]) >= 3
        for name, number in [("h", HEAT), ("d", GAP)]:
            assert all(contrast(colour[f"{name}{k}"], colour[f"t{name}{k}"]) >= 4.5 for k in range(number))
    assert contrast("#8c1d18", "#ffffff") >= 4.5


def test_contrast_is_that_of_the_guidelines() -> None:
    """Pairs whose ratios are published: #777777 on white just fails, #767676 just passes."""
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
