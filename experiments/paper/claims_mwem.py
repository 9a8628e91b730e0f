"""The paper's sentences about MWEM itself: its budget, its number of rounds T, its errors; and the limit of both methods."""

from functools import cache

import numpy as np

from dpcipher.engines.paper import Paper, solve_paper
from dpcipher.tables.domain import Floats
from experiments.paper.claims import FAILS, HOLDS, Claim, Finding, Margins, ratio_line, series
from experiments.paper.claims_methods import by_argument
from experiments.paper.claims_tables import MOST
from experiments.paper.contenders import FDH, LIMITS, MWEM, ROUNDS, tvd
from experiments.paper.population import POPULATION, SHAPE
from experiments.paper.view import View

# "Highly dependent": by at least a half; a loss that matters: a tenth.
HIGHLY, LOSS = 1.5, 1.1


def _after(view: View) -> Floats:
    """The TVD of MWEM's own tables after each number of rounds: replicates, rounds, n, epsilon, order (2, 3)."""
    return np.stack([view.after(view.mwem(order), "tvd")[..., order - 1] for order in (2, 3)], axis=-1)


def rounds_matter(view: View) -> Finding:
    """The worst T has at least 1.5 times the TVD of the best at every n and epsilon, 2- and 3-way."""
    lines = _after(view)
    ratio = lines.max(axis=1) / lines.min(axis=1)
    found = f"worst over best T {series(ratio_line(ratio))}; needed: at least {HIGHLY}"
    return Finding(Margins(ratio - HIGHLY).everywhere(), found, ratio_line(ratio), HIGHLY)


def rounds_hard(view: View) -> Finding:
    """T tuned on independent data loses at least a tenth against the best in hindsight in more than half of the points."""
    lines = _after(view)
    tuned = np.stack([view.score(view.mwem(order), "rounds")[0, :, :, 0] for order in (2, 3)], axis=-1)
    place = np.searchsorted(ROUNDS, np.rint(tuned).astype(int))
    chosen = np.take_along_axis(lines, np.broadcast_to(place, (len(lines), 1, *place.shape)), axis=1)[:, 0]
    ratio = chosen / lines.min(axis=1)
    margins = Margins(ratio - LOSS)
    found = f"tuned over best {series(ratio_line(ratio))}, a tenth lost in {margins}; needed: 11"
    return Finding(margins.more_than(MOST), found, ratio_line(ratio), LOSS)


def rounds_ends(view: View) -> Finding:
    """One round and 32 rounds both have at least a tenth more TVD than the best T, at every point."""
    lines = _after(view)
    best = lines.min(axis=1)
    few, many = lines[:, 0] / best, lines[:, -1] / best
    margins = Margins(np.stack([few, many], axis=1) - LOSS)
    found = f"T = 1 over best {series(ratio_line(few))}; T = 32 {series(ratio_line(many))}; needed: at least {LOSS}"
    return Finding(margins.everywhere(), found, ratio_line(np.minimum(few, many)), LOSS)


def budget_of_query(view: View) -> Finding:
    """With its tuned T, MWEM gives a query that is chosen once less budget than CIPHER gives each of its tables, at every n and epsilon."""
    own = np.stack([view.score(view.mwem(order), "rounds")[..., 0] for order in (2, 3)], axis=1)
    tables = np.array([6, 4])[None, :, None, None]
    ratio = tables / (2 * own)
    found = f"budget of a query, MWEM over CIPHER {series(ratio[0].mean(axis=(0, 1)))} (T = {int(own[0].min())}–{int(own[0].max())}); needed: below 1"
    return Finding(Margins(1 - ratio).everywhere(), found, tuple(ratio[0].mean(axis=(0, 1)).tolist()), 1.0)


@cache
def _noiseless_mwem(form: str, rounds: int) -> float:
    """The TVD of pairs when MWEM answers without noise."""
    counts = np.rint(1e6 * POPULATION.joint).astype(np.int64)[None]
    # Discrete noise of scale .02 is none: it differs from 0 with probability e⁻⁵⁰.
    drawn = MWEM[form][2].draw(counts, epsilon=100 * rounds, seed=np.random.SeedSequence(1), rounds=rounds)
    return float(tvd(counts, drawn.chances, [2])[0, 0])


def iteration_error(view: View) -> Finding:
    """Without noise, MWEM's pairs are still wrong by more than .01 in TVD after as many rounds as were tuned over."""
    errors = np.array([_noiseless_mwem(view.condition["mwem"], rounds) for rounds in ROUNDS])
    outcome = HOLDS if np.all(errors > 0.01) else FAILS
    return Finding(
        outcome,
        f"TVD without noise, T = {', '.join(map(str, ROUNDS))}: {series(errors, 3)}; needed: above .01",
    )


def cipher_limit(view: View) -> Finding:
    """With the full table as the only query CIPHER equals FDH on the same noise."""
    rng = np.random.default_rng(1)
    noisy = rng.laplace(POPULATION.joint * 200, 5.0)
    joint = solve_paper(SHAPE, [(tuple(range(4)), noisy, 50.0)], Paper())[0]
    clipped = np.maximum(noisy, 0)
    gap = float(np.abs(joint - clipped / clipped.sum()).max())
    return Finding(HOLDS if gap < 1e-12 else FAILS, f"largest difference of a cell {gap:.0e}; needed: 0")


def mwem_limit(view: View) -> Finding:
    """With the full table as the only query MWEM's TVD is within a tenth of FDH's at every n, epsilon and order."""
    own = view.first.each(LIMITS[view.condition["mwem"]].name, lambda card: card.means["tvd"])
    ratio = own / view.tvd(FDH, normal=False)
    found = f"TVD over FDH's {series(ratio_line(ratio))}; needed: .91–1.1"
    return Finding(Margins(np.log(LOSS) - np.abs(np.log(ratio))).everywhere(), found, ratio_line(ratio), 1.0)


MWEM_CLAIMS = (
    Claim(
        "budget-arithmetic",
        "Unless c_k/Σc_k > 2/|Q|, the budget allocated to query q_k in the MWEM algorithm would always be smaller than that in CIPHER",
        "2.2",
        "c_k ε/(2T) > ε/|Q| with Σc_k = T",
        by_argument("c_k/(2T) > 1/|Q| is c_k/T > 2/|Q|"),
        (),
    ),
    Claim(
        "budget",
        "… the selection probability for a query needs to at least double … to receive more privacy budget in MWEM than in CIPHER",
        "2.2",
        "with the tuned T a query that is chosen once gets less than a table of CIPHER (ε/6 of pairs, ε/4 of triples), every n and ε",
        budget_of_query,
        ("mwem",),
    ),
    Claim(
        "rounds-matter",
        "The accuracy of MWEM is highly dependent on T",
        "1.3",
        "TVD of its own tables with the worst of T = 1…32 at least 1.5 times that with the best, every n and ε, 2- and 3-way",
        rounds_matter,
        ("mwem",),
    ),
    Claim(
        "rounds-hard",
        "Choosing the “right” number of iterations T for MWEM can be challenging",
        "1.3, 2.2",
        "T tuned on independent data loses at least a tenth of TVD against the best in hindsight in more than half of 20 points",
        rounds_hard,
        ("mwem",),
    ),
    Claim(
        "rounds-ends",
        "T too small is not sufficient …; and T too large would lead to a large amount of noises",
        "2.2",
        "T = 1 and T = 32 both at least a tenth worse than the best T in all 20 points",
        rounds_ends,
        ("mwem",),
    ),
    Claim(
        "iteration",
        "For MWEM, it is the numerical errors introduced through the iterative procedure",
        "4",
        "TVD of pairs without noise above .01 for every T",
        iteration_error,
        ("mwem",),
    ),
    Claim(
        "limit-cipher",
        "The asymptotic version of CIPHER is the FDH sanitization when the … set contains only … the full-dimensional table",
        "4",
        "equal on the same noise",
        cipher_limit,
        (),
    ),
    Claim(
        "limit-mwem",
        "… and of MWEM",
        "4",
        "TVD within a tenth of FDH's at every n, ε and order, T = 1",
        mwem_limit,
        ("mwem",),
    ),
)
