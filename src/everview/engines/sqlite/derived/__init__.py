"""Views hosted without their inputs, where rows go by dots (Streams §7; docs/REPLICATION.md).

Of each input the host keeps its rows' dots, and what tells rows of one key or tuple apart, as a relation of
its own: a *hollow* one. It is replicated by vectors, like any relation. A branch over one relation has a row
for each row of it, which lies in the hollow row itself. A branch that joins has derivations, which name rows
by their dots; these go by cursors, for two upstreams together cover pairs that neither has derived.

A site that holds the relations keeps nothing for those who host a view: what they lack is read from its
tables.
"""
