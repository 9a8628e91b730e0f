"""What finding bins will cost, and what it may find: known before any row is read, because the noise and the grid are public."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from dpcipher.curator.discover import discovery_share
from dpcipher.curator.find import after_levels, coarse_share, finding_share, level_share, open_searches
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.unit import Unit
from dpcipher.schema.schema import Schema
from dpcipher.selection.binning import PlannedTables, bin_risk, clear_of_noise
from dpcipher.selection.noise_model import NoiseModel


@dataclass(frozen=True)
class BinPlan:
    """The search for the bins of one open column.

    At most `share` of the budget is spent, over at most `levels` levels, each with noise of standard deviation `sd` on the count of an interval. At most
    `most` bins are found; `expected` of them if rows were spread evenly, and an interval is cut where its noisy count is above `rows_to_cut`:
    both need a number of rows. Coarse counts of the bins then take `coarse`.
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

    def __str__(self) -> str:
        text = f"{self.column}: at most {self.most} bins"
        if self.expected is not None and self.rows_to_cut is not None:
            text += f", about {self.expected} expected if rows are spread evenly; an interval is cut from about {self.rows_to_cut:,} rows on"
        text += f"; up to {float(self.share):.3g} of the budget, noise sd {self.sd:,.1f}"
        text += f"; coarse counts of them {float(self.coarse):.3g}" if self.coarse else ""
        return text + (
            "; values outside the range that is found go to the end bins" if self.is_unbounded else ""
        )


def plan_bins(
    schema: Schema, budget: Budget, unit: Unit, tables: PlannedTables, n_rows: int | None
) -> tuple[BinPlan, ...]:
    """The searches for all open columns; none of a closed schema."""
    if not finding_share(schema):
        return ()
    whole, rest = after_levels(budget, schema).composable(), 1 - discovery_share(schema)
    searches = open_searches(schema, unit, zcdp=whole.rho is not None)
    each = level_share(searches, schema)
    mechanism = mechanism_for(whole.share(each), unit)
    coarse = coarse_share(schema)
    noise = NoiseModel(whole.share(1 - finding_share(schema) - coarse), unit)
    plans = []
    for search in searches:
        sd = sqrt(search.settled(mechanism.variance))
        clear = clear_of_noise(search.most, laplace=not noise.is_zcdp) * sd
        risk = None if n_rows is None else bin_risk(schema, search.axis, noise, float(n_rows), tables)
        plans.append(
            BinPlan(
                search.column.name,
                each * search.shares * rest,
                search.levels,
                sd,
                search.most,
                None if risk is None else risk.best_bins(search.most),
                None if risk is None else round(risk.price(search.most) + clear),
                search.is_unbounded,
                coarse / len(searches) * rest,
            )
        )
    return tuple(plans)
