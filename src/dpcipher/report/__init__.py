"""The publishable report, made from a release and synthetic rows alone, and the drawing that every page shares."""
