"""Rules forgotten on the way: in an engine, in the draw of rows, or in the reading of private rows."""

from bug import Bug

RULE_BUGS: tuple[Bug, ...] = (
    Bug(
        "the table engine forgets structural zeros",
        "devised here",
        "engines/table.py",
        "            table *= ~broadcast_over(mask, own, axes)",
        "            continue",
        "joint/test_enforce.py::test_no_row_of_an_engine_breaks_a_rule[table]",
    ),
    Bug(
        "the rows engine forgets structural zeros",
        "devised here",
        "engines/rows.py",
        "        if order[-1] not in axes:",
        "        if True:",
        "joint/test_enforce.py::test_no_row_of_an_engine_breaks_a_rule[rows]",
    ),
    Bug(
        "rows are handed out unchecked",
        "devised here",
        "joint/stream.py",
        "        return enforcer.rows(codes, self.tally() if tally is None else tally)",
        "        return codes, decode(codes)",
        "joint/test_enforce.py::test_no_row_of_a_large_network_breaks_a_rule",
    ),
    Bug(
        "the first rule is never watched",
        "devised here",
        "schema/rules/compiled.py",
        "        for rule in self.watched:",
        "        for rule in self.watched[1:]:",
        "joint/test_enforce.py::test_columns_are_compared_inside_bins",
    ),
    Bug(
        "private rows that break a rule are taken as they are",
        "devised here",
        "schema/rules/compiled.py",
        "            if rule.broken(view).any():",
        "            if False:",
        "schema/test_rules.py::test_private_rows_that_break_a_rule_are_refused_without_a_value",
    ),
)
