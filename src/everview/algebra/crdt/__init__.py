"""Conflict-free replicated data types, one a file."""
