"""The certificate of a release: what the sampler says that each answer cost. Its form is checked, since a file may say anything.

It holds `events`, each with its `type`, `what` was asked in words, the `share` of the budget it took and its `cost`, and by its type a few
facts more; the `measure` (epsilon or rho), the `total`, and `by` whom it is certified. What else was remarked, such as the `selection`,
stands beside them. Files of the first version have events without a type or, for given tables, `per_table`: the cost of each.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from dpcipher.errors import ReleaseError
from dpcipher.schema.plain import check_plain

_SHARE = re.compile(r"[0-9]+(/[0-9]+)?")
_LONGEST_SHARE = 10_000  # a sum of exact shares may have many digits; it is shown, never computed with
_MOST = 2**53
_EVENT = {"what", "share", "cost"}
_SELECTION = ("rounds", "candidates", "shortlist")


def check_certificate(certificate: Mapping[str, Any], *, finite: bool) -> None:
    """Refuse a certificate that is in neither form; costs must be finite where the noise is private."""
    if not certificate:
        return
    _check_plain(certificate)
    if certificate.get("measure") not in ("epsilon", "rho"):
        raise _wrong("measure", certificate.get("measure"), "must be epsilon or rho")
    _check_cost("total", certificate.get("total"), finite)
    if not isinstance(certificate.get("by"), str):
        raise _wrong("by", certificate.get("by"), "must say who certifies")
    for cost in _listed(certificate, "per_table"):
        _check_cost("per_table", cost, finite)
    for event in _listed(certificate, "events"):
        _check_event(event, finite)
    _check_share(certificate.get("share", "0"))
    _check_selection(certificate.get("selection"))


def _check_plain(certificate: Mapping[str, Any]) -> None:
    if any(not isinstance(key, str) for key in certificate):
        raise ReleaseError("certificate must hold its facts by name")
    try:
        check_plain(dict(certificate))
    except ValueError as wrong:
        raise ReleaseError(f"certificate: {wrong}") from None


def _listed(certificate: Mapping[str, Any], name: str) -> list[Any] | tuple[Any, ...]:
    values = certificate.get(name, [])
    if not isinstance(values, list | tuple):
        raise _wrong(name, values, "must be a list")
    return values


def _check_event(event: object, finite: bool) -> None:
    if not isinstance(event, Mapping) or not set(event) >= _EVENT:
        raise _wrong("events", event, "must each hold what, share and cost")
    for name in {"what", "type", "l1", "l2_squared"} & set(event):
        if not isinstance(event[name], str):
            raise _wrong(name, event[name], "must be a text")
    for name in {"tables", "sets", "candidates", "rounds", "sensitivity", "n_rows"} & set(event):
        _check_number(name, event[name])
    _check_share(event["share"])
    _check_cost("cost", event["cost"], finite)


def _check_cost(name: str, value: object, finite: bool) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= (_MOST if finite else math.inf):  # type: ignore[operator]
        raise _wrong(name, value, "must be a number, 0 or above")


def _check_share(value: object) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_SHARE or not _SHARE.fullmatch(value):
        raise _wrong("share", value, "must be a fraction such as '1/20'")


def _check_selection(note: object) -> None:
    """How tables were chosen, where they were: numbers of rounds, candidates and tables looked at, and the share that it took."""
    if note is None:
        return
    if not isinstance(note, Mapping):
        raise _wrong("selection", note, "must be a mapping")
    for name in _SELECTION:
        _check_number(f"selection {name}", note.get(name))
    _check_share(note.get("share"))


def _check_number(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST:
        raise _wrong(name, number, "must be a whole number, 0 or above")


def _wrong(name: str, value: object, rule: str) -> ReleaseError:
    return ReleaseError(f"certificate: {name} ({value!r:.60}) {rule}")
