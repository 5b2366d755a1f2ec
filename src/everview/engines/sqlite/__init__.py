"""SQLite: the engine of the device.

::

    scalars/    values as they lie in the file; expressions as SQL
    circuits/   operators that keep views by what changed
    engine      a program compiled: tables, circuits, writes
    store       the file: opening, locking, transactions     ← writing, watches
    reading     queries, whole tables, status                ← batch, witnesses, explain
"""
