"""Spark: the engine of the hub."""
