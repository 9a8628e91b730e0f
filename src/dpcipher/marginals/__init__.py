"""The algebra of marginals: sets of attributes, projections, counts of coded rows, array types, and a labelled table."""
