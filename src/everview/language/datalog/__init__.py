"""Datalog programs: rules over declared relations, compiled to the same plans as SQL.

`ast` is what a text says, `parser` reads it, `compiler` gives it types and checks, and makes plans of it.
"""
