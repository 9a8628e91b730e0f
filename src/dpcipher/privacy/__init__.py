"""Who is protected, what may be spent, what noise that buys, who draws it, and the book that is kept."""

from dpcipher.privacy.budget import Budget, positive_fraction
from dpcipher.privacy.composition import Amount, compose
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.noise import NoiseSource, OpenDPNoise, SeededNoise, mechanism_for
from dpcipher.privacy.records import Charge, Entry, LedgerState
from dpcipher.privacy.unit import Unit

__all__ = [
    "Amount",
    "Budget",
    "Charge",
    "Entry",
    "Ledger",
    "LedgerState",
    "NoiseSource",
    "OpenDPNoise",
    "SeededNoise",
    "Unit",
    "compose",
    "mechanism_for",
    "positive_fraction",
]
