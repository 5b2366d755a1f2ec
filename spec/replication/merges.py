"""A reader applies a cut whole, in one commit, or not at all.

First it removes, then it adds rows that it had not seen, then it joins the vectors.
Cuts that come late, twice, out of order, or to an older self of the reader do no harm.
"""

from collections.abc import Mapping
from dataclasses import replace

from spec.replication.cuts import Cut, Mode, Part
from spec.replication.endings import beyond
from spec.replication.relations import START, Cursor, Relation
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import covers, includes
from spec.replication.views import Derivation, Monomial, View


def merged(store: Store, cut: Cut) -> Store | None:
    """Return the store with the cut applied, None if the cut does not fit.

    It has heard of the cut's endings before (`endings.heard`): these stay even if the cut does not fit.
    """
    vectors = {name: part.vector for name, part in cut.parts.items()}
    if cut.sender == store.incarnation or not fits(store, cut) or beyond(store, vectors):
        return None
    version = store.version + 1
    relations = {name: _merged(store.relations[name], part, version) for name, part in cut.parts.items()}
    views = {title: _with(store.views[title], part.derivations, version) for title, part in cut.views.items()}
    if any(relations[name] is not store.relations[name] for name in relations) or any(
        views[title] is not store.views[title] for title in views
    ):
        store = store.committed(relations, views)
    return _read(store, cut)


def fits(store: Store, cut: Cut) -> bool:
    """Whether the cut continues what the reader has: it may presume only what the reader has seen."""
    if not cut.parts.keys() <= store.relations.keys() or not cut.views.keys() <= store.views.keys():
        return False
    if not holds(Rule.REQUIRED):
        return True
    relations, views = store.relations, store.views
    return all(
        includes(relations[name].vector, part.required)
        and _version(relations[name].cursors, cut.sender) >= part.start
        for name, part in cut.parts.items()
    ) and all(_version(views[title].cursors, cut.sender) >= part.start for title, part in cut.views.items())


def _version(cursors: Mapping[str, Cursor], sender: str) -> int:
    return cursors.get(sender, START).version


def _merged(relation: Relation, part: Part, version: int) -> Relation:
    """Return the relation after its part of a cut, the same one if the part has no news."""
    had = relation.vector
    if part.mode is Mode.LIVE:
        gone = {dot for dot in relation.rows if covers(part.vector, dot) and dot not in part.live}
    else:  # also rows that were never held: our own readers may hold them
        gone = {dot for dot in part.gone if dot in relation.rows or not covers(had, dot)}
    added = {
        dot: row
        for dot, row in part.rows.items()
        if dot not in relation.rows and not (covers(had, dot) and holds(Rule.COVERED))
    }
    if not gone and not added and includes(had, part.vector):
        return relation
    changed = relation.changed(version, gone=gone, added=added, seen=part.vector)
    if part.mode is Mode.LIVE and not includes(had, part.vector) and holds(Rule.GAP):
        changed = changed.with_gap(version, part.vector)
    return changed


def _with(view: View, derivations: Mapping[Monomial, Derivation], version: int) -> View:
    """Return the view with the derivations that it had not; one whose rows are not held will be dropped."""
    new = {
        monomial: Derivation(derivation.key, version)
        for monomial, derivation in derivations.items()
        if monomial not in view.derivations
    }
    return replace(view, derivations={**view.derivations, **new}) if new else view


def _read(store: Store, cut: Cut) -> Store:
    """Return the store whose cursors are at the end of the cut. A file has no end."""
    if not cut.end.version:
        return store
    relations = {name: store.relations[name].with_cursor(cut.sender, cut.end) for name in cut.parts}
    views = {title: _with_cursor(store.views[title], cut) for title in cut.views}
    return replace(store, relations={**store.relations, **relations}, views={**store.views, **views})


def _with_cursor(view: View, cut: Cut) -> View:
    known = view.cursors.get(cut.sender, START)
    return replace(view, cursors={**view.cursors, cut.sender: max(known, cut.end, key=lambda c: c.version)})
