"""Equal vectors and unequal digests are an alarm; repair makes a relation what a peer has.

A digest is the sum of a hash of each live row, kept as rows come and go, and travels beside the vector.
It is a proof at run time: equality of replicas is checked at every meeting, not believed.
Derivations have no digest. They follow from rows, and are read again when their rows are repaired.
"""

from dataclasses import dataclass, replace

from spec.replication.answers import source_of
from spec.replication.cuts import Cut
from spec.replication.relations import Relation
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import includes
from spec.replication.views import View


@dataclass(frozen=True, slots=True)
class Alarm:
    """Two stores have seen the same of a relation and hold different rows."""

    relation: str
    peer: str


def alarms(store: Store, cut: Cut) -> list[Alarm]:
    """Return the relations that should be the sender's and are not."""
    return [
        Alarm(name, cut.sender)
        for name, part in cut.parts.items()
        if store.relations[name].vector == part.vector and store.relations[name].digest != part.digest
    ]


def repaired(store: Store, name: str, peer: Store) -> Store | None:
    """Return the store with the peer's rows of one relation, None if the peer has not seen all that we have.

    Otherwise rows that the peer has not yet seen removed would come back. Sync first, then repair.
    Nothing is logged as removed: what differed was never a removal. The log ends in a gap instead.
    Views over the relation start empty, and are derived or read again.
    """
    mine, theirs = store.relations[name], source_of(peer, name)
    if theirs is None:
        return None
    if not includes(theirs.vector, mine.vector) and holds(Rule.INCLUDED):
        return None
    version = store.version + 1
    same = {dot: row for dot, row in mine.rows.items() if theirs.rows.get(dot) == row}
    kept = Relation(mine.kind).changed(version, added=same, seen=mine.vector)
    kept = replace(kept, came={dot: mine.came[dot] for dot in same}, cursors=mine.cursors)
    new = {dot: row for dot, row in theirs.rows.items() if dot not in same}
    whole = kept.changed(version, added=new, seen=theirs.vector).without_log(version)
    views = {
        title: View(view.parts, view.inputs)  # its derivations may name rows that are others now
        for title, view in store.views.items()
        if name.removeprefix("~") in view.inputs
    }
    return store.committed({name: whole}, views)
