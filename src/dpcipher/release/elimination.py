"""Gaussian elimination of symmetric equations between blocks, and any block of the inverse."""

import numpy as np

from dpcipher.tables.domain import Floats

_SINGULAR = 1e-11  # directions of a pivot below this part of its largest say nothing


class Elimination:
    """The solution of `normal @ values = right`, block by block; negative keys are eliminated last."""

    def __init__(self, normal: dict[int, dict[int, Floats]], right: dict[int, Floats]) -> None:
        order = sorted(normal, key=lambda key: (key < 0, len(normal[key]), key))  # few neighbours first
        self.rank: dict[int, int] = {key: rank for rank, key in enumerate(order)}
        self._steps: dict[int, tuple[Floats, dict[int, Floats]]] = {}
        self._inverse: dict[tuple[int, int], Floats | None] = {}
        self.values: dict[int, Floats] = {}
        self.unidentified = 0  # directions of which the equations say nothing
        for key in order:
            row = normal.pop(key)
            pivot, rank = _inverse(row.pop(key))
            self.unidentified += len(pivot) - rank
            links = {other: pivot @ block for other, block in row.items()}
            self._steps[key] = pivot, links
            for other, block in row.items():
                del normal[other][key]
                right[other] = right[other] - block.T @ (pivot @ right[key])
                for third, link in links.items():
                    normal[other][third] = normal[other].get(third, 0.0) - block.T @ link
        for key in reversed(order):
            pivot, links = self._steps[key]
            moved = sum((link @ self.values[other] for other, link in links.items()), np.zeros(len(pivot)))
            self.values[key] = pivot @ right[key] - moved

    def inverse(self, one: int, other: int) -> Floats | None:
        """A block of the inverse, the covariance of two unknowns; None where nothing ties them."""
        wanted = [self._ordered(one, other)]
        while wanted:
            first, second = pair = wanted[-1]
            if pair in self._inverse:
                wanted.pop()
                continue
            pivot, links = self._steps[first]
            needed = {third: self._ordered(third, second) for third in links}
            missing = [known for known in needed.values() if known not in self._inverse]
            if missing:
                wanted += missing
                continue
            block = pivot if first == second else None
            for third, link in links.items():
                known = self._inverse[needed[third]]
                if known is not None:
                    step = link @ (known if needed[third] == (third, second) else known.T)
                    block = -step if block is None else block - step
            self._inverse[pair] = block
            wanted.pop()
        block = self._inverse[self._ordered(one, other)]
        return block if block is None or self._ordered(one, other) == (one, other) else block.T

    def _ordered(self, one: int, other: int) -> tuple[int, int]:
        return (one, other) if self.rank[one] <= self.rank[other] else (other, one)


def _inverse(pivot: Floats) -> tuple[Floats, int]:
    """The inverse of a symmetric block, on the directions that have one, and how many have."""
    values, vectors = np.linalg.eigh((pivot + pivot.T) / 2)
    real = np.abs(values) > _SINGULAR * np.abs(values).max(initial=1e-300)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, int(real.sum())
