"""The schema that a command is given: a schema file, or a release, which holds its own with all bins and levels that were found."""

from pathlib import Path

import dpcipher as dc

RELEASES = ".parquet"


def load_schema(path: Path) -> "dc.Schema":
    """The schema in a file: that of a release where it ends in .parquet."""
    return dc.Release.load(path).schema if path.suffix == RELEASES else dc.Schema.load(path)
