"""Scores, SSS and inference over synthetic sets. What compares with private rows is marked curator only."""
