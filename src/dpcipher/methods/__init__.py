"""Synthesizers: whole methods behind one interface. They drive the session; they never read rows around it."""

from collections.abc import Mapping

from dpcipher.methods.base import Synthesizer
from dpcipher.methods.cipher import Cipher
from dpcipher.methods.fourier import Fourier
from dpcipher.methods.full_histogram import FullHistogram
from dpcipher.methods.independent import Independent
from dpcipher.methods.junction_tree import JunctionTree
from dpcipher.methods.modips import Modips
from dpcipher.methods.multinomial_dirichlet import MultinomialDirichlet
from dpcipher.methods.mwem import MWEM
from dpcipher.methods.priv_bayes import PrivBayes
from dpcipher.methods.uniform import Uniform

# One line a method: the name that `compare` and the command line know it by.
METHODS: Mapping[str, type[Synthesizer]] = {
    "cipher": Cipher,
    "full-histogram": FullHistogram,
    "mwem": MWEM,
    "priv-bayes": PrivBayes,
    "fourier": Fourier,
    "multinomial-dirichlet": MultinomialDirichlet,
    "modips": Modips,
    "junction-tree": JunctionTree,
    "independent": Independent,
    "uniform": Uniform,
}

__all__ = [
    "METHODS",
    "MWEM",
    "Cipher",
    "Fourier",
    "FullHistogram",
    "Independent",
    "JunctionTree",
    "Modips",
    "MultinomialDirichlet",
    "PrivBayes",
    "Synthesizer",
    "Uniform",
]
