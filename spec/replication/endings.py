"""A store that is lost for good is given up once, anywhere.

A view hosted without its inputs may have seen commits of it that no holder of an input has, and never will.
Such a view can never be completed. It starts empty, and is read again from those that know less.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spec.replication.relations import Relation
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import Vector
from spec.replication.views import View

Ended = Mapping[tuple[str, str], int]


def given_up(store: Store, incarnation: str, names: Iterable[str]) -> Store:
    """Return the store that says of these relations that the incarnation is lost."""
    return heard(store, {(incarnation, name): 0 for name in names})


def heard(store: Store, ended: Ended) -> Store:
    """Return the store that knows of these endings; its own views that go beyond them start empty."""
    if not ended or not holds(Rule.ENDED):
        return store
    joined = {key: max(store.ended.get(key, 0), ended.get(key, 0)) for key in {*store.ended, *ended}}
    for (lost, name), last in list(joined.items()):
        if name in store.relations:
            joined[lost, name] = max(last, store.relations[name].vector.get(lost, 0))
    store = replace(store, ended=joined)
    return _emptied(store) if beyond(store, store.vectors()) else store


def beyond(store: Store, vectors: Mapping[str, Vector]) -> bool:
    """Whether these vectors of hollow inputs cover more of a lost store than any holder of the input has."""
    return any(vectors.get("~" + name, {}).get(lost, 0) > last for (lost, name), last in store.ended.items())


def _emptied(store: Store) -> Store:
    relations = {
        name: Relation(relation.kind) if name.startswith("~") else relation
        for name, relation in store.relations.items()
    }
    views = {title: View(view.parts, view.inputs) for title, view in store.views.items()}
    return store.committed(relations, views)
