"""Schemas from the data dictionaries that people have, and back: one format a file."""
