"""Noisy tables and how they were made: the file both sides share, its reconciled estimates and its standard errors."""
