"""A transaction is one commit: it numbers the rows that it adds, and is all or nothing everywhere.

Rows get the next numbers of the writer's incarnation in their relation.
A commit that only removes rows of a relation uses up one number, so that the vector moves.
A commit that changes no row of a relation is no news of it. Otherwise two stores would never come to rest.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from spec.replication.kinds import Change, Kind
from spec.replication.relations import Relation
from spec.replication.rows import Key, Row, Rows
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import Dot


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert a tuple, or write a key."""

    relation: str
    key: Key
    value: Hashable = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a tuple or key."""

    relation: str
    key: Key


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove the tombstone of a tuple."""

    relation: str
    key: Key


Statement: TypeAlias = Insert | Delete | Forget


@dataclass(frozen=True, slots=True)
class Written:
    """What a statement or an undoing did: the dot and row that it added, and the dots that it removed."""

    relation: str
    dot: Dot | None
    row: Row | None
    gone: frozenset[Dot]
    statement: Statement | None = None


@dataclass
class Transaction:
    """A commit in the making; it sees its own writes."""

    store: Store
    relations: dict[str, Relation] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def relation(self, name: str) -> Relation:
        """Return the relation as this transaction sees it."""
        return self.relations.get(name, self.store.relations[name])

    def change(self, name: str, change: Change, statement: Statement | None = None) -> None:
        """Remove rows, and add one under the next number."""
        relation, me = self.relation(name), self.store.incarnation
        dot = None
        if change.row is not None:
            number = self.store.relations[name].next(me) + self.added.get(name, 0)
            dot = Dot(me, number)
            self.added[name] = self.added.get(name, 0) + 1
        rows = {dot: change.row} if dot and change.row else {}
        self.relations[name] = relation.changed(self.store.version + 1, gone=change.gone, added=rows, seen={})
        self.written.append(Written(name, dot, change.row, change.gone, statement))

    def committed(self) -> Store:
        """Return the store after the commit, the same store if nothing changed."""
        if not self.relations:
            return self.store
        me = self.store.incarnation
        done: dict[str, Relation] = {}
        for name, relation in self.relations.items():
            count = self.added.get(name, 0) or int(holds(Rule.NUMBERED))
            number = self.store.relations[name].next(me) - 1 + count
            done[name] = replace(
                relation, vector={**relation.vector, me: number} if number else relation.vector
            )
        return self.store.committed(done)


def write(store: Store, statements: Sequence[Statement], *, now: int = 0) -> tuple[Store, list[Written]]:
    """Return the store after one transaction, and what each statement did; `now` is the wall clock."""
    transaction = Transaction(store)
    for statement in statements:
        relation = transaction.relation(statement.relation)
        group = relation.group(statement.key)
        change = _change(relation.kind, group, statement, now)
        if change is not None:
            transaction.change(statement.relation, change, statement)
    return transaction.committed(), transaction.written


def _change(kind: Kind, group: Rows, statement: Statement, now: int) -> Change | None:
    match statement:
        case Insert(_, key, value):
            return kind.insert(group, key, value, now)
        case Delete():
            return kind.delete(group)
        case Forget():
            return kind.forget(group)
        case _:
            assert_never(statement)
