"""The ledger: which commits of whom a store has seen of each partition, and which removals it still knows.

A partition is what has a vector of its own: a relation, one value of its PARTITION BY columns, or one input
of a view as a site without that input keeps it. Its vector says for each site the last number seen. Equal
vectors mean equal rows. Removals are logged by local version from a partition's floor on. The floor may rise
at any time; then `forgotten` is the vector up to which removals may be missing from the log.

In the value of a relation a site has a number of its own in this store. So rows of different values, which
are counted by themselves, have different dots, and those of one value lie side by side.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everview.engines.sqlite.circuits.names import internal
from everview.engines.sqlite.names import HOSTS, STORE
from everview.engines.sqlite.rows.digests import salt_of
from everview.engines.sqlite.rows.dots import NUMBERS, dot
from everview.engines.sqlite.rows.dots import SITES as LAST_SITE
from everview.errors import StoreError
from everview.language.partitions import Choices

PARTITIONS = internal("partitions")
"""Number → stream and value; `floor` is the local version from which on all removals are in the log."""

VECTORS = internal("vectors")
"""(Partition, site) → the last number seen, the local version at which it came, and what was forgotten."""

REMOVED = internal("removed")
"""The removal log: (partition, local version, dot); the row's term of the digest where the row was held."""

SITES = internal("dot_sites")
"""Number → incarnation and name of every site that is known; `salt` goes into digests.

`partition` is 0, or the one value of a relation that the number is for.
"""

OPENED = internal("opened")
"""Where the store was when it was opened: partition → its own last number there (`rows.identity`)."""

ENDED = internal("ended")
"""(Lost incarnation, relation) → the last number that a holder has, and the version at which that came."""

LEDGER_DDL = (
    (
        f"CREATE TABLE {SITES} (number INTEGER PRIMARY KEY, incarnation TEXT NOT NULL, name TEXT NOT NULL, "
        "salt INTEGER NOT NULL, partition INTEGER NOT NULL, UNIQUE (incarnation, partition))"
    ),
    f"CREATE INDEX {SITES}_partition ON {SITES} (partition)",
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
    f"CREATE TABLE {HOSTS} (name TEXT, choice TEXT, PRIMARY KEY (name, choice)) WITHOUT ROWID",
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
    site: int | None = None
    """The number of the store's own incarnation in a value of a relation."""
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
    parts: dict[str, Choices] = field(default_factory=dict)
    """The values that are hosted of relations that are not hosted whole."""

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the partitions, unless they are known; values of relations are read one by one."""
        if self.is_loaded:
            return
        found = connection.execute(
            f"SELECT p.number, p.stream, p.value, p.floor, ifnull(v.seen, 0) FROM {PARTITIONS} AS p "
            f"LEFT JOIN {VECTORS} AS v ON v.partition = p.number AND v.site = ? WHERE p.value = ''",
            (self.site,),
        )
        self.partitions = {(row[1], row[2]): Partition(*row) for row in found}
        self.has_met = any(partition.is_logged for partition in self.partitions.values())
        self.parts = hosted_parts(connection)
        self.is_loaded = True

    def forget(self) -> None:
        """What is known may be wrong: a write was undone, or somebody else has written."""
        self.is_loaded = False

    def partition(self, connection: sqlite3.Connection, stream: str, value: str = "") -> Partition:
        """Return a partition, a new one if there was none."""
        self.load(connection)
        found = self.find(connection, stream, value)
        if found is None:
            floor = 0 if self.has_met and stream not in self.quiet else NOT_LOGGED
            number = connection.execute(
                f"INSERT INTO {PARTITIONS} (stream, value, floor, first, second, summed, own) "
                "VALUES (?, ?, ?, 0, 0, 0, 0)",
                (stream, value, floor),
            ).lastrowid
            assert number is not None
            found = self.partitions[stream, value] = Partition(number, stream, value, floor, 0)
        if value and found.site is None:  # the partition is new, or the incarnation is
            self._number(connection, found)
        return found

    def find(self, connection: sqlite3.Connection, stream: str, value: str = "") -> Partition | None:
        """Return a partition, if there is one."""
        self.load(connection)
        found = self.partitions.get((stream, value))
        if found is not None or not value:
            return found
        row = connection.execute(
            f"SELECT p.number, p.stream, p.value, p.floor, ifnull(v.seen, 0), d.number "
            f"FROM {PARTITIONS} AS p JOIN {STORE} AS s "
            f"LEFT JOIN {SITES} AS d ON d.incarnation = s.incarnation AND d.partition = p.number "
            f"LEFT JOIN {VECTORS} AS v ON v.partition = p.number AND v.site = d.number "
            "WHERE p.stream = ? AND p.value = ?",
            (stream, value),
        ).fetchone()
        if row is None:
            return None
        found = self.partitions[stream, value] = Partition(*row)
        return found

    def _number(self, connection: sqlite3.Connection, partition: Partition) -> None:
        """Give the store's own incarnation a number in a value of a relation."""
        ((incarnation, name),) = connection.execute(f"SELECT incarnation, site FROM {STORE}").fetchall()
        numbers = number_sites(connection, [incarnation], {incarnation: name}, partition=partition.number)
        partition.site = numbers[incarnation]

    def written(self, connection: sqlite3.Connection, stream: str, value: str = "") -> int:
        """Return the last number of this store's own in a partition; 0 where it has written nothing."""
        found = self.find(connection, stream, value)
        return 0 if found is None else found.seen

    def site_in(self, partition: Partition) -> int:
        """Return the number of this store's own incarnation in a partition; −1 where it has none."""
        if partition.value:
            return -1 if partition.site is None else partition.site
        return self.site

    def base(self, partition: Partition) -> int:
        """Return the dot before the next one of this store."""
        return dot(self.site_in(partition), partition.seen)

    def advance(self, connection: sqlite3.Connection, partition: Partition, count: int, version: int) -> None:
        """Use up so many numbers in a commit, at least one: others hear of a commit by its number."""
        seen = partition.seen + max(count, 1)
        if seen > NUMBERS:
            raise StoreError(
                f"this incarnation has written {NUMBERS:,} rows; copy the store's file, and open the copy"
            )
        moved = connection.execute(
            f"UPDATE {VECTORS} SET seen = ?, changed = ? WHERE partition = ? AND site = ?",
            (seen, version, partition.number, self.site_in(partition)),
        ).rowcount
        if not moved:
            connection.execute(
                f"INSERT INTO {VECTORS} VALUES (?, ?, ?, ?, 0)",
                (partition.number, self.site_in(partition), seen, version),
            )
        partition.seen = seen


def meet(connection: sqlite3.Connection, ledger: Ledger, streams: Iterable[str]) -> None:
    """From now on removals are logged: others are about to be told of what is here."""
    for stream in (*streams, _MET):
        ledger.partition(connection, stream)
    known = {partition.stream for partition in ledger.partitions.values()}
    begin_log(connection, ledger, known - ledger.quiet)
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
    return forget_partitions(connection, [number for (number,) in connection.execute(gone, (listed,))])


def forget_partitions(connection: sqlite3.Connection, numbers: Iterable[int]) -> bool:
    """Forget what was seen of partitions; return whether the store has written any as who it is."""
    listed = json.dumps(list(numbers))
    gone = "SELECT value FROM json_each(?)"
    own = f"SELECT d.number FROM {STORE} AS s JOIN {SITES} AS d ON d.incarnation = s.incarnation"
    written = connection.execute(
        f"SELECT 1 FROM {VECTORS} WHERE partition IN ({gone}) AND site IN ({own}) AND seen > 0", (listed,)
    ).fetchone()
    for table in (VECTORS, REMOVED, SITES, OPENED):
        connection.execute(f"DELETE FROM {table} WHERE partition IN ({gone})", (listed,))
    connection.execute(f"DELETE FROM {PARTITIONS} WHERE number IN ({gone})", (listed,))
    return written is not None


def hosted_parts(connection: sqlite3.Connection) -> dict[str, Choices]:
    """Return the values that the store says it hosts, of relations that are not hosted whole."""
    found: dict[str, set[str]] = {}
    for name, choice in connection.execute(f"SELECT name, choice FROM {HOSTS} WHERE choice <> ''"):
        found.setdefault(name, set()).add(choice)
    return {name: frozenset(choices) for name, choices in found.items()}


def site_within(connection: sqlite3.Connection, site: int, partition: Partition) -> int | None:
    """Return the number that the incarnation of a site has in a partition; None where it never wrote."""
    if not partition.value:
        return site
    found = connection.execute(
        f"SELECT d.number FROM {SITES} AS s JOIN {SITES} AS d ON d.incarnation = s.incarnation "
        "WHERE s.number = ? AND d.partition = ?",
        (site, partition.number),
    ).fetchone()
    return None if found is None else int(found[0])


def own_numbers(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the store's own last numbers, by partition."""
    return dict(
        connection.execute(
            f"SELECT v.partition, v.seen FROM {STORE} AS s "
            f"JOIN {SITES} AS d ON d.incarnation = s.incarnation JOIN {VECTORS} AS v ON v.site = d.number"
        )
    )


def number_sites(
    connection: sqlite3.Connection,
    incarnations: Iterable[str],
    names: Mapping[str, str],
    *,
    speaker: str = "",
    partition: int = 0,
) -> dict[str, int]:
    """Return the numbers of incarnations in this store, new ones for those that were not known.

    What a store is called it says itself, as the `speaker`; what others say counts until it has.
    """
    found = {}
    for incarnation in incarnations:
        row = connection.execute(
            f"SELECT number, name FROM {SITES} WHERE incarnation = ? AND partition = ?",
            (incarnation, partition),
        ).fetchone()
        name = names.get(incarnation, "")
        if row is None:
            known = f"SELECT name FROM {SITES} WHERE incarnation = ?1 AND partition = 0"
            made = connection.execute(
                f"INSERT INTO {SITES} (incarnation, name, salt, partition) "
                f"VALUES (?1, ifnull(({known}), ?2), ?3, ?4)",
                (incarnation, name, salt_of(incarnation), partition),
            ).lastrowid
            assert made is not None
            if made > LAST_SITE:
                raise StoreError(f"{LAST_SITE:,} sites are known in this store; begin a new one")
            found[incarnation] = made
            continue
        found[incarnation] = row[0]
        if name and name != row[1] and (not row[1] or incarnation == speaker):
            connection.execute(f"UPDATE {SITES} SET name = ? WHERE incarnation = ?", (name, incarnation))
    return found


def written_streams(connection: sqlite3.Connection) -> set[str]:
    """Return the streams that the store has written to as who it is."""
    found = connection.execute(
        f"SELECT DISTINCT p.stream FROM {STORE} AS s JOIN {SITES} AS d ON d.incarnation = s.incarnation "
        f"JOIN {VECTORS} AS v ON v.site = d.number JOIN {PARTITIONS} AS p ON p.number = v.partition "
        "WHERE v.seen > 0"
    )
    return {stream for (stream,) in found}


def numbers_in(connection: sqlite3.Connection, partition: Partition | None = None) -> dict[str, int]:
    """Return the numbers of all incarnations, or of those that wrote to a value of a relation."""
    place = partition.number if partition is not None and partition.value else 0
    found = connection.execute(f"SELECT incarnation, number FROM {SITES} WHERE partition = ?", (place,))
    return dict(found.fetchall())


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
