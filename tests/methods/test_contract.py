"""One contract for every synthesizer: what a user may rely on, whichever method it is."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from replaying import check_neighbours, neighbours

from dpcipher.errors import DataError, LedgerError, LedgerExceeded, ParameterError, SizeError
from dpcipher.methods import METHODS, Cipher, Synthesizer
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Ledger
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 2, "c": 3, "d": 3})
UNITS = ("add-remove", "replace")
# Every method with its own defaults, and CIPHER once more where it chooses its tables itself.
MADE: Mapping[str, Callable[..., Synthesizer]] = METHODS | {"cipher-auto": partial(Cipher, workload="auto")}


def planted(n_rows: int = 400, shape: tuple[int, ...] = (2, 2, 3, 3), seed: int = 5) -> np.ndarray:
    """Counts of a table whose columns depend on one another."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_rows, rng.dirichlet(np.full(np.prod(shape), 0.4))).reshape(shape)


def rows_of(counts: np.ndarray, schema: Schema) -> pd.DataFrame:
    """The table behind counts."""
    cells = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
    return pd.DataFrame(cells, columns=list(schema.attrs)).astype("int64")


@pytest.mark.filterwarnings(
    "ignore::dpcipher.errors.DpcipherWarning"
)  # tiny tables may drown: see test_drowned.py
@pytest.mark.parametrize("name", MADE)
class TestContract:
    """What holds for all methods."""

    def make(
        self, name: str, epsilon: float = 1.0, unit: str = "add-remove", **options: object
    ) -> Synthesizer:
        """A method with its own defaults."""
        return MADE[name](epsilon, unit=unit, **options)

    def test_there_is_something_to_test(self, name: str) -> None:
        """The registry holds titled synthesizers."""
        assert isinstance(self.make(name), Synthesizer)
        assert self.make(name).title

    @pytest.mark.parametrize("unit", UNITS)
    def test_rows_come_back_as_they_went_in(self, name: str, unit: str) -> None:
        """The same kind of table, the same columns in the same order, levels inside the schema, as many rows as asked."""
        frame = rows_of(planted(), SCHEMA)
        rows = self.make(name, unit=unit).fit(frame, SCHEMA).sample(57, seed=3)
        assert isinstance(rows, pd.DataFrame)
        assert list(rows.columns) == list(SCHEMA.attrs)
        assert len(rows) == 57
        assert all(
            rows[attr].between(0, size - 1).all()
            for attr, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)
        )

    def test_an_arrow_table_comes_back_as_one(self, name: str) -> None:
        """Rows are mirrored in the library they came from."""
        table = pa.Table.from_pandas(rows_of(planted(), SCHEMA), preserve_index=False)
        assert isinstance(self.make(name).fit(table, SCHEMA).sample(9), pa.Table)

    def test_a_seed_repeats_the_sample_and_not_the_noise(self, name: str) -> None:
        """Sampling may be seeded; three fits of the same rows are not all alike."""
        frame = rows_of(planted(4000), SCHEMA)
        fits = [self.make(name, 0.02).fit(frame, SCHEMA) for _ in range(3)]
        pd.testing.assert_frame_equal(fits[0].sample(20, seed=1), fits[0].sample(20, seed=1))
        seen = {(fit.joint.n_rows, fit.joint.core.project((0, 2)).tobytes()) for fit in fits}
        assert len(seen) > 1

    @pytest.mark.parametrize("unit", UNITS)
    @pytest.mark.parametrize("delta", [None, 1e-6])
    def test_privacy_parameters_are_recorded(self, name: str, unit: str, delta: float | None) -> None:
        """Budget, unit and the cost of every answer stand in the statement; the cost is within the budget."""
        method = self.make(name, 0.5, unit, delta=delta, max_rows=2)
        statement = method.fit(rows_of(planted(), SCHEMA), SCHEMA).statement
        assert statement.status == "unrecorded"
        assert statement.budget == {"epsilon": "1/2"} | ({} if delta is None else {"delta": "1/1000000"})
        assert statement.unit == {"relation": unit, "max_rows": 2, "cap": "stated"}
        limit = method.privacy.charge(method._may_fail)
        total = statement.certificate["total"]
        assert total <= float(limit.rho or limit.epsilon)
        spends_nothing = name == "uniform" and unit == "replace"
        assert total == pytest.approx(0 if spends_nothing else float(limit.rho or limit.epsilon), rel=1e-9)
        assert sum(event["cost"] for event in statement.certificate["events"]) == pytest.approx(total)

    @pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e-320, 1e308, "1", True, None])
    def test_bad_epsilon_is_refused_at_birth(self, name: str, epsilon: object) -> None:
        """No method exists with an epsilon that is none; only the uniform table needs no budget."""
        if name == "uniform" and epsilon is None:
            blind = self.make(name, None, "add-remove").fit(None, SCHEMA)
            assert blind.sample(4).shape == (4, 4)
            assert blind.statement.certificate["total"] == 0
            return
        with pytest.raises(ValueError, match="epsilon"):
            MADE[name](epsilon, unit="add-remove")

    @pytest.mark.parametrize(
        "options",
        [
            {"delta": 2.0},
            {"delta": 0},
            {"unit": "rows"},
            {"max_rows": 0},
            {"max_rows": 1.5},
            {"epsilon": 1e-19},
        ],
    )
    def test_other_bad_parameters_are_refused_at_birth(self, name: str, options: dict[str, object]) -> None:
        """Delta, unit, max_rows, and a budget that cannot be divided."""
        with pytest.raises(ValueError):  # noqa: PT011 - each names its own parameter
            MADE[name](**{"epsilon": 1.0, "unit": "add-remove"} | options)

    def test_the_whole_budget_is_charged_once(self, name: str, tmp_path) -> None:
        """The ledger holds one charge of the whole budget; a second fit is refused and charges nothing."""
        frame, path = rows_of(planted(), SCHEMA), tmp_path / "people.ledger"
        method = self.make(name, ledger=path, create=True)
        assert method.fit(frame, SCHEMA).statement.status == "certified"
        with pytest.raises(LedgerError, match="exists already"):
            method.fit(frame, SCHEMA)
        with pytest.raises(LedgerExceeded):
            self.make(name, ledger=path).fit(frame, SCHEMA)
        entries = Ledger.open(path).entries
        assert [entry.cost for entry in entries] == [method.budget]
        assert entries[0].what["method"] == type(method).__name__
        assert entries[0].checksum is not None

    def test_a_ledger_that_does_not_exist_is_refused_before_any_row_is_read(
        self, name: str, tmp_path
    ) -> None:
        """The data do not exist either, and the ledger is what is missed."""
        with pytest.raises(LedgerError, match=r"people\.ledger\) does not exist.*create=True"):
            self.make(name, ledger=tmp_path / "people.ledger").fit(tmp_path / "absent.csv", SCHEMA)
        assert list(tmp_path.iterdir()) == []

    def test_create_needs_the_path_of_a_new_ledger(self, name: str, tmp_path) -> None:
        """Refused at birth without a ledger, with one that is open, and if it is neither true nor false."""
        ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
        for wrong in ({}, {"ledger": None}, {"ledger": ledger}, {"ledger": "new.ledger", "create": 1}):
            with pytest.raises(ParameterError, match="create"):
                self.make(name, **{"create": True} | wrong)
        assert ledger.entries == ()

    def test_rows_that_do_not_fit_are_refused_before_the_charge(self, name: str, tmp_path) -> None:
        """A value outside the schema costs nothing, and the message does not quote it."""
        frame = pd.DataFrame({"a": [0, 777], "b": [0, 1], "c": [0, 1], "d": [0, 1]})
        ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
        with pytest.raises(DataError) as refusal:
            self.make(name, ledger=ledger).fit(frame, SCHEMA)
        assert "777" not in str(refusal.value)
        assert ledger.entries == ()

    @pytest.mark.parametrize("unit", UNITS)
    @pytest.mark.parametrize("max_rows", [1, 3])
    @pytest.mark.parametrize("delta", [None, 1e-5])
    def test_neighbours_cost_what_is_declared(
        self, name: str, unit: str, max_rows: int, delta: float | None
    ) -> None:
        """Replay with frozen answers: the questions stay the same, and no answer tells neighbours apart by more than it declares."""
        if name == "multinomial-dirichlet":
            pytest.skip("its one draw is checked by enumeration in test_multinomial_dirichlet.py")
        rng = np.random.default_rng(11)
        method = self.make(name, 1.0, unit, max_rows=max_rows, delta=delta)
        limit = method.budget.composable()
        tables = [
            planted(300),
            planted(12, seed=8),
            np.zeros(SCHEMA.shape, dtype=int),
            np.zeros(SCHEMA.shape, dtype=int),
        ]
        tables[3][0, 0, 0, 0] = 50
        for seed, counts in enumerate(tables):
            other = neighbours(counts, unit, max_rows, rng)
            total = check_neighbours(method, counts, other, SCHEMA, seed)
            assert total <= float(limit.rho or limit.epsilon) * (1 + 1e-9)

    @pytest.mark.parametrize("unit", UNITS)
    @pytest.mark.parametrize(
        ("sizes", "counts"),
        [
            ({"a": 3}, [5, 0, 9]),
            ({"a": 1}, [7]),
            ({"a": 2, "b": 3}, [[0, 0, 0], [0, 0, 0]]),
            ({"a": 2, "b": 1, "c": 2}, [[[3, 4]], [[5, 6]]]),
            ({"a": 2, "b": 2}, [[8, 0], [0, 0]]),
        ],
        ids=["one column", "one cell", "empty table", "one level", "constant columns"],
    )
    def test_small_tables_work(self, name: str, unit: str, sizes: dict[str, int], counts: list) -> None:
        """One column, one cell, no rows, a column of one level, columns that never vary."""
        schema = Schema.from_domain(sizes)
        for seed in range(5):
            method = self.make(name, unit=unit).fit_counts(np.array(counts), schema, draws=Draws.seeded(seed))
            assert method.joint.core.project((0,)).sum() == pytest.approx(1)
            assert list(method.sample(4, seed=1).columns) == list(sizes)
            assert len(method.sample(seed=1)) == method.joint.n_rows

    def test_an_empty_frame_works_with_real_noise(self, name: str) -> None:
        """No rows at all, through a whole session."""
        rows = self.make(name).fit(rows_of(np.zeros(SCHEMA.shape, dtype=int), SCHEMA), SCHEMA).sample(6)
        assert len(rows) == 6

    def test_seeded_fits_are_repeatable_and_stamped(self, name: str) -> None:
        """The same seed gives the same joint, and the statement says NOT PRIVATE."""
        fits = [self.make(name).fit_counts(planted(), SCHEMA, draws=Draws.seeded(7)) for _ in range(2)]
        tables = [fit.joint.core.project((0, 1, 2, 3)) for fit in fits]
        np.testing.assert_array_equal(tables[0], tables[1])
        assert fits[0].statement.status == "NOT PRIVATE"

    def test_coded_rows_and_counts_are_the_same_input(self, name: str) -> None:
        """A table given as codes is counted to the same fit."""
        counts = planted()
        codes = rows_of(counts, SCHEMA).to_numpy()
        one = self.make(name).fit_counts(counts, SCHEMA, draws=Draws.seeded(7))
        other = self.make(name).fit_counts(codes, SCHEMA, draws=Draws.seeded(7), codes=True)
        np.testing.assert_array_equal(
            one.joint.core.project((0, 1, 2, 3)), other.joint.core.project((0, 1, 2, 3))
        )

    def test_structural_zeros_hold_no_rows(self, name: str) -> None:
        """What the schema calls impossible is never drawn."""
        schema = Schema(SCHEMA.columns, zeros=(Zero({"a": 1, "c": 2}),))
        counts = planted()
        counts[1, :, 2, :] = 0
        rows = self.make(name, 0.2).fit_counts(counts, schema, draws=Draws.seeded(2)).sample(300, seed=1)
        assert not ((rows["a"] == 1) & (rows["c"] == 2)).any()


def test_a_method_may_be_told_that_the_number_of_rows_is_public() -> None:
    """As `measure` may: it is stated, and nothing is spent on it."""
    rows, schema = pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 1]}), Schema.from_domain({"a": 2, "b": 2})
    fitted = METHODS["cipher"](1.0, unit="add-remove", n_rows_public=True).fit(rows, schema)
    assert fitted.statement.n_rows == 3
    assert len(fitted.sample()) == 3


def test_a_schema_too_wide_for_the_engine_of_the_paper_is_refused_before_the_charge(tmp_path) -> None:
    """Its tables of all sets of columns follow from the schema, so that nothing is spent on a release that cannot be solved."""
    schema = Schema.from_domain({f"c{number}": 3 for number in range(16)})
    rows = pd.DataFrame(np.zeros((5, 16), dtype=int), columns=schema.attrs)
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=2, unit="add-remove")
    for workload in (2, "auto"):
        method = Cipher(1.0, unit="add-remove", workload=workload, engine="paper", ledger=ledger)
        with pytest.raises(SizeError, match="engine='paper'"):
            method.fit(rows, schema)
    assert ledger.spent.epsilon == 0


def test_the_engine_of_the_paper_takes_a_wide_schema_whose_whole_table_is_measured() -> None:
    """Then nothing is left to be built from smaller tables."""
    schema = Schema.from_domain({f"c{number}": 2 for number in range(18)})
    rows = pd.DataFrame(np.zeros((500, 18), dtype=int), columns=schema.attrs)
    fitted = Cipher(60.0, unit="add-remove", workload=[schema.attrs], engine="paper").fit(rows, schema)
    assert len(fitted.sample(10, seed=1)) == 10
