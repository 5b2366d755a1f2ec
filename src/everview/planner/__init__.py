"""Rewrite plans and decide how views are kept."""
