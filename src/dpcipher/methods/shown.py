"""A fitted method as people first see it."""

from typing import TYPE_CHECKING

from dpcipher.drawing.card import Card

if TYPE_CHECKING:
    from dpcipher.methods.base import Fitted


def card(fitted: "Fitted") -> Card:
    """How many joints, of what, and what to do with them."""
    first = fitted.joints[0]
    return Card(
        "Fitted method",
        {
            "Sets": f"{len(fitted.joints)}" if len(fitted.joints) > 1 else "",
            "Columns": f"{len(first.schema.attrs):,}",
            "Rows": f"{first.n_rows:,}",
            "Engine": first.health.engine,
            "Status": fitted.statement.status,
        },
        notes=["fitted.sample() draws rows; fitted.joint gives any table."],
    )
