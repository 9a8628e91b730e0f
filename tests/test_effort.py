import time

import pytest

from effort import at_most


def test_work_that_takes_too_long_is_caught():
    """On any machine: the work here is measured by the same clock."""

    def work(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    with at_most(seconds=0.5):
        work(0.01)
    with pytest.raises(AssertionError, match="of processor time, at most"), at_most(seconds=0.001):
        work(2.0)
