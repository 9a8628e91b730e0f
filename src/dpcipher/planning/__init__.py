"""What a release would cost and be worth, before any row is read."""
