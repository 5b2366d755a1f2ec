"""Executable models, read before the code that they specify."""
