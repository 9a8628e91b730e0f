"""Scores against private rows, methods side by side, and the audit of an installation."""
