"""The readings of Algorithm 1 that the reproduction sweeps; the first is the literal one, which the headline is about."""

from collections.abc import Sequence

from dpcipher.engines.paper import READINGS, Paper
from dpcipher.errors import ParameterError, did_you_mean

LITERAL = "literal"
# Guard, target and clipping by their published names; one more target; and the ridge, of which the paper says "small".
SWEPT: dict[str, Paper] = {
    **READINGS,
    "literal, largest target": Paper(target="largest"),
    "literal, λ = 0.0001": Paper(lam=1e-4),
    "literal, λ = 0.001": Paper(lam=1e-3),
    "literal, λ = 0.1": Paper(lam=1e-1),
}
# The same but for λ, from small to large.
RIDGES = ("literal, λ = 0.0001", "literal, λ = 0.001", LITERAL, "literal, λ = 0.1")


def chosen(reading: str | Sequence[str]) -> tuple[str, ...]:
    """The readings of a run: the literal one always, and others by name, or all.

    >>> chosen("clipped")
    ('literal', 'clipped')
    """
    names = (reading,) if isinstance(reading, str) else tuple(reading)
    if "all" in names:
        return tuple(SWEPT)
    for name in names:
        if name not in SWEPT:
            hint = did_you_mean(name, ("all", *SWEPT))
            raise ParameterError(f"reading ({name!r}) must be one of all, {'; '.join(SWEPT)}{hint}")
    return tuple(name for name in SWEPT if name == LITERAL or name in names)
