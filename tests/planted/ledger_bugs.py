"""Violations of the ledger and of files: charges that are lost, late or taken back."""

from bug import Bug

LEDGER_BUGS = (
    Bug(
        "noise before the charge",
        "devised here",
        "curator/measure.py",
        "    charge = account.charge(privacy, cost, asked)\n",
        "    charge = None\n",
        "curator/test_sanitize.py::test_budget_is_charged_before_noise_is_drawn",
    ),
    Bug(
        "dropped truncation check: a cut ledger is taken for a torn line",
        "own history",
        "privacy/witness.py",
        "    if seen is None or seen.has_seen(data):",
        "    if True:",
        "privacy/test_ledger_witness.py",
    ),
    Bug(
        "a charge counts only once its release is finished",
        "devised here: a refund for what seems to have failed",
        "privacy/records.py",
        """            total = total.plus(entries[id].cost)
        elif record["type"] == "released" and entries[id].checksum is None:
""",
        """        elif record["type"] == "released" and entries[id].checksum is None:
            total = total.plus(entries[id].cost)
""",
        "privacy/test_ledger.py::test_ten_tenths_fit_and_an_eleventh_does_not",
    ),
    Bug(
        "a charge taken back when its sync fails",
        "PostgreSQL's fsync of 2018",
        "privacy/durable.py",
        'raise _failure(path, "synced", error, "what was added to it counts as spent") from error',
        """os.ftruncate(fd, keep)
        raise _failure(path, "synced", error, "nothing was added") from error""",
        "privacy/test_ledger_damage.py::test_failing_system_calls_grant_nothing_and_forget_nothing",
    ),
    Bug(
        "the witness before the ledger",
        "devised here",
        "privacy/ledger.py",
        """        durable.append(fd, self.path, data, keep=book.chain.keep)
        witness.write(self.path, Witness(book.chain.keep + len(data), head))
""",
        """        witness.write(self.path, Witness(book.chain.keep + len(data), head))
        durable.append(fd, self.path, data, keep=book.chain.keep)
""",
        "faults/test_ledger_crash.py::test_kill_between_each_pair_of_system_calls",
    ),
    Bug(
        "two processes read the same balance",
        "Bishop and Dilger 1996: a race between check and use",
        "privacy/durable.py",
        "fcntl.LOCK_EX if write else fcntl.LOCK_SH",
        "fcntl.LOCK_SH",
        "faults/test_kills.py::test_sixteen_processes_get_exactly_the_budget",
    ),
    Bug(
        "a release written in place",
        "devised here",
        "release/file.py",
        'with replacing(path, force=force) as temporary, temporary.open("wb") as sink:',
        'with path.open("wb") as sink:',
        "faults/test_injected.py::test_no_failing_write_breaks_a_promise",
    ),
)
