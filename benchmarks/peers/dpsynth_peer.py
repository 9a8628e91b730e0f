"""MST, AIM and SWIFT of google/dpsynth on one table (the command line is adapter.py's).

Its environment: dpsynth 0.3, which is not on the package index, and the packages that it names.
"""

import warnings

import numpy as np
import pandas as pd
from adapter import Answer, Job, run

warnings.simplefilter("ignore")

import dp_accounting  # noqa: E402
import dpsynth  # noqa: E402
from dpsynth import discrete_mechanisms  # noqa: E402

METHODS = {
    "MST": discrete_mechanisms.MSTConfig,
    "AIM": discrete_mechanisms.AIMConfig,
    "SWIFT": discrete_mechanisms.SWIFTConfig,
}
NOTE = "add-remove; the number of rows is estimated; domain given; its own defaults; its sampler; noise seeded (numpy)"


def calibrated(config: dpsynth.TabularConfig, epsilon: float, delta: float) -> dpsynth.TabularMechanism:
    """The mechanism at this budget, found as its own `calibrate` finds it (the smaller of two answers, which is this one), but not from zero on.

    The search of the dp-accounting on the package index tries a budget of zero first, which dpsynth divides by.
    """
    rho = dp_accounting.calibrate_dp_mechanism(
        dp_accounting.rdp.RdpAccountant,
        lambda rho: config.configure(zcdp_rho=rho, delta=delta).dp_event,
        epsilon,
        delta,
        dp_accounting.ExplicitBracketInterval(1e-6, 1e3),
    )
    return config.configure(zcdp_rho=rho, delta=delta)


def fit(job: Job) -> Answer:
    frame = pd.DataFrame(job.codes, columns=list(job.domain))
    domains = {
        name: dpsynth.CategoricalAttribute(possible_values=list(range(size)))
        for name, size in job.domain.items()
    }
    config = dpsynth.TabularConfig(domains=domains, discrete_mechanism=METHODS[job.method]())
    mechanism = calibrated(config, job.epsilon, job.delta)
    rng = np.random.default_rng(job.seed)
    rows = mechanism(rng, frame).synthetic_data[list(job.domain)].to_numpy(dtype=np.int64)
    # its number of rows is noisy: as many as the data are drawn from them, so that all methods are judged on equal numbers
    chosen = rng.permutation(len(rows))[: len(job.codes)]
    extra = rng.integers(len(rows), size=len(job.codes) - len(chosen))
    return Answer(rows=rows[np.concatenate([chosen, extra])], note=NOTE)


if __name__ == "__main__":
    run(fit)
