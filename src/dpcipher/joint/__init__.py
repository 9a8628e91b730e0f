"""The joint distribution of all columns: tables, probabilities and rows from it, and its file."""
