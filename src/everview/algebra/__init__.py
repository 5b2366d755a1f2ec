"""The pure layer: what is replicated, how it is merged, how it is valued. Imports nothing above it."""
