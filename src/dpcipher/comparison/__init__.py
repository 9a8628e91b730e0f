"""Methods side by side on equal terms: curator only."""
