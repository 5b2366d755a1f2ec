"""Sites of a world: the real store and protocol on a real file; the process and the clock are virtual."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from everview.engines.sqlite.connections import Handle
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.partitions import hosts_of
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.dots import NUMBERS, SHIFT
from everview.engines.sqlite.rows.ledger import ENDED, OPENED, PARTITIONS, SITES, VECTORS, hosted_parts
from everview.engines.sqlite.rows.peers import CURSORS
from everview.engines.sqlite.stamps import microseconds
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.language.partitions import Choices, covers
from everview.language.plan import Scan
from everview.language.program import Program
from everview.language.relations import Semantics
from everview.replication.protocol.replica import Replica
from everview.replication.rights.rights import ALL, Rights
from everview.testing.worlds.history import Dot, Event, Live, Row, plain
from everview.testing.worlds.steps import Return

VALUES = ("[0]", "[1]", "[2]", "[null]")
"""The values that a partitioned relation may have in a world."""


def part_of(relation: str, value: str) -> str:
    """Return what a relation, or a value of a partitioned one, is called in a world."""
    return f"{relation} {value}" if value else relation


def stream_of(part: str) -> tuple[str, str]:
    """Return the relation and the value that are called so."""
    relation, _, value = part.partition(" ")
    return relation, value


class Crashed(BaseException):
    """The process is dead. No handler of errors may catch it, as none would run."""


class Fuse:
    """A connection that lets so many statements pass, and none after them.

    It also refuses the statements by which handlers would clean up: a process that was killed does not.
    """

    def __init__(self, connection: sqlite3.Connection, statements: int) -> None:
        self._connection = connection
        self.left = statements

    def _burn(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crashed

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run a statement, or die before it."""
        self._burn()
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement for many rows, or die before it."""
        self._burn()
        return self._connection.executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@dataclass(frozen=True, slots=True)
class Kept:
    """A backup: the file, the one beside it, and who the site was by then."""

    image: bytes
    side: bytes | None
    incarnation: str
    head: int
    own: dict[str, int]
    is_exact: bool
    """Whether it is known what was written since the process before it was started, should it come back."""


@dataclass(slots=True)
class Fork:
    """A store that went back in time and does not know: what it has written since, in its own history."""

    incarnation: str
    head: int
    own: dict[str, int]
    """Relation → its last number when the backup was made."""
    events: list[Event] = field(default_factory=list)


class Site:
    """One site. Its process can die and start again; only the file remains."""

    store: Store
    writing: Writing
    replica: Replica

    def __init__(
        self,
        name: str,
        path: Path,
        program: Program,
        environment: Environment,
        *,
        hosts: Collection[str] | None = None,
        page_cells: int = 1_000_000,
    ) -> None:
        self.name, self.path, self.program = name, path, program
        self.hosts = hosts
        self.kept: Kept | None = None
        self.fork: Fork | None = None
        self.rights: dict[str, Rights] = {}
        self.seen: dict[str, dict[str, int]] = {}
        """Relation → the vector when it was looked at last: it never shrinks."""
        self.came: dict[tuple[str, Dot], int] = {}
        """Relation and tombstone → by when it had come, by the site's own clock."""
        self.looks: tuple[Any, ...] = ()
        """What it was like when it was last found to be right."""
        self._environment, self._page_cells = environment, page_cells
        self.open()

    # The process.

    def open(self, hosts: Mapping[str, Any] | None = None) -> None:
        """Start the process; a store that is there hosts what it did, and what is said."""
        self.forget()
        if not self.path.exists() and self.hosts is not None:
            hosts = hosts_of(self.program, self.hosts)
        self.store = Store(
            str(self.path), self.program, self.name, environment=self._environment, hosts=hosts
        )
        self._handle = self.store.writer
        self.writing = Writing(self.store)
        self._reading = Reading(self.store)
        self.replica = Replica(self.store, self.writing, page_cells=self._page_cells)

    def forget(self) -> None:
        """What is hosted may have changed."""
        for name in ("shares", "hollow", "choices"):
            self.__dict__.pop(name, None)

    def arm(self, statements: int) -> None:
        """Let the process die after so many statements; 0: not at all."""
        if statements:
            fuse: Any = Fuse(self._handle.connection, statements)
            self.store.writer = Handle(fuse, self._handle.failures)

    def disarm(self) -> None:
        """Nothing happens to the process after all."""
        self.store.writer = self._handle

    def die(self) -> None:
        """End the process; what is not committed is gone."""
        self.disarm()
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.store.close()

    def stop(self) -> None:
        """End the process as its user does."""
        self.replica.close()

    def host(self, more: Collection[str]) -> None:
        """Start the process again, and host more; of relations it shows now it has seen nothing yet."""
        self.stop()
        self.hosts = sorted({*(self.hosts or ()), *more})
        self.open(hosts_of(self.program, more))
        self.seen = {name: seen for name, seen in self.seen.items() if name in {**self.shares, **self.hollow}}

    # The file.

    @property
    def _side(self) -> Path:
        return Path(f"{self.path}-shown")

    def image(self) -> bytes:
        """The bytes of the store as it is now."""
        return self.connection.serialize()

    def keep(self) -> None:
        """Make a backup."""
        side = self._side.read_bytes() if self._side.exists() else None
        opened = dict(self.connection.execute(f"SELECT partition, number FROM {OPENED}").fetchall())
        told = opened.pop(-1, None) != self._stored("shown")
        listed = self.connection.execute(f"SELECT stream, value, number FROM {PARTITIONS}")
        numbers = {part_of(stream, value): opened.get(number, 0) for stream, value, number in listed}
        is_exact = told or all(number == numbers.get(name, 0) for name, number in self.own().items())
        self.kept = Kept(self.image(), side, self.incarnation, self.head, self.own(), is_exact)

    def put_back(self, how: Return) -> None:
        """Put the backup back, and start again."""
        kept = self.kept
        assert kept is not None
        self.stop()
        if how == "moved":
            new = Path(f"{self.path}.new")
            new.write_bytes(kept.image)
            new.replace(self.path)
        else:
            with self.path.open("r+b") as file:
                file.truncate(0)
                file.write(kept.image)
        if how == "unnoticed":
            self._side.unlink(missing_ok=True)
            if kept.side is not None:
                self._side.write_bytes(kept.side)
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.seen = {}
        self.open()
        if how == "unnoticed" and self.incarnation == kept.incarnation:
            self.fork = Fork(kept.incarnation, kept.head, dict(kept.own))

    def rights_of(self, peer: str) -> Rights:
        """What it lets a peer do: all or nothing with a relation, if its store has gone back unnoticed."""
        rights = self.rights.get(peer, ALL)
        return rights if self.fork is None else replace(rights, inserts=frozenset(), deletes=frozenset())

    def remove(self) -> None:
        """The file is gone."""
        self.stop()
        for suffix in ("", "-wal", "-shm", "-shown"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    # What is in it.

    @property
    def connection(self) -> sqlite3.Connection:
        """The writer's connection, which no crash cuts off."""
        return self._handle.connection

    @property
    def incarnation(self) -> str:
        """What others know it by."""
        return str(self._stored("incarnation"))

    @property
    def head(self) -> int:
        """Its last commit."""
        return int(self._stored("version"))

    @property
    def has_spoken(self) -> bool:
        """Whether it has told anybody anything, as who it is now."""
        return bool(self._stored("shown"))

    def _stored(self, column: str) -> Any:
        return self.connection.execute(f"SELECT {column} FROM {STORE}").fetchone()[0]

    @cached_property
    def choices(self) -> dict[str, Choices]:
        """The values that it hosts of relations that it does not host whole."""
        return hosted_parts(self.connection)

    @cached_property
    def shares(self) -> dict[str, StoredRows]:
        """The relations that it holds, and of partitioned ones each value."""
        shares = self.store.engine.shares
        return {
            part_of(name, value): stored
            for name, stored in shares.items()
            if name in self.program.relations
            for value in (VALUES if stored.is_partitioned else ("",))
            if not value or covers(self.choices.get(name), value)
        }

    @property
    def sets(self) -> list[str]:
        """The sets that it holds."""
        kinds = {name: relation.semantics for name, relation in self.program.relations.items()}
        return [part for part in self.shares if kinds[stream_of(part)[0]] is Semantics.SET]

    @property
    def clock_us(self) -> int:
        """When its last commit was, by its own clock."""
        return microseconds(self._stored("clock"))

    @cached_property
    def hollow(self) -> dict[str, str]:
        """What it keeps of views' inputs: stream → relation."""
        engine = self.store.engine
        return {stream: engine.written_in(stream) for stream in engine.hollow}

    def vector(self, stream: str) -> dict[str, int]:
        """Incarnation → the last number that it has seen."""
        found = self.connection.execute(
            f"SELECT s.incarnation, v.seen FROM {VECTORS} AS v JOIN {SITES} AS s ON s.number = v.site "
            f"JOIN {PARTITIONS} AS p ON p.number = v.partition "
            "WHERE p.stream = ? AND p.value = ? AND v.seen > 0",
            stream_of(stream),
        )
        return dict(found.fetchall())

    def knows_of_losses(self) -> bool:
        """Whether it knows that stores were lost: then inputs of views may have become empty."""
        return bool(self.connection.execute(f"SELECT EXISTS (SELECT 1 FROM {ENDED})").fetchone()[0])

    def own(self) -> dict[str, int]:
        """Relation → the last number that it has given."""
        return {name: self.vector(name).get(self.incarnation, 0) for name in self.shares}

    def live(self, stream: str) -> Live:
        """The rows that are live here, shown or not."""
        name, value = stream_of(stream)
        stored = self.store.engine.shares[name]
        numbers = f"SELECT number FROM {PARTITIONS} WHERE stream = ? AND value = ?"
        (number,) = self.connection.execute(numbers, (name, value)).fetchone() or (-1,)
        sites = f"SELECT number, incarnation FROM {SITES} WHERE partition = ?"
        names = dict(self.connection.execute(sites, (number if value else 0,)).fetchall())
        found: Live = {}
        for table in stored.tables:
            listed = ", ".join((*stored.cells, "dot"))
            rows = self.connection.execute(f"SELECT {listed} FROM {table} WHERE dot IS NOT NULL")
            for *cells, dot in rows:
                if stored.is_partitioned and dot >> SHIFT not in names:
                    continue
                one = names.get(dot >> SHIFT, "?"), dot & NUMBERS
                if one in found:
                    raise AssertionError(f"{stream} has two rows under one dot: {one}")
                found[one] = plain(stored.relation, tuple(cells))
        return found

    def rows(self, name: str) -> Counter[Row]:
        """A relation or view, as a reader sees it."""
        scan, sql = Scan(name, self.program.schema(name)), self.store.engine.rows_sql(name)
        return Counter(self._reading.fetch(sql, scan, inside=False))

    def views(self) -> list[str]:
        """The views that it shows."""
        return [name for name in self.program.views if name in self.store.engine.exchange.hosts]

    def may_write(self, part: str) -> bool:
        """Whether it shows a relation, or a value; what is held for a view alone is not written."""
        return part in self.shares and stream_of(part)[0] in self.store.engine.exchange.hosts

    def is_published(self, view: str) -> bool:
        """Whether another site's word on a view counts."""
        return self.program.views[view].authority not in (None, self.name)

    def knows(self, other: Site) -> bool:
        """Whether it has read so much of a site that went back in time that one of the two will notice."""
        if other.fork is None:
            return True
        found = self.connection.execute(
            f"SELECT version FROM {CURSORS} WHERE incarnation = ?", (other.fork.incarnation,)
        ).fetchone()
        return found is not None and found[0] > other.fork.head
