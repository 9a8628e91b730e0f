"""The paper's claims about tables in the first experiment: TVD (figure 2) and l∞ (figure 3)."""

from collections.abc import Iterable, Iterator

import numpy as np

from dpcipher.marginals.arrays import Floats
from dpcipher.paper.claims import Claim, judge, series, spread
from dpcipher.paper.contenders import (
    CELLS_2,
    CIPHER_2,
    CIPHER_3,
    FDH,
    MWEM_2,
    OURS_2,
    OURS_3,
    PAPERS,
    RIDGES,
    Contender,
)
from dpcipher.paper.population import SHAPE
from dpcipher.paper.simulated import NAMES, POWERS
from dpcipher.paper.storage import parameters
from dpcipher.paper.summary import SimulatedSummary, cost

# "Similar" in these verdicts means within a tenth.
SIMILAR = 1.1


def table_claims(summary: SimulatedSummary) -> list[Claim]:
    """Everything the paper says about figures 2 and 3."""
    return [
        *_cipher_tables(summary),
        *_mwem_tables(summary),
        *_largest_errors(summary),
        *_other_settings(summary),
    ]


def _cipher_tables(summary: SimulatedSummary) -> Iterator[Claim]:
    two, three, full, ours = (summary.tvd(method) for method in (CIPHER_2, CIPHER_3, FDH, OURS_2))
    plain_two, plain_three, plain_full, plain_ours = (
        summary.tvd(method, normal=False) for method in (CIPHER_2, CIPHER_3, FDH, OURS_2)
    )
    swapped = np.sum(parameters(SHAPE, 3) / parameters(SHAPE, 2) * two <= full)
    yield Claim(
        "after cost normalisation CIPHER 2-way has the best TVD overall",
        "figure 2",
        f"best in {_wins(summary, CIPHER_2, PAPERS)} of 30 (n, ε, order); in {_wins(summary, CIPHER_2, PAPERS, normal=False)} without normalisation; against FDH and CIPHER 3-way alone in {_wins(summary, CIPHER_2, [FDH, CIPHER_3])}. With the printed, swapped costs: {swapped} of 30 against FDH",
        judge(_wins(summary, CIPHER_2, PAPERS) > 15),
        f"ours 2-way against the same methods: best in {_wins(summary, OURS_2, PAPERS)} of 30, in {_wins(summary, OURS_2, PAPERS, normal=False)} without normalisation",
    )
    ratio, ours_ratio = two / full, ours / full
    yield Claim(
        "… especially for small ε",
        "figure 2",
        f"at ε = e⁻² its normalised TVD is {_span(ratio[:, 0])} times FDH's (un-normalised 2-way, n = 200, all ε: {_pairs(summary, CIPHER_2)}; FDH {_pairs(summary, FDH)}). Random coefficients: below FDH in {_random_wins(summary, CIPHER_2):.0%} of 20 populations",
        judge(ratio[:, 0].max() < 1),
        f"{_span(ours_ratio[:, 0])} times FDH's (un-normalised: {_pairs(summary, OURS_2)}); random: {_random_wins(summary, OURS_2):.0%}",
    )
    yield Claim(
        "… and is similar to FDH (or better) at large ε",
        "figure 2",
        f"normalised, at ε = e²: {_span(ratio[:, -1])} times FDH's",
        judge(ratio[:, -1].max() <= SIMILAR),
        f"{_span(ours_ratio[:, -1])} times",
    )
    plain, plain_ours_ratio = plain_two / plain_full, plain_ours / plain_full
    yield Claim(
        "CIPHER has similar or superior cost-normalised utility to FDH",
        "abstract",
        f"normalised TVD of 2-way over FDH's: {_span(ratio)}, at most 1.1 in {_similar(ratio)} of 30; un-normalised {_span(plain)}, at most 1.1 in {_similar(plain)}",
        judge(_similar(ratio) > 27),
        f"normalised {_span(ours_ratio)}, at most 1.1 in {_similar(ours_ratio)}; un-normalised {_span(plain_ours_ratio)}, at most 1.1 in {_similar(plain_ours_ratio)}",
    )
    worse = np.sum(three > two)
    yield Claim(
        "CIPHER 3-way is inferior to CIPHER 2-way",
        "figure 2",
        f"normalised: in {worse} of 30; un-normalised in {np.sum(plain_three > plain_two)}: the normalisation decides",
        judge(worse > 27),
        f"normalised in {np.sum(summary.tvd(OURS_3) > ours)} of 30",
    )


def _random_wins(summary: SimulatedSummary, method: Contender) -> float:
    """The share of random populations in which a method's normalised TVD of pairs at e⁻² is below that of FDH."""
    mine, theirs = (summary.random[-2, name][:, 1] for name in (method.name, FDH.name))
    return float(np.mean(mine * cost(method) < theirs))


def _mwem_tables(summary: SimulatedSummary) -> Iterator[Claim]:
    def change(method: Contender) -> float:
        tvd = summary.tvd(method)
        return float((tvd[:, 0, 1] / tvd[:, -1, 1]).max())

    yield Claim(
        "MWEM hardly changes with ε",
        "figure 2",
        f"2-way TVD from e⁻² to e² falls by a factor {change(MWEM_2):.1f} when a query is a table (n = 200: {_pairs(summary, MWEM_2)}), {change(CELLS_2):.2f} when it is one cell, used once ({_pairs(summary, CELLS_2)})",
        judge(change(CELLS_2) < 1.25),
        but="for single-cell queries only (the paper says neither the query nor T)",
    )

    def below(method: Contender) -> list[int]:
        """In how many of 30 a method has a smaller TVD than MWEM with tables, and with cells."""
        tvd = summary.tvd(method, normal=False)
        return [int(np.sum(tvd < summary.tvd(other, normal=False))) for other in (MWEM_2, CELLS_2)]

    (tables, cells), ours = below(CIPHER_2), below(OURS_2)
    oracle = [summary.oracle[200, power, MWEM_2.name] for power in POWERS]
    yield Claim(
        "CIPHER preserves the original information better than MWEM",
        "abstract, section 4",
        f"2-way: lower TVD than MWEM (tables) in {tables} of 30, than MWEM (cells) in {cells}. MWEM with the best T in hindsight ({', '.join(str(rounds) for rounds, _ in oracle)}), n = 200: {series([float(tvd[1]) for _, tvd in oracle])}",
        judge(min(tables, cells) > 27),
        f"ours 2-way: in {ours[0]} and {ours[1]} of 30",
    )


def _largest_errors(summary: SimulatedSummary) -> Iterator[Claim]:
    pairs, triples = summary.linf(CIPHER_2) / summary.linf(FDH)
    yield Claim(
        "CIPHER 2-way and FDH have similar normalised l∞, CIPHER slightly better at e⁻²",
        "figure 3",
        f"ratio to FDH, n = 200: Q₂ {series(pairs, 2)}; Q₃ {series(triples, 2)}",
        judge(max(pairs.max(), triples.max()) <= SIMILAR and max(pairs[0], triples[0]) < 1),
        f"Q₂ {series(summary.linf(OURS_2)[0] / summary.linf(FDH)[0], 2)}",
    )

    def third(three: Contender, two: Contender) -> Floats:
        return np.asarray(summary.linf(three)[0] / np.maximum(summary.linf(two)[0], summary.linf(FDH)[0]))

    yield Claim(
        "CIPHER 3-way is second-tier behind CIPHER 2-way and FDH",
        "figure 3",
        f"normalised l∞ (Q₂, n = 200) over the worse of the two: {series(third(CIPHER_3, CIPHER_2), 2)}",
        judge(third(CIPHER_3, CIPHER_2).min() > 1),
        series(third(OURS_3, OURS_2), 2),
    )
    mwem, cells, full, ours = (
        summary.linf(method, normal=False)[0] for method in (MWEM_2, CELLS_2, FDH, OURS_2)
    )
    yield Claim(
        "MWEM does not live up to an optimal l∞ on the tables it is given",
        "figure 3",
        f"un-normalised l∞ on Q₂, n = 200: MWEM {series(mwem)} (tables), {series(cells)} (cells); FDH {series(full)}",
        judge(np.all(np.minimum(mwem, cells)[1:] > full[1:])),
        f"ours {series(ours)}",
    )


def _other_settings(summary: SimulatedSummary) -> Iterator[Claim]:
    at_200, at_500 = np.argmin([summary.tvd(method) for method in PAPERS], axis=0)
    same = np.sum(at_200 == at_500)
    yield Claim(
        "the findings at n = 500 are those at n = 200",
        "figures 2, 3, supplement",
        f"the same method has the least normalised TVD in {same} of 15 (ε, order)",
        judge(same >= 12),
    )
    ridges = (RIDGES[0], RIDGES[1], CIPHER_2, RIDGES[2])
    tvd = np.array([summary.tvd(ridge, normal=False)[0, ::2, 1] for ridge in ridges])
    by_epsilon = "; ".join(
        f"ε = {NAMES[power]}: {series(row)}" for power, row in zip(POWERS[::2], tvd.T, strict=True)
    )
    yield Claim(
        "solutions are relatively insensitive to a small λ",
        "section 2.2",
        f"2-way TVD, n = 200, λ = 10⁻⁴, 10⁻³, 10⁻², 10⁻¹: {by_epsilon}",
        judge(spread(tvd) <= 1.25),
        "has no λ: the noise level is public and sets the shrinkage",
    )


def _span(ratios: Floats) -> str:
    return f"{ratios.min():.2f} to {ratios.max():.2f}"


def _similar(ratios: Floats) -> int:
    """How many ratios are similar or better."""
    return int(np.sum(ratios <= SIMILAR))


def _pairs(summary: SimulatedSummary, method: Contender) -> str:
    """The un-normalised TVD of pairs at n = 200, as text."""
    return series(summary.tvd(method, normal=False)[0, :, 1])


def _wins(
    summary: SimulatedSummary, method: Contender, others: Iterable[Contender], *, normal: bool = True
) -> int:
    """In how many of the 30 combinations of n, epsilon and order no other has a smaller TVD."""
    least = np.min([summary.tvd(other, normal=normal) for other in others], axis=0)
    return int(np.sum(summary.tvd(method, normal=normal) <= least))
