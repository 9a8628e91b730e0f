"""One thread for the products of a sampler, which are many and small.

Several threads gain little there and lose a lot where other programs run too, because each waits for the others after every product. Products that are
summed by one thread are also summed in the same order on every number of cores, so that a seed gives the same draws.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of linear algebra that are loaded; looking for them takes a while."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra inside takes one thread, and as many as before afterwards."""
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limits
