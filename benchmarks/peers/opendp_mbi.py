"""MST and AIM of `opendp[mbi]` on one table (the command line is adapter.py's).

Its environment: `pip install 'opendp[mbi]' pandas` (its `synthesize` needs pandas, which the extra does not bring).
"""

import jax  # noqa: F401 - opendp imports these inside its functions; here their import is not timed as a fit
import mbi  # noqa: F401
import opendp.extras.mbi._mst as opendp_mst
import opendp.prelude as dp
import polars as pl
from adapter import Answer, Codes, Job, run

NOTE = (
    "add-remove; the number of rows is estimated from the noisy tables; levels given as integer cuts (keys would add a "
    "null level); half the budget on one-way tables (its default); i.i.d. sampler; noise cannot be seeded"
)


def step_down(budget: float) -> float:
    """A little less of a budget.

    opendp 0.16 steps down by one unit in the last place, which its own composition of one share per edge then
    exceeds by another for most budgets (`insufficient budget for query`): MST would stop with an error.
    """
    return budget * (1 - 1e-12)


def zcdp_budget(epsilon: float, delta: float) -> float:
    """The rho that opendp itself converts to (epsilon, delta)."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def gaussian(scale: float) -> dp.Measurement:
        return dp.m.make_gaussian(*space, scale)

    scale = dp.binary_search_param(
        lambda scale: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(scale)), delta=delta),
        d_in=1.0,
        d_out=(epsilon, delta),
    )
    return float(gaussian(scale).map(1.0))


def fit(job: Job) -> Answer:
    varying = {name: size for name, size in job.domain.items() if size > 1}  # one level leaves nothing to cut
    rho = zcdp_budget(job.epsilon, job.delta)
    context = dp.Context.compositor(
        data=pl.LazyFrame(job.codes, schema=list(job.domain), orient="row").select(*varying),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    algorithm = {"MST": dp.mbi.MST, "AIM": dp.mbi.AIM}[job.method]()
    cuts = {name: list(range(size - 1)) for name, size in varying.items()}
    table = context.query(rho=rho).contingency_table(cuts=cuts, algorithm=algorithm).release()

    def sample(method: str) -> Codes:
        rows = table.synthesize(len(job.codes), method=method).cast(pl.Int64)
        constant = [pl.lit(0).alias(name) for name in job.domain if name not in varying]
        return rows.with_columns(constant).select(*job.domain).to_numpy()

    return Answer(rows=sample("sample"), rounded=sample("round"), note=NOTE)


if __name__ == "__main__":
    dp.enable_features("contrib")
    opendp_mst.prior = step_down
    run(fit)
