"""Levels found in the rows, from the table that a user hands over to the release: what is named, what is charged, and what never shows."""

import io
import json
import logging
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcipher as dc
from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import open_counts, receive
from dpcipher.errors import BudgetError, DataError, LedgerExceeded, ParameterError
from dpcipher.methods import METHODS
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws, NoiseSource, OpenDPNoise
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import discovery_share, selection_for
from dpcipher.request.session import Session
from dpcipher.tables.domain import Counts
from dpcipher.tables.measurement import Noise

CITY = {
    "kind": "categorical",
    "levels": "discover",
    "pattern": "[A-Z]{2}[0-9]*",
    "max_length": 6,
    "missing": "level",
}
SCHEMA = dc.Schema.from_dict(
    {"columns": {"city": {**CITY, "keep": ["ZZ"]}, "sex": {"kind": "categorical", "levels": ["F", "M"]}}}
)
PAID: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "unit": "add-remove"}
SECRET = "QX77"  # one person's


def people(n: int = 6_000) -> pd.DataFrame:
    """Ten frequent cities, rare ones, one of a single person, texts that fit no pattern, and missing cells."""
    rng = np.random.default_rng(5)
    city = rng.choice([f"AB{i}" for i in range(10)], n).astype(object)
    city[:300] = [f"RR{i % 150}" for i in range(300)]
    city[300:700] = "not a code"
    city[700:760] = None
    city[760] = SECRET
    return pd.DataFrame({"city": city, "sex": rng.choice(["F", "M"], n)})


FREQUENT = tuple(f"AB{i}" for i in range(10))


def test_frequent_texts_are_named_and_the_rest_is_other() -> None:
    """Kept ones always, rare and lone ones and what fits no pattern never; the release's schema is closed."""
    release = dc.measure(people(), SCHEMA, workload=1, **PAID)
    column = release.schema.column("city")
    assert column.labels == ("ZZ", *FREQUENT, "other", "(missing)")
    assert not release.schema.is_open
    (counts,) = [
        np.asarray(table.values)
        for table in release.measurements
        if len(table.query.axes) == 1 and release.schema.attrs_on(table.query.axes) == ("city",)
    ]
    assert abs(counts[-2] - 701) < 100  # 300 rare, 400 unfit, one lone
    assert abs(counts[-1] - 60) < 100


def test_the_event_states_its_share_delta_and_threshold(tmp_path: Path) -> None:
    """They are in the release file, with the levels, and no number of texts that were seen."""
    release = dc.measure(people(), SCHEMA, workload=1, **PAID, save=tmp_path / "r.parquet")
    loaded = dc.Release.load(tmp_path / "r.parquet")
    assert loaded.schema == release.schema
    event = loaded.statement.certificate["events"][0]
    chosen = selection_for(SCHEMA, Privacy.parse(epsilon=2, delta=1e-6, unit="add-remove"))
    assert chosen is not None
    assert {key: event[key] for key in ("type", "what", "delta", "threshold", "share")} == {
        "type": "levels",
        "what": "levels of city",
        "delta": "1/2000000",
        "threshold": chosen.threshold,
        "share": "1/10",
    }
    assert loaded.statement.certificate["delta"] == "1/2000000"
    assert loaded.statement.may_fail
    assert sum(Fraction(e["share"]) for e in loaded.statement.certificate["events"]) == 1


def test_the_ledger_is_charged_rho_and_delta(tmp_path: Path) -> None:
    """The limit is the release; nothing is left, and a second one is refused."""
    path = tmp_path / "p.ledger"
    dc.measure(people(), SCHEMA, workload=1, **PAID, ledger=path, create=True)
    (entry,) = dc.Ledger.open(path).entries
    assert entry.cost == Budget.parse(epsilon=2, delta=1e-6).failing()
    with pytest.raises(LedgerExceeded):
        dc.measure(people(), SCHEMA, workload=1, **PAID, ledger=path)
    both = dc.Ledger.create(tmp_path / "b.ledger", rho=0.2, delta=1e-5, unit="add-remove")
    dc.measure(people(), SCHEMA, workload=1, rho=0.05, delta=4e-6, unit="add-remove", ledger=both)
    assert both.remaining.as_dict() == {"rho": "3/20", "delta": "3/500000"}


class Unread:
    """A table that must not be touched."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("rows were read")


@pytest.mark.parametrize("terms", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_without_delta_it_is_refused_with_the_reason_before_anything_is_read(
    terms: dict[str, float], tmp_path: Path
) -> None:
    """Pure epsilon, and rho alone, allow for no failure; for every workload and for methods."""
    for workload in (1, "auto"):
        with pytest.raises(BudgetError, match="only one person has appears with a small probability"):
            dc.measure(
                Unread(),
                SCHEMA,
                workload=workload,
                unit="add-remove",
                ledger=tmp_path / "l",
                create=True,
                **terms,
            )
    with pytest.raises(BudgetError, match="only one person has"):
        dc.Cipher(unit="add-remove", **terms).fit(Unread(), SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_a_delta_beside_rho_needs_levels_to_find() -> None:
    """With closed levels it would buy nothing."""
    closed = SCHEMA.closed(levels={"city": ["NY"]})
    with pytest.raises(BudgetError, match="must not be given with rho"):
        dc.measure(Unread(), closed, rho=0.1, delta=1e-6, unit="add-remove")
    with pytest.raises(BudgetError, match="must not be given with rho"):
        dc.Cipher(rho=0.1, delta=1e-6, unit="add-remove").fit(Unread(), closed)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[Counts]:
    """A sampler that adds nothing, and what was handed to it."""
    seen: list[Counts] = []

    def handed(self: OpenDPNoise, counts: Counts, mechanism: Noise) -> Counts:
        seen.append(counts.copy())
        return counts

    monkeypatch.setattr(OpenDPNoise, "_noisy", handed)
    # Each table by itself, as it goes into the one call for all.
    monkeypatch.setattr(OpenDPNoise, "_noisy_tables", NoiseSource._noisy_tables)
    return seen


def inputs(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same rows in every kind of table, and in another order."""
    frame.to_csv(folder / "t.csv", index=False)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, folder / "t.parquet", row_group_size=777)
    return {
        "pandas": frame,
        "categorical": frame.astype({"city": "category"}),
        "shuffled": frame.sample(frac=1, random_state=3),
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
        "polars": pl.from_arrow(table),
        "arrow": table,
        "batches": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100)),
    }


def test_every_kind_of_table_in_any_order_gives_the_same_counts(exact: list[Counts], tmp_path: Path) -> None:
    """Without noise the levels, and every table, are the same; and as encoding with the closed schema would have them."""
    outcomes = {}
    for name, data in inputs(people(), tmp_path).items():
        release = dc.measure(data, SCHEMA, **PAID)
        outcomes[name] = (
            release.schema.column("city").labels,
            np.asarray(release.measurements[0].values).tolist(),
        )
    assert len({json.dumps(outcome) for outcome in outcomes.values()}) == 1
    labels, counts = outcomes["pandas"]
    assert labels == ("ZZ", *FREQUENT, "other", "(missing)")
    again = dc.measure(people(), SCHEMA.closed(levels={"city": FREQUENT}), **PAID)
    assert np.asarray(again.measurements[0].values).tolist() == counts


@pytest.mark.parametrize("unit", ["add-remove", "replace"])
def test_texts_of_one_person_count_up_to_max_rows(exact: list[Counts], unit: str) -> None:
    """A person with a thousand rows of one text, and one with a thousand texts: at most `max_rows` rows reach the noise, whoever else is there."""
    ids = np.r_[np.zeros(1000, int), np.ones(1000, int), np.arange(2, 3002)]
    city = ["QX1"] * 1000 + [f"MM{i}" for i in range(1000)] + ["AB1"] * 3000
    frame = pd.DataFrame({"city": city, "sex": "F", "id": ids})
    options: dict[str, Any] = {**PAID, "unit": unit, "workload": 1, "person": "id", "max_rows": 3}
    release = dc.measure(frame, SCHEMA, **options)
    asked = exact[0]
    assert sorted(asked.tolist()) == [1, 1, 1, 3, 3000]
    assert release.schema.column("city").labels == ("ZZ", "AB1", "other", "(missing)")


def test_which_rows_of_a_person_count_depends_on_nobody_else() -> None:
    """Rows of others that bring new texts, before or between, change no one's choice: numbers of texts do, and are not used."""
    rng = np.random.default_rng(1)
    own = pd.DataFrame({"city": [f"OW{i}" for i in range(40)], "sex": "F", "id": 1})
    person = Privacy.parse(epsilon=1, unit="add-remove", max_rows=2, person="id")
    kept = set()
    for trial in range(20):
        others = pd.DataFrame({"city": [f"XX{i}" for i in rng.permutation(200)[: trial * 10]], "sex": "M"})
        others["id"] = np.arange(len(others)) + 10
        mixed = pd.concat([others, own]).sample(frac=1, random_state=trial)
        truth = open_counts(receive(mixed, SCHEMA, person), SCHEMA)
        kept.add(frozenset(text for text in truth.text_counts(0) if text.startswith("OW")))
    assert len(kept) == 1
    assert len(next(iter(kept))) == 2


def test_neighbours_differ_in_one_person_and_lone_texts_in_no_more_than_max_rows() -> None:
    """Random tables, one person more: common texts move as a table does, and at most `max_rows` texts are lone."""
    rng = np.random.default_rng(2)
    for max_rows in (1, 3):
        for _ in range(50):
            n = int(rng.integers(5, 60))
            frame = pd.DataFrame(
                {"city": [f"AB{i}" for i in rng.integers(0, 30, n)], "sex": "F", "id": rng.integers(0, 12, n)}
            )
            less = frame[frame["id"] != 0]
            more, fewer = (
                Counter(
                    open_counts(
                        receive(
                            part,
                            SCHEMA,
                            Privacy.parse(epsilon=1, unit="add-remove", max_rows=max_rows, person="id"),
                        ),
                        SCHEMA,
                    ).text_counts(0)
                )
                for part in (frame, less)
            )
            gap = {text: more[text] - fewer[text] for text in more | fewer}
            assert sum(map(abs, gap.values())) <= max_rows
            assert all(count >= 0 for count in gap.values())
            assert len([text for text in more if text not in fewer]) <= max_rows


def test_a_person_who_is_named_by_the_column_itself_is_refused() -> None:
    """Ids must not be published."""
    with pytest.raises(
        ParameterError, match=r"person column \(city\) must not be one whose levels are found"
    ):
        dc.measure(people(), SCHEMA, **PAID, person="city")


def test_no_text_of_a_cell_shows_anywhere_but_as_a_found_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rare texts are in no ledger, release, message, log, plan or repr."""
    said: list[str] = []
    caplog.set_level(logging.DEBUG)
    release = dc.measure(people(), SCHEMA, workload=1, **PAID, ledger=tmp_path / "p.ledger", create=True,
                         save=tmp_path / "r.parquet", progress=said.append)  # fmt: skip
    incoming = receive(people(), SCHEMA)
    truth = open_counts(incoming, SCHEMA)
    shown = io.StringIO()
    print(release, release.statement, truth, truth.texts, incoming.texts, dc.plan(SCHEMA, **PAID), file=shown)
    everything = [shown.getvalue(), caplog.text, *said, *capfd.readouterr()]
    everything += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert "finding levels" in said
    for private in (SECRET, "RR17", "not a code"):
        assert not any(private in text for text in everything)


def test_a_missing_cell_is_refused_before_the_charge_where_the_column_says_so(tmp_path: Path) -> None:
    """The rule is named, no value and no number."""
    column = {key: value for key, value in CITY.items() if key != "missing"}
    schema = dc.Schema((dc.schema.column("city", **column), SCHEMA.column("sex")))
    with pytest.raises(DataError, match=r"column 'city': missing values are refused"):
        dc.measure(people(), schema, **PAID, ledger=tmp_path / "p.ledger", create=True)
    assert not (tmp_path / "p.ledger").exists()


def test_kinds_of_missing_stay_apart() -> None:
    """A code for missing is never a text to be found, however it is written."""
    column = dc.schema.column("city", **{**CITY, "pattern": ".+", "missing_values": ["N", -9]})
    frame = pd.DataFrame(
        {"city": ["N"] * 900 + ["-9"] * 900 + ["-9.0"] * 900 + ["AB"] * 900 + [None] * 900, "sex": "F"}
    )
    release = dc.measure(frame, dc.Schema((column, SCHEMA.column("sex"))), workload=1, **PAID)
    assert release.schema.column("city").labels == (
        "AB",
        "other",
        "(missing: N)",
        "(missing: -9)",
        "(missing)",
    )
    counts = np.asarray(release.measurements[0].values)
    assert np.abs(counts - [900, 0, 900, 1800, 900]).max() < 100


def test_found_levels_are_capped_by_noisy_counts(exact: list[Counts]) -> None:
    """`max_levels` of them, the largest."""
    schema = dc.Schema((dc.schema.column("city", **{**CITY, "max_levels": 2}), SCHEMA.column("sex")))
    frame = pd.DataFrame({"city": ["AA"] * 500 + ["BB"] * 700 + ["CC"] * 600, "sex": "F"})
    release = dc.measure(frame, schema, workload=1, **PAID)
    assert release.schema.column("city").labels == ("BB", "CC", "other", "(missing)")


def test_a_table_without_any_text_gives_a_release() -> None:
    """No rows, or nothing that fits: only what was declared."""
    empty = people().iloc[:0]
    for frame in (empty, people().iloc[300:760]):
        release = dc.measure(frame, SCHEMA, workload=1, **PAID)
        assert release.schema.column("city").labels == ("ZZ", "other", "(missing)")


def test_several_columns_share_the_delta_and_the_share() -> None:
    """Five columns: a fifth of the charge in all, a fifth of the failures each."""
    columns = tuple(dc.schema.column(f"c{i}", **CITY) for i in range(5))
    schema = dc.Schema((*columns, SCHEMA.column("sex")))
    assert discovery_share(schema) == Fraction(1, 5)
    frame = pd.DataFrame({f"c{i}": people()["city"] for i in range(5)} | {"sex": people()["sex"]})
    release = dc.measure(frame, schema, workload=1, **PAID)
    events = release.statement.certificate["events"][:5]
    assert {(event["delta"], event["share"]) for event in events} == {("1/10000000", "1/25")}
    assert release.statement.certificate["delta"] == "1/2000000"


@pytest.mark.parametrize("workload", [2, "auto"])
def test_sets_and_chosen_tables_work_on_what_was_found(workload: Any) -> None:
    """Levels are found once, for all sets."""
    release = dc.measure(people(), SCHEMA, workload=workload, sets=2, **PAID)
    assert release.schema.column("city").labels[1:11] == FREQUENT
    assert len(dc.solve(release)) == 2


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_finds_levels_or_refuses_before_reading(name: str) -> None:
    """A method of pure epsilon, or whose delta is for another failure, says why not; all others give rows with found levels."""
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "unit": "add-remove"}
    if METHODS[name] is dc.MultinomialDirichlet:
        with pytest.raises(BudgetError, match="only one person has"):
            dc.MultinomialDirichlet(epsilon=2.0, unit="add-remove", n_rows=500).fit(Unread(), SCHEMA)
        with pytest.raises(BudgetError, match="pays for the draw"):
            dc.MultinomialDirichlet(**options, n_rows=500).fit(Unread(), SCHEMA)
        return
    fitted = METHODS[name](**options).fit(people(), SCHEMA)
    assert set(fitted.sample(300, seed=1)["city"].dropna()) <= {"ZZ", *FREQUENT, "other"}


def test_a_method_that_reads_no_row_finds_no_levels() -> None:
    """Uniform needs no budget, and then cannot know a level."""
    with pytest.raises(ParameterError, match="must be given where levels are found"):
        dc.Uniform(unit="add-remove").fit(Unread(), SCHEMA)


def test_presence_told_is_stated_at_four_times_rho_and_the_same_delta() -> None:
    """Where the number of rows is declared public under add-remove."""
    release = dc.measure(people(), SCHEMA, workload=1, **PAID, n_rows_public=True)
    cost = Budget.parse(epsilon=2, delta=1e-6).failing()
    assert release.statement.guarantee == Budget(rho=4 * cost.amount, delta=cost.failure)


def test_a_session_has_no_more_delta_than_its_charge() -> None:
    """A second column of the same delta is refused before anything is drawn."""
    terms = Privacy(Budget.parse(epsilon=1, delta=1e-6), Unit("add-remove"))
    counts = open_counts(receive(people(), SCHEMA), SCHEMA)
    session = Session(SCHEMA, terms, PrivateRows(counts, Draws.seeded(1)))
    session.find_texts(0, Fraction(1, 10), Fraction(1, 2_000_000), 10)
    with pytest.raises(BudgetError, match="within what the charge has for failures"):
        session.find_texts(0, Fraction(1, 10), Fraction(1, 10**9), 10)
