"""Studies that stand beside the package: they run from a clone or the source distribution."""
