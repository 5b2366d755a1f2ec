"""Circuits: operators that keep a view up to date by what changed, as SQL statements."""
