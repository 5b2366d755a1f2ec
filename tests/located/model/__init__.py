"""A model of located rules: small, slow and right; the real places are compared with it."""
