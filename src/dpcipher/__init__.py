"""Differentially private synthetic tables from low-order marginals.

The flow, and the names that stand for it:

    Schema ─▶ plan ─▶ measure ═▶ Release ─▶ solve ─▶ Joint ─▶ rows
"""

from dpcipher.evaluate.combine import combine
from dpcipher.evaluate.front import evaluate
from dpcipher.evaluate.models import fit_models
from dpcipher.evaluate.sss import sss
from dpcipher.experiments.compare import compare
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
from dpcipher.plan.plan import plan
from dpcipher.privacy.ledger import Ledger
from dpcipher.private import draft as _draft  # noqa: F401  gives Schema its `draft`
from dpcipher.private.measure import measure
from dpcipher.release.release import Release
from dpcipher.report.page import report
from dpcipher.schema.schema import Schema
from dpcipher.solve.front import solve

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
