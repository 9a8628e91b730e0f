"""The demo: the whole workflow on invented people."""
