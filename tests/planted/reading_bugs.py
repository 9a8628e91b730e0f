"""Violations on the way from a row to a count, and in what is told beside the noisy tables."""

from bug import Bug

READING_BUGS = (
    Bug(
        "str() fallback: one row recodes the others",
        "own history",
        "tables/frame.py",
        """        return object_cells(series.astype(object).to_numpy())
    try:""",
        """        try:
            return pa.Array.from_pandas(series)
        except (pa.ArrowException, OverflowError):
            return pa.Array.from_pandas(series.map(str, na_action="ignore").astype(object))
    try:""",
        "curator/test_neighbours.py::test_mixtures_that_people_have",
    ),
    Bug(
        "one bad cell empties its batch",
        "devised here",
        "schema/cells.py",
        "        return split_bytes(cells.to_pylist())",
        "        return pa.nulls(len(cells), pa.string())",
        "tables/test_stability.py::test_bytes_that_are_no_text_harm_no_other_cell",
    ),
    Bug(
        "days read in a zone that is not the cell's",
        "own history",
        "tables/frame.py",
        "value.replace(tzinfo=None).isoformat(sep",
        "(value.astimezone(None) if value.tzinfo else value).replace(tzinfo=None).isoformat(sep",
        "curator/test_neighbours.py::test_mixtures_that_people_have",
    ),
    Bug(
        "ids made per batch: a person is several persons",
        "own history",
        "curator/persons.py",
        "by_type(batch.column(person.column), as_id).cast(pa.large_string())",
        "pc.cast(batch.column(person.column), pa.large_string())",
        "curator/test_neighbours.py::test_a_person_is_one_person_over_files_of_different_types",
    ),
    Bug(
        "pooled blanks: nobody is a person",
        "own history",
        "schema/cells.py",
        "pc.if_else(blank, pa.scalar(None, pa.string()),",
        'pc.if_else(blank, pa.scalar("", pa.string()),',
        "curator/test_neighbours.py::test_blank_cells_of_a_file_are_nobodys",
    ),
    Bug(
        "the limit of a person counts one row too many",
        "Wilson et al. 2020, bounded contributions",
        "curator/persons.py",
        "rank < max_rows",
        "rank <= max_rows",
        "curator/test_neighbours.py::test_random_neighbours_of_random_frames",
    ),
    Bug(
        "order of storage decides which rows of a person count",
        "ROW_NUMBER() without an order",
        "curator/persons.py",
        "np.lexsort((_row_hash(rows, hashes), owner))",
        'np.argsort(owner, kind="stable")',
        "curator/test_neighbours.py::test_random_neighbours_of_random_frames",
    ),
    Bug(
        "questions see different states of a table: it is read twice",
        "PostgreSQL's default isolation",
        "curator/count.py",
        "            return count_batches(batches, self._schema, tables, self._person)\n",
        "            list(batches)\n        with self._batches() as batches:\n"
        "            return count_batches(batches, self._schema, tables, self._person)\n",
        "tables/test_databases.py::test_rows_that_come_meanwhile_are_not_counted",
    ),
    Bug(
        "exact number of rows",
        "MST and AIM of SmartNoise, which sample as many rows as there were",
        "curator/request.py",
        "return self.n_rows_public or (self.unit.n_rows_is_public and self.person is None)",
        "return self.n_rows_public or self.unit.n_rows_is_public",
        "curator/test_neighbours.py::test_rows_that_are_left_out_leave_no_trace_in_the_number_of_rows",
    ),
    Bug(
        "reopened source",
        "own history: a stream that can be read once",
        "curator/session.py",
        "charge=charge, kind=incoming.kind)",
        "charge=charge, kind=receive(data, schema, terms.person).kind)",
        "curator/test_after_the_charge.py::test_no_step_after_the_charge_reads_the_data",
    ),
    Bug(
        "a draft of the schema that nobody signed",
        "Annamalai et al. 2024, domains read off the data",
        "curator/session.py",
        "        schema.require_signed()\n",
        "",
        "curator/test_sanitize.py::test_a_draft_is_refused_until_signed",
    ),
    Bug(
        "exact total under addition",
        "SmartNoise, whose samples have as many rows as the data",
        "curator/session.py",
        "return self._truth.n_rows if self.terms.tells_n_rows else None",
        "return self._truth.n_rows",
        "curator/test_session.py::test_the_number_of_rows_is_public_only_where_someone_says_so",
    ),
    Bug(
        "an error that quotes the row",
        "own history; Arrow's own messages do",
        "tables/delimited.py",
        "raise _text_error(path, wrong, format) from None  # Arrow's message quotes the row",
        'raise TableFileError(f"{path}: {wrong}") from None',
        "faults/test_fuzz.py::test_two_hundred_files_of_rows_tell_no_cell",
    ),
    Bug(
        "a code for a missing value that is counted as a number",
        "surveys whose -9 is averaged with the incomes",
        "schema/column.py",
        "codes = np.where(kinds < 0, codes, kinds + np.int32(self.domain.size))",
        "codes = np.where((kinds < 0) | (codes >= 0), codes, kinds + np.int32(self.domain.size))",
        "schema/test_missing_values.py::test_a_code_is_known_under_every_type_of_cell",
    ),
    Bug(
        "a dictionary that nobody signed",
        "dictionaries whose maximum is the private maximum",
        "schema/schema.py",
        "return self.drawn_from_data or self.provenance.imported_from is not None",
        "return self.drawn_from_data",
        "schema/test_dictionaries.py::test_an_imported_schema_waits_for_a_signature",
    ),
    Bug(
        "entities of a codebook that are expanded",
        "XML readers before defusedxml",
        "schema/dictionaries/ddi.py",
        "    parser.StartDoctypeDeclHandler = refuse\n",
        "",
        "schema/test_dictionaries.py::test_a_hostile_codebook_is_refused",
    ),
    Bug(
        "progress that tells the number of rows",
        "own history: escaped tests that look at whole quarters of a large file",
        "curator/session.py",
        '        say("charging the ledger and drawing noise")\n',
        '        say(f"charging the ledger and drawing noise for {truth.n_rows} rows")\n',
        "privacy/test_replay.py::test_a_measurement_tells_a_neighbour_by_its_answers_alone[pairs]",
    ),
)
