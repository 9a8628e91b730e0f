"""The private side: the only folder that sees private rows. Its last step, `sanitize`, is the only door."""
