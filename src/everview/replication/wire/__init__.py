"""Columns of values as bytes, the frame around a message, and the check that values are as a store has them."""
