"""Dependences that no pair shows: are parities of three and four columns found and reproduced by `workload="auto"`?

usage: python benchmarks/parities.py [repeats=3]

Binary columns, 20,000 rows, x9 = x4 ⊕ x5 and x3 = x0 ⊕ x1 ⊕ x2, all else independent. Agreement: the share of synthetic rows in which the
parity holds; one half is chance. Noise is seeded here: nothing is private.
"""

import sys
import time
from math import exp

import numpy as np
from common import markdown, write_page

from dpcipher.methods.cipher import Cipher
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

ROWS = 20_000


def planted(columns: int, seed: int) -> np.ndarray:
    """Coded rows with both parities."""
    codes = np.random.default_rng(seed).integers(0, 2, (ROWS, columns))
    codes[:, 9] = codes[:, 4] ^ codes[:, 5]
    codes[:, 3] = codes[:, 0] ^ codes[:, 1] ^ codes[:, 2]
    return codes


def run(columns: int, epsilon: float, delta: float | None, seed: int) -> tuple[float, float, float]:
    """Agreement of the parity of three and of four, and processor seconds."""
    codes, started = planted(columns, seed), time.process_time()
    schema = Schema.from_domain({f"x{place}": 2 for place in range(columns)})
    method = Cipher(epsilon, delta=delta, unit="add-remove", workload="auto")
    joint = method.fit_counts(codes, schema, draws=Draws.seeded(seed), codes=True).joint
    rows = np.concatenate(list(joint.core.sample(ROWS, np.random.default_rng(seed))))
    three = np.mean(rows[:, 9] == rows[:, 4] ^ rows[:, 5])
    four = np.mean(rows[:, 3] == rows[:, 0] ^ rows[:, 1] ^ rows[:, 2])
    return float(three), float(four), time.process_time() - started


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found = []
    for columns in (10, 30):
        for label, delta in (("pure ε", None), ("δ = 10⁻⁹", 1e-9)):
            for power in (0, 2):
                runs = np.array([run(columns, exp(power), delta, seed) for seed in range(repeats)])
                least, seconds = runs.min(axis=0), runs[:, 2].mean()
                found.append(
                    [columns, f"e^{power}, {label}", f"{least[0]:.3f}", f"{least[1]:.3f}", f"{seconds:.1f}"]
                )
                print(found[-1], flush=True)
    note = f"The least agreement of {repeats} runs; add-remove, {ROWS:,} rows. One half is chance; processor seconds from rows to rows."
    head = ["binary columns", "ε", "x9 = x4 ⊕ x5", "x3 = x0 ⊕ x1 ⊕ x2", "seconds"]
    write_page(
        "parities", "Parities", f"python benchmarks/parities.py {repeats}", [note, markdown(head, found)]
    )


if __name__ == "__main__":
    main()
