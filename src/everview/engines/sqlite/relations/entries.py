"""Bags and add-wins relations: a row is there by its entries, one for each commit that wrote it.

An entry is known by its row and its dot: the site and commit that made it (Rings' lattice wrapper; cuts
arrive whole, so a vector says which dots are known, and intervals never have gaps). The rows' table has the
sum over each row's entries, which circuits read.

| kind | an entry's value | joined by | a row's sum |
|---|---|---|---|
| bag | a weight, written once | – | of the weights; it is there as often as that, if above 0 |
| add-wins | causal length of the insertion, 1 or 2 | max | of the insertions that live |
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from functools import cached_property

from everview.engines.sqlite.measuring import Bound
from everview.engines.sqlite.parts import CHUNK_BYTES, Arrival, Chunk, Position
from everview.engines.sqlite.relations.base import StoredRelation, read_by_version
from everview.engines.sqlite.relations.staging import each_once, stage_columns


class EntriesRelation(StoredRelation):
    """Row → sum of entries; (row, dot) → value."""

    @property
    def partial(self) -> str:
        return "w > 0"

    @property
    def entries(self) -> str:
        """The table of entries."""
        return f"{self.table.name}_entries"

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table.name, self.entries)

    @property
    def travelling(self) -> str:
        return self.entries

    entry_columns: tuple[str, ...] = ()
    """What an entry has beyond its key and version."""

    def ddl(self) -> list[str]:
        columns = ["row INTEGER", "isite INTEGER", "iseq INTEGER", *self._entry_fields(), "version INTEGER"]
        fields = ", ".join(f"{column} NOT NULL" for column in columns)
        key = "PRIMARY KEY (row, isite, iseq)"
        return [*self.table.ddl(), f"CREATE TABLE {self.entries} ({fields}, {key}) WITHOUT ROWID"]

    def _entry_fields(self) -> list[str]:
        return [f"{name} INTEGER" for name in self.entry_columns]

    def version_ddl(self) -> list[str]:
        return [
            f"CREATE INDEX IF NOT EXISTS {self.entries}_version ON {self.entries} (version, row, isite, iseq)"
        ]

    @property
    def place(self) -> tuple[str, ...]:
        return ("row", "isite", "iseq")

    @property
    @abstractmethod
    def _sent(self) -> list[str]:
        """What of an entry e is sent, after its row."""

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
        *,
        where: str = "1",
    ) -> Chunk:
        key = self.place
        cells = [*(f"r.{column}" for column in self.table.columns), *self._sent]
        select = (
            f"SELECT {', '.join([*cells, 'e.version', *key])} "
            f"FROM {self.entries} AS e CROSS JOIN {self.table.name} AS r ON r.id = e.row WHERE {where}"
        )
        return read_by_version(connection, select, key, since, after, Bound(limit, room, self.weighed))

    @property
    def writers(self) -> str:
        return (
            f"SELECT e.isite FROM {self.table.name} AS r CROSS JOIN {self.entries} AS e ON e.row = r.id "
            "WHERE {same} ORDER BY e.version"
        )

    # What the kinds share.

    @cached_property
    def rows_made(self) -> str:
        """Give every arrived row a number."""
        target = ", ".join(self.table.key())
        return (
            f"INSERT INTO {self.table.name} ({', '.join([*self.table.columns, 'w'])}) "
            f"SELECT DISTINCT {', '.join([*self.table.columns, '0'])} FROM {self.arrived} WHERE 1 "
            f"ON CONFLICT ({target}) DO NOTHING"
        )

    @cached_property
    def numbered(self) -> str:
        """Arrived rows a with the numbers of their rows r."""
        return f"{self.arrived} AS a CROSS JOIN {self.table.name} AS r ON {self.same('r', 'a')}"

    @cached_property
    def held(self) -> str:
        """Whether the entry of an arrived row a is held."""
        return (
            f"EXISTS (SELECT 1 FROM {self.table.name} AS r CROSS JOIN {self.entries} AS e "
            f"ON e.row = r.id AND e.isite = a.isite AND e.iseq = a.iseq WHERE {self.same('r', 'a')})"
        )

    def apply_sums(self, connection: sqlite3.Connection, changes: str) -> None:
        """Add changes, a SELECT of row numbers and what is added to their sums; fill the delta."""
        temp = self.scratch_sums
        connection.execute(f"INSERT INTO {temp} {changes}")
        cells = ", ".join(f"r.{column}" for column in self.table.columns)
        shown = self.shown
        connection.execute(
            f"INSERT INTO {self.delta} SELECT {cells}, {shown('r.w + s.w')} - {shown('r.w')} "
            f"FROM {temp} AS s CROSS JOIN {self.table.name} AS r ON r.id = s.row "
            f"WHERE {shown('r.w + s.w')} <> {shown('r.w')}"
        )
        connection.execute(
            f"UPDATE {self.table.name} AS r SET w = r.w + s.w FROM {temp} AS s WHERE r.id = s.row"
        )
        connection.execute(f"DELETE FROM {temp}")

    @property
    def scratch_sums(self) -> str:
        """Temporary: row number → what is added to its sum."""
        return f"{self.arrived}_sums"

    @abstractmethod
    def shown(self, total: str) -> str:
        """Return how often a row with this sum is there."""

    def note_kept(self, connection: sqlite3.Connection) -> None:
        """Remember the entries of a snapshot."""
        connection.execute(
            f"INSERT OR IGNORE INTO {self.kept} SELECT r.id, a.isite, a.iseq FROM {self.numbered}"
        )

    @property
    def missing(self) -> str:
        """Whether an entry is not in the snapshot."""
        return f"NOT {self.kept_as(('row', 'isite', 'iseq'))}"

    def arrive(self, connection: sqlite3.Connection, arrival: Arrival) -> None:
        """Stage what arrived, each entry once."""
        width = len(self.table.columns)
        dot = (*range(width), width + 1, width + 2)  # the value stands between
        stage_columns(connection, self.arrived, each_once(arrival.columns, dot, width))

    def sweep(self, connection: sqlite3.Connection) -> None:
        """Drop rows that have no entries left."""
        connection.execute(
            f"DELETE FROM {self.table.name} WHERE w = 0 "
            f"AND NOT EXISTS (SELECT 1 FROM {self.entries} AS e WHERE e.row = id)"
        )
