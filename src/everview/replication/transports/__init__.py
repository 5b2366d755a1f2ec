"""Transports: the ways from one site to another. Each moves messages that it does not understand."""
