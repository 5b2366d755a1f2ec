"""Rows as people and other tools have them: HTML in a notebook, Arrow, pandas."""
