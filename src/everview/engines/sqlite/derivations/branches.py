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

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.derivations.liveness import Forget, Liveness, Turn
from everview.engines.sqlite.parts import ID, Arrival, Chunk, PartColumn, Position, Row, value
from everview.engines.sqlite.relations.base import read_by_version
from everview.engines.sqlite.relations.staging import pour
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

    def read(self, connection: sqlite3.Connection, since: int, after: Position | None, limit: int) -> Chunk:
        """Return what has come, or come to live, since a version, dead or not."""
        named = [
            f"(SELECT x.{at.blob} FROM {at.ids} AS x WHERE x.{at.number} = {number})"
            for at, number in zip(self.positions, self.numbers, strict=True)
        ]
        shown = [*self.cells, *named, "version", *self.numbers]
        select = f"SELECT {', '.join(shown)} FROM {self.table} WHERE 1"
        return read_by_version(connection, select, self.numbers, since, after, limit)

    def _resolved(self, values: str) -> str:
        """Return rows of version, row and ids, with numbers for the ids, and how many of those are dead.

        Rows that name an id without a number are left out.
        """
        width = len(self.schema) + 1
        pairs = [(f"x{position}", at) for position, at in enumerate(self.positions)]
        joins = "".join(
            f" CROSS JOIN {at.ids} AS {x} ON {x}.{at.blob} = a.column{number}"
            for number, (x, at) in enumerate(pairs, start=width + 1)
        )
        dead = " + ".join(f"({at.dead(x)})" for x, at in pairs)
        cells = [f"a.column{number}" for number in range(1, width + 1)]
        shown = ", ".join([*cells, *(f"{x}.{at.number}" for x, at in pairs), dead])
        return f"SELECT {shown} FROM ({values}) AS a{joins}"

    @cached_property
    def _into(self) -> str:
        fields = ", ".join(["version", *self.cells, *self.numbers, "dead"])
        return f"INSERT OR IGNORE INTO {self.table} ({fields})"

    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Store derivations that are not held; those that live are rows that came. Return how many."""
        if not arrival.rows:
            return 0
        if self.delta in self.circuit.demanded:
            return self._add(connection, arrival)
        return self._add_unread(connection, arrival)

    def _add_unread(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Store them where nobody asks what changed."""

        def store(values: str) -> str:
            return f"{self._into} {self._resolved(values)}"

        count = pour(connection, store, arrival.rows, arrival.version)
        if count < len(arrival.rows):  # some were there, or name an id that is not known
            self._name_ids(connection, arrival.rows)
            count += pour(connection, store, arrival.rows, arrival.version)
        return count

    def _add(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Store them, and leave the rows of those that are new and live in the delta."""

        def resolve(values: str) -> str:
            return f"INSERT INTO {self.made} {self._resolved(values)}"

        staged = len(arrival.rows)
        if pour(connection, resolve, arrival.rows, arrival.version) < staged:
            connection.execute(f"DELETE FROM {self.made}")
            self._name_ids(connection, arrival.rows)
            pour(connection, resolve, arrival.rows, arrival.version)
        key = ", ".join(self.numbers)
        store = f"{self._into} SELECT * FROM {self.made}"
        connection.execute("SAVEPOINT attempt")
        count = connection.execute(store).rowcount
        if count < staged:  # of those that were there already nothing changes
            connection.execute("ROLLBACK TO attempt")
            connection.execute(
                f"DELETE FROM {self.made} WHERE ({key}) IN (SELECT {key} FROM {self.table}) "
                f"OR rowid NOT IN (SELECT min(rowid) FROM {self.made} GROUP BY {key})"
            )
            count = connection.execute(store).rowcount
        connection.execute("RELEASE attempt")
        come = ", ".join([*self.cells, "1"])
        connection.execute(f"INSERT INTO {self.delta} SELECT {come} FROM {self.made} WHERE dead = 0")
        connection.execute(f"DELETE FROM {self.made}")
        return count

    def _name_ids(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """Give numbers to ids that have come ahead of their liveness, or were forgotten."""
        for place, at in enumerate(self.positions, start=len(self.schema)):
            named = {row[place]: None for row in rows}
            pour(connection, at.naming, [(id_,) for id_ in named])

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
