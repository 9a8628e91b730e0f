"""Scores that compare with private rows: curator only."""
