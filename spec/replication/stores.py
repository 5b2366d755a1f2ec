"""A store is relations and views under one incarnation, and changes by whole commits.

A store is a value: every commit gives a new one.
So a backup is a name for an old value, and nothing is half done.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spec.replication.kinds import Kind
from spec.replication.relations import START, Cursor, Relation
from spec.replication.rules import Rule, holds
from spec.replication.vectors import Vector
from spec.replication.views import View, refreshed

_tags = itertools.count(1)  # unique; a real store draws them at random


@dataclass(frozen=True, slots=True)
class Store:
    """Everything that a site has in its file."""

    incarnation: str
    version: int = 0
    relations: Mapping[str, Relation] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    tags: Mapping[int, int] = field(default_factory=dict)
    """The random tag of each version, by which a cursor of another history is told apart."""
    opened: Mapping[str, int] = field(default_factory=dict)
    """The last number of our incarnation in each relation when the store was opened."""
    ended: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of each lost incarnation and relation, the last number that any holder of the relation has."""

    def cursor(self) -> Cursor:
        """Return where a reader of this moment stands."""
        return Cursor(self.version, self.tags.get(self.version, 0)) if self.version else START

    def committed(
        self, relations: Mapping[str, Relation], views: Mapping[str, View] | None = None
    ) -> "Store":
        """Return the store one version on; the relations and views that are named are replaced.

        The new relations must have been changed at `version + 1`.
        """
        version = self.version + 1
        merged = {**self.relations, **relations}
        refreshed_views = refreshed({**self.views, **(views or {})}, merged, version)
        tags = {**self.tags, version: next(_tags)}
        return replace(self, version=version, relations=merged, views=refreshed_views, tags=tags)

    def vectors(self) -> dict[str, Vector]:
        """Return the vector of each relation."""
        return {name: relation.vector for name, relation in self.relations.items()}


def created(incarnation: str, kinds: Mapping[str, Kind], views: Mapping[str, View] | None = None) -> Store:
    """Return an empty store that hosts these relations and views."""
    return Store(incarnation, relations={n: Relation(k) for n, k in kinds.items()}, views=views or {})


def opened(store: Store) -> Store:
    """Return the store as it is when a process has opened it: it notes its last number in each relation."""
    own = {name: relation.vector.get(store.incarnation, 0) for name, relation in store.relations.items()}
    return replace(store, opened=own)


def hosting(store: Store, name: str, kind: Kind) -> Store:
    """Return the store that also hosts this relation or partition, of which it has seen nothing yet."""
    cursors = {} if holds(Rule.OWN_CURSORS) else next(iter(store.relations.values())).cursors
    return store.committed({name: Relation(kind, cursors=cursors)})


def dropping(store: Store, names: Iterable[str]) -> Store:
    """Return the store without these relations: rows, vector, log and cursors go together.

    If it wrote them it must take a new incarnation now, for it has forgotten its own numbers.
    """
    gone = set(names)
    kept = {name: relation for name, relation in store.relations.items() if name not in gone}
    opened_at = {name: number for name, number in store.opened.items() if name not in gone}
    return replace(store, relations=kept, opened=opened_at).committed({})


def without_logs(store: Store, names: Iterable[str]) -> Store:
    """Return the store without the logs of these relations."""
    forgotten = {name: store.relations[name].without_log(store.version) for name in names}
    return replace(store, relations={**store.relations, **forgotten})
