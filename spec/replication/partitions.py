"""A partition is, for replication, a relation: it has its own vector, log and cursors.

`CREATE TABLE … PARTITION BY (column)` replicates each value of the column by itself.
A site hosts the values that it chooses. It may add values later, from an empty vector, and drop values.
A row that moves is a deletion in one partition and an insertion in another, in one commit.
Such a commit arrives whole where every hop hosts all the partitions that it touches.
"""

from collections.abc import Hashable, Iterable

from spec.replication.incarnations import renewed
from spec.replication.kinds import Kind
from spec.replication.rows import Key
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store, dropping, hosting, opened
from spec.replication.transactions import Delete, Insert, Statement


def partition(relation: str, value: object) -> str:
    """Return the name under which one value of a partitioned relation is replicated.

    >>> partition("orders", "eu")
    'orders/eu'
    """
    return f"{relation}/{value}"


def moving(key: Key, value: Hashable, source: str, target: str) -> list[Statement]:
    """Return the statements of a row that moves between partitions."""
    return [Delete(source, key), Insert(target, key, value)]


def rehosted(store: Store, kind: Kind, wanted: Iterable[str], incarnation: str) -> Store:
    """Return the store that hosts exactly these partitions; it takes the incarnation if it must.

    A store that drops what it has written forgets its own numbers there, and would use them again.
    So it takes a new incarnation, like a store that went back.
    """
    chosen = set(wanted)
    if away := store.relations.keys() - chosen:
        wrote = any(store.incarnation in store.relations[name].vector for name in away)
        store = dropping(store, away)
        if wrote and holds(Rule.FORGOTTEN):
            store = renewed(opened(store), incarnation)
    for name in sorted(chosen - store.relations.keys()):
        store = hosting(store, name, kind)
    return store
