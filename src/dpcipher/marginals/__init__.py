"""A labelled table over a few attributes, and its projections."""
