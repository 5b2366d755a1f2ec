"""A simulated site: the real store and protocol, and beside them what the oracle must know of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.engines.sqlite.connections import Handle
from everview.engines.sqlite.names import MEMBERSHIP, STORE
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.language.evolution import Evolution
from everview.language.plan import Scan
from everview.language.program import Program
from everview.replication.evolving import evolve_store
from everview.replication.replica import Replica
from everview.replication.rights import Rights
from everview.replication.state import State, load
from everview.testing.simulation.clocks import Clocks
from everview.testing.simulation.crashes import Fuse
from everview.testing.simulation.oracle import Numbers
from everview.testing.simulation.steps import Return

Row = tuple[Any, ...]
Seen = dict[str, Numbers]
"""Whole (a relation, or a relation as a view receives it) → the writes to it that a site has seen."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A backup: the file, the one beside it, and what the site had seen by then."""

    image: bytes
    side: bytes | None
    incarnation: str
    head: int
    seen: Seen
    come: frozenset[int]


class Device:
    """One site of a world. Its process can die and be started again; only the file remains."""

    store: Store
    writing: Writing
    reading: Reading
    replica: Replica

    def __init__(
        self,
        name: str,
        folder: Path,
        program: Program,
        clocks: Clocks,
        page_rows: int,
        *,
        image: bytes = b"",
        hosts: Collection[str] | None = None,
        evolves: bool = False,
    ) -> None:
        self.name = name
        self.path = folder / f"{name}.db"
        self.seen: Seen = {}
        self.come: frozenset[int] = frozenset()
        self.kept: Kept | None = None
        self.rights: dict[str, Rights] = {}
        self.rewound_from: tuple[str, int] | None = None
        """Where the store went back to without noticing, until it does: the incarnation and its head."""
        self.checked: tuple[Any, ...] = ()
        """What it was like when it was last found to be right."""
        self.told: dict[str, tuple[Any, ...]] = {}
        """Relation → what its causal lengths were like when they were last compared with the writes."""
        self._known: tuple[list[Row], State] = [], State()
        self._program, self._clocks, self._page_rows, self._hosts = program, clocks, page_rows, hosts
        self._evolves = evolves
        if image:
            self.path.write_bytes(image)
        self.open()

    # The process.

    def open(self) -> None:
        """Start the process."""
        environment = self._clocks.environment(self.name)
        path = str(self.path)
        program: Program | None = self._program
        hosts = self._hosts
        if self._evolves and self.path.exists():  # it has the program that it has
            program, hosts = None, None
        self.store = Store(path, program, self.name, environment=environment, hosts=hosts)
        self.writing = Writing(self.store)
        self.reading = Reading(self.store)
        self.replica = Replica(self.store, self.writing, page_rows=self._page_rows)
        self._handle = self.store.writer

    def migrate(self, later: Program) -> bool:
        """Go over to a later program, and start again; return whether it had another."""
        evolution = Evolution(self.store.program, later)
        if evolution.is_nothing:
            return False
        self.stop()
        evolve_store(str(self.path), evolution)
        self.open()
        streams = self.store.engine.streams
        self.seen = {whole: seen for whole, seen in self.seen.items() if whole.split(">")[0] in streams}
        self.checked, self.told = (), {}
        return True

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
        if self._handle.connection.in_transaction:
            self._handle.connection.execute("ROLLBACK")
        self.store.close()

    def stop(self) -> None:
        """End the process as its user does."""
        self.replica.close()

    # The file.

    @property
    def _side(self) -> Path:
        return Path(f"{self.path}-shown")

    @property
    def has_spoken(self) -> bool:
        """Whether it was ever in an exchange, as who it is now."""
        return bool(self._stored("shown"))

    def image(self) -> bytes:
        """The bytes of the store as it is now."""
        return self._handle.connection.serialize()

    def keep(self) -> None:
        """Make a backup."""
        side = self._side.read_bytes() if self._side.exists() else None
        self.kept = Kept(self.image(), side, self.incarnation, self.head, dict(self.seen), self.come)

    def put_back(self, how: Return) -> None:
        """Put the backup back and start again."""
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
            self.rewound_from = (kept.incarnation, kept.head)
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self.seen, self.come = dict(kept.seen), kept.come
        self.open()

    def remove(self) -> None:
        """The file is gone."""
        self.stop()
        for suffix in ("", "-wal", "-shm", "-shown"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    # What it says of itself.

    @property
    def incarnation(self) -> str:
        """What others know it by."""
        return str(self._stored("incarnation"))

    @property
    def head(self) -> int:
        """Its last commit."""
        return int(self._stored("version"))

    def _stored(self, column: str) -> Any:
        """What the store says of itself; it is asked for at every turn, so nothing else is looked at."""
        return self._handle.connection.execute(f"SELECT {column} FROM {STORE}").fetchone()[0]

    @property
    def state(self) -> State:
        """What it knows of others, as its store has it."""
        found = self._handle.connection.execute(f"SELECT state FROM {MEMBERSHIP} ORDER BY one").fetchall()
        if found != self._known[0]:  # it is asked for much more often than it changes
            self._known = found, load(*(state for (state,) in found)) if found else State()
        return self._known[1]

    @property
    def hosts(self) -> frozenset[str]:
        """The relations and views that it has."""
        return self.store.engine.hosts or frozenset()

    def rows(self, name: str) -> Counter[Row]:
        """A relation or view, as a reader sees it."""
        self.reading.check_single([name], inside=False)
        # Not sorted: where there are many that takes longest.
        scan, sql = Scan(name, self.store.program.schema(name)), self.store.engine.rows_sql(name)
        return Counter(self.reading.fetch(sql, scan, inside=False))

    def knows(self, device: Device) -> bool:
        """Whether it has read so much of a device that went back in time that one of the two will notice."""
        if device.rewound_from is None:
            return True
        incarnation, head = device.rewound_from
        cursors = self.state.cursors.get(incarnation, {})
        common = [name for name in self.store.engine.streams if name in device.store.engine.offers]
        return bool(common) and all(name in cursors and cursors[name].head > head for name in common)

    def __repr__(self) -> str:
        return f"<{self.name} {self.incarnation} at {self.head}, {os.fspath(self.path.name)}>"
