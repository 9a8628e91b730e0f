"""Work that must end at once, judged in seconds of a processor, however slow the machine is just now."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

USUAL = 0.03  # seconds that the yardstick takes on a processor at rest


def slowness() -> float:
    """How many times slower than usual this processor is now, by a fixed piece of plain Python; at least 1."""
    start = time.process_time()
    for _ in range(5):
        sum(len(word) for word in [str(number) for number in range(40_000)])
    return max(1.0, (time.process_time() - start) / USUAL)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail if the work inside takes more seconds of a processor at rest."""
    start = time.process_time()
    yield
    spent = time.process_time() - start
    if spent > seconds:
        allowed = seconds * slowness()
        assert spent < allowed, f"took {spent:.1f} s of processor time, at most {allowed:.1f} s"
