"""Materialized views that every site can read and write into, online or offline, and that converge."""
