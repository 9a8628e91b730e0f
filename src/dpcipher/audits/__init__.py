"""Does this installation keep what it claims: samplers, likelihood ratios on neighbours, and recorded questions replayed."""
