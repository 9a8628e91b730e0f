"""How Algorithm 1 of the paper is read where it is silent: what happens to bad denominators, which attribute is the target, how strong the ridge is."""

from dataclasses import dataclass, replace
from math import isfinite

from dpcipher.errors import ParameterError, did_you_mean

GUARDS = ("none", "rows", "steps")
TARGETS = ("random", "largest", "last", "average")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One way to read the paper's algorithm; without arguments the literal one.

    `guard`: `"none"` divides by whatever comes, but zero, as printed; `"rows"` leaves out equations whose denominator is below half a count, or
    a tenth of the absolute values it sums; `"steps"` clips and normalises every table, measured or built, before it is used. `target` is the
    attribute x₁ whose conditional is solved for: `"random"` for every set of attributes as printed, `"largest"` (most levels), `"last"`, or the
    `"average"` over all. `lam` is the ridge. `clip` sets negative counts of the noisy tables to zero first.

    >>> Reading.parse("averaged")
    Reading(guard='steps', target='average', lam=0.01, clip=False)
    """

    guard: str = "none"
    target: str = "random"
    lam: float = 0.01
    clip: bool = False

    def __post_init__(self) -> None:
        _check_word("guard", self.guard, GUARDS)
        _check_word("target", self.target, TARGETS)
        if isinstance(self.lam, bool) or not (isfinite(self.lam) and self.lam > 0):
            raise ParameterError(f"lam ({self.lam}) must be a finite number above 0; try lam=0.01")
        if not isinstance(self.clip, bool):
            raise ParameterError(f"clip ({self.clip!r}) must be True or False")

    @classmethod
    def parse(cls, reading: "str | Reading", lam: float | None = None) -> "Reading":
        """A reading by its name, or as it is; a `lam` that is given stands in the place of its own."""
        if not isinstance(reading, str | Reading):
            raise ParameterError(
                f"reading ({reading!r:.60}) must be one of {', '.join(map(repr, READINGS))}, or a dc.Reading"
            )
        if isinstance(reading, str):
            _check_word("reading", reading, tuple(READINGS))
            reading = READINGS[reading]
        return reading if lam is None else replace(reading, lam=lam)

    @classmethod
    def of_engine(cls, engine: str, reading: "str | Reading", lam: float | None = None) -> "Reading":
        """The same for an engine; one that is not the paper's has nothing to read, and refuses what it would ignore."""
        read = cls.parse(reading, lam)
        if engine != "paper" and (lam is not None or read != cls()):
            name = "lam" if lam is not None else "reading"
            raise ParameterError(
                f"{name} must be left out with engine {engine!r}, which would ignore it; try engine='paper'"
            )
        return read

    def __str__(self) -> str:
        clipped = ", noisy tables clipped" if self.clip else ""
        return f"guard {self.guard}, {self.target} target, λ = {self.lam:g}{clipped}"


def _check_word(name: str, word: object, known: tuple[str, ...]) -> None:
    if word not in known:
        hint = did_you_mean(str(word), known)
        raise ParameterError(f"{name} ({word!r}) must be one of {', '.join(known)}{hint}")


READINGS = {
    "literal": Reading(),
    "clipped inputs": Reading(clip=True),
    "guarded": Reading(guard="rows"),
    "guarded, clipped inputs": Reading(guard="rows", clip=True),
    "clipped": Reading(guard="steps"),
    "literal, average": Reading(target="average"),
    "averaged": Reading(guard="steps", target="average"),
}
