"""From a network of conditional tables to a joint: what PrivBayes and the junction tree return."""

import math

from dpcipher.errors import SizeError
from dpcipher.joint.health import Health
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node, conditional
from dpcipher.methods.outcome import dense_joint, rows_to_draw
from dpcipher.private.door import Door

__all__ = ["Network", "Node", "conditional", "network_joint"]

# Up to so many cells a network is written out as one table, which also samples more evenly and knows structural zeros.
DENSE_CELLS = 2**16


def network_joint(door: Door, network: Network, *, n_rows: float, engine: str) -> Joint:
    """The joint of a network: written out where it is small, as it stands where it is not."""
    if math.prod(network.shape) <= DENSE_CELLS:
        return dense_joint(door, network.project(range(len(network.shape))), n_rows=n_rows, engine=engine)
    if door.schema.zeros:
        raise SizeError(
            f"{engine} needs the full table where the schema has structural zeros; use Cipher instead"
        )
    return Joint(door.schema, network, rows_to_draw(door, n_rows), Health(engine), kind=door.kind)
