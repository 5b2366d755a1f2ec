"""Recursion kept by change.

::

    bundles    clauses of many inputs, made to have few
    variants   the statements that apply a clause to what changed
    tables     the tables of one recursive relation
    rounds     the order in which statements run, round by round, until nothing changes
    compile    from a Fixpoint to nodes of the circuit                       ← all of these
"""

from everview.engines.sqlite.circuits.recursion.compile import Groups

__all__ = ["Groups"]
