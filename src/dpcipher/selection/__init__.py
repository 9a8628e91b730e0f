"""Which tables are worth measuring, decided from public numbers alone."""
