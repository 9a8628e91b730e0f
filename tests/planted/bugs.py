"""Known ways to break the promise, from the literature, from our own history or devised here, each with the test that must notice it."""

from bug import Bug
from ledger_bugs import LEDGER_BUGS
from level_bugs import LEVEL_BUGS
from noise_bugs import NOISE_BUGS
from reading_bugs import READING_BUGS
from rule_bugs import RULE_BUGS

BUGS: tuple[Bug, ...] = (*READING_BUGS, *NOISE_BUGS, *LEDGER_BUGS, *LEVEL_BUGS, *RULE_BUGS)
