"""Structural zeros in large tables: refused before the charge, or kept."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcipher.curator.measure import measure
from dpcipher.errors import DpcipherWarning, SizeError
from dpcipher.joint.network import Network
from dpcipher.methods import Cipher, Independent, JunctionTree, PrivBayes, Synthesizer, Uniform
from dpcipher.methods.base import Fitted
from dpcipher.methods.junction_tree import _reconciled
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

NO_CHILD_DRIVES = (Zero({"age": 0, "drives": [1, 2]}), Zero({"age": 3}))
LARGE = Schema.from_domain({"age": 4, "drives": 3, **{f"c{number}": 9 for number in range(5)}})
# With this seed the noise of an epsilon of 0.0001 takes away more rows than there are.
DROWNING = 6
LARGE = Schema(LARGE.columns, zeros=NO_CHILD_DRIVES)


def people(n_rows: int = 500) -> pd.DataFrame:
    """Rows of the large schema that respect its zeros."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(size, size=n_rows) for size in LARGE.shape], axis=1)
    codes[:, 0] %= 3
    codes[codes[:, 0] == 0, 1] = 0
    return pd.DataFrame(codes, columns=list(LARGE.attrs))


def assert_refused(
    method: type[Synthesizer], schema: Schema, tmp_path: Path, match: str, **options: object
) -> None:
    """The fit is refused, and the ledger knows of no charge."""
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    with pytest.raises(SizeError, match=match):
        method(1.0, unit="add-remove", ledger=ledger, **options).fit(people(), schema)
    assert ledger.entries == ()


@pytest.mark.parametrize("method", [PrivBayes, JunctionTree])
def test_a_network_too_large_for_its_zeros_draws_rows_again(method: type[Synthesizer]) -> None:
    """A network cannot hold structural zeros, its full table could but does not fit: rows keep them, and the report says what that costs."""
    fitted = assert_zeros_hold(method(1.0, unit="add-remove"), 1)
    assert isinstance(fitted.joints[0].core, Network)
    assert fitted.joints[0].health.rules is not None


def test_tables_too_many_to_reconcile_with_zeros_are_refused_before_the_charge(tmp_path: Path) -> None:
    """Ten triples hold the pair with the zero and share 21 pairs of 361 free cells; without a zero inside a table there is no limit."""
    schema = Schema.from_domain({f"c{number}": 20 for number in range(12)})
    assert_refused(
        Cipher,
        Schema(schema.columns, zeros=(Zero({"c0": 0, "c1": 1}),)),
        tmp_path,
        "structural zeros tie 7,.* functions",
        workload=3,
    )
    Cipher(1.0, unit="add-remove", workload=3).check_schema(schema)
    untouched = Zero({f"c{number}": 0 for number in range(4)})
    Cipher(1.0, unit="add-remove", workload=3).check_schema(Schema(schema.columns, zeros=(untouched,)))


def assert_zeros_hold(method: Synthesizer, seed: int) -> Fitted:
    """No row is drawn where none can be, and what is possible is drawn."""
    codes = people(5000).to_numpy(dtype=np.int32)
    fitted = method.fit_counts(codes, LARGE, draws=Draws.seeded(seed), codes=True)
    rows = fitted.sample(3000, seed=1)
    assert not ((rows["age"] == 0) & (rows["drives"] > 0)).any()
    assert set(rows["age"]) == {0, 1, 2}
    assert rows["c0"].nunique() == 9
    return fitted


@pytest.mark.parametrize("method", [Independent, Uniform])
def test_independent_columns_keep_their_zeros_in_a_large_table(method: type[Synthesizer]) -> None:
    """A product with zeros is a chain, which can hold them."""
    for seed in range(3):
        assert_zeros_hold(method(1.0, unit="replace"), seed)


def test_a_drowned_cipher_keeps_its_zeros_in_a_large_table() -> None:
    """Where noise leaves no rows to speak of, all that the schema allows is equally likely."""
    method = Cipher(1e-4, unit="add-remove")
    with pytest.warns(DpcipherWarning, match="nothing is known"):
        fitted = assert_zeros_hold(method, DROWNING)
    assert fitted.release.reconciled.total <= 0


def test_clusters_that_share_too_much_for_their_zeros_still_agree() -> None:
    """The junction tree's clusters are known after the charge only; they are then reconciled without the zeros."""
    schema = Schema.from_domain({"a": 20, "b": 20, "c": 20, "d": 2, "e": 2})
    rng = np.random.default_rng(3)
    tables = tuple(
        Measurement(Query((0, 1, 2, last)), rng.normal(5, 2, (20, 20, 20, 2)), Noise("laplace", 2.0))
        for last in (3, 4)
    )
    zeros = Schema(schema.columns, zeros=(Zero({"a": 0, "d": 1}),))
    release = Release(zeros, tables, Statement(status="NOT PRIVATE", n_rows=None))
    with pytest.raises(SizeError):
        release.reconciled
    found, expected = _reconciled(release), Release(schema, tables, release.statement).reconciled
    for axes in combinations(range(3), 2):
        np.testing.assert_allclose(found.table(axes), expected.table(axes))


def test_measure_refuses_too_many_tables_with_zeros_before_the_charge(tmp_path: Path) -> None:
    """The same limit at the entry point: the ledger is not touched."""
    schema = Schema.from_domain({f"c{number}": 20 for number in range(12)})
    schema = Schema(schema.columns, zeros=(Zero({"c0": 0, "c1": 1}),))
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    with pytest.raises(SizeError, match="structural zeros tie"):
        measure(people(), schema, workload=3, epsilon=1, unit="add-remove", ledger=ledger)
    assert ledger.entries == ()
