"""What a store has seen and does not hold is gone: a relation is its live rows and a vector.

A dot that the vector covers and that has no row was removed by somebody. So a removal needs no tombstone,
and two relations with equal vectors hold equal rows. A log of removals only makes cuts small.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spec.replication.kinds import Kind
from spec.replication.rows import MODULUS, Key, Row, Rows, digest
from spec.replication.rules import Rule, holds
from spec.replication.vectors import Dot, Vector, covers, includes, join


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a peer has been read: its version, and the random tag that it gave to that version."""

    version: int = 0
    tag: int = 0


START = Cursor()


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, or one partition of it, at one store and one moment."""

    kind: Kind
    rows: Rows = field(default_factory=dict)
    came: Mapping[Dot, int] = field(default_factory=dict)
    """The store's version at which each row came."""
    vector: Vector = field(default_factory=dict)
    digest: int = 0
    log: Mapping[Dot, int] = field(default_factory=dict)
    """The removals that are remembered, and the store's version at which each came."""
    floor: int = 0
    """Removals up to this version may be missing from the log."""
    forgotten: Vector = field(default_factory=dict)
    """Removals that somebody with this vector may not have seen may be missing from the log."""
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    """How far each peer has been read for this relation."""

    def groups(self) -> dict[Key, dict[Dot, Row]]:
        """Return the live rows by key."""
        found: dict[Key, dict[Dot, Row]] = {}
        for dot, row in self.rows.items():
            found.setdefault(row.key, {})[dot] = row
        return found

    def group(self, key: Key) -> dict[Dot, Row]:
        """Return the live rows of one key."""
        return {dot: row for dot, row in self.rows.items() if row.key == key}

    def shown(self) -> list[object]:
        """Return what a reader sees, in some fixed order."""
        return sorted((item for group in self.groups().values() for item in self.kind.shown(group)), key=repr)

    def missing(self, vector: Vector) -> dict[Dot, Row]:
        """Return the rows that a reader with this vector has not seen."""
        return {dot: row for dot, row in self.rows.items() if not covers(vector, dot)}

    def next(self, incarnation: str) -> int:
        """Return the number after the last of this incarnation."""
        return self.vector.get(incarnation, 0) + 1

    def changed(
        self, version: int, *, gone: Iterable[Dot] = (), added: Rows | None = None, seen: Vector
    ) -> "Relation":
        """Return the relation after a commit: removals are logged, rows added, and the vector joined."""
        gone, added = list(gone), added or {}
        rows, came, log = dict(self.rows), dict(self.came), dict(self.log)
        total = self.digest + digest(added.items())
        for dot in gone:
            if dot in rows:
                total -= digest([(dot, rows.pop(dot))])
                del came[dot]
                log[dot] = version
            elif holds(Rule.PASSED_ON):
                log[dot] = version
        for dot, row in added.items():
            rows[dot], came[dot] = row, version
        return replace(
            self, rows=rows, came=came, log=log, digest=total % MODULUS, vector=join(self.vector, seen)
        )

    def without_log(self, version: int) -> "Relation":
        """Return the relation without its log, which may be forgotten at any time."""
        return replace(self, log={}, floor=version, forgotten=join(self.forgotten, self.vector))

    def with_gap(self, version: int, seen: Vector) -> "Relation":
        """Return the relation whose log lacks removals that somebody with this vector has seen."""
        return replace(self, floor=version, forgotten=join(self.forgotten, seen))

    def with_cursor(self, peer: str, cursor: Cursor) -> "Relation":
        """Return the relation that has been read from the peer up to here."""
        known = self.cursors.get(peer, START)
        return replace(self, cursors={**self.cursors, peer: max(known, cursor, key=lambda c: c.version)})

    def reaches(self, vector: Vector) -> bool:
        """Whether the log has every removal that a reader with this vector has not seen."""
        return includes(vector, self.forgotten) or not holds(Rule.LAGGING)
