"""From a release to the joint distribution. `solve` is the front door; each engine is one file."""

from dpcipher.solve.front import solve

__all__ = ["solve"]
