"""The algebra of marginals: attributes and axes, closure, projection, counts of coded rows."""
