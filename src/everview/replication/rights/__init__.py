"""Rights: what the holder of a token may read and write."""
