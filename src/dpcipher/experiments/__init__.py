"""Experiments: methods compared on equal terms, and the figures of the paper. Curator only, noise seeded: NOT PRIVATE."""
