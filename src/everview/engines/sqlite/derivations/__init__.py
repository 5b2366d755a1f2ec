"""Derivations on SQLite: views over the wire (Streams §7).

A site that hosts a view without its relations keeps the view's derivations: rows with the ids of the tuples
they were made from. Beside them it keeps the liveness of every id, in a lattice table of the same kind as
the relation's own. A derivation counts while all its ids live.

A site that holds the relations keeps nothing for those who receive a view: what has changed since they last
asked is a query over the relations (`sending`).
"""
