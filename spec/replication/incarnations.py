"""A store that was copied or put back takes a new incarnation; its old rows stay live rows like any.

It is noticed when the store is opened, or by its peers:

  - a peer's vector knows more of the store's incarnation than the store does (`overtaken`), or
  - a peer's cursor names a version whose tag the store never gave (`unknown`).

Then the numbers written since the opening become numbers of the new incarnation, in rows, log and vectors.
Intuitively: the store is what it would be, had it noticed when it was opened.

What is guaranteed:

  a. Noticed at the opening: everything. The store gets back what others have, and nothing returns.
  b. Noticed by its numbers before anybody has read what it wrote since: the same as a.
  c. Noticed by a tag: the same as b. A direct reader of lost versions is never answered with other rows.
  d. Read before it is noticed, or opened twice before: all stores become equal again, and no more.
     A number then has two rows. Whoever holds one of them never asks for the other, and a removal
     of one removes both. Rows that were read under their old dots are there twice; a bag counts them
     twice. Digests find stores that differ, and repair makes them equal; a write may be lost unseen.
"""

from collections.abc import Iterable
from dataclasses import replace

from spec.replication.cuts import Page, Request
from spec.replication.relations import Cursor, Relation
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store, opened
from spec.replication.vectors import Dot, Vector, join
from spec.replication.views import Derivation, Monomial, View


def went_back(store: Store, message: Request | Page) -> bool:
    """Whether a message of a peer with the right to write shows that the store went back.

    What a peer without that right says must never be judged: it would make the store write.
    """
    match message:
        case Request():
            vectors = {name.removeprefix("~"): ask.vector for name, ask in message.relations.items()}
            cursors = [ask.cursor for ask in message.relations.values()]
            cursors += [ask.cursor for ask in message.views.values()]
            told = message.sender == store.incarnation and unknown(store, [*cursors, message.heard])
            return told or overtaken(store, vectors)
        case Page():
            vectors = (
                {n.removeprefix("~"): p.vector for n, p in message.last.parts.items()} if message.last else {}
            )
            me = message.sender == store.incarnation
            return me or overtaken(store, vectors) or unknown(store, [message.read])


def overtaken(store: Store, vectors: dict[str, Vector]) -> bool:
    """Whether somebody knows more of our incarnation than we do."""
    me = store.incarnation
    return any(
        vectors.get(name, {}).get(me, 0) > relation.vector.get(me, 0)
        for name, relation in store.relations.items()
    )


def unknown(store: Store, cursors: Iterable[Cursor]) -> bool:
    """Whether one of these cursors at us is of a history that we do not know."""
    return holds(Rule.TAGGED) and any(
        cursor.version and store.tags.get(cursor.version) != cursor.tag for cursor in cursors
    )


def renewed(store: Store, incarnation: str) -> Store:
    """Return the store under a new incarnation, to which all numbers written since the opening belong."""
    if holds(Rule.RENAMED):
        relations = {
            name: _renamed(store, relation, store.opened.get(name, 0), incarnation)
            for name, relation in store.relations.items()
        }
        views = {title: _renamed_view(store, view, incarnation) for title, view in store.views.items()}
        store = replace(store, relations=relations, views=views)
    return opened(replace(store, incarnation=incarnation))


def _renamed(store: Store, relation: Relation, last: int, incarnation: str) -> Relation:
    me = store.incarnation
    if relation.vector.get(me, 0) <= last:
        return relation

    def vector(old: Vector) -> dict[str, int]:
        since = old.get(me, 0) - last
        return dict(old) if since <= 0 else join({**old, me: last}, {incarnation: since})

    def renamed(dot: Dot) -> Dot:
        return renamed_dot(dot, me, last, incarnation)

    rows = {renamed(dot): row for dot, row in relation.rows.items()}
    changed = Relation(relation.kind).changed(0, added=rows, seen=vector(relation.vector))
    return replace(
        changed,
        came={renamed(dot): at for dot, at in relation.came.items()},
        log={renamed(dot): at for dot, at in relation.log.items()},
        floor=relation.floor,
        forgotten=vector(relation.forgotten),
        cursors=relation.cursors,
    )


def _renamed_view(store: Store, view: View, incarnation: str) -> View:
    found: dict[Monomial, Derivation] = {}
    for monomial, derivation in view.derivations.items():
        names = (
            renamed_dot(dot, store.incarnation, store.opened.get(title, 0), incarnation)
            for title, dot in zip(view.inputs, monomial, strict=True)
        )
        found[tuple(names)] = derivation
    return replace(view, derivations=found)


def renamed_dot(dot: Dot, me: str, last: int, incarnation: str) -> Dot:
    """Return the name of a row of ours: numbers after the last are counted anew."""
    renamed = dot.incarnation == me and dot.number > last
    return Dot(incarnation, dot.number - last) if renamed else dot
