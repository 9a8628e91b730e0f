"""Differentially private synthetic tables from low-order marginals.

The flow, and the names that stand for it:

    Schema ─▶ plan ─▶ measure ═▶ Release ─▶ solve ─▶ Joint ─▶ rows
"""

from dpcipher.comparison.compare import compare
from dpcipher.curator import draft as _draft  # noqa: F401  gives Schema its `draft`
from dpcipher.curator.measure import measure
from dpcipher.engines.solve import solve
from dpcipher.inference.combine import combine
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
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema
from dpcipher.scoring.evaluate import evaluate

__version__ = "0.1.0"

__all__ = [
    "MWEM",
    "Cipher",
    "Fourier",
    "FullHistogram",
    "Independent",
    "Joint",
    "JunctionTree",
    "Ledger",
    "Modips",
    "MultinomialDirichlet",
    "PrivBayes",
    "Release",
    "Schema",
    "Uniform",
    "combine",
    "compare",
    "evaluate",
    "fit_models",
    "measure",
    "plan",
    "report",
    "solve",
    "sss",
]
