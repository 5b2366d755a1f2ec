"""Rounds: a commit carried through a recursion.

1. Rows that lost a derivation are doubtful. A doubtful row that no derivation from earlier rows supports
   goes, and those that it was used to derive become doubtful in turn, until none goes. What remains is
   proved: each of its supports is earlier, so they lead down to rows of the inputs.
2. Rows that went and can be derived from what remains come back, at a higher level; changed inputs add rows;
   and what was added last derives more, until nothing is added (semi-naive).

So a deletion costs what it makes doubtful. A row that is derived in other ways from rows that were there
before it is looked at and stays, and what lies behind it is not looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from everview.engines.sqlite.circuits.recursion.tables import LEVEL, Tables, listed


@dataclass(frozen=True, slots=True)
class Rounds:
    """The statements of one group, for one set of changed inputs."""

    tables: Sequence[Tables]
    nets: Sequence[tuple[str, str]]
    """What consolidates the change of an input, and into which table."""
    doubts: Sequence[str]
    doubts_of: Sequence[str]
    judgements: Sequence[str]
    """What fills `last` from `doubtful`, one for each of the tables."""
    returns: Sequence[str]
    seeds: Sequence[str]
    grows: Sequence[Sequence[str]]
    """What the rows of either table that grows derive."""
    read: frozenset[str]
    """The changes that somebody reads."""
    negates: bool
    """Whether rows that an input gains may take rows away."""

    def run(self, connection: sqlite3.Connection, *, shrinks: bool) -> set[str]:
        """Bring the group up to date; return the changes that have rows, and the nets, to be emptied."""
        for sql, _ in self.nets:
            connection.execute(sql)
        went = self._shrink(connection) if shrinks or self.negates else False
        self._grow(connection, went=went)
        filled = {table for _, table in self.nets}
        for table in self.tables:
            if table.change in self.read:
                filled.add(table.change)
                if went:
                    self._report_gone(connection, table)
            connection.execute(f"DELETE FROM {table.gone}")
        return filled

    def _shrink(self, connection: sqlite3.Connection) -> bool:
        went = False
        doubtful = _changes(connection, self.doubts)
        while doubtful:
            found = [connection.execute(sql).rowcount > 0 for sql in self.judgements]
            for table in self.tables:
                connection.execute(f"DELETE FROM {table.doubtful}")
            if not any(found):
                return went
            went = True
            # The rows that go are still there: of two that support a row together both may go at once.
            doubtful = _changes(connection, self.doubts_of)
            for table in (table for table, some in zip(self.tables, found, strict=True) if some):
                names = listed((*table.columns, LEVEL))
                connection.execute(f"INSERT INTO {table.gone} ({names}) SELECT {names} FROM {table.last}")
                connection.execute(table.delete(table.last))
                connection.execute(f"DELETE FROM {table.last}")
        return went

    def _grow(self, connection: sqlite3.Connection, *, went: bool) -> None:
        added = _changes(connection, [*(self.returns if went else ()), *self.seeds])
        turn = 0
        while added:
            for table in self.tables:
                names = listed((*table.columns, LEVEL))
                moved = f"INSERT INTO {table.state.name} ({names}) SELECT {names} FROM {table.grown[turn]}"
                if connection.execute(moved).rowcount > 0 and table.change in self.read:
                    self._report_added(connection, table, table.grown[turn], went=went)
            added = _changes(connection, self.grows[turn])
            for table in self.tables:
                connection.execute(f"DELETE FROM {table.grown[turn]}")
            turn = 1 - turn

    def _report_added(self, connection: sqlite3.Connection, table: Tables, grown: str, *, went: bool) -> None:
        own = listed(table.of("x"))
        known = f"WHERE NOT EXISTS (SELECT 1 FROM {table.gone} AS g WHERE {table.same('g', 'x')})"
        connection.execute(
            f"INSERT INTO {table.change} SELECT {own}, 1 FROM {grown} AS x {known if went else ''}"
        )

    def _report_gone(self, connection: sqlite3.Connection, table: Tables) -> None:
        there = f"SELECT 1 FROM {table.state.name} AS s WHERE {table.same('s', 'g')}"
        connection.execute(
            f"INSERT INTO {table.change} SELECT {listed(table.of('g'))}, -1 FROM {table.gone} AS g "
            f"WHERE NOT EXISTS ({there})"
        )


def _changes(connection: sqlite3.Connection, statements: Sequence[str]) -> bool:
    """Run statements; return whether any of them put in a row."""
    return sum(connection.execute(sql).rowcount for sql in statements) > 0
