"""Rows of owners: only its owner writes a row, and of each owner the rows of its greatest epoch are shown.

A row has a tuple, how often that is there, and an epoch. An epoch belongs to one incarnation. It begins in
one commit with a mark, a row that is there 0 times, and with all rows of a state. From then on every commit
of the owner removes and adds rows. So what is shown is a state that the owner had: its vector is in order,
and rows of an epoch are removed by others only with a greater epoch, or after it.

Only marks of stores that are called like the owner count. The plain table has the rows of the epochs that are
shown, with their marks; all others are held beside it. (Titan §3; `spec/replication/publications.py`)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.rows.base import GONE, Arrived, StoredRows
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.scalars.literals import text_literal
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.limits import COPIES, LONGEST
from everview.language.relations import Relation


@dataclass(frozen=True)
class OwnedRows(StoredRows):
    """Rows (tuple, copies, epoch)."""

    winners: str
    """Temporary: of touched owners the greatest epoch, and the site that it belongs to."""

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:  # noqa: ARG003
        """Return how often a tuple is there, and its epoch."""
        return ("copies", "epoch")

    @property
    def authority(self) -> str | None:
        """The owner of all rows; None where a row's first column says whose it is."""
        return None

    @property
    def width(self) -> int:
        """By so many of its columns, the first ones, the owner finds a tuple."""
        return len(self.table.schema)

    def owner(self, alias: str) -> str:
        """Return the SQL of the owner of a row."""
        return f"{alias}.c0" if self.authority is None else text_literal(self.authority)

    def marks(self, connection: sqlite3.Connection) -> list[tuple[str, int, str]]:
        """Return each owner of whom something is shown, its epoch, and the incarnation that writes."""
        return connection.execute(
            f"SELECT {self.owner('m')}, m.epoch, s.incarnation FROM {self.table.name} AS m "
            f"JOIN {SITES} AS s ON s.number = m.dot >> 40 WHERE m.copies = 0 ORDER BY 1"
        ).fetchall()

    # What circuits read.

    @property
    def partial(self) -> str:
        """Marks are no rows."""
        return "copies > 0"

    @property
    def weight(self) -> str:
        """Its copies."""
        return "copies"

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read what is shown, and its change: a bag."""
        names = columns(len(self.relation.schema))

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [
                from_table(circuit.names, self.table.name, names, weight=self.weight, partial=self.partial)
            ]

        return Node(self.relation.schema, delta, contents)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows that are shown into the delta; return how many."""
        return connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {self._listed('copies')} "
            f"FROM {self.table.name} WHERE {self.partial}"
        ).rowcount

    # Tables.

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        fields = [
            f"{c} {column_type(f.type)}" for c, f in zip(self.table.columns, self.table.schema, strict=True)
        ]
        extras = (f"{name} INTEGER NOT NULL" for name in ("copies", "epoch", "version"))
        listed = ", ".join(["dot INTEGER PRIMARY KEY", *fields, *extras])
        return [
            statement
            for table in self.tables
            for statement in (
                f"CREATE TABLE {table} ({listed})",
                f"CREATE INDEX {table}_marks ON {table} (epoch) WHERE copies = 0",
            )
        ]

    @cached_property
    def stored(self) -> str:
        """The columns of both tables."""
        return ", ".join((*self.cells, "dot", "version"))

    # Users do not write here (see `owner`).

    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Refuse rows: an owner writes states."""
        raise NotImplementedError

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Refuse rows: an owner writes states."""
        raise NotImplementedError

    # Rows from elsewhere.

    def remove(self, connection: sqlite3.Connection, version: int) -> None:
        """Remove the rows that are named in `GONE`, and show other epochs where marks went."""
        shown = f"FROM {GONE} AS g CROSS JOIN {self.table.name} AS r ON r.dot = g.dot WHERE r.copies"
        marked = connection.execute(
            f"INSERT OR IGNORE INTO {self.touched} SELECT {self.owner('r')} {shown} = 0"
        ).rowcount
        cells = ", ".join([*(f"r.{c}" for c in self.table.columns), "-r.copies"])
        connection.execute(f"INSERT INTO {self.delta} ({self._listed('w')}) SELECT {cells} {shown} > 0")
        for table in self.tables:
            connection.execute(f"DELETE FROM {table} WHERE dot IN (SELECT dot FROM {GONE})")
        if marked:
            self._choose(connection, lost=True)

    def _take(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> int:
        """Marks first: they say where the rows belong."""
        staged = f"d.rowid > {before} AND d.dot IS NOT NULL"
        count, marks = connection.execute(
            f"SELECT count(*), ifnull(sum(copies = 0), 0) FROM {self.delta} AS d WHERE {staged}"
        ).fetchone()
        if marks:
            of_marks = f"{staged} AND d.copies = 0"
            connection.execute(
                f"INSERT OR IGNORE INTO {self.touched} "
                f"SELECT {self.owner('d')} FROM {self.delta} AS d WHERE {of_marks}"
            )
            self._hold(connection, of_marks, arrived.version)
            self._choose(connection, lost=False)
        cells = ", ".join([*(f"d.{cell}" for cell in self.cells), "d.dot", "?"])
        shown = f"SELECT {self._state('m')} FROM {self.table.name} AS m WHERE m.copies = 0"
        added = connection.execute(
            f"INSERT INTO {self.table.name} ({self.stored}) SELECT {cells} FROM {self.delta} AS d "
            f"WHERE {staged} AND d.copies <= {COPIES} AND ({self._state('d')}) IN ({shown})",
            (arrived.version,),
        ).rowcount
        if added < count - marks:
            others = f"{staged} AND d.dot NOT IN (SELECT dot FROM {self.table.name})"
            self._hold(connection, others, arrived.version)
        connection.execute(f"UPDATE {self.delta} AS d SET w = copies WHERE {staged}")
        return int(count)

    def _hold(self, connection: sqlite3.Connection, where: str, version: int) -> None:
        """Put staged rows aside."""
        cells = ", ".join([*(f"d.{cell}" for cell in self.cells), "d.dot", "?"])
        connection.execute(
            f"INSERT INTO {self.held} ({self.stored}) SELECT {cells} FROM {self.delta} AS d WHERE {where}",
            (version,),
        )
        connection.execute(f"DELETE FROM {self.delta} AS d WHERE {where}")

    def settle(self, connection: sqlite3.Connection, version: int) -> None:
        """Nothing waits: what is shown was chosen as marks came and went."""

    def _choose(self, connection: sqlite3.Connection, *, lost: bool) -> None:
        """Show of the touched owners the greatest epochs; the delta holds what changed.

        `lost` says that marks of what is shown have gone.
        """
        table, held, winners, touched = self.table.name, self.held, self.winners, self.touched
        connection.execute(self._greatest)
        marks = f"FROM {table} AS m WHERE m.copies = 0"
        shown = f"SELECT {self._state('m')} {marks}"
        same = f"SELECT owner FROM {winners} WHERE (owner, epoch, site) IN ({shown})"
        for chosen in (touched, winners):
            connection.execute(f"DELETE FROM {chosen} WHERE owner IN ({same})")
        of_touched = f"{{}} IN (SELECT owner FROM {touched})"
        if lost or connection.execute(
            f"SELECT EXISTS (SELECT 1 {marks} AND {of_touched.format(self.owner('m'))})"
        ).fetchone() == (1,):
            self._move(connection, table, held, of_touched.format(self.owner("r")), "-copies")
        fits = f"r.copies <= {COPIES} AND ({self._state('r')}) IN (SELECT owner, epoch, site FROM {winners})"
        self._move(connection, held, table, fits, "copies")
        for chosen in (touched, winners):
            connection.execute(f"DELETE FROM {chosen}")

    def _move(
        self, connection: sqlite3.Connection, source: str, target: str, where: str, weight: str
    ) -> None:
        """Bring rows from one table to the other, and their change into the delta."""
        rows = f"FROM {source} AS r WHERE {where}"
        into = f"INSERT INTO {self.delta} ({self._listed('w')})"
        connection.execute(f"{into} SELECT {self._listed(weight)} {rows} AND copies > 0")
        connection.execute(f"INSERT INTO {target} ({self.stored}) SELECT {self.stored} {rows}")
        connection.execute(f"DELETE {rows}")

    def _state(self, alias: str) -> str:
        """The owner, epoch and site of a row: what names a state."""
        return f"{self.owner(alias)}, {alias}.epoch, {alias}.dot >> 40"

    @cached_property
    def _greatest(self) -> str:
        """Set aside of each touched owner the greatest epoch; of two equal ones the greater incarnation's."""
        marks = " UNION ALL ".join(
            f"SELECT {self.owner('r')} AS owner, r.epoch, r.dot >> 40 AS site FROM {table} AS r "
            "WHERE r.copies = 0"
            for table in self.tables
        )
        place = "row_number() OVER (PARTITION BY m.owner ORDER BY m.epoch DESC, s.incarnation DESC)"
        ranked = (
            f"SELECT m.owner, m.epoch, m.site, {place} AS place FROM ({marks}) AS m "
            f"JOIN {SITES} AS s ON s.number = m.site AND s.name = m.owner "
            f"WHERE m.epoch <= {LONGEST} AND m.owner IN (SELECT owner FROM {self.touched})"
        )
        return f"INSERT INTO {self.winners} SELECT owner, epoch, site FROM ({ranked}) WHERE place = 1"

    def net(self, connection: sqlite3.Connection) -> None:
        """Take out of the delta what comes and goes."""
        summed = f"SELECT {self._listed('sum(w) AS w')} FROM {self.delta} GROUP BY {self._listed() or '1'}"
        connection.execute(
            f"INSERT INTO {self.scratch} ({self._listed('copies')}) SELECT * FROM ({summed}) WHERE w <> 0"
        )
        connection.execute(f"DELETE FROM {self.delta}")
        into = f"INSERT INTO {self.delta} ({self._listed('w')})"
        connection.execute(f"{into} SELECT {self._listed('copies')} FROM {self.scratch}")
        connection.execute(f"DELETE FROM {self.scratch}")
