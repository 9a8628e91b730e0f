"""Levels found privately, in a session: every column with `levels: discover` is closed with the texts that are frequent enough to be named.

The selection of texts, its threshold and the proof that it is delta-approximate rho-zCDP are in `privacy/partitions.py`. Each column takes an
equal part of the delta that the charge has for failures, and an equal share of its rho; both add up (`privacy/composition.py`). What follows from
the names, the closed schema and the code of every row's text in it, is post-processing and a look-up row by row.
"""

from collections.abc import Callable
from fractions import Fraction

from dpcipher.curator.session import Session
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.schema import Schema
from dpcipher.schema.text_column import MAX_FOUND

# What is not named is lost in all tables, and a tenth less for the tables raises their noise by a twentieth: on generated tables with few frequent texts and
# many rare ones a tenth gave errors of pairs 5 to 11 % below those of a twentieth, and of the other columns 0 to 5 % above.
EACH = Fraction(1, 10)  # of the charge, for one column
MOST = Fraction(1, 5)  # for all of them


def discovery_share(schema: Schema) -> Fraction:
    """What finding levels takes of the charge: a tenth for each column, a fifth at most."""
    return min(MOST, EACH * sum(column.discovers for column in schema.columns))


def selection_for(schema: Schema, privacy: Privacy) -> PartitionSelection | None:
    """Noise and threshold for each column of a schema whose levels are to be found under a budget; None where there is none."""
    number = sum(column.discovers for column in schema.columns)
    if not number:
        return None
    whole = privacy.charge(may_fail=True)
    mechanism = mechanism_for(whole.share(discovery_share(schema) / number), privacy.unit)
    return PartitionSelection.calibrated(mechanism, whole.failure / number, privacy.unit)


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
