"""A sender answers each request from its present snapshot, and remembers nothing of the reader.

A page has rows that the reader has neither seen nor staged, by relation, incarnation and number.
Within an incarnation everything up to a staged number was sent, or was gone already. So no position is kept.
Derivations follow, by version and monomial. Versions only rise, so nothing new ever lies before a position.
The last page is the one that leaves nothing: it says what went, and so the pages add up to its snapshot.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from spec.replication.cuts import Ask, Cut, Mode, Page, Part, Request, ViewAsk, ViewPart
from spec.replication.relations import START, Cursor, Relation
from spec.replication.rows import Row, Rows, digest
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import Dot, join
from spec.replication.views import Derivation, Monomial


def answer(store: Store, request: Request) -> Page:
    """Return the next page of what the reader lacks of the relations and views that both host."""
    asked = {
        name: (ask, source) for name, ask in request.relations.items() if (source := source_of(store, name))
    }
    left = -1 if request.limit is None else request.limit
    rows: dict[str, Rows] = {}
    whole = True
    for name, (ask, source) in sorted(asked.items()):
        missing = source.missing(join(ask.vector, ask.staged))
        rows[name] = _first(missing, left)
        whole = whole and len(rows[name]) == len(missing)
        left -= len(rows[name]) if left >= 0 else 0
    derivations: dict[str, Mapping[Monomial, Derivation]] = {}
    for title, view_ask in sorted(request.views.items()):
        if title in store.views and whole:
            new = _news(store.views[title].derivations, view_ask)
            derivations[title] = dict(islice(new.items(), left if left >= 0 else None))
            whole = len(derivations[title]) == len(new)
            left -= len(derivations[title]) if left >= 0 else 0
    read = max(
        (r.cursors.get(request.reader, START) for r in store.relations.values()), key=lambda c: c.version
    )
    page = Page(store.incarnation, store.cursor(), rows, derivations, read)
    if not whole:
        return page
    parts = {
        name: _part(store, name, ask, source, rows[name], request.heard)
        for name, (ask, source) in asked.items()
    }
    views = {
        title: ViewPart(request.views[title].cursor.version, found) for title, found in derivations.items()
    }
    cut = Cut(store.incarnation, store.cursor(), parts, views, store.ended)
    return Page(store.incarnation, store.cursor(), {}, {}, read, cut)


def source_of(store: Store, name: str) -> Relation | None:
    """Return the relation of that name, None if there is none; a hollow input is made of a whole one."""
    if name in store.relations:
        return store.relations[name]
    whole = store.relations.get(name.removeprefix("~"))
    return hollow(whole) if whole else None


def hollow(relation: Relation) -> Relation:
    """Return what a view's host keeps of the relation. Its digest is kept beside the relation's own."""
    rows = {dot: relation.kind.hollow(row) for dot, row in relation.rows.items()}
    return replace(relation, rows=rows, digest=digest(rows.items()))


def _first(rows: Rows, limit: int) -> dict[Dot, Row]:
    return dict(islice(sorted(rows.items()), limit if limit >= 0 else None))


def _news(derivations: Mapping[Monomial, Derivation], ask: ViewAsk) -> dict[Monomial, Derivation]:
    """Return the derivations behind the reader's position, in the order of positions."""
    new = [
        (derivation.version, monomial)
        for monomial, derivation in derivations.items()
        if derivation.version > ask.cursor.version
        and (ask.position is None or (derivation.version, monomial) > ask.position)
    ]
    return {monomial: derivations[monomial] for _, monomial in sorted(new)}


def _part(store: Store, name: str, ask: Ask, source: Relation, rows: Rows, heard: Cursor) -> Part:
    """Return the last page's share of one relation: what went, in the cheapest of three ways."""
    seen = ask.vector if holds(Rule.APPLIED) else join(ask.vector, ask.staged)
    since = ask.cursor.version if holds(Rule.ORIGINAL) else heard.version
    mode, gone, live = Mode.LIVE, frozenset[Dot](), frozenset[Dot]()
    if since and since >= source.floor:
        mode, gone = Mode.SINCE, frozenset(dot for dot, at in source.log.items() if at > since)
    elif source.reaches(seen):
        mode, gone = Mode.LOG, frozenset(source.log)
    else:
        live = frozenset(source.rows)
    start, whole = ask.cursor.version, name.removeprefix("~") in store.relations
    return Part(mode, ask.vector, start, source.vector, rows, gone, live, source.digest, whole)
