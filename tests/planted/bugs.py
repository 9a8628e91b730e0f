"""Known ways to break the promise, each as a change of the source and the test that must notice it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One violation: where the source says `right`, it says `wrong`, and `caught_by` must fail."""

    name: str
    file: str
    right: str
    wrong: str
    caught_by: str


BUGS = (
    Bug(
        "str() fallback: one row recodes the others",
        "tables/frame.py",
        """        return _object_cells(series.astype(object).to_numpy())
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
        "schema/cells.py",
        "        return split_bytes(cells.to_pylist())",
        "        return pa.nulls(len(cells), pa.string())",
        "tables/test_stability.py::test_bytes_that_are_no_text_harm_no_other_cell",
    ),
    Bug(
        "days read in a zone that is not the cell's",
        "tables/frame.py",
        "value.replace(tzinfo=None).isoformat(sep",
        "(value.astimezone(None) if value.tzinfo else value).replace(tzinfo=None).isoformat(sep",
        "curator/test_neighbours.py::test_mixtures_that_people_have",
    ),
    Bug(
        "ids made per batch: a person is several persons",
        "curator/count.py",
        "by_type(batch.column(person.column), as_id).cast(pa.large_string())",
        "pc.cast(batch.column(person.column), pa.large_string())",
        "curator/test_neighbours.py::test_a_person_is_one_person_over_files_of_different_types",
    ),
    Bug(
        "pooled blanks: nobody is a person",
        "schema/cells.py",
        "pc.if_else(blank, pa.scalar(None, pa.string()),",
        'pc.if_else(blank, pa.scalar("", pa.string()),',
        "curator/test_neighbours.py::test_blank_cells_of_a_file_are_nobodys",
    ),
    Bug(
        "the limit of a person counts one row too many",
        "curator/count.py",
        "rank < max_rows",
        "rank <= max_rows",
        "curator/test_neighbours.py::test_random_neighbours_of_random_frames",
    ),
    Bug(
        "wrong sensitivity factor under replacement",
        "privacy/unit.py",
        'return self.max_rows if self.relation == "add-remove" else 2 * self.max_rows\n',
        "return self.max_rows\n",
        "curator/test_neighbours.py::test_random_neighbours_of_random_frames",
    ),
    Bug(
        "weights above 1 stretch the scores of a choice",
        "selection/scores.py",
        "np.round(importance / importance.max() * 256)",
        "np.round(importance * 256)",
        "curator/test_select.py::test_no_question_tells_neighbours_apart_by_more_than_it_declares",
    ),
    Bug(
        "exact number of rows",
        "curator/terms.py",
        "return self.n_rows_public or (self.unit.n_rows_is_public and self.person is None)",
        "return self.n_rows_public or self.unit.n_rows_is_public",
        "curator/test_neighbours.py::test_rows_that_are_left_out_leave_no_trace_in_the_number_of_rows",
    ),
    Bug(
        "Fourier's factor 2 under replacement and zCDP",
        "methods/fourier.py",
        '(2 if session.unit.relation == "replace" else 1)',
        "1",
        "methods/test_tightness.py",
    ),
    Bug(
        "unsplit budget: every table gets all of it",
        "curator/request.py",
        "mechanism_for(budget.share(share), unit)",
        "mechanism_for(budget.composable(), unit)",
        "curator/test_sanitize.py",
    ),
    Bug(
        "float noise, rounded",
        "privacy/noise.py",
        "        return np.asarray(_measurement(mechanism)(counts), dtype=np.int64)",
        """        noise = np.random.default_rng().laplace(0, mechanism.scale, counts.shape)
        return counts + np.rint(noise).astype(np.int64)""",
        "privacy/test_noise.py",
    ),
    Bug(
        "noise on observed cells only",
        "privacy/noise.py",
        "return self._noisy(np.ascontiguousarray(counts).reshape(-1), mechanism).reshape(counts.shape)",
        "return np.where(counts > 0, self._noisy(counts.reshape(-1), mechanism).reshape(counts.shape), counts)",
        "privacy/test_noise.py",
    ),
    Bug(
        "one noise for all tables of a set",
        "curator/session.py",
        "NoisyTable(attrs, self._draws.noise.add(counts, mechanism), mechanism, number)",
        "NoisyTable(attrs, counts + self._draws.noise.add(0 * counted[0], mechanism).flat[0], mechanism, number)",
        "curator/test_sanitize.py::test_noise_is_drawn_anew_for_every_cell_of_every_table",
    ),
    Bug(
        "reopened source",
        "curator/session.py",
        "charge=charge, kind=incoming.kind)",
        "charge=charge, kind=receive(data, schema, terms.person).kind)",
        "curator/test_after_the_charge.py::test_no_step_after_the_charge_reads_the_data",
    ),
    Bug(
        "noise before the charge",
        "curator/session.py",
        """        charge = terms.charge({**what, "schema": schema.fingerprint()})
""",
        """        charge = None
""",
        "curator/test_sanitize.py::test_budget_is_charged_before_noise_is_drawn",
    ),
    Bug(
        "dropped truncation check: a cut ledger is taken for a torn line",
        "privacy/witness.py",
        "    if seen is None or seen.has_seen(data):",
        "    if True:",
        "privacy/test_ledger_witness.py",
    ),
)
