"""MST, AIM and PrivBayes of dpmm on one table (the command line is adapter.py's).

Its environment: Python 3.11 and `pip install dpmm`.
"""

import numpy as np
import pandas as pd
from adapter import Answer, Job, run
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

METHODS = {"MST": MSTPipeline, "AIM": AIMPipeline, "PrivBayes": PrivBayesPipeline}
ROWS = {
    "MST": "the number of rows is estimated from the noisy tables",
    "AIM": "the number of rows is estimated from the noisy tables; model limited to 80 MB, its class default",
    "PrivBayes": "the exact number of rows sets the sensitivity of the mutual information",
}


def fit(job: Job) -> Answer:
    options = {"max_model_size": 80} if job.method == "AIM" else {}  # the pipeline's own default is no limit
    pipeline = METHODS[job.method](
        epsilon=job.epsilon, delta=job.delta, disable_processing=True, n_jobs=1, **options
    )
    names = list(job.domain)
    pipeline.fit(pd.DataFrame(job.codes, columns=names), domain=dict(job.domain), random_state=job.seed)
    rows = pipeline.generate(n_records=len(job.codes), random_state=job.seed)
    note = f"add-remove; {ROWS[job.method]}; domain given; selection and sampling seeded, noise not"
    return Answer(rows=rows[names].to_numpy(dtype=np.int64), note=note)


if __name__ == "__main__":
    run(fit)
