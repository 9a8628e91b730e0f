"""The curator's story in one file: from a private table to a release and synthetic rows.

    python examples/release.py FOLDER

It writes the invented people of the demo into FOLDER first, so that it runs as it is.
"""

import sys
from pathlib import Path

import dpcipher as dc
from dpcipher.demo.people import SCHEMA, invent_people

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "example-out")
folder.mkdir(exist_ok=True)
(folder / "people.yaml").write_text(SCHEMA)
people = invent_people()

# What everybody may know, and what a release would cost. No row is read here.
schema = dc.Schema.load(folder / "people.yaml")
plan = dc.plan(schema, workload=2, epsilon=1.0, unit="add-remove", n_rows=5_000)
print(plan)

# The limit for this table, and the one step that reads private rows. The budget is charged before any noise is drawn.
ledger = dc.Ledger.create(folder / "people.ledger", epsilon=3.0, unit="add-remove", name="people")
release = dc.measure(
    people, schema, workload=2, epsilon=1.0, unit="add-remove", weights=plan.weights, ledger=ledger
)
release.save(folder / "people.release.parquet")
print(f"spent {ledger.spent.describe()}, left {ledger.remaining.describe()}")

# From here on anybody may go on: it costs no privacy.
low, high = release.interval(("employed",), level=0.95)
print("employed, 95 % interval:", [(round(a), round(b)) for a, b in zip(low, high, strict=True)])
joint = dc.solve(release)
joint.sample(5_000, seed=1).to_csv(folder / "synthetic.csv", index=False)
print(joint.sample(3, seed=2, given={"region": "coast", "health": "good"}))
