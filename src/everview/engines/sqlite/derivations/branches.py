"""Received derivations: the rows of one branch, each with the ids it was made from, by position.

A derivation only ever comes, and is the same one however often it comes: its ids tell it apart from others.
It is stored even if it is dead on arrival, with the number of its positions that are dead, and counts while
that is 0. When an id turns, the derivations over it are found by an index for each position.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, starmap
from operator import add, not_
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.derivations.liveness import Forget, Liveness, Turn
from everview.engines.sqlite.ids import ids_of, joined
from everview.engines.sqlite.measuring import Bound, long_columns
from everview.engines.sqlite.parts import CHUNK_BYTES, ID, Arrival, Chunk, PartColumn, Position, value
from everview.engines.sqlite.relations.base import read_by_version
from everview.engines.sqlite.relations.staging import Columns, pour, stage_columns
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.plan import Schema
from everview.planner.branches import Branch


@dataclass
class ReceivedBranch:
    """One part of a received view's stream: its derivations by one branch."""

    circuit: Circuit
    branch: Branch
    schema: Schema
    table: str
    positions: tuple[Liveness, ...]
    delta: str
    """Temporary: the rows that came to count, or ceased to; of all branches together."""
    made: str

    def __post_init__(self) -> None:
        for liveness in {id(at): at for at in self.positions}.values():
            liveness.on_turn.append(self._turner(liveness))
            liveness.on_forget.append(self._forgetter(liveness))

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of the row."""
        return columns(len(self.schema))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the ids' numbers, by position."""
        return tuple(f"i{position}" for position in range(len(self.positions)))

    # Tables.

    def ddl(self) -> list[str]:
        """Return what creates its table; the key serves the first position, indexes the others.

        A single position's number is the row's own, which is the fastest key there is.
        """
        cells = [f"{c} {column_type(f.type)}" for c, f in zip(self.cells, self.schema, strict=True)]
        numbers = [f"{number} INTEGER NOT NULL" for number in self.numbers]
        fields = [*cells, *numbers, "dead INTEGER NOT NULL", "version INTEGER NOT NULL"]
        key = f"PRIMARY KEY ({', '.join(self.numbers)})"
        tree = " WITHOUT ROWID" if len(self.numbers) > 1 else ""
        return [
            f"CREATE TABLE {self.table} ({', '.join([*fields, key])}){tree}",
            *(
                f"CREATE INDEX {self.table}_{number} ON {self.table} ({number})"
                for number in self.numbers[1:]
            ),
        ]

    def version_ddl(self) -> list[str]:
        """Return what creates the index by which changes are found, once this site is asked for them."""
        by = ", ".join(("version", *self.numbers))
        return [f"CREATE INDEX IF NOT EXISTS {self.table}_version ON {self.table} ({by})"]

    @property
    def tables(self) -> tuple[str, ...]:
        """The table that is the truth about these derivations."""
        return (self.table,)

    # A part of a stream.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        """The row, then the ids."""
        return (*map(value, self.schema), *(ID for _ in self.positions))

    def read(
        self,
        connection: sqlite3.Connection,
        since: int,
        after: Position | None,
        limit: int,
        room: int = CHUNK_BYTES,
    ) -> Chunk:
        """Return what has come, or come to live, since a version, dead or not."""
        named = [
            f"(SELECT x.{half} FROM {at.ids} AS x WHERE x.{at.number} = {number})"
            for at, number in zip(self.positions, self.numbers, strict=True)
            for half in at.halves
        ]
        shown = [*self.cells, *named, "version", *self.numbers]
        select = f"SELECT {', '.join(shown)} FROM {self.table} WHERE 1"
        bound = Bound(limit, room, long_columns(self.schema))
        chunk = read_by_version(connection, select, self.numbers, since, after, bound)
        width = len(self.schema)
        rows = [
            (*row[:width], *starmap(joined, zip(row[width::2], row[width + 1 :: 2], strict=True)))
            for row in chunk.rows
        ]
        return Chunk(rows, chunk.reached, chunk.size)

    @cached_property
    def _into(self) -> str:
        fields = ", ".join(["version", *self.cells, *self.numbers, "dead"])
        return f"INSERT OR IGNORE INTO {self.table} ({fields})"

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Store derivations that are not held; those that live are rows that came. Return how many."""
        if not len(arrival):
            return 0
        columns = self._numbered(connection, arrival)
        if self.delta not in self.circuit.demanded:
            return self._store(connection, columns, arrival.version)
        connection.execute("SAVEPOINT attempt")
        count = self._store(connection, columns, arrival.version)
        if count == len(arrival):
            self._tell(connection, columns)
        else:  # of those that were there already nothing changes
            connection.execute("ROLLBACK TO attempt")
            count = self._add_unknown(connection, columns, arrival.version)
        connection.execute("RELEASE attempt")
        return count

    def _numbered(self, connection: sqlite3.Connection, arrival: Arrival) -> list[Sequence[Any]]:
        """The rows, numbers for their ids, and how many of those are dead."""
        width = len(self.schema)
        found = [
            at.number_ids(connection, ids_of(ids))
            for at, ids in zip(self.positions, arrival.columns[width:], strict=True)
        ]
        dead = found[0][1]
        for _, more in found[1:]:
            if any(more):
                dead = list(map(add, dead, more))
        return [*arrival.columns[:width], *(numbers for numbers, _ in found), dead]

    def _store(self, connection: sqlite3.Connection, columns: Columns, version: int) -> int:
        return pour(connection, lambda rows: f"{self._into} {rows}", columns, version)

    def _tell(self, connection: sqlite3.Connection, columns: Columns) -> None:
        """Leave rows that came, and live, in the delta."""
        cells, dead = columns[: len(self.schema)], columns[-1]
        if any(dead):
            cells = [list(compress(column, map(not_, dead))) for column in cells]
        stage_columns(connection, self.delta, cells, 1)

    def _add_unknown(self, connection: sqlite3.Connection, columns: Columns, version: int) -> int:
        """Store those that are not there yet, each once, and leave the live ones in the delta."""
        stage_columns(connection, self.made, columns)
        key = ", ".join(self.numbers)
        connection.execute(
            f"DELETE FROM {self.made} WHERE ({key}) IN (SELECT {key} FROM {self.table}) "
            f"OR rowid NOT IN (SELECT min(rowid) FROM {self.made} GROUP BY {key})"
        )
        count = connection.execute(f"{self._into} SELECT ?, * FROM {self.made}", (version,)).rowcount
        come = ", ".join([*self.cells, "1"])
        connection.execute(f"INSERT INTO {self.delta} SELECT {come} FROM {self.made} WHERE dead = 0")
        connection.execute(f"DELETE FROM {self.made}")
        return count

    def garbage(self, connection: sqlite3.Connection) -> int:
        """Return how many derivations are held that do not count."""
        dead = f"SELECT count(*) FROM {self.table} WHERE dead > 0"
        return int(connection.execute(dead).fetchone()[0])

    # What the circuit reads.

    @property
    def partial(self) -> str:
        """The condition under which a derivation counts, beginning with a bare column."""
        return "dead = 0"

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows that count into the delta, as if they had just come; return how many."""
        come = ", ".join([*self.cells, "1"])
        return connection.execute(
            f"INSERT INTO {self.delta} SELECT {come} FROM {self.table} WHERE {self.partial}"
        ).rowcount

    # Ids that turn.

    def _places(self, liveness: Liveness) -> Sequence[str]:
        return [n for n, at in zip(self.numbers, self.positions, strict=True) if at is liveness]

    def _turner(self, liveness: Liveness) -> Turn:
        """Count the dead anew, position by position, so that each crossing of 0 is seen once.

        What comes to live gets a new version: whoever reads from here may have forgotten it meanwhile.
        """
        turned = liveness.turned

        def turn(connection: sqlite3.Connection, version: int) -> None:
            for number in self._places(liveness):
                if self.delta in self.circuit.demanded:
                    shown = ", ".join([*(f"b.{c}" for c in self.cells), "t.turn"])
                    connection.execute(
                        f"INSERT INTO {self.delta} SELECT {shown} FROM {turned} AS t "
                        f"CROSS JOIN {self.table} AS b ON b.{number} = t.n AND b.dead = (t.turn > 0)"
                    )
                which = f"WHERE {number} IN (SELECT n FROM {turned} WHERE turn = ?)"
                connection.execute(f"UPDATE {self.table} SET dead = dead + 1 {which}", (-1,))
                connection.execute(
                    f"UPDATE {self.table} SET dead = dead - 1, version = iif(dead = 1, ?, version) {which}",
                    (version, 1),
                )

        return turn

    def _forgetter(self, liveness: Liveness) -> Forget:
        def forget(connection: sqlite3.Connection) -> None:
            for number in self._places(liveness):
                connection.execute(
                    f"DELETE FROM {self.table} WHERE {number} IN (SELECT n FROM {liveness.turned})"
                )

        return forget
