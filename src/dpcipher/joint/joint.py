"""The joint distribution of all columns: project it, sample from it, ask it for probabilities, save it."""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import ConditionError, ParameterError, SolveError
from dpcipher.io.write import mirror
from dpcipher.joint import file, shown
from dpcipher.joint.bins import Values, checked_values
from dpcipher.joint.chain import Chain
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.network import Network
from dpcipher.joint.report import RuleCost, SolveReport
from dpcipher.joint.rules import Tally
from dpcipher.joint.stream import Draw, RowStream
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Codes, Floats
from dpcipher.tables.labelled import Marginal

CHUNK = 65_536
RULE_ROWS = 8192  # that are drawn to say what rules cost


_CORES: Mapping[str, type[Core]] = {"dense": DenseTable, "chain": Chain, "network": Network}


@dataclass(frozen=True, repr=False)
class Joint(Released, Shown, Drawable):
    """A distribution over all columns of a schema.

    `n_rows` is how many rows `sample` draws by default: the release's own (noisy or public) total. `health` says how the solve went, and `release` is the
    checksum of the release behind it, which its rows carry, too.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> joint = dc.solve(release)
    >>> joint.project("smokes").frame["value"].round(1).tolist()
    [0.5, 0.5]
    >>> joint.sample(4, seed=1, given={"ill": 1}).ill.tolist()
    [1, 1, 1, 1]
    """

    schema: Schema
    core: Core
    n_rows: int
    health: SolveReport
    kind: str = field(default="pandas", compare=False)
    release: str = ""

    def project(self, attrs: str | Sequence[str]) -> Marginal:
        """The probabilities of any table, labelled; `numpy.asarray` gives the plain array."""
        cover = self.schema.cover(attrs)
        return Marginal(cover.names, cover.labels, cover.fold(self.core.project(cover.axes)), cover.shown)

    def _card(self) -> Card:
        return shown.card(self)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        return shown.draw(self, columns)

    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, object] | None = None,
        independent: bool = False,
        values: Values = "drawn",
    ) -> Any:
        """Synthetic rows, as the kind of table that went in (a pandas data frame from a loaded release).

        Rows are spread evenly over the distribution, so that their tables match it nearly to rounding; `independent=True` draws
        independent rows instead. `given={"sex": "F"}` samples from the conditional distribution: exactly from a table, by
        importance resampling from a chain (see `effective_rows`); a value inside a bin, as in `given={"age": 20}`, draws from that bin and is
        the value of every row. `seed` repeats a draw: sampling costs no privacy. `values="middle"` writes the middle of each bin, on the grid of its
        column, where a value inside it is drawn by default: such values are unrelated to the other columns, which draws slopes toward 0.

        Rows of a draw (`solve(release, draws=m)`) say so in the `attrs` of a pandas frame and the metadata of an Arrow table: `fit_models` then has its rule.
        """
        stream = self.stream(n_rows, seed=seed, given=given, independent=independent, values=values)
        return mirror(self.kind, stream.table())

    def stream(
        self,
        n_rows: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, object] | None = None,
        independent: bool = False,
        values: Values = "drawn",
        size: int | None = None,
    ) -> RowStream:
        """The same rows as `sample`, by the million: Arrow tables one after another, `stream.write("rows.parquet")`, or `stream.to_spark(session)`.

        A batch has at most `size` rows, and is a function of the joint, the seed and its number alone: batches may be drawn in any order, on any
        machine. Another `size` gives other rows of the same distribution.
        """
        count = self.n_rows if n_rows is None else checked_n_rows(n_rows)
        check_seed(seed)
        drawn_seed = secrets.randbits(63) if seed is None else seed
        most = CHUNK if size is None else checked_n_rows(size, "size")
        return RowStream(
            self, Draw(count, drawn_seed, most, given or {}, independent, checked_values(values))
        )

    def coded(self, n_rows: int, rng: np.random.Generator, *, independent: bool = False) -> Codes:
        """The codes of rows that keep the rules of the schema."""
        if not self.schema.rules and not self.schema.zeros:
            return np.concatenate(list(self.core.sample(n_rows, rng, independent=independent)))
        stream = self.stream(n_rows, seed=int(rng.integers(2**63)), independent=independent)
        return np.concatenate([stream.coded_batch(number)[0] for number in range(len(stream))])

    def rule_cost(self, n_rows: int = RULE_ROWS, *, seed: int = 0) -> RuleCost:
        """What the rules of the schema cost a draw of `n_rows`: the share of rows drawn again, and how far each column moves by it."""
        tally, stream = self.tally(), self.stream(n_rows, seed=seed)
        for number in range(len(stream)):
            stream.batch(number, tally=tally)
        return tally.cost

    def tally(self) -> Tally:
        """An empty count of what rules cost, for batches of a stream."""
        return Tally(self.schema.attrs, self.core.shape)

    @cached_property
    def masses(self) -> dict[str, Floats]:
        """The probabilities of the levels of each column whose values are drawn inside bins."""
        columns = enumerate(self.schema.columns)
        return {column.name: self._one_way(axis) for axis, column in columns if column.draws_values}

    def _one_way(self, axis: int) -> Floats:
        """The probabilities of the levels of an attribute; in a network, where summing may take too long, those of its rows."""
        if not isinstance(self.core, Network):
            return self.core.project((axis,))
        return np.bincount(self._rows[:, axis], minlength=self.core.shape[axis]) / len(self._rows)

    @cached_property
    def _rows(self) -> Codes:
        return np.concatenate(list(self.core.sample(CHUNK, np.random.default_rng(0))))

    def effective_rows(self, n_rows: int, given: Mapping[str, object], *, seed: int = 0) -> float:
        """How many independent rows `sample(n_rows, given=given)` is worth: all of them from a table, fewer from a chain.

        A chain meets conditions on late attributes by weighting; a number far below `n_rows` means that few distinct rows met them.
        """
        allowed = self.schema.allowed(given)
        if not isinstance(self.core, Chain):
            return float(checked_n_rows(n_rows))
        return self.core.sample_given(checked_n_rows(n_rows), np.random.default_rng(seed), allowed)[1]

    def log_prob(self, rows: Any) -> NDArray[np.float64]:
        """The log-probability of each row's levels (a number counts as its bin)."""
        table = rows if isinstance(rows, (pa.Table, pa.RecordBatch)) else pa.table(rows)
        return self.core.log_prob(self.schema.encode(table))

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the joint as a NumPy archive (.npz) of plain arrays; nothing in it is executable. `force` replaces a file that is there already."""
        kind = next(name for name, core in _CORES.items() if isinstance(self.core, core))
        arrays = self.core.to_arrays()
        return file.write(
            Path(path), kind, arrays, self.schema, self.n_rows, self.health, self.release, force=force
        )

    @classmethod
    def load(cls, path: str | Path) -> "Joint":
        """Read a saved joint, refusing a damaged one or one of a later version."""
        kind, arrays, schema, n_rows, health, release = file.read(Path(path))
        return cls(schema, _CORES[kind].from_arrays(arrays), n_rows, health, release=release)


def with_rule_cost(joint: Joint) -> Joint:
    """The joint with what its rules cost in its report; where no row keeps them all, with a warning: what was paid for must not be lost."""
    if not joint.schema.rules and not (joint.schema.zeros and isinstance(joint.core, Network)):
        return joint
    try:
        return replace(joint, health=replace(joint.health, rules=joint.rule_cost()))
    except (SolveError, ConditionError) as error:
        warnings = (*joint.health.warnings, f"no rows can be drawn: {error}")
        return replace(joint, health=replace(joint.health, warnings=warnings))


def check_seed(seed: int | None) -> None:
    """Refuse what NumPy cannot seed a generator with."""
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParameterError(
            f"seed ({seed!r:.60}) must be a whole number of 0 or more, or None; try seed=1"
        ) from None


def checked_n_rows(n_rows: int, name: str = "n_rows") -> int:
    """A number of rows is a whole number above 0."""
    whole = isinstance(n_rows, (int, np.integer)) and not isinstance(n_rows, bool)
    if not whole or not 0 < n_rows < math.inf:
        raise ParameterError(f"{name} ({n_rows!r}) must be a whole number above 0; try {name}=1000")
    return int(n_rows)
