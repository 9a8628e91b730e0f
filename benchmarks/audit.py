"""The audit of an installation at fixed efforts: how tight each claim is shown to be, and which wrong scales the sampler tests reject.

usage: python benchmarks/audit.py [--thorough]
"""

import sys
import time
import warnings

import numpy as np
from common import markdown, write_page

from dpcipher.evaluation import audit as front
from dpcipher.evaluation.audit import THOROUGH, Audit, Effort, audit
from dpcipher.evaluation.check import EACH
from dpcipher.evaluation.mechanisms import MECHANISMS, chi_square
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.measurement import Noise

EFFORT = Effort(
    sampler=1_000_000, mechanism=200_000, choice=200_000, method=200_000, independence=100, runs=60
)
OFF = (1.02, 1.1)
DRAWS = 1_000_000


def wrong_scales() -> list[tuple[str, ...]]:
    """The chi-square statistic over its critical value, for samplers of a scale that is a little too large or too small."""
    blank, lines = np.zeros(DRAWS, dtype=np.int64), []
    for mechanism in MECHANISMS:
        ratios = []
        for factor in (1.0, *(f for off in OFF for f in (1 / off, off))):
            wrong = Noise(mechanism.kind, max(mechanism.scale * factor, 1 / 64))
            statistic = chi_square(SeededNoise(11).add(blank, wrong), mechanism, EACH)
            ratios.append(f"{statistic.value / statistic.critical:.2f}")
        lines.append((f"{mechanism.kind}, scale {mechanism.scale:g}", *ratios))
    return lines


def rows(result: Audit, part: str) -> list[tuple[str, ...]]:
    return [
        (c.what, c.unit, f"{c.claimed:.4g}", f"{c.estimate:.4g}", f"{c.ratio:.3f}", f"{c.trials:,}")
        for c in result.checks
        if c.part == part
    ]


def summary(result: Audit) -> list[tuple[str, ...]]:
    lines = []
    for part in dict.fromkeys(check.part for check in result.checks):
        ratios = [
            check.ratio for check in result.checks if check.part == part and check.what[-7:] != "nothing"
        ]
        lines.append(
            (
                part,
                str(len(ratios)),
                f"{min(ratios):.3f}",
                f"{float(np.median(ratios)):.3f}",
                f"{max(ratios):.3f}",
            )
        )
    return lines


def main() -> None:
    effort = THOROUGH if "--thorough" in sys.argv[1:] else EFFORT
    quick = audit()
    front.QUICK = effort
    started = time.process_time()
    result = audit(progress=lambda text: print(f"{text} … {time.process_time() - started:.0f} s", flush=True))
    heads = ("what", "unit", "claimed", "found", "ratio", "trials")
    parts = [
        f"{len(result.checks)} checks, {'all passed' if result.passed else 'SOME FAILED'}, in {result.seconds:.0f} s of processor time. The default of "
        f"`dpcipher audit` took {quick.seconds:.0f} s and {'passed' if quick.passed else 'FAILED'}. A ratio is what was found over what is claimed, or "
        "over the critical value of a test; above 1 is a violation, with a chance of at most 10⁻⁶ over the whole page if everything is right. "
        "[What is checked](../../docs/audit.md).",
        markdown(("part", "checks", "least ratio", "median", "largest"), summary(result)),
        "## Wrong scales",
        f"The chi-square statistic over its critical value (α = {EACH:g}) at {DRAWS:,} draws, if the sampler's scale is not what it says: above 1 is rejected.",
        markdown(("law", "right", "÷ 1.02", "× 1.02", "÷ 1.1", "× 1.1"), wrong_scales()),
    ]
    for part in dict.fromkeys(check.part for check in result.checks):
        parts += [f"## {part.capitalize()}", markdown(heads, rows(result, part))]
    write_page("audit", "Audit", " ".join(["python benchmarks/audit.py", *sys.argv[1:]]), parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
