"""Datalog programs: rules over declared relations, compiled to the same plans as SQL.

`ast` is what a text says; `grammar`, `reader` and `parser` read it; `compiler` checks it, gives it types, and
makes plans of it, rule by rule (`bodies`, `terms`); `facts` reads files of rows.
"""
