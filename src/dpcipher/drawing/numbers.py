"""Numbers as people read them."""

import math


def rows(value: float) -> str:
    """A count with thousands separated; small noise keeps one decimal.

    >>> rows(12345.6), rows(-0.02), rows(3.26)
    ('12,346', '0', '3.3')
    """
    digits = 1 if 0 < abs(value) < 10 and abs(value - round(value)) > 0.05 else 0
    text = f"{value:,.{digits}f}"
    return "0" if text in ("-0", "-0.0", "0.0") else text


def share(value: float) -> str:
    """A percentage with as many decimals as it can carry.

    >>> share(0.5), share(0.0123)
    ('50\\xa0%', '1.2\\xa0%')
    """
    digits = 0 if value >= 0.1 or value == 0 else 1
    return f"{100 * value:.{digits}f}\u00a0%"


def ticks(most: float, many: int = 4) -> list[float]:
    """Round numbers from 0 up to at least `most`.

    >>> ticks(870)
    [0.0, 250.0, 500.0, 750.0, 1000.0]
    """
    if not most > 0:
        return [0.0, 1.0]
    raw = most / many
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


def short(value: float) -> str:
    """A number for an axis.

    >>> short(12000), short(2500000), short(0.5)
    ('12k', '2.5M', '0.5')
    """
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"
