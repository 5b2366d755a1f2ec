"""The ledger: which commits of whom a store has seen of each partition, and which removals it still knows.

A partition is what has a vector of its own: a relation, or one input of a view as a site without that input
keeps it. Its vector says for each site the last number seen. Equal vectors mean equal rows. Removals are
logged by local version from a partition's floor on. The floor may rise at any time; then `forgotten` is the
vector up to which removals may be missing from the log.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.names import STORE
from everview.engines.sqlite.rows.digests import salt_of
from everview.engines.sqlite.rows.dots import NUMBERS, dot
from everview.errors import StoreError

PARTITIONS = internal("partitions")
"""Number → stream and value; `floor` is the local version from which on all removals are in the log."""

VECTORS = internal("vectors")
"""(Partition, site) → the last number seen, the local version at which it came, and what was forgotten."""

REMOVED = internal("removed")
"""The removal log: (partition, local version, dot); the row's term of the digest where the row was held."""

SITES = internal("dot_sites")
"""Number → incarnation and name of every site that is known; `salt` goes into digests."""

OPENED = internal("opened")
"""Where the store was when it was opened: partition → its own last number there (`rows.identity`)."""

ENDED = internal("ended")
"""(Lost incarnation, relation) → the last number that a holder has, and the version at which that came."""

LEDGER_DDL = (
    (
        f"CREATE TABLE {SITES} (number INTEGER PRIMARY KEY, incarnation TEXT NOT NULL UNIQUE, "
        "name TEXT NOT NULL, salt INTEGER NOT NULL)"
    ),
    (
        f"CREATE TABLE {PARTITIONS} (number INTEGER PRIMARY KEY, stream TEXT NOT NULL, value TEXT NOT NULL, "
        "floor INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL, "
        "summed INTEGER NOT NULL, own INTEGER NOT NULL, UNIQUE (stream, value))"
    ),
    (
        f"CREATE TABLE {VECTORS} (partition INTEGER, site INTEGER, seen INTEGER NOT NULL, "
        "changed INTEGER NOT NULL, forgotten INTEGER NOT NULL, PRIMARY KEY (partition, site)) WITHOUT ROWID"
    ),
    (
        f"CREATE TABLE {REMOVED} (partition INTEGER, version INTEGER, dot INTEGER, term INTEGER, "
        "PRIMARY KEY (partition, version, dot)) WITHOUT ROWID"
    ),
    f"CREATE TABLE {OPENED} (partition INTEGER PRIMARY KEY, number INTEGER NOT NULL)",
    (
        f"CREATE TABLE {ENDED} (incarnation TEXT, stream TEXT, last INTEGER NOT NULL, "
        "version INTEGER NOT NULL, PRIMARY KEY (incarnation, stream)) WITHOUT ROWID"
    ),
)
"""`first` and `second` are the digest of the rows up to the local version `summed`, own rows up to `own`."""

_MET = ""
"""The partition of no stream: its floor says that others were met, also where nothing else is logged."""

NOT_LOGGED = -1
"""The floor of a partition of which nobody was ever told: its removals need no log."""


@dataclass(slots=True)
class Partition:
    """A partition as writers know it: `seen` is the last number of the store's own incarnation."""

    number: int
    stream: str
    value: str
    floor: int
    seen: int
    is_crowded: bool | None = None
    """Whether rows are held beside those of the plain table, once that was looked up."""

    @property
    def is_logged(self) -> bool:
        """Whether removals are to be logged."""
        return self.floor != NOT_LOGGED


Key = tuple[str, str]
"""A stream, and the value of its PARTITION BY columns; empty where there are none."""


@dataclass(slots=True)
class Ledger:
    """What a writing connection knows of the partitions; read again when another process has committed."""

    site: int = 0
    """The number of the store's own incarnation."""
    partitions: dict[Key, Partition] = field(default_factory=dict)
    is_loaded: bool = False
    has_met: bool = False
    """Whether removals are logged, because other stores are told of what is here."""
    quiet: frozenset[str] = frozenset()
    """Streams whose removals are logged only once somebody reads them here."""

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the partitions, unless they are known."""
        if self.is_loaded:
            return
        found = connection.execute(
            f"SELECT p.number, p.stream, p.value, p.floor, ifnull(v.seen, 0) FROM {PARTITIONS} AS p "
            f"LEFT JOIN {VECTORS} AS v ON v.partition = p.number AND v.site = ?",
            (self.site,),
        )
        self.partitions = {(row[1], row[2]): Partition(*row) for row in found}
        self.has_met = any(partition.is_logged for partition in self.partitions.values())
        self.is_loaded = True

    def forget(self) -> None:
        """What is known may be wrong: a write was undone, or somebody else has written."""
        self.is_loaded = False

    def partition(self, connection: sqlite3.Connection, stream: str, value: str = "") -> Partition:
        """Return a partition, a new one if there was none."""
        self.load(connection)
        found = self.partitions.get((stream, value))
        if found is None:
            floor = 0 if self.has_met and stream not in self.quiet else NOT_LOGGED
            number = connection.execute(
                f"INSERT INTO {PARTITIONS} (stream, value, floor, first, second, summed, own) "
                "VALUES (?, ?, ?, 0, 0, 0, 0)",
                (stream, value, floor),
            ).lastrowid
            assert number is not None
            found = self.partitions[stream, value] = Partition(number, stream, value, floor, 0)
        return found

    def written(self, stream: str) -> int:
        """Return the last number of this store's own in a stream; 0 where it has written nothing."""
        found = self.partitions.get((stream, ""))
        return 0 if found is None else found.seen

    def base(self, partition: Partition) -> int:
        """Return the dot before the next one of this store."""
        return dot(self.site, partition.seen)

    def advance(self, connection: sqlite3.Connection, partition: Partition, count: int, version: int) -> None:
        """Use up so many numbers in a commit, at least one: others hear of a commit by its number."""
        seen = partition.seen + max(count, 1)
        if seen > NUMBERS:
            raise StoreError(
                f"this incarnation has written {NUMBERS:,} rows; copy the store's file, and open the copy"
            )
        moved = connection.execute(
            f"UPDATE {VECTORS} SET seen = ?, changed = ? WHERE partition = ? AND site = ?",
            (seen, version, partition.number, self.site),
        ).rowcount
        if not moved:
            connection.execute(
                f"INSERT INTO {VECTORS} VALUES (?, ?, ?, ?, 0)", (partition.number, self.site, seen, version)
            )
        partition.seen = seen


def meet(connection: sqlite3.Connection, ledger: Ledger, streams: Iterable[str]) -> None:
    """From now on removals are logged: others are about to be told of what is here."""
    for stream in (*streams, _MET):
        ledger.partition(connection, stream)
    known = [partition.stream for partition in ledger.partitions.values()]
    begin_log(connection, ledger, [stream for stream in known if stream not in ledger.quiet])
    connection.execute(f"CREATE INDEX IF NOT EXISTS {VECTORS}_changed ON {VECTORS} (changed)")
    ledger.forget()


def begin_log(connection: sqlite3.Connection, ledger: Ledger, streams: Iterable[str]) -> None:
    """From now on removals of these streams are logged."""
    for stream in streams:
        logged = f"(SELECT number FROM {PARTITIONS} WHERE stream = ? AND floor = ?)"
        connection.execute(
            f"UPDATE {VECTORS} SET forgotten = seen WHERE partition IN {logged}", (stream, NOT_LOGGED)
        )
        connection.execute(
            f"UPDATE {PARTITIONS} SET floor = (SELECT version FROM {STORE}) WHERE stream = ? AND floor = ?",
            (stream, NOT_LOGGED),
        )
    ledger.forget()


def has_met(connection: sqlite3.Connection) -> bool:
    """Whether removals are logged, because others are told of what is here."""
    found = connection.execute(f"SELECT 1 FROM {PARTITIONS} WHERE floor <> ?", (NOT_LOGGED,)).fetchone()
    return found is not None


def drop_partitions(connection: sqlite3.Connection, keep: Iterable[str]) -> bool:
    """Forget what was seen of all streams but these: should they come again, they begin anew.

    Return whether the store has written any of them as who it is: then it has to be somebody else from now
    on, or it would give the same numbers again.
    """
    listed = json.dumps(list(keep))
    gone = f"SELECT number FROM {PARTITIONS} WHERE stream NOT IN (SELECT value FROM json_each(?))"
    own = f"SELECT d.number FROM {STORE} AS s JOIN {SITES} AS d ON d.incarnation = s.incarnation"
    written = connection.execute(
        f"SELECT 1 FROM {VECTORS} WHERE partition IN ({gone}) AND site = ({own}) AND seen > 0", (listed,)
    ).fetchone()
    for table in (VECTORS, REMOVED):
        connection.execute(f"DELETE FROM {table} WHERE partition IN ({gone})", (listed,))
    connection.execute(f"DELETE FROM {PARTITIONS} WHERE number IN ({gone})", (listed,))
    return written is not None


def number_sites(
    connection: sqlite3.Connection,
    incarnations: Iterable[str],
    names: Mapping[str, str],
    *,
    speaker: str = "",
) -> dict[str, int]:
    """Return the numbers of incarnations in this store, new ones for those that were not known.

    What a store is called it says itself, as the `speaker`; what others say counts until it has.
    """
    found = {}
    for incarnation in incarnations:
        row = connection.execute(
            f"SELECT number, name FROM {SITES} WHERE incarnation = ?", (incarnation,)
        ).fetchone()
        name = names.get(incarnation, "")
        if row is None:
            made = connection.execute(
                f"INSERT INTO {SITES} (incarnation, name, salt) VALUES (?, ?, ?)",
                (incarnation, name, salt_of(incarnation)),
            ).lastrowid
            assert made is not None
            found[incarnation] = made
            continue
        found[incarnation] = row[0]
        if name and name != row[1] and (not row[1] or incarnation == speaker):
            connection.execute(f"UPDATE {SITES} SET name = ? WHERE number = ?", (name, row[0]))
    return found


def vector(connection: sqlite3.Connection, partition: int) -> dict[int, int]:
    """Return a partition's vector: site → last number seen."""
    return dict(
        connection.execute(f"SELECT site, seen FROM {VECTORS} WHERE partition = ? AND seen > 0", (partition,))
    )


def log(connection: sqlite3.Connection, partition: int, version: int, dots: str) -> None:
    """Log removals, a SELECT of dots and of the rows' terms."""
    connection.execute(
        f"INSERT OR IGNORE INTO {REMOVED} SELECT ?, ?, dot, term FROM ({dots})", (partition, version)
    )


__all__ = [
    "ENDED",
    "LEDGER_DDL",
    "NOT_LOGGED",
    "OPENED",
    "PARTITIONS",
    "REMOVED",
    "SITES",
    "VECTORS",
    "Ledger",
    "Partition",
]
