"""What `dc.plot` draws of a small release, for the page about reports."""

import dpcipher as dc

SCHEMA = {
    "title": "A small town",
    "columns": [
        {"name": "age", "kind": "ordinal", "levels": ["0-17", "18-39", "40-64", "65+"], "unit": "years"},
        {
            "name": "work",
            "kind": "categorical",
            "levels": ["1", "2", "3"],
            "labels": {"1": "none", "2": "part time", "3": "full time"},
        },
        {"name": "sex", "kind": "categorical", "levels": ["F", "M"]},
    ],
    "zeros": [{"impossible": {"age": ["0-17"], "work": ["3"]}}],
}
TABLES = {
    ("age", "work"): [[812, 31, 0], [205, 290, 640], [188, 240, 702], [590, 52, 41]],
    ("age", "sex"): [[405, 431], [568, 573], [559, 566], [377, 309]],
}


def released() -> dc.Release:
    """The release of the page, whose numbers are written there."""
    return dc.Release.from_tables(TABLES, dc.Schema.from_dict(SCHEMA), scale=9.0)


def report_column() -> str:
    """One column: bars with margins."""
    return dc.plot(released(), "work").svg + "\n"


def report_pair() -> str:
    """Two columns: a heat map, hatched where no row can be."""
    return dc.plot(released(), ("age", "work")).svg + "\n"
