"""Windowed processors: asynchronous functions over replayable input, with windows that close for certain."""
