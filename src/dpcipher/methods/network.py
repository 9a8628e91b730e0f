"""From a network of conditional tables to a joint: what PrivBayes and the junction tree return, and independent columns."""

import math
from collections.abc import Sequence

import numpy as np

from dpcipher.curator.session import Session
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.targets import Axes, Floats, Targets
from dpcipher.errors import SizeError
from dpcipher.joint.health import SolveReport
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.methods.outcome import dense_joint, rows_to_draw
from dpcipher.schema.schema import Schema

__all__ = ["Network", "Node", "conditional", "network_joint", "product_joint", "require_no_zeros", "uniform"]

# Up to so many cells a network is written out as one table, which also samples more evenly and knows structural zeros.
DENSE_CELLS = 2**16


def require_no_zeros(schema: Schema, method: str) -> None:
    """Refuse structural zeros where the network of a method cannot be written out, judged on the schema."""
    cells = math.prod(schema.shape)
    if schema.zeros and cells > DENSE_CELLS:
        raise SizeError(
            f"{method} keeps structural zeros only where the full table has at most {DENSE_CELLS:,} cells, not {cells:,}; "
            "use Cipher, or take the zeros out of the schema"
        )


def network_joint(session: Session, network: Network, *, n_rows: float, engine: str) -> Joint:
    """The joint of a network: written out where it is small, as it stands where it is not (and the schema has no zeros)."""
    if math.prod(network.shape) <= DENSE_CELLS:
        return dense_joint(session, network.project(range(len(network.shape))), n_rows=n_rows, engine=engine)
    assert not session.schema.zeros  # check_schema has refused them
    return Joint(
        session.schema, network, rows_to_draw(session, n_rows), SolveReport(engine), kind=session.kind
    )


def product_joint(session: Session, one_way: Sequence[Floats], *, n_rows: float, engine: str) -> Joint:
    """Independent columns with these probabilities, but for the structural zeros: a large table with zeros becomes a chain."""
    shape = session.schema.shape
    if session.schema.zeros and math.prod(shape) > DENSE_CELLS:
        tables: dict[Axes, Floats] = {(axis,): table for axis, table in enumerate(one_way)}
        chain, _ = solve_rows(
            Targets(shape, 1.0, tables, dict.fromkeys(tables, 0.0), session.schema.zero_masks)
        )
        return Joint(
            session.schema, chain, rows_to_draw(session, n_rows), SolveReport(engine), kind=session.kind
        )
    nodes = tuple(Node((axis,), (), table) for axis, table in enumerate(one_way))
    return network_joint(session, Network(shape, nodes), n_rows=n_rows, engine=engine)


def uniform(shape: Sequence[int]) -> list[Floats]:
    """One-way tables that say nothing."""
    return [np.full(size, 1.0 / size) for size in shape]
