"""MST and AIM of smartnoise-synth on one table (the command line is adapter.py's).

Its environment: the CPU build of torch first, then `pip install smartnoise-synth`.
"""

from contextlib import redirect_stdout
from sys import stderr

import mbi
import numpy as np
from adapter import Answer, Codes, Job, run
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

ROWS = {
    "MST": "add-remove noise, but the exact number of rows is used as known",
    "AIM": "add-remove; the number of rows is estimated from the noisy tables",
}
NOTE = "domain given by label transformers fitted to the levels, not to the data; i.i.d. sampler; noise cannot be seeded"


def given_domain(sizes: dict[str, int]) -> TableTransformer:
    """A transformer that has seen every level of each column, so that none is inferred from the data."""
    columns = [LabelTransformer(nullable=False) for _ in sizes]
    for column, size in zip(columns, sizes.values(), strict=True):
        column.fit(list(range(size)))
    return TableTransformer(columns)


class Sampler:
    """The fitted model with one sampling method instead of its default; stands in for it in `sample`."""

    def __init__(self, model: mbi.MarkovRandomField, method: str) -> None:
        self.model, self.method = model, method

    def synthetic_data(self, rows: int) -> mbi.Dataset:
        return self.model.synthetic_data(rows=rows, method=self.method)


def fit(job: Job) -> Answer:
    synthesizer = {"MST": MSTSynthesizer, "AIM": AIMSynthesizer}[job.method](
        epsilon=job.epsilon, delta=job.delta
    )
    with redirect_stdout(stderr):
        synthesizer.fit(job.codes, transformer=given_domain(job.domain))
    model = synthesizer.synthesizer

    def sample(method: str) -> Codes:
        synthesizer.synthesizer = Sampler(model, method)
        return np.asarray(synthesizer.sample(len(job.codes)), dtype=np.int64)

    return Answer(rows=sample("sample"), rounded=sample("round"), note=f"{ROWS[job.method]}; {NOTE}")


if __name__ == "__main__":
    run(fit)
