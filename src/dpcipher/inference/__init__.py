"""Combining rules, SSS and models: no private rows are needed."""
