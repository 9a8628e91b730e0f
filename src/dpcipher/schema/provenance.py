"""Where a schema came from, and who vouches that it holds nothing private."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from dpcipher.errors import SchemaError


@dataclass(frozen=True)
class SignOff:
    """A person's word that a draft may be used; `hash` ties it to one state of the schema."""

    name: str
    date: str
    hash: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SchemaError(
                f"sign_off name ({self.name!r}) must be the name of the person who checked the schema"
            )
        try:
            date.fromisoformat(str(self.date))
        except ValueError:
            raise SchemaError(f"sign_off date ({self.date!r}) must be a date such as 2024-01-31") from None

    @classmethod
    def from_spec(cls, spec: object) -> "SignOff":
        """The sign-off that a schema file holds."""
        if not isinstance(spec, Mapping) or set(spec) != {"name", "date", "hash"}:
            raise SchemaError("sign_off must hold name, date and hash; `dpcipher schema sign` writes it")
        return cls(name=spec["name"], date=str(spec["date"]), hash=str(spec["hash"]))


@dataclass(frozen=True)
class Provenance:
    """Declared by a person (the default), or drawn from data; `notes` tell the person what to check."""

    drawn_from_data: bool = False
    sign_off: SignOff | None = None
    notes: tuple[str, ...] = ()
