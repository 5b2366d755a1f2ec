"""Scalars: how values lie in SQLite, and expressions as SQL that agrees with PostgreSQL."""
