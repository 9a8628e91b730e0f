"""Which tables to measure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from dpcipher.errors import SizeError, WorkloadError, shown_count
from dpcipher.files.codec import as_plain, is_whole
from dpcipher.schema.grouped import Grouped, query_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, closure, elementary_symmetric, maximal
from dpcipher.tables.query import Query

MAX_TABLE_CELLS = 2**27
MAX_CELLS = 2**28
MAX_TABLES = 2**22


@dataclass(frozen=True)
class Workload:
    """The tables to measure, each a tuple of attributes in schema order or `Grouped`; what each asks of the rows, and how many cells it has.

    >>> Workload.parse(Schema.from_domain({"a": 2, "b": 3, "c": 4}), 2).tables
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """

    tables: tuple[Attrs, ...]
    queries: tuple[Query, ...]
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.tables or not len(self.tables) == len(self.queries) == len(self.cells):
            raise WorkloadError("workload must hold at least one table, and the query and the cells of each")
        if any(query.contrasts or query.centred for query in self.queries):
            raise WorkloadError(
                "workload must hold tables of counts: what their noise costs is priced as that of counts; "
                "ask a session for contrasts and centred tables"
            )

    @classmethod
    def parse(cls, schema: Schema, spec: "int | Sequence[Sequence[str]] | Workload") -> "Workload":
        """All tables of an order, or the tables listed; sizes are judged on the schema before anything is built."""
        if isinstance(spec, Workload):
            return _of_tables(schema, spec.tables)
        order = as_plain(spec)
        if is_whole(order):
            return _of_order(schema, order)
        return _of_tables(schema, _checked_list(spec))

    @property
    def n_cells(self) -> int:
        """How many cells all tables have together."""
        return sum(self.cells)

    def closure(self) -> tuple[Attrs, ...]:
        """Every non-empty set of attributes that some table covers, small sets first."""
        return tuple(closure(self.tables)[1:])

    def maximal(self) -> tuple[Attrs, ...]:
        """The tables that no other table covers, cell by cell."""
        whole = [query.axes for query in self.queries if not query.groups]
        kept = set(maximal(whole)) if len(whole) == len(self.tables) else None
        return tuple(
            table
            for table, query in zip(self.tables, self.queries, strict=True)
            if (query.axes in kept if kept is not None else not self._is_covered(query))
        )

    def _is_covered(self, query: Query) -> bool:
        return any(other != query and other.refines(query) for other in self.queries)


def crossed(groups: Iterable[str | Sequence[str]], order: int = 2) -> list[Attrs]:
    """The tables of every `order` of these groups of columns, each group taken as one: a workload of crossed groups.

    >>> crossed([("class", "credit"), "risk", "branch"])
    [('class', 'credit', 'risk'), ('class', 'credit', 'branch'), ('risk', 'branch')]
    """
    listed = [(group,) if isinstance(group, str) else tuple(group) for group in groups]
    return [tuple(chain.from_iterable(table)) for table in combinations(listed, order)]


def _of_order(schema: Schema, order: int) -> Workload:
    if not 1 <= order <= len(schema.attrs):
        raise WorkloadError(
            f"workload ({order}) must be an order from 1 to {len(schema.attrs)}, the number of attributes; try workload={min(2, len(schema.attrs))}"
        )
    largest = math.prod(sorted(schema.shape)[-order:])
    _check_size(largest, f"its largest {order}-way table")
    _check_count(math.comb(len(schema.attrs), order))
    _check_total(elementary_symmetric(schema.shape, order))
    axes = list(combinations(range(len(schema.attrs)), order))
    cells = tuple(math.prod(schema.shape[axis] for axis in table) for table in axes)
    return Workload(tuple(map(schema.attrs_on, axes)), tuple(map(Query, axes)), cells)


def _of_tables(schema: Schema, tables: Iterable[Sequence[str]]) -> Workload:
    ordered = [_ordered(schema, table) for table in tables]
    asked: dict[Query, Attrs] = {}
    for table in ordered:
        if asked.setdefault(query_of(schema, table), table) is not table:
            raise WorkloadError(f"workload names the table {table} twice; remove one")
    covered = {attr for table in ordered for attr in table}
    omitted = [attr for attr in schema.attrs if attr not in covered]
    if omitted:
        raise WorkloadError(
            f"workload omits the column {omitted[0]!r}; add a table with it, such as ({omitted[0]!r},)"
        )
    whole = [schema.n_cells(table) for table in ordered]  # rows are counted by every level, then merged
    _check_size(max(whole), f"its table {ordered[whole.index(max(whole))]}")
    _check_count(len(ordered))
    cells = tuple(math.prod(query.shape(schema.shape)) for query in asked)
    _check_total(sum(cells))
    return Workload(tuple(ordered), tuple(asked), cells)


def _ordered(schema: Schema, table: Sequence[str]) -> Attrs:
    """A table with its columns in the order of the schema."""
    attrs = schema.attrs_on(schema.axes(table))
    return table.on(attrs) if isinstance(table, Grouped) else attrs


def _checked_list(spec: object) -> list[Sequence[str]]:
    """A list of tables, each a non-empty sequence of names."""
    if isinstance(spec, bool | str | float) or spec is None or not isinstance(spec, Iterable):
        raise WorkloadError(
            f"workload ({spec!r}) must be an order such as 2, or a list of tables such as [('age', 'sex')]"
        )
    tables = list(spec)
    for table in tables:
        if isinstance(table, str) or not isinstance(table, Iterable) or not tuple(table):
            raise WorkloadError(
                f"workload table ({table!r}) must be a tuple of column names; try [('age', 'sex')]"
            )
    if not tables:
        raise WorkloadError("workload ([]) must hold at least one table; try workload=2")
    return [table if isinstance(table, Grouped) else tuple(table) for table in tables]


def _check_size(cells: int, name: str) -> None:
    if cells > MAX_TABLE_CELLS:
        raise SizeError(
            f"workload: {name} has {shown_count(cells)} cells; at most {MAX_TABLE_CELLS} fit: use wider bins or a lower order"
        )


def _check_count(tables: int) -> None:
    if tables > MAX_TABLES:
        raise SizeError(
            f"workload: {shown_count(tables)} tables; at most {MAX_TABLES} fit: use a lower order, or list the tables"
        )


def _check_total(cells: int) -> None:
    if cells > MAX_CELLS:
        raise SizeError(
            f"workload: its tables have {shown_count(cells)} cells together; at most {MAX_CELLS} fit: list the tables that matter"
        )
