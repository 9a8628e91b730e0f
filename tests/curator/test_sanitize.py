"""The session: charge before noise, noise on every cell, and no private fact outside."""

import inspect
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator.answers import release_of
from dpcipher.curator.counts import receive
from dpcipher.curator.measure import measure
from dpcipher.errors import DataError, LedgerError, LedgerExceeded, ParameterError, SchemaError
from dpcipher.privacy.draws import Draws, OpenDPNoise
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"age": 4, "sex": 2, "job": 3})


def rows(n_rows: int = 200) -> pd.DataFrame:
    """Some integer-coded rows."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {name: rng.integers(0, size, n_rows) for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)}
    )


def test_noise_is_on_every_cell_observed_or_not() -> None:
    """An empty table, released often, shows no cell that is always zero."""
    empty = rows(0)
    seen = [measure(empty, SCHEMA, epsilon=1, unit="add-remove").measurements for _ in range(12)]
    noise = np.array([[count for table in release for count in table.values.ravel()] for release in seen])
    assert (noise != 0).any(axis=0).all()


def test_the_budget_is_split_equally_over_tables_and_sets() -> None:
    """Three tables, two sets, epsilon 1: each table gets 1/6, so its Laplace scale is 6 (and 12 under replace)."""
    for unit, scale in (("add-remove", 6.0), ("replace", 12.0)):
        release = measure(rows(), SCHEMA, epsilon=1, unit=unit, sets=2)
        assert {table.noise.scale for table in release.measurements} == {scale}
        assert len(release.measurements) == 6
        assert release.statement.certificate["total"] == pytest.approx(1.0, abs=1e-9)
        assert release.statement.certificate["total"] <= 1.0 + 1e-12


def test_weights_move_budget_between_tables() -> None:
    """A table with half the weight of the others gets twice their noise."""
    weights = {("age", "sex"): 2, ("age", "job"): 2, ("job", "sex"): 1}
    release = measure(rows(), SCHEMA, epsilon=1, unit="add-remove", weights=weights)
    scales = {SCHEMA.attrs_on(table.query.axes): table.noise.scale for table in release.measurements}
    assert scales == {("age", "sex"): 2.5, ("age", "job"): 2.5, ("sex", "job"): 5.0}


def test_gaussian_noise_follows_the_tight_conversion() -> None:
    """Sigma per unit of L2 at (1, 1e-6) is 4.530877 (Canonne, Kamath, Steinke 2020, by bisection), times the root of 3 tables."""
    release = measure(rows(), SCHEMA, epsilon=1, delta=1e-6, unit="add-remove")
    assert release.measurements[0].noise.kind == "gaussian"
    assert release.measurements[0].noise.scale == pytest.approx(4.530877117036 * math.sqrt(3), rel=1e-6)


def test_the_number_of_rows_is_told_only_where_it_is_public() -> None:
    """Exact under replace or when declared public; otherwise the noisy total."""
    assert measure(rows(), SCHEMA, epsilon=1, unit="replace").statement.n_rows == 200
    assert measure(rows(), SCHEMA, epsilon=1, unit="add-remove", n_rows_public=True).statement.n_rows == 200
    totals = {measure(rows(), SCHEMA, epsilon=0.5, unit="add-remove").n_rows for _ in range(8)}
    assert measure(rows(), SCHEMA, epsilon=1, unit="add-remove").statement.n_rows is None
    assert len(totals) > 1


def test_a_release_is_stamped_by_how_it_was_made(tmp_path: Path) -> None:
    """Certified with a ledger, unrecorded without, NOT PRIVATE with seeded noise."""
    ledger = Ledger.create(tmp_path / "t.ledger", epsilon=1, unit="add-remove")
    assert (
        measure(rows(), SCHEMA, epsilon=1, unit="add-remove", ledger=ledger).statement.status == "certified"
    )
    assert measure(rows(), SCHEMA, epsilon=1, unit="add-remove").statement.status == "unrecorded"
    order = Request.parse(SCHEMA, Privacy.parse(epsilon=1, unit="add-remove"), workload=2)
    seeded = release_of(receive(rows(), SCHEMA).tally(order.axes), order, Draws.seeded(3))
    assert seeded.statement.status == "NOT PRIVATE"


def test_a_ledger_is_created_on_request_with_this_release_as_its_limit(tmp_path: Path) -> None:
    """A second release over the same file is refused, and nothing more is spent."""
    path = tmp_path / "t.ledger"
    measure(rows(), SCHEMA, epsilon=1, unit="add-remove", ledger=path, name="mine", create=True)
    assert Ledger.open(path).name == "mine"
    with pytest.raises(LedgerExceeded):
        measure(rows(), SCHEMA, epsilon=0.1, unit="add-remove", ledger=path)
    assert Ledger.open(path).spent.epsilon == Fraction(1)


@pytest.mark.parametrize("workload", [2, "auto"])
def test_a_ledger_that_does_not_exist_is_refused_before_any_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: int | str
) -> None:
    """One name in three folders is three mistakes, not three budgets. The data do not exist either, and the ledger is what is missed."""
    for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "c"):
        folder.mkdir()
        monkeypatch.chdir(folder)
        with pytest.raises(LedgerError, match=r"ledger \(t\.ledger\) does not exist"):
            measure("absent.csv", SCHEMA, workload=workload, epsilon=1, unit="add-remove", ledger="t.ledger")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("workload", [2, "auto"])
def test_create_is_checked_before_rows_are_read_and_done_when_the_charge_is_due(
    tmp_path: Path, workload: int | str
) -> None:
    """Rows that do not fit leave no ledger behind; an existing ledger, or none, is refused while the data do not even exist."""
    path, bad = tmp_path / "t.ledger", rows().assign(age=987_654)
    said = {"workload": workload, "epsilon": 1, "unit": "add-remove", "create": True}
    with pytest.raises(DataError):
        measure(bad, SCHEMA, ledger=path, **said)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    ledger = Ledger.create(path, epsilon=1, unit="add-remove")
    for wrong, error in ((path, LedgerError), (ledger, ParameterError), (None, ParameterError)):
        with pytest.raises(error, match="create"):
            measure(tmp_path / "absent.csv", SCHEMA, ledger=wrong, **said)  # type: ignore[arg-type]
    assert ledger.entries == ()


@pytest.mark.parametrize("workload", [2, "auto"])
def test_a_release_names_its_ledger(tmp_path: Path, workload: int | str) -> None:
    """The ledger's id, the charge and the head after it, in the file too; the ledger knows the release by them."""
    ledger = Ledger.create(tmp_path / "t.ledger", epsilon=1, unit="add-remove")
    path = tmp_path / "r.parquet"
    measure(rows(), SCHEMA, workload=workload, epsilon=1, unit="add-remove", ledger=ledger, save=path)
    loaded = Release.load(path)
    (entry,) = ledger.entries
    assert loaded.statement.ledger == {"id": ledger.id, "charge": entry.id, "head": entry.head}
    assert ledger.verify(loaded.statement.ledger, checksum=loaded.checksum).word == "recorded"


def test_a_release_that_does_not_name_its_ledger_still_loads(tmp_path: Path) -> None:
    """As those of the first format: charge and head alone."""
    made = measure(rows(), SCHEMA, epsilon=1, unit="add-remove")
    statement = replace(made.statement, status="certified", ledger={"charge": "1", "head": "ab12"})
    path = Release(SCHEMA, made.measurements, statement).save(tmp_path / "r.parquet")
    assert Release.load(path).statement.ledger == {"charge": "1", "head": "ab12"}


def test_budget_is_charged_before_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the sampler dies the charge stands: a crash can waste budget, never lose count of it."""
    path = tmp_path / "t.ledger"
    Ledger.create(path, epsilon=2, unit="add-remove")
    at_draw: list[Fraction | None] = []

    def dying(self: OpenDPNoise, counts: object, mechanism: object) -> object:
        at_draw.append(Ledger.open(path).spent.epsilon)
        raise RuntimeError("sampler died")

    monkeypatch.setattr(OpenDPNoise, "_noisy", dying)
    with pytest.raises(RuntimeError, match="sampler died"):
        measure(rows(), SCHEMA, epsilon=1, unit="add-remove", ledger=path)
    assert at_draw == [Fraction(1)]
    assert Ledger.open(path).spent.epsilon == Fraction(1)


def test_rows_that_do_not_fit_cost_nothing(tmp_path: Path) -> None:
    """A refusal while encoding comes before any charge, and quotes no value."""
    path = tmp_path / "t.ledger"
    Ledger.create(path, epsilon=2, unit="add-remove")
    bad = rows()
    bad.loc[5, "age"] = 987_654
    with pytest.raises(DataError, match="age") as caught:
        measure(bad, SCHEMA, epsilon=1, unit="add-remove", ledger=path)
    assert "987" not in str(caught.value)
    assert Ledger.open(path).spent.epsilon in (None, 0)


def test_saving_marks_the_ledger_as_released(tmp_path: Path) -> None:
    """The release on disk and the ledger agree on what was released."""
    path = tmp_path / "r.parquet"
    release = measure(
        rows(), SCHEMA, epsilon=1, unit="add-remove", ledger=tmp_path / "t.ledger", create=True, save=path
    )
    assert Release.load(path).checksum == release.checksum
    assert release.checksum in (tmp_path / "t.ledger").read_text()


def test_an_unwritable_output_costs_nothing(tmp_path: Path) -> None:
    """The output is tried before any budget is spent."""
    ledger = Ledger.create(tmp_path / "t.ledger", epsilon=2, unit="add-remove")
    with pytest.raises(ValueError, match="nowhere"):
        measure(
            rows(),
            SCHEMA,
            epsilon=1,
            unit="add-remove",
            ledger=ledger,
            save=tmp_path / "nowhere" / "r.parquet",
        )
    assert Ledger.open(tmp_path / "t.ledger").spent.epsilon in (None, 0)


def test_a_draft_is_refused_until_signed() -> None:
    """A schema drawn from the data tells its levels; a person must vouch that they are public."""
    draft = dc.Schema.draft(rows())
    with pytest.raises(SchemaError, match="sign"):
        measure(rows(), draft, epsilon=1, unit="add-remove")
    signed = draft.sign("A. Curator", "2026-01-02", unchanged=True)
    assert measure(rows(), signed, epsilon=1, unit="add-remove").statement.status == "unrecorded"


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", True, None])
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_bad_privacy_parameter_is_refused_before_data_is_opened(
    name: str, value: object, tmp_path: Path
) -> None:
    """The data does not even exist, and the ledger stays as it was."""
    ledger = Ledger.create(tmp_path / "t.ledger", epsilon=1, delta=1e-6, unit="add-remove")
    before = (tmp_path / "t.ledger").read_bytes()
    parameters = {"epsilon": 1.0, "delta": 1e-6} | {name: value}
    if name == "delta" and value is None:
        parameters["mechanism"] = "gaussian"
    with pytest.raises(ValueError, match=name):
        measure(tmp_path / "absent.csv", SCHEMA, unit="add-remove", ledger=ledger, **parameters)  # type: ignore[arg-type]
    assert (tmp_path / "t.ledger").read_bytes() == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 1, "rho": 0.1}, "must not be given together"),
        ({"epsilon": 1, "delta": 1.0}, "delta"),
        ({"epsilon": 1, "max_rows": 0}, r"max_rows \(0\)"),
        ({"epsilon": 1, "max_rows": -1}, r"max_rows \(-1\)"),
        ({"epsilon": 1, "sets": 0}, r"sets \(0\)"),
        ({"epsilon": 1, "sets": -1}, r"sets \(-1\)"),
        ({"epsilon": 1, "unit": "persons"}, "unit"),
        ({"epsilon": 1, "workload": 0}, "workload"),
        ({"epsilon": 1, "workload": 4}, "workload"),
        ({"epsilon": 1, "workload": [("age", "sex")]}, "job"),
        ({"epsilon": 1, "workload": [("age", "age"), ("sex", "job")]}, "age"),
        ({"epsilon": 1, "workload": [("age", "jop"), ("sex", "job")]}, "did you mean 'job'"),
        ({"epsilon": 1, "weights": {("age", "sex"): 1}}, "weights have no entry"),
        ({"epsilon": 1, "weights": {("age",): 1}}, "not a table of the workload"),
    ],
)
def test_a_bad_request_is_refused_before_data_is_opened(
    parameters: dict[str, object], message: str, tmp_path: Path
) -> None:
    """Whatever is wrong with the request, nothing is read and nothing is spent."""
    with pytest.raises(ValueError, match=message):
        measure(tmp_path / "absent.csv", SCHEMA, **({"unit": "add-remove"} | parameters))  # type: ignore[arg-type]


def test_no_release_takes_a_seed_for_its_noise() -> None:
    """Whoever knows the seed can subtract the noise, so the session has none and its sampler has none."""
    for function in (measure, OpenDPNoise, OpenDPNoise.add, Request):
        assert not {
            name for name in inspect.signature(function).parameters if "seed" in name or "random" in name
        }


def test_a_person_column_bounds_what_one_person_adds() -> None:
    """One person with many rows weighs no more than max_rows of them."""
    frame = rows(400).assign(who=["x"] * 390 + [str(i) for i in range(10)])
    release = measure(frame, SCHEMA, epsilon=60, unit="add-remove", max_rows=2, person="who")
    assert abs(release.reconciled.total - 12) < 3


def test_noise_is_drawn_anew_for_every_cell_of_every_table() -> None:
    """Over twenty tables of a hundred cells in two sets, no cell tells about another: neither its neighbours nor its twin."""
    schema = Schema.from_domain({f"c{i}": 10 for i in range(7)})
    nobody = pd.DataFrame({name: pd.Series([], dtype=int) for name in schema.attrs})
    release = measure(nobody, schema, epsilon=0.01, unit="add-remove", sets=2)
    noise = np.array([table.values.ravel() for table in release.measurements], dtype=float)
    noise /= noise.std()
    assert noise.shape == (42, 100)
    twins = np.corrcoef(noise) - np.eye(len(noise))
    assert np.abs(twins).max() < 0.6  # of 100 cells: six standard errors
    assert abs(np.mean(noise[:, 1:] * noise[:, :-1])) < 6 / np.sqrt(noise.size)
    assert abs(noise.mean()) < 6 / np.sqrt(noise.size)


def test_the_notes_of_a_draft_are_in_no_release(tmp_path: Path) -> None:
    """They tell about the rows, and no signature covers them: signing a draft takes them out, and measuring what is left of them."""
    private = rows(900).assign(patient_id=[f"p{i // 4}" for i in range(900)])
    draft = dc.Schema.draft(private)
    assert "patient_id" in " ".join(draft.provenance.notes)
    draft.sign("A. Curator", "2026-01-02", unchanged=True).save(tmp_path / "signed.yaml")
    assert "patient_id" not in (tmp_path / "signed.yaml").read_text(encoding="utf-8")
    kept = replace(
        draft, provenance=replace(draft.provenance, drawn_from_data=False)
    )  # a person took the mark out
    for schema in (kept, dc.Schema.load(tmp_path / "signed.yaml")):
        release = measure(private, schema, epsilon=1, unit="add-remove", save=tmp_path / "r.parquet")
        assert release.schema.provenance.notes == ()
        assert b"patient_id" not in (tmp_path / "r.parquet").read_bytes()
        (tmp_path / "r.parquet").unlink()
    published = Release.from_tables(
        {"sex": [3, 4]}, replace(SCHEMA, columns=SCHEMA.columns[1:2], provenance=kept.provenance), scale=1
    )
    assert published.schema.provenance.notes == ()
