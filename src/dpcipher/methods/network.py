"""From a network of conditional tables to a joint: what PrivBayes and the junction tree return, and independent columns."""

import math
from collections.abc import Sequence

from dpcipher.curator.session import Session
from dpcipher.engines.solve import DENSE_CELLS, independent, uniform
from dpcipher.errors import SizeError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.joint.report import SolveReport
from dpcipher.marginals.arrays import Floats
from dpcipher.methods.outcome import finished, normalised, possible
from dpcipher.schema.schema import Schema

__all__ = ["Network", "Node", "conditional", "network_joint", "product_joint", "require_no_zeros", "uniform"]


def require_no_zeros(schema: Schema, method: str) -> None:
    """Refuse structural zeros where the network of a method cannot be written out, judged on the schema."""
    cells = math.prod(schema.shape)
    if schema.zeros and cells > DENSE_CELLS:
        raise SizeError(
            f"{method} keeps structural zeros only where the full table has at most {DENSE_CELLS:,} cells, not {cells:,}; "
            "use Cipher, or take the zeros out of the schema"
        )


def network_joint(
    session: Session, network: Network, *, n_rows: float, engine: str, warnings: tuple[str, ...] = ()
) -> Joint:
    """The joint of a network: written out where it is small, as it stands where it is not (and the schema has no zeros)."""
    health = SolveReport(engine, warnings=warnings)
    if math.prod(network.shape) > DENSE_CELLS:
        assert not session.schema.zeros  # check_schema has refused them
        return finished(session, network, n_rows=n_rows, health=health)
    whole = normalised(network.project(range(len(network.shape))), possible(session.schema))
    return finished(session, DenseTable(whole), n_rows=n_rows, health=health)


def product_joint(
    session: Session, one_way: Sequence[Floats], *, n_rows: float, engine: str, warnings: tuple[str, ...] = ()
) -> Joint:
    """Independent columns with these probabilities, but for the structural zeros."""
    core = independent(one_way, session.schema.zero_masks)
    return finished(session, core, n_rows=n_rows, health=SolveReport(engine, warnings=warnings))
