"""Differentially private synthetic tables from low-order marginals.

The flow, and the names that stand for it:

    Schema ─▶ plan ─▶ measure ═▶ Release ─▶ solve ─▶ Joint ─▶ rows

Each name is loaded when it is first used: importing the package loads none of the libraries behind it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcipher.curator.measure import measure
    from dpcipher.drawing.plot import plot
    from dpcipher.engines.paper import Paper
    from dpcipher.engines.rows import Rows
    from dpcipher.engines.solve import solve
    from dpcipher.engines.table import FullTable
    from dpcipher.evaluation.audit import audit
    from dpcipher.evaluation.compare import compare
    from dpcipher.evaluation.scores import evaluate
    from dpcipher.inference.combine import combine
    from dpcipher.inference.estimate import estimate
    from dpcipher.inference.models import fit_models
    from dpcipher.inference.sss import sss
    from dpcipher.joint.joint import Joint
    from dpcipher.methods import (
        MWEM,
        Cipher,
        Fourier,
        FullHistogram,
        Independent,
        JunctionTree,
        Modips,
        MultinomialDirichlet,
        PrivBayes,
        Uniform,
    )
    from dpcipher.pages.report import report
    from dpcipher.planning.plan import plan
    from dpcipher.posteriors.posterior import posterior
    from dpcipher.privacy.ledger import Ledger
    from dpcipher.release.release import Release
    from dpcipher.release.trust import trust
    from dpcipher.request.request import Auto
    from dpcipher.schema.grouped import Grouped
    from dpcipher.schema.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "MWEM",
    "Auto",
    "Cipher",
    "Fourier",
    "FullHistogram",
    "FullTable",
    "Grouped",
    "Independent",
    "Joint",
    "JunctionTree",
    "Ledger",
    "Modips",
    "MultinomialDirichlet",
    "Paper",
    "PrivBayes",
    "Release",
    "Rows",
    "Schema",
    "Uniform",
    "audit",
    "combine",
    "compare",
    "estimate",
    "evaluate",
    "fit_models",
    "measure",
    "plan",
    "plot",
    "posterior",
    "report",
    "solve",
    "sss",
    "trust",
]

_HOMES = {
    "Auto": "request.request",
    "FullTable": "engines.table",
    "Grouped": "schema.grouped",
    "Joint": "joint.joint",
    "Ledger": "privacy.ledger",
    "Paper": "engines.paper",
    "Release": "release.release",
    "Rows": "engines.rows",
    "Schema": "schema.schema",
    "audit": "evaluation.audit",
    "combine": "inference.combine",
    "compare": "evaluation.compare",
    "estimate": "inference.estimate",
    "evaluate": "evaluation.scores",
    "fit_models": "inference.models",
    "measure": "curator.measure",
    "plan": "planning.plan",
    "plot": "drawing.plot",
    "posterior": "posteriors.posterior",
    "report": "pages.report",
    "solve": "engines.solve",
    "sss": "inference.sss",
    "trust": "release.trust",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the room it lives in; methods live together."""
    if name not in __all__:
        raise AttributeError(f"module 'dpcipher' has no attribute {name!r}")
    value = getattr(import_module(f"dpcipher.{_HOMES.get(name, 'methods')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
