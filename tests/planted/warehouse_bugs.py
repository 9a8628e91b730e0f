"""Violations where the data live: what SQL makes it easy to get wrong."""

from bug import Bug

WAREHOUSE_BUGS = (
    Bug(
        "several queries that each see another state of the table",
        "PostgreSQL's default isolation",
        "curator/warehouse/engines.py",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        "curator/test_warehouse.py::test_many_tables_take_several_queries_of_one_state[postgres]",
    ),
    Bug(
        "which rows of a person count is left to the order of storage",
        "ROW_NUMBER() without an order",
        "curator/warehouse/stages.py",
        "PARTITION BY owner ORDER BY {order}",
        "PARTITION BY owner",
        "curator/test_warehouse.py::test_persons[duck]",
    ),
    Bug(
        "a cast that quotes the cell in the server's log",
        "ibis writes try_cast as CAST for PostgreSQL",
        "curator/warehouse/engines.py",
        "    reader = GuardedReader()",
        "    reader = TryCastReader()",
        "curator/test_warehouse_server.py::test_no_cell_stands_in_the_log",
    ),
    Bug(
        "an engine's own reading of cells is taken on trust",
        "devised here",
        "curator/warehouse/probe.py",
        "if not np.array_equal(here, codes[:, place]):",
        "if not np.array_equal(here.shape, codes[:, place].shape):",
        "curator/test_warehouse.py::test_an_engine_that_reads_differently_is_refused[duck]",
    ),
    Bug(
        "the number of rows in a line of progress",
        "devised here",
        "curator/warehouse/rows.py",
        "        answer = self.engine.ask(",
        "        self._say(f'{n_rows_of(self.engine.ask(counting_query(steps, rows, shape, [()])))} rows')\n        answer = self.engine.ask(",
        "curator/test_warehouse.py::test_a_release_of_a_warehouse[duck]",
    ),
)
