"""What finding bins will cost, and what it may find: known before any row is read, because the noise and the grid are public."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import sqrt
from statistics import fmean
from typing import Any

from dpcipher.planning.rehearsal import rehearse
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.terms import Privacy
from dpcipher.request.shares import after_levels, coarse_share, discovery_share, finding_share
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import BinRisk, PlannedTables, bin_risk, clear_of_noise
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.search import level_share, open_searches
from dpcipher.tables.measurement import Noise


@dataclass(frozen=True)
class BinPlan:
    """The search for the bins of one open column.

    At most `share` of the budget is spent, over at most `levels` levels, each with noise of standard deviation `sd` on the count of an interval. At most
    `most` bins are found, and an interval is cut where its noisy count is above `rows_to_cut`. `found` has the bins that a rehearsal found of rows that are even,
    bell-shaped, skewed or of few values, and `expected` their mean: these need a number of rows. Coarse counts of the bins then take `coarse`. A range that is
    to be found stands out of the noise from `rows_to_find` rows on; None where it is declared.
    """

    column: str
    share: Fraction
    levels: int
    sd: float
    most: int
    expected: int | None
    rows_to_cut: int | None
    is_unbounded: bool
    coarse: Fraction = Fraction(0)
    found: Mapping[str, int] = field(default_factory=dict)
    rows_to_find: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return vars(self) | {"share": str(self.share), "coarse": str(self.coarse), "found": dict(self.found)}


def plan_bins(
    schema: Schema, privacy: Privacy, tables: PlannedTables, n_rows: int | None
) -> tuple[BinPlan, ...]:
    """The searches for all open columns; none of a closed schema."""
    if not finding_share(schema):
        return ()
    whole, rest = after_levels(privacy.budget, schema).composable(), 1 - discovery_share(schema)
    unit, told = privacy.unit, privacy.tells_n_rows
    searches = partial(open_searches, schema, unit, zcdp=whole.rho is not None)
    begun = searches()
    each = level_share(begun, schema)
    coarse = coarse_share(schema)
    noise = NoiseModel(whole.share(1 - finding_share(schema) - coarse), unit)

    def mechanism(shares: Fraction) -> Noise:
        return mechanism_for(whole.share(each * shares), unit)

    def risk(axis: int, rows: float) -> BinRisk:
        return bin_risk(schema, axis, noise, rows, tables)

    found = {} if n_rows is None else rehearse(searches, mechanism, risk, n_rows=n_rows, told=told)
    unbounded = [search.first_shares for search in begun if search.is_unbounded]
    first = mechanism(Fraction(sum(unbounded), len(unbounded) or 1) or Fraction(1))  # they are asked together
    plans = []
    for search in begun:
        sd = sqrt(search.settled(mechanism(Fraction(1)).variance))
        clear = clear_of_noise(search.most, laplace=not noise.is_zcdp) * sd
        bins = found.get(search.column.name, {})
        plans.append(
            BinPlan(
                search.column.name,
                each * search.shares * rest,
                search.levels,
                sd,
                search.most,
                round(fmean(bins.values())) if bins else None,
                None
                if n_rows is None
                else round(risk(search.axis, float(n_rows)).price(search.most) + clear),
                search.is_unbounded,
                coarse / len(begun) * rest,
                bins,
                search.rows_to_find_at(first.variance) if search.is_unbounded else None,
            )
        )
    return tuple(plans)
