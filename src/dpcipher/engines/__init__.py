"""From a release to a joint distribution: denoise, then one engine a file, a value with its options."""
