"""A store that is lost for good is given up once, anywhere.

A view hosted without its inputs may have seen commits of it that no holder of an input has, and never will.
Such a view can never be completed. It starts empty, and is read again from those that know less.

Whoever gives a store up knows little. So of each input goes with it the last number that any holder has.
A holder's part of a cut vouches for what it covers, whether or not the holder has heard of the ending.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spec.replication.cuts import Cut
from spec.replication.relations import Relation
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import Vector
from spec.replication.views import View

Ended = Mapping[tuple[str, str], int]


def given_up(store: Store, incarnation: str, names: Iterable[str]) -> Store:
    """Return the store that says of these relations that the incarnation is lost."""
    return _knowing(store, {(incarnation, name): 0 for name in names})


def heard(store: Store, cut: Cut) -> Store:
    """Return the store that knows of a cut's endings; its own views that go beyond them start empty."""
    ended = dict(cut.ended)
    vouched = {name.removeprefix("~"): part.vector for name, part in cut.parts.items() if part.whole}
    for lost, name in {*store.ended, *ended} if holds(Rule.VOUCHED) else ():
        last = vouched.get(name, {}).get(lost, 0)
        ended[lost, name] = max(ended.get((lost, name), 0), last)
    return _knowing(store, ended)


def _knowing(store: Store, ended: Ended) -> Store:
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
