"""How texts are read inside an engine: the patterns of `dpcipher.schema.cells`, written so that every engine understands them alike.

No escapes, no classes such as `\\s`, no flags: PostgreSQL, RE2 and others differ there. White space is listed character by character.
"""

_SPACES = (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
WHITE = "".join(map(chr, (*range(9, 14), *range(28, 33), *range(0x2000, 0x200B), *_SPACES)))
_GAP = f"[{WHITE}]*"
_ASCII_GAP = "[\t\n\f\r ]*"
_DIGITS = "(?:[0-9]+[.]?[0-9]*|[.][0-9]+)"


def _caseless(word: str) -> str:
    """A pattern for a word in any case.

    >>> _caseless("no")
    '[nN][oO]'
    """
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


def _any_of(*words: str) -> str:
    return "(?:" + "|".join(map(_caseless, words)) + ")"


def _alone(core: str) -> str:
    """With space around it and nothing else."""
    return f"^{_GAP}{core}{_GAP}$"


SHORT_NUMBER = "^-?[0-9]{1,15}([.][0-9]{1,10})?$"
NUMBER = _alone(f"([-+]?{_DIGITS}(?:[eE][-+]?[0-9]+)?)")
# Exponents of at most four digits, and longer ones: what is far beyond every float is not left to an engine's cast.
NEAR_NUMBER = _alone(f"([-+]?{_DIGITS}(?:[eE][-+]?0*[0-9]{{1,4}})?)")
FAR_ZERO = _alone("[-+]?(?:[0]+[.]?[0]*|[.][0]+)[eE][-+]?[0-9]+")
FAR_DOWN = _alone(f"[-+]?{_DIGITS}[eE]-[0-9]+")
FAR_UP = _alone(f"[+]?{_DIGITS}[eE][+]?[0-9]+")
FAR_BELOW = _alone(f"-{_DIGITS}[eE][+]?[0-9]+")
INFINITE = _alone("[+]?" + _any_of("inf", "infinity"))
MINUS_INFINITE = _alone("-" + _any_of("inf", "infinity"))
TRUE, FALSE = _alone(_any_of("true")), _alone(_any_of("false"))
TRUE_WORD, FALSE_WORD = _alone(_any_of("true", "t", "yes", "y")), _alone(_any_of("false", "f", "no", "n"))

_REST = "(?:[T ][^\n]*)?$"
DAY = (
    "^[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-9])){_REST}"
)
LEAP_DAY = f"^[0-9]{{4}}-02-29{_REST}"
TIME = (
    f"^{_ASCII_GAP}(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ])?([01]?[0-9]|2[0-3]):([0-5][0-9])"
    f"(?::([0-5][0-9])(?:[.][0-9]*)?)?{_ASCII_GAP}$"
)

WHOLE_ID = "^[-+]?[0-9]+([.]0*)?$"
ID_DIGITS = "^[-+]?0*([0-9]*)([.]0*)?$"
BLANK = ("", "nan", "NaN", "NAN")
BLANK_ID = ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>")
