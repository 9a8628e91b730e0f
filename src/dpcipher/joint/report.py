"""How well a solution reproduces what it was asked to, and what its rules cost: a value every joint carries."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from dpcipher.errors import warn

DRAWS = "posterior"  # the engine of draws
_SHOWN = 3  # columns that moved most


@dataclass(frozen=True)
class RuleCost:
    """The share of rows that were replaced or changed, the share that only got other values inside their bins, and how far each column moved.

    `moved` is the total variation distance between the first draw and the rows handed out, by attribute.
    """

    n_rows: int
    redrawn: float
    values_redrawn: float
    moved: Mapping[str, float]

    @classmethod
    def from_dict(cls, values: object) -> "RuleCost":
        """What a file says of it; a ValueError where a value is not of its own type."""
        if isinstance(values, dict) and set(values) == {"n_rows", "redrawn", "values_redrawn", "moved"}:
            moved: Any = values["moved"]
            shares: list[Any] = [values["redrawn"], values["values_redrawn"]]
            shares += moved.values() if isinstance(moved, dict) else [None]
            if type(values["n_rows"]) is int and all(map(_is_share, shares)):
                return cls(**{**values, "moved": {str(attr): float(far) for attr, far in moved.items()}})
        raise ValueError("rules must hold shares of rows, and a distance for each attribute")

    def __str__(self) -> str:
        if not self.redrawn and not self.values_redrawn:
            return "rules: no drawn row broke one"
        moved = sorted(self.moved.items(), key=lambda item: -item[1])[:_SHOWN]
        most = ", ".join(f"{attr} {distance:.2g}" for attr, distance in moved if distance > 0)
        shares = f"rules: {self.redrawn:.2%} of rows were drawn again, {self.values_redrawn:.2%} got other values inside their bins"
        return f"{shares}; columns moved most (total variation): {most}" if most else shares


@dataclass(frozen=True)
class SolveReport:
    """The state a solve ended in.

    `residuals` maps the attribute names of each table to the root mean square misfit of its cells, in units of its noise (sigmas);
    a table known exactly is measured in counts instead. `negative_mass` is the probability that clipping removed;
    `sweeps` the raking sweeps used; `seconds` the time of the solve; `notes` what a person should know; `warnings` what nobody may
    overlook: that the answer says less than was asked for; `rules` what keeping the rules of the schema costs a draw of rows, where there are rules.
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
    rules: RuleCost | None = None

    @property
    def is_draw(self) -> bool:
        """Whether the joint is a draw of the private table given a release, for multiple imputation, and no fit."""
        return self.engine == DRAWS

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
        if not self.is_draw:  # whose notes say how long it took
            removed = f"negative mass removed {self.negative_mass:.2g}; " if self.negative_mass else ""
            lines.append(f"{removed}raking sweeps {self.sweeps}; {self.seconds:.2f} s")
        lines += [str(self.rules)] if self.rules is not None else []
        return "\n".join([*lines, *self.notes, *self.warnings])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the file."""
        residuals = [[list(attrs), value] for attrs, value in self.residuals.items()]
        plain = asdict(self) | {"residuals": residuals}
        return {key: value for key, value in plain.items() if key != "rules" or value is not None}

    @classmethod
    def from_dict(cls, values: object) -> "SolveReport":
        """What `to_dict` wrote; a ValueError where a value is not of its own type."""
        if isinstance(values, dict):
            values = {"warnings": [], "rules": None, **values}  # files of the first version have none
        if not isinstance(values, dict) or set(values) != {field.name for field in fields(cls)}:
            raise ValueError("health must hold what a solve reports, and nothing else")
        texts, numbers = ("engine", "why"), ("negative_mass", "sweeps", "seconds")
        if any(not isinstance(values[name], str) for name in texts) or not isinstance(
            values["converged"], bool
        ):
            raise ValueError("health must say its engine, why, and whether it converged")
        if any(not _is_number(values[name]) for name in numbers):
            raise ValueError("health must hold finite numbers")
        said = {name: _texts(values[name]) for name in ("notes", "warnings")}
        rules = None if values["rules"] is None else RuleCost.from_dict(values["rules"])
        return cls(**{**values, **said, "residuals": _residuals(values["residuals"]), "rules": rules})


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or any(not isinstance(text, str) for text in values):
        raise ValueError("notes and warnings must be texts")
    return tuple(values)


def _residuals(values: object) -> dict[tuple[str, ...], float]:
    residuals: dict[tuple[str, ...], float] = {}
    for pair in values if isinstance(values, list) else [values]:
        match pair:
            case [list(attrs), int() | float() as value] if not isinstance(value, bool):
                residuals[tuple(str(attr) for attr in attrs)] = float(value)
            case _:
                raise ValueError("residuals must be a number for each table")
    return residuals


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1
