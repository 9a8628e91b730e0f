"""Every error dpcipher raises, in one tree.

    DpcipherError
    ├── ParameterError (also ValueError)      a parameter is wrong; nothing was read, nothing was spent
    │   ├── BudgetError                       epsilon, delta, rho, weights, sets
    │   ├── WorkloadError                     which tables to measure
    │   └── ConditionError                    what `given` asks for
    ├── SchemaError (also ValueError)         the schema itself is wrong, or not signed off
    ├── DataError (also ValueError)           private rows do not fit the schema: curator only, before any charge
    ├── SizeError (also ValueError)           too many cells, judged on the schema alone
    ├── TableFileError (also ValueError)      a user's table cannot be read or written
    │   └── FileExists                        a file is there already, and nothing is overwritten unasked
    ├── ReleaseError (also ValueError)        noisy tables, or a release file, that cannot be used
    ├── LedgerError
    │   ├── LedgerExceeded                    the budget would be exceeded; nothing was spent
    │   └── LedgerDamaged                     the ledger's chain is broken; refuse to go on
    ├── SolveError                            the tables do not allow an answer; says what would help
    ├── JointError (also ValueError)          a saved joint that cannot be used
    ├── NotPrivate                            something stamped NOT PRIVATE was about to be released
    └── MissingExtra (also ImportError)       an optional part is not installed; names the command

    DpcipherWarning (also UserWarning)        an answer was given, but it says less than was asked for

A message says the name, the value, the rule and the fix. It never contains a private value or a private count: an error
text is a release.
"""

import math
import sys
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches

# Comparing takes time that grows with the square of the length; names that a file made up may be as long and as many as it likes.
_LONGEST_HINT, _MOST_HINTS = 64, 1_000


class DpcipherError(Exception):
    """The root of the tree."""


class ParameterError(DpcipherError, ValueError):
    """A parameter is wrong; nothing was read and nothing was spent."""


class BudgetError(ParameterError):
    """A privacy parameter is wrong."""


class WorkloadError(ParameterError):
    """The tables to measure are not well described."""


class ConditionError(ParameterError):
    """A condition on the rows to sample cannot be met."""


class SchemaError(DpcipherError, ValueError):
    """The schema is wrong, or has not been signed off."""


class DataError(DpcipherError, ValueError):
    """Private rows do not fit the schema. Curator only: raised before any charge, names the column and the rule alone."""


class SizeError(DpcipherError, ValueError):
    """Too many cells for the request, judged on the schema alone."""


class TableFileError(DpcipherError, ValueError):
    """A user's table cannot be read or written."""


class FileExists(TableFileError):
    """A file is there already, and nobody said that it may be replaced."""


class ReleaseError(DpcipherError, ValueError):
    """Noisy tables, or a release file, that cannot be used."""


class LedgerError(DpcipherError):
    """The ledger refuses."""


class LedgerExceeded(LedgerError):
    """The request would exceed the budget; nothing was spent."""


class LedgerDamaged(LedgerError):
    """The ledger's chain of records is broken."""


class SolveError(DpcipherError):
    """The tables do not allow an answer."""


class JointError(DpcipherError, ValueError):
    """A saved joint that cannot be used."""


class NotPrivate(DpcipherError):
    """Something stamped NOT PRIVATE was about to be released."""


class MissingExtra(DpcipherError, ImportError):
    """An optional part is not installed."""

    def __init__(self, extra: str, needs: str) -> None:
        super().__init__(f"{needs} is not installed; run: pip install 'dpcipher[{extra}]'")


class DpcipherWarning(UserWarning):
    """An answer was given, but it says less than was asked for; the text says why, and what would help."""


def warn(message: str) -> None:
    """Warn whoever called the library, at the line that did."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpcipher."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DpcipherWarning, stacklevel=level)


Progress = Callable[[str], None]  # is told what long work does now


def silent(_: str) -> None:
    """Tell nobody."""


def shown_count(count: int) -> str:
    """A number of cells or tables as a message has it: written out, or its power of ten where nobody would count the digits.

    >>> shown_count(20_000), shown_count(2**150)
    ('20,000', 'about 10^45')
    """
    return f"{count:,}" if count < 10**12 else f"about 10^{math.floor(count.bit_length() * math.log10(2))}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt public name or level, or nothing; capitals count only where nothing else tells names apart.

    >>> did_you_mean("sxe", ["age", "sex"])
    "; did you mean 'sex'?"
    >>> did_you_mean("Centro", ["NORTE", "CENTRO"])
    "; did you mean 'CENTRO'?"
    """
    names = [name for name in known if len(name) <= _LONGEST_HINT]
    if len(word) > _LONGEST_HINT or len(names) > _MOST_HINTS:
        return ""
    close = get_close_matches(word, names, n=1)
    if not close:
        folded = {name.casefold(): name for name in names}
        close = [folded[name] for name in get_close_matches(word.casefold(), folded, n=1)]
    return f"; did you mean {close[0]!r}?" if close else ""
