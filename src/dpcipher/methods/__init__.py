"""Synthesizers: whole methods behind one face, `fit(data, schema)` and `sample(n_rows, seed=)`."""
