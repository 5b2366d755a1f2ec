"""Published views: the rows that a view's authority shows, here as they were after one of its commits.

Beside the rows lies where they stand: the authority's *epoch*, a number that it takes anew whenever it may
have forgotten what it published; its *mark*, the commit whose state this is; and the *floor*. Each row has
its multiplicity and the mark at which it last changed. A row that has gone stays with multiplicity 0 until it
is forgotten; the floor is the greatest mark of one that was. A site has one state at a time and takes a later
one whole, so it never shows what the authority did not (`tests/model/published.py` is the specification).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from everview.engines.sqlite.circuits.circuit import Changed, Circuit, Statement, consolidated, live
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, same_row
from everview.engines.sqlite.gone import forget_gone
from everview.engines.sqlite.measuring import Bound, long_columns
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.parts import CHUNK_BYTES, COUNT, Chunk, PartColumn, Position, value
from everview.engines.sqlite.relations.base import read_by_version
from everview.engines.sqlite.relations.staging import stage_columns
from everview.language.relations import View
from everview.planner.published import published_stream

ROWS, STANDING = 0, 1
"""The parts of the stream."""

HOUR_US = 3600 * 1_000_000
"""Who was passed twice within so long is not alone with its name."""


class Standing(NamedTuple):
    """Where a state stands; epoch 0 is that of nothing. States are ordered by epoch, then mark."""

    epoch: int
    mark: int
    floor: int

    @property
    def at(self) -> tuple[int, int]:
        """What names the state."""
        return self.epoch, self.mark


class Later(NamedTuple):
    """An epoch to come: by chance above another, and above the one there is, whichever is greater.

    An authority that was put back twice goes on twice from the same epoch: only chance tells the two apart.
    """

    above: int
    chance: int


class Told(NamedTuple):
    """What a page says of its rows: the sender's state, and that they are what changed in it after `start`.

    `whole` is 1 when they are all there are, and `begins` when what earlier pages had is void.
    """

    epoch: int
    mark: int
    floor: int
    start: int
    whole: int
    begins: int


@dataclass(frozen=True)
class Published:
    """The tables of a view that is published, how circuits read it, and how it travels."""

    view: View
    table: StateTable
    standing: str
    """One row: where the rows stand, and whether this store publishes them."""
    delta: str
    arrived: str
    """Temporary: rows that came with a cut."""

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return published_stream(self.view.name)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about what was published."""
        return (self.table.name, self.standing, self.batches)

    @property
    def batches(self) -> str:
        """The table that says where the rows stood at the end of each batch that was left for others."""
        return f"{self.table.name}_batches"

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        counts = ", ".join(
            f"{name} INTEGER NOT NULL" for name in ("epoch", "mark", "floor", "own", "taken_us")
        )
        by = ", ".join(("refresh", *(() if self._place == ("rowid",) else self._place)))
        return [
            *self.table.ddl(),
            f"CREATE INDEX {self.table.name}_refresh ON {self.table.name} ({by})",
            f"CREATE INDEX {self.table.name}_dead ON {self.table.name} (refresh) WHERE w = 0",
            f"CREATE TABLE {self.standing} (one INTEGER PRIMARY KEY, {counts}, contested INTEGER NOT NULL)",
            f"INSERT INTO {self.standing} VALUES (1, 0, 0, 0, 0, 0, 0)",
            f"CREATE TABLE {self.batches} (version INTEGER PRIMARY KEY, epoch INTEGER, mark INTEGER)",
        ]

    # What circuits read.

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read the rows and their change."""
        names = columns(len(self.view.schema))

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [from_table(circuit.names, self.table.name, names, weight="w", partial="w > 0")]

        return Node(self.view.schema, delta, contents)

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the delta, as if they had just come; return how many."""
        return connection.execute(
            f"INSERT INTO {self.delta} SELECT {self._listed('w')} FROM {self.table.name} WHERE w > 0"
        ).rowcount

    # Publishing here.

    def follow(self, circuit: Circuit, source: Node) -> None:
        """Let every commit that changes the view here change what is published, once that has begun."""
        branches, version = source.delta(), f"(SELECT version FROM {STORE})"
        going = f"(SELECT own FROM {self.standing})"

        def statements(changed: Changed) -> list[Statement]:
            rows = consolidated(live(branches, changed), self.view.schema)
            staged = f"SELECT *, {version} FROM ({rows}) WHERE {going}"
            return [
                Statement(self.table.upsert(staged, ["w = w + excluded.w", "refresh = excluded.refresh"])),
                Statement(
                    f"UPDATE {self.standing} SET mark = {version} WHERE own AND EXISTS "
                    f"(SELECT 1 FROM {self.table.name} WHERE refresh = {version})"
                ),
            ]

        how = "by change: rows that others are to have"
        circuit.step("publish", how, branches, statements, makes="", table=self.table.name)

    def begin(self, connection: sqlite3.Connection, rows: str, version: int, epoch: Later) -> bool:
        """Publish what a SELECT of rows and multiplicities has, from now on in an epoch; whether it is news.

        What others have of this view they had from another store, or an earlier program: they get the whole.
        """
        if self.is_own(connection):
            return False
        self.put(connection, rows, version, whole=True)
        connection.execute(f"DELETE FROM {self.delta}")
        connection.execute(f"DELETE FROM {self.table.name} WHERE w = 0")
        connection.execute(f"UPDATE {self.table.name} SET refresh = ?", (version,))  # not another's commits
        connection.execute(f"UPDATE {self.standing} SET own = 1, mark = ?", (version,))
        self.renew(connection, epoch)
        return True

    def put(self, connection: sqlite3.Connection, rows: str, version: int, *, whole: bool) -> int:
        """Add rows with weights to those there are, or put them in their place; return how many changed.

        The delta holds what changed.
        """
        if whole:
            rows = f"{rows} UNION ALL SELECT {self._listed('-w')} FROM {self.table.name} WHERE w > 0"
        self._sum_up(connection, rows)
        staged = f"SELECT {self._listed('w', '?')} FROM {self.delta}"
        added = ["w = w + excluded.w", "refresh = excluded.refresh"]
        changed = connection.execute(self.table.upsert(staged, added), (version,)).rowcount
        if changed:
            connection.execute(f"UPDATE {self.standing} SET mark = ?", (version,))
        return changed

    def is_own(self, connection: sqlite3.Connection) -> bool:
        """Whether this store publishes the view, and has begun to."""
        return bool(connection.execute(f"SELECT own FROM {self.standing}").fetchone()[0])

    def stop(self, connection: sqlite3.Connection) -> None:
        """What is published no longer follows the view: it begins anew when it is next told of."""
        connection.execute(f"UPDATE {self.standing} SET own = 0")

    def renew(self, connection: sqlite3.Connection, epoch: Later) -> None:
        """Take a new epoch: everybody gets the whole."""
        connection.execute(
            f"UPDATE {self.standing} SET epoch = max(epoch, ?) + ?, floor = mark WHERE own", epoch
        )

    def is_passed(self, connection: sqlite3.Connection, at: tuple[int, int], before_us: int) -> bool:
        """Whether somebody has a later state than is here, and nothing was done about that since a time."""
        if at <= self.stands(connection).at:
            return False
        found = f"SELECT own AND (contested = 0 OR taken_us <= ?) FROM {self.standing}"
        return bool(connection.execute(found, (before_us,)).fetchone()[0])

    def defend(self, connection: sqlite3.Connection, epoch: Later, now_us: int) -> int:
        """Go above it; return how often that was done, each time within an hour of the time before."""
        self.renew(connection, epoch)
        (times,) = connection.execute(
            f"UPDATE {self.standing} SET contested = iif(taken_us > ?, contested, 0) + 1, taken_us = ? "
            "RETURNING contested",
            (now_us - HOUR_US, now_us),
        ).fetchone()
        return int(times)

    def is_contested(self, connection: sqlite3.Connection, now_us: int) -> bool:
        """Whether another publishes it, too, as of late; once, that was this site itself, which forgot it."""
        found = f"SELECT own AND contested > 1 AND taken_us > ? FROM {self.standing}"
        return bool(connection.execute(found, (now_us - HOUR_US,)).fetchone()[0])

    # As it travels.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of rows on the wire: the row, its multiplicity, the mark of its last change."""
        return (*map(value, self.view.schema), COUNT, COUNT)

    @property
    def standing_columns(self) -> tuple[PartColumn, ...]:
        """The columns of the one row that says what the others are."""
        return (COUNT,) * len(Told._fields)

    def stands(self, connection: sqlite3.Connection) -> Standing:
        """Return where the rows that are here stand."""
        found = connection.execute(f"SELECT epoch, mark, floor FROM {self.standing}").fetchone()
        return Standing(*found)

    def read(
        self, connection: sqlite3.Connection, after: Position, limit: int, room: int = CHUNK_BYTES
    ) -> Chunk:
        """Return rows that changed after a position, at most about `limit`, or of about `room` bytes."""
        sent = self._listed("w", "refresh")
        select = f"SELECT {sent}, refresh, {', '.join(self._place)} FROM {self.table.name} WHERE 1"
        bound = Bound(limit, room, long_columns(self.table.schema))
        return read_by_version(connection, select, self._place, -1, after, bound, version="refresh")

    def stage(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Set rows of a page aside until the cut is whole."""
        stage_columns(connection, self.arrived, rows)

    @property
    def staged(self) -> str:
        """The SELECT of rows that were set aside, and their multiplicities."""
        return f"SELECT {self._listed('w')} FROM {self.arrived}"

    def void(self, connection: sqlite3.Connection) -> None:
        """Forget what was set aside."""
        connection.execute(f"DELETE FROM {self.arrived}")

    def fits(self, connection: sqlite3.Connection, told: Told) -> bool:
        """Whether what was told is later than what is here, and nothing is missing in between."""
        here = self.stands(connection)
        return (told.epoch, told.mark) > here.at and bool(
            told.whole or (told.epoch == here.epoch and told.start <= here.mark)
        )

    def take(self, connection: sqlite3.Connection, told: Told) -> None:
        """Go over to a later state, by the rows that were set aside. The delta holds what changed."""
        later = f"SELECT max(rowid) FROM {self.arrived} GROUP BY {self._listed()}"
        connection.execute(f"DELETE FROM {self.arrived} WHERE rowid NOT IN ({later})")  # pages go forward
        if told.whole:
            had = f"SELECT {self._listed('-w')} FROM {self.table.name} WHERE w > 0"
            self._sum_up(connection, f"{self.staged} UNION ALL {had}")
            connection.execute(f"DELETE FROM {self.table.name}")
            connection.execute(f"UPDATE {self.standing} SET floor = ?", (told.floor,))
        else:
            connection.execute(self._difference)
        staged = f"SELECT {self._listed('w', 'refresh')} FROM {self.arrived}"
        overwrite = ["w = excluded.w", "refresh = excluded.refresh"]
        connection.execute(self.table.upsert(staged, overwrite))
        connection.execute(f"UPDATE {self.standing} SET epoch = ?, mark = ?, own = 0", told[:2])
        self.void(connection)

    def told(self, connection: sqlite3.Connection, version: int) -> tuple[int, int]:
        """Return where the rows stood for whoever has the batches up to a commit."""
        found = connection.execute(
            f"SELECT epoch, mark FROM {self.batches} WHERE version <= ? ORDER BY version DESC LIMIT 1",
            (version,),
        ).fetchone()
        return (0, 0) if found is None else (found[0], found[1])

    def note_told(self, connection: sqlite3.Connection, version: int, told: Told) -> None:
        """Note what a batch told that ends with a commit; what leads nobody on any more goes."""
        connection.execute(
            f"INSERT OR REPLACE INTO {self.batches} VALUES (?, ?, ?)", (version, told.epoch, told.mark)
        )
        connection.execute(
            f"DELETE FROM {self.batches} WHERE epoch <> ? OR mark < ?", (told.epoch, told.floor)
        )

    # Garbage.

    def collect(self, connection: sqlite3.Connection, keep: int | None = None) -> int:
        """Forget rows that have gone, but for the last few: who has not heard of them is told everything.

        `keep` says how many, else it is as many as there are rows and some more. Returns how many went.
        """
        return forget_gone(connection, self.table.name, self.standing, "w = 0", "refresh", keep)

    # Inside.

    @cached_property
    def _place(self) -> tuple[str, ...]:
        """What orders the rows of one mark."""
        rowid = any(field.nullable for field in self.table.schema)
        return ("rowid",) if rowid else self.table.columns

    def _listed(self, *more: str) -> str:
        return ", ".join([*self.table.columns, *more])

    def _sum_up(self, connection: sqlite3.Connection, rows: str) -> None:
        """Put into the delta what rows with weights come to."""
        connection.execute(
            f"INSERT INTO {self.delta} SELECT {self._listed('sum(w)')} FROM ({rows}) "
            f"GROUP BY {self._listed()} HAVING sum(w) <> 0"
        )

    @cached_property
    def _difference(self) -> str:
        """Put into the delta how the rows that were set aside differ from those there are."""
        mine, theirs = ([f"{alias}.{column}" for column in self.table.columns] for alias in "ra")
        return (
            f"INSERT INTO {self.delta} SELECT {', '.join([*theirs, 'a.w - ifnull(r.w, 0)'])} "
            f"FROM {self.arrived} AS a LEFT JOIN {self.table.name} AS r "
            f"ON {same_row(self.table.schema, mine, theirs)} WHERE a.w <> ifnull(r.w, 0)"
        )


def published_view(circuit: Circuit, view: View, number: int) -> Published:
    """Declare the tables of a published view; its number is that of the program."""
    name, width = f"pub{number}", len(view.schema)
    table = StateTable(
        internal(name), view.schema, ("w INTEGER NOT NULL", "refresh INTEGER NOT NULL"), zero=""
    )
    circuit.states.add(table.name)
    return Published(
        view,
        table,
        f"{internal(name)}_standing",
        circuit.scratch(f"d_{name}", width),
        circuit.scratch(f"a_{name}", width, ("w", "refresh")),
    )
