"""The private side: the only room that sees private rows before a release."""
