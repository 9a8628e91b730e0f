"""Planning: what a release would cost and how good it would be, with no data at all."""
