"""Draws of the joint distribution of a few columns, given a release and the noise that it states."""
