"""Less noise at no cost: every table moved toward what lower-order tables predict."""
