"""Pages for people, each a single file that fetches nothing."""
