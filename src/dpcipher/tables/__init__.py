"""The algebra of tables: sets of columns, margins, counts of coded rows, noise, and a labelled table."""
