"""A refused write is undone by a write: then all stores agree, the writer's too.

A server takes every cut. In its next commit it removes the rows that it may not accept,
and adds again, under dots of its own, the rows whose removal it may not accept.
No reader sees the state between. The first commit is needed: a vector must cover what is undone.

A row names its author; a removal does not, so its right is that of the peer who told it.
A row for a key that is there is an update where it changes what is shown, and needs both rights.
A row comes back unless the same cut has an accepted row for its key: that one has replaced it.
Of a bag only one site may refuse: two would each add the row again.
What an accepted author writes on top of a refused row is the accepted author's: its relay is believed.
"""

from dataclasses import dataclass, replace

from spec.replication.kinds import Change
from spec.replication.relations import Relation
from spec.replication.rows import Row
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.transactions import Transaction, Written
from spec.replication.vectors import Dot

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refused:
    """The incarnations whose insertions and whose removals a site does not accept."""

    inserts: frozenset[str] = NONE
    removals: frozenset[str] = NONE


def undone(before: Store, after: Store, sender: str, refused: Refused) -> tuple[Store, list[Written]]:
    """Return the store after a cut of the sender, with what is refused undone; and what that wrote."""
    transaction = Transaction(after)
    for name, relation in before.relations.items():
        _undo(transaction, name, relation, sender, refused)
    return transaction.committed(), transaction.written


def _undo(transaction: Transaction, name: str, before: Relation, sender: str, refused: Refused) -> None:
    after = transaction.store.relations[name]
    new = {dot: row for dot, row in after.rows.items() if dot not in before.rows}
    lost = {dot: row for dot, row in before.rows.items() if dot not in after.rows}
    bad = {dot: row for dot, row in new.items() if _is_refused(before, dot, row, refused)}
    if before.kind.updates and sender in refused.removals and holds(Rule.UPDATES):
        there = {row.key for row in before.rows.values()}
        bad |= {dot: row for dot, row in new.items() if row.key in there}
    replaced = set() if before.kind.separate else {row.key for dot, row in new.items() if dot not in bad}
    overwritten = set() if before.kind.separate else {row.key for row in bad.values()}
    for dot in sorted(bad):
        transaction.change(name, Change(frozenset({dot})))
    for _, row in sorted(lost.items()):
        back = row.key in overwritten or sender in refused.removals
        if back and row.key not in replaced and holds(Rule.RESTORED):
            transaction.change(name, Change(frozenset(), _as_it_was(row)))


def _is_refused(relation: Relation, dot: Dot, row: Row, refused: Refused) -> bool:
    return dot.incarnation in (refused.removals if relation.kind.is_deletion(row) else refused.inserts)


def _as_it_was(row: Row) -> Row:
    """Return the row that comes back. With a greater length it would beat deletions that are accepted."""
    if isinstance(row.value, int) and not holds(Rule.UNCHANGED):
        return replace(row, value=row.value + 2)
    return row
