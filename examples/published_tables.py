"""The data user's story: noisy tables that some agency published, overlapping and inconsistent, become synthetic rows.

python examples/published_tables.py
"""

import numpy as np

import dpcipher as dc

schema = dc.Schema.from_domain({"age": 4, "sex": 2, "region": 3})

# Two tables with Laplace noise of scale 5, as published: they disagree about how many people of each sex there are.
published = {
    ("age", "sex"): np.array([[52, 41], [88, 97], [61, 70], [33, 58]]),
    ("sex", "region"): np.array([[80, 110, 55], [90, 120, 49]]),
}
release = dc.Release.from_tables(published, schema, scale=5.0)
print("rows, reconciled:", release.n_rows)
print("sex, reconciled: ", np.asarray(release.project(("sex",))).round(1))

joint = dc.solve(release)
print("age × region, which nobody published:")
print(np.asarray(joint.project(("age", "region"))).round(3))
print(joint.sample(5, seed=1))
