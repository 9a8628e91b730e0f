"""From a release to a joint distribution."""
