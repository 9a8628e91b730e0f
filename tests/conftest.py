"""What tests share: optional parts are skipped visibly, and required where DPCIPHER_REQUIRE names them."""

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is no failure: time is measured in benchmarks/.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

REQUIRED = set(filter(None, os.environ.get("DPCIPHER_REQUIRE", "").split(",")))


def missing(part: str, reason: str) -> None:
    """Skip a test that needs an absent part, or fail it where that part is required."""
    if part in REQUIRED:
        pytest.fail(f"{part} is required here, but {reason}")
    pytest.skip(f"{part}: {reason}")


@pytest.fixture
def data_folder() -> Path:
    """The folder of real tables, where DPCIPHER_DATA names one."""
    folder = os.environ.get("DPCIPHER_DATA", "")
    if not folder or not Path(folder).is_dir():
        missing("data", "DPCIPHER_DATA names no folder of real tables")
    return Path(folder)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A Spark session of two local threads that runs a failed task up to three times."""
    if shutil.which("java") is None:
        missing("spark", "no Java on the path")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession
    except ImportError:
        missing("spark", "PySpark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config(
        "spark.driver.bindAddress", "127.0.0.1"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        running = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()
