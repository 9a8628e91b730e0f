"""How well a solution reproduces what it was asked to: a value every joint carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpcipher.errors import warn


@dataclass(frozen=True)
class SolveReport:
    """The state a solve ended in.

    `residuals` maps the attribute names of each table to the root mean square misfit of its cells, in units of its noise (sigmas);
    a table known exactly is measured in counts instead. `negative_mass` is the probability that clipping removed;
    `sweeps` the raking sweeps used; `seconds` the time of the solve; `notes` what a person should know; `warnings` what nobody may
    overlook: that the answer says less than was asked for.
    """

    engine: str
    why: str = ""
    residuals: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    negative_mass: float = 0.0
    sweeps: int = 0
    seconds: float = 0.0
    converged: bool = True
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def warn(self) -> None:
        """Give every warning to whoever called the library."""
        for text in self.warnings:
            warn(text)

    @property
    def worst(self) -> tuple[tuple[str, ...], float] | None:
        """The table with the largest residual."""
        return max(self.residuals.items(), key=lambda item: item[1]) if self.residuals else None

    def __str__(self) -> str:
        lines = [f"engine {self.engine}: {self.why}" if self.why else f"engine {self.engine}"]
        if self.worst is not None:
            lines.append(f"worst residual {self.worst[1]:.3g} sigmas, table {' × '.join(self.worst[0])}")
        if not self.converged:
            lines.append("did not converge")
        lines.append(
            f"negative mass removed {self.negative_mass:.2g}; raking sweeps {self.sweeps}; {self.seconds:.2f} s"
        )
        return "\n".join([*lines, *self.notes, *self.warnings])
