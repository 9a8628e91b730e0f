"""The algebra of tables: sets of columns, margins, counts of coded rows, noise, raking, and a labelled table."""
