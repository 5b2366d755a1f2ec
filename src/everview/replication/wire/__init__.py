"""Columns of values as bytes, the frame around a message, and the check of values."""
