"""The schema that a command is given: a schema file, or a release, which holds its own with all bins and levels that were found."""

from pathlib import Path

from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

RELEASES = ".parquet"


def load_schema(path: Path) -> Schema:
    """The schema in a file: that of a release where it ends in .parquet."""
    return Release.load(path).schema if path.suffix == RELEASES else Schema.load(path)
