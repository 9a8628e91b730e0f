"""Levels found privately, in a session: every column with `levels: discover` is closed with the texts that are frequent enough to be named.

The selection of texts, its threshold and the proof that it is delta-approximate rho-zCDP are in `privacy/partitions.py`. Each column takes an
equal part of the delta that the charge has for failures, and an equal share of its rho; both add up (`privacy/composition.py`). What follows from
the names, the closed schema and the code of every row's text in it, is post-processing and a look-up row by row.
"""

from collections.abc import Callable

from dpcipher.curator.session import Session
from dpcipher.request.shares import discovery_share
from dpcipher.schema.text_column import MAX_FOUND


def find_levels(session: Session, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Find the levels of all columns that leave them open, with `discovery_share` of the charge, and let the session go on with them."""
    schema = session.schema
    if not schema.discovers:
        return
    say("finding levels")
    columns = [column for column in schema.columns if column.discovers]
    share, delta = discovery_share(schema) / len(columns), session.failure / len(columns)
    named = {}
    for column in columns:
        most = MAX_FOUND if column.max_levels is None else column.max_levels
        axis = schema.attrs.index(column.name)
        named[column.name] = session.name_texts(axis, share, delta, most)
    session.remark("levels", {name: len(texts) for name, texts in named.items()})
    session.go_on(schema.closed(levels=named), {})
