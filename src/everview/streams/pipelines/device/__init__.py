"""Pipelines on a device: all state in one SQLite file, and every commit whole."""
