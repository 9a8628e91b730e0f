"""NAPSU-MQ's own inference (twinify) on noisy tables in a file; runs in an environment of its own.

Its environment: Python 3.11, `pip install 'jax[cpu]==0.4.30' 'numpyro==0.15.0' 'numpy<2' 'scipy<1.13' d3p disjoint-set graphviz`, and the source of
twinify on PYTHONPATH (its newest release asks for older libraries than a current Python has).

usage: python napsu_mq.py METHOD IN.npz OUT.npz [CHAINS WARM_UP SAMPLES]
METHOD: mcmc or laplace+mcmc, with twinify's defaults (4 chains, 800 + 2,000 steps) unless told otherwise
IN: shape, tables (one row of axes each), sigma, n_rows, y (one row of all cells per release)
"""

import json
import sys
import time
from pathlib import Path

import jax
import numpy as np

# twinify's front page loads its other method, which needs a JAX of 2022: its rooms are opened without it.
jax.config.update("jax_enable_x64", True)
for room in ("twinify", "twinify.napsu_mq"):
    sys.modules[room] = module = type(sys)(room)
    module.__path__ = [str(Path(folder) / room.replace(".", "/")) for folder in sys.path]

import twinify.napsu_mq.maximum_entropy_inference as mei  # noqa: E402
from twinify.napsu_mq.marginal_query import FullMarginalQuerySet  # noqa: E402
from twinify.napsu_mq.markov_network import MarkovNetwork  # noqa: E402

KEPT = 1_000
STEPS = dict(
    zip(("num_chains", "num_warmup", "num_samples"), map(int, sys.argv[4:] or (4, 800, 2000)), strict=True)
)


def main() -> None:
    method, given = sys.argv[1], np.load(sys.argv[2])
    shape, tables = given["shape"].tolist(), [tuple(axes) for axes in json.loads(str(given["tables"]))]
    sigma, n_rows = float(given["sigma"]), int(given["n_rows"])
    cells = np.indices(shape).reshape(len(shape), -1).T
    joints, seconds = [], []
    for number, flat in enumerate(given["y"]):
        started = time.process_time()
        names = [f"v{axis}" for axis in range(len(shape))]
        sets = [tuple(names[axis] for axis in axes) for axes in tables]
        queries = FullMarginalQuerySet(sets, dict(zip(names, shape, strict=True))).get_canonical_queries()
        network = MarkovNetwork(
            {name: list(range(size)) for name, size in zip(names, shape, strict=True)}, queries
        )
        seen = _counts(queries.flatten().queries, tables, shape, flat)
        lambdas = _sample(method, jax.random.PRNGKey(number), seen, n_rows, sigma, network)
        seconds.append(time.process_time() - started)
        holds = np.concatenate([query(cells) for query in queries.flatten().queries], axis=1)
        kept = lambdas[:: max(1, len(lambdas) // KEPT)]
        scores = kept @ holds.T
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        joints.append(powers / powers.sum(axis=1, keepdims=True))
        print(f"release {number}: {seconds[-1]:.1f} s of processor time", flush=True)
    settings = f"NAPSU-MQ, {method}, {STEPS['num_chains']} chains of {STEPS['num_warmup']} + {STEPS['num_samples']} steps"
    np.savez(sys.argv[3], joints=np.array(joints), seconds=np.array(seconds), settings=settings)


def _counts(queries, tables, shape, flat):
    """The noisy count of every query, from the table that it is a cell of; of a margin, from the first table that holds it."""
    sizes = [int(np.prod([shape[axis] for axis in axes])) for axes in tables]
    arrays = {
        axes: part.reshape([shape[axis] for axis in axes])
        for axes, part in zip(tables, np.split(flat, np.cumsum(sizes)[:-1]), strict=True)
    }
    return np.array([float(arrays[tuple(query.inds)][query.value_tuple()]) for query in queries])


def _sample(method, key, seen, n_rows, sigma, network):
    options = {**STEPS, "show_progressbar": False}
    if method == "mcmc":
        run = mei.run_numpyro_mcmc(key, seen, n_rows, sigma, network, **options)
        return np.asarray(run.get_samples()["lambdas"])
    first, second = jax.random.split(key)
    laplace, _ = mei.run_numpyro_laplace_approximation(first, seen, n_rows, sigma, network)
    print(f"Laplace approximation: {time.process_time():.1f} s of processor time since the start", flush=True)
    run, back = mei.run_numpyro_mcmc_normalised(second, seen, n_rows, sigma, network, laplace, **options)
    return np.asarray(back(run.get_samples()["norm_lambdas"]))


if __name__ == "__main__":
    main()
