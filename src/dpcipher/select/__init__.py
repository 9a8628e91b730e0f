"""Which tables are worth measuring, judged on public numbers alone: noisy distances, the noise that a share buys, the schema."""
