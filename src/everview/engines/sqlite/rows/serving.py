"""Serving: what a reader lacks of a partition, read in one snapshot.

Rows are those whose dots the reader's vector does not cover. What went is told in the cheapest of three ways:
removals since the reader's cursor, the whole removal log, or the dots of all live rows, as intervals.
"""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from everview.engines.sqlite.names import STORE, TAGS
from everview.engines.sqlite.parts import Row
from everview.engines.sqlite.rows.base import RANGES, dots_within
from everview.engines.sqlite.rows.digests import PRIME, sums
from everview.engines.sqlite.rows.dots import dot, number_of, site_of
from everview.engines.sqlite.rows.ledger import NOT_LOGGED, PARTITIONS, REMOVED, SITES, VECTORS, vector

Vector = Mapping[int, int]
"""Site → the last number seen."""

Digest = tuple[int, int]

NO_DIGEST = (0, 0)

NOTHING: Mapping[str, int] = {}


class Cursor(NamedTuple):
    """How far a store was read: up to this local version, and the version's random tag."""

    version: int
    tag: int


START = Cursor(0, 0)

_TAGS = 1_000
"""So many versions are remembered by their tags; an older cursor counts for nothing, and does no harm."""


class Mode(enum.IntEnum):
    """How a cut says what went from a partition."""

    SAME = 0
    """The reader has seen all of it."""
    SINCE = 1
    """Removals since the reader's cursor."""
    LOG = 2
    """All removals that the sender remembers."""
    LIVE = 3
    """Intervals that cover the dots of live rows: what was seen and is not among them is gone."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a partition, column by column, their dots, and the reader's vector once it has them."""

    columns: Sequence[Sequence[Any]]
    dots: Sequence[int]
    vector: Vector
    is_all: bool
    """Whether the reader then lacks no row that the sender had."""
    size: int = 0
    is_new: bool = False
    """Whether the reader's vector covers none of them."""


@dataclass(frozen=True, slots=True)
class Removals:
    """What went from a partition: dots, or in mode LIVE the ends of intervals."""

    mode: Mode
    dots: Sequence[int] = ()
    highs: Sequence[int] = ()


class Source(Protocol):
    """Where the rows of a stream are read."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of its rows, their dots left out."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of all live rows, or of more than are told; the first has nearly all."""

    @property
    def is_summed(self) -> bool:
        """Whether it has a digest."""

    def read(self, connection: sqlite3.Connection, limit: int, room: int) -> tuple[list[Row], int]:
        """Return rows whose dots lie in `RANGES`, and about how many bytes they have."""

    @property
    def is_partitioned(self) -> bool:
        """Whether its tables have the rows of several partitions."""

    def all_rows(self, *, within: bool = False) -> str:
        """Return the SELECT of all live rows, or of a partition's: dots and terms of the digest."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be told of a stream: where its rows are read, and the partition whose vector and log count.

    A relation is told from its own tables; the input of a view that another site hosts, from the relation.
    """

    source: Source
    partition: str


@dataclass(slots=True)
class Reader:
    """What a reader says of a partition: its vector, and that of what it has staged as well."""

    had: Vector
    has: Vector = field(default_factory=dict)
    whole: bool = False
    """Whether it is to be told what lives."""
    since: int = 0
    """How far it has read this store, as its removals count; 0 if that is not known."""


def head(connection: sqlite3.Connection) -> Cursor:
    """Return the last commit, and its tag; 0 if nobody was told of it yet."""
    found = connection.execute(
        f"SELECT s.version, ifnull(t.tag, 0) FROM {STORE} AS s LEFT JOIN {TAGS} AS t ON t.version = s.version"
    ).fetchone()
    return Cursor(*found)


def note_head(connection: sqlite3.Connection, tag: int) -> None:
    """Give the last commit a tag, before anybody is told of it."""
    connection.execute(f"INSERT OR IGNORE INTO {TAGS} SELECT version, ? FROM {STORE}", (tag,))
    connection.execute(
        f"DELETE FROM {TAGS} WHERE version < "
        f"(SELECT version FROM {TAGS} ORDER BY version DESC LIMIT 1 OFFSET {_TAGS})"
    )


def knows(connection: sqlite3.Connection, cursor: Cursor) -> bool:
    """Whether a cursor is one that this store gave, and remembers."""
    found = connection.execute(f"SELECT tag FROM {TAGS} WHERE version = ?", (cursor.version,)).fetchone()
    return found is not None and found[0] == cursor.tag


def is_foreign(connection: sqlite3.Connection, cursor: Cursor) -> bool:
    """Whether a cursor was given by this store in another past: it went back in time since."""
    if cursor == START or knows(connection, cursor):
        return False
    oldest = connection.execute(  # of as many as are remembered; of fewer none was forgotten
        f"SELECT version FROM {TAGS} ORDER BY version DESC LIMIT 1 OFFSET {_TAGS - 1}"
    ).fetchone()
    return oldest is None or cursor.version >= oldest[0]


def changed_since(connection: sqlite3.Connection, version: int) -> Iterator[tuple[int, str, str]]:
    """Yield number, stream and value of the partitions that have changed since a local version."""
    yield from connection.execute(
        f"SELECT p.number, p.stream, p.value FROM {PARTITIONS} AS p WHERE p.number IN "
        f"(SELECT partition FROM {VECTORS} WHERE changed > ?) ORDER BY p.stream, p.value",
        (version,),
    )


def includes(vector: Vector, other: Vector) -> bool:
    """Whether a vector covers all that another one does."""
    return all(vector.get(site, 0) >= seen for site, seen in other.items())


def rows_for(
    connection: sqlite3.Connection,
    stored: Source,
    mine: Vector,
    reader: Reader,
    limit: int,
    room: int,
) -> Rows:
    """Return rows that a reader lacks, at most so many, or of about so many bytes."""
    has = dict(reader.had)
    has.update((site, seen) for site, seen in reader.has.items() if seen > has.get(site, 0))
    lacks = sorted((site, has.get(site, 0), seen) for site, seen in mine.items() if seen > has.get(site, 0))
    connection.execute(f"DELETE FROM {RANGES}")
    connection.executemany(
        f"INSERT INTO {RANGES} VALUES (?, ?)",
        ((dot(site, low + 1), dot(site, high)) for site, low, high in lacks),
    )
    found, used = stored.read(connection, limit, room)
    reached = dict(reader.has)
    if len(found) < limit and used < room:
        reached.update((site, seen) for site, _, seen in lacks)
        is_all = True
    else:
        last = found[-1][-1]
        reached.update((site, seen) for site, _, seen in lacks if site < site_of(last))
        reached[site_of(last)] = number_of(last)
        is_all = False
    *cells, dots = zip(*found, strict=True) if found else [()] * (len(stored.cells) + 1)
    return Rows(cells, dots, reached, is_all, used)


def removals_for(
    connection: sqlite3.Connection,
    stored: Source,
    partition: int,
    mine: Vector,
    reader: Reader,
    since: int,
) -> Removals:
    """Return what went, for a reader whose cursor is at a version; 0 is none."""
    if includes(reader.had, mine) and not reader.has:
        return Removals(Mode.SAME)
    (floor,) = connection.execute(f"SELECT floor FROM {PARTITIONS} WHERE number = ?", (partition,)).fetchone()
    if reader.whole:
        return _live(connection, stored, partition)
    live, start = _live_rows(connection, stored, partition), since
    if since and NOT_LOGGED < floor <= since:
        mode = Mode.SINCE
    elif floor != NOT_LOGGED and includes(reader.had, forgotten(connection, partition)):
        mode, start = Mode.LOG, 0
    else:
        return _live(connection, stored, partition)
    logged = f"FROM {REMOVED} WHERE partition = ? AND version > ?"
    dots = [
        one for (one,) in connection.execute(f"SELECT DISTINCT dot {logged} ORDER BY dot", (partition, start))
    ]
    return Removals(mode, dots) if len(dots) <= 2 * live + 100 else _live(connection, stored, partition)


def _live_rows(connection: sqlite3.Connection, stored: Source, partition: int) -> int:
    """About how many rows there are: what it would take to tell of all."""
    rows = f"SELECT 1 FROM {_rows_in(stored, stored.tables[0])} LIMIT 100000"
    found = connection.execute(f"SELECT count(*) FROM ({rows})", {"partition": partition}).fetchone()
    return int(found[0])


def forgotten(connection: sqlite3.Connection, partition: int) -> dict[int, int]:
    """Return the vector up to which removals may be missing from the log."""
    return dict(
        connection.execute(
            f"SELECT site, forgotten FROM {VECTORS} WHERE partition = ? AND forgotten > 0", (partition,)
        )
    )


def _rows_in(stored: Source, table: str) -> str:
    """What stands after FROM to read the rows r of a partition, which is numbered `:partition`."""
    return dots_within(table) if stored.is_partitioned else f"{table} AS r"


def _live(connection: sqlite3.Connection, stored: Source, partition: int) -> Removals:
    tables = [_rows_in(stored, table) for table in stored.tables]
    rows = " UNION ALL ".join(f"SELECT r.dot FROM {table} WHERE r.dot IS NOT NULL" for table in tables)
    islands = f"SELECT dot, dot - row_number() OVER (ORDER BY dot) AS island FROM ({rows})"
    found = connection.execute(
        f"SELECT min(dot), max(dot) FROM ({islands}) GROUP BY island ORDER BY 1", {"partition": partition}
    ).fetchall()
    lows, highs = zip(*found, strict=True) if found else ((), ())
    return Removals(Mode.LIVE, lows, highs)


# Digests.


def digest_of(connection: sqlite3.Connection, stored: Source, partition: int, version: int) -> Digest:
    """Return a partition's digest, brought up to date; `version` is that of the last commit.

    What has come since is the store's own rows, and rows that went are in the log. A gap in the log means to
    add up all rows anew. Whoever merges rows keeps the digest up to date itself.
    """
    if not stored.is_summed:
        return NO_DIGEST
    first, second, summed, own, floor = connection.execute(
        f"SELECT first, second, summed, own, floor FROM {PARTITIONS} WHERE number = ?", (partition,)
    ).fetchone()
    if summed == version:
        return first, second
    site = _own_site(connection, stored, partition)
    seen = vector(connection, partition).get(site, 0)
    if floor == NOT_LOGGED or summed < max(floor, 1):
        rows = sum_rows(connection, stored.all_rows(within=True), {"partition": partition})
        return _keep_digest(connection, partition, rows, version, seen)
    given = {"low": dot(site, own), "high": dot(site, seen), "partition": partition, "summed": summed}
    came = f"SELECT dot, term FROM ({stored.all_rows()}) WHERE dot > :low AND dot <= :high"
    counted = "dot <= :low OR dot > :high"
    went = (
        f"SELECT dot, term FROM {REMOVED} WHERE partition = :partition AND version > :summed "
        f"AND term IS NOT NULL AND ({counted})"
    )
    more, less = sum_rows(connection, came, given), sum_rows(connection, went, given)
    return _keep_digest(connection, partition, _add((first, second), more, less), version, seen)


def _own_site(connection: sqlite3.Connection, stored: Source, partition: int) -> int:
    """The number of the store's own incarnation in a partition; −1 where it never wrote."""
    found = connection.execute(
        f"SELECT d.number FROM {STORE} AS s JOIN {SITES} AS d ON d.incarnation = s.incarnation "
        "WHERE d.partition = ?",
        (partition if stored.is_partitioned else 0,),
    ).fetchone()
    return -1 if found is None else int(found[0])


def forget_digest(connection: sqlite3.Connection, partition: int) -> None:
    """Have all rows added up when the digest is next asked for."""
    connection.execute(f"UPDATE {PARTITIONS} SET summed = 0 WHERE number = ?", (partition,))


def _keep_digest(
    connection: sqlite3.Connection, partition: int, digest: Digest, version: int, own: int
) -> Digest:
    connection.execute(
        f"UPDATE {PARTITIONS} SET first = ?, second = ?, summed = ?, own = ? WHERE number = ?",
        (*digest, version, own, partition),
    )
    return digest


def change_digest(
    connection: sqlite3.Connection, partition: int, came: Sequence[Digest], went: Digest, version: int
) -> None:
    """Add rows that came with a cut to a digest that is up to date, and take off those that went."""
    first, second = connection.execute(
        f"SELECT first, second FROM {PARTITIONS} WHERE number = ?", (partition,)
    ).fetchone()
    digest = _add((first, second), NO_DIGEST, went)
    for more in came:
        digest = _add(digest, more, NO_DIGEST)
    connection.execute(
        f"UPDATE {PARTITIONS} SET first = ?, second = ?, summed = ? WHERE number = ?",
        (*digest, version, partition),
    )


def _add(digest: Digest, more: Digest, less: Digest) -> Digest:
    return (digest[0] + more[0] - less[0]) % PRIME, (digest[1] + more[1] - less[1]) % PRIME


def sum_rows(connection: sqlite3.Connection, rows: str, given: Mapping[str, int] = NOTHING) -> Digest:
    """Return the digest of rows, a SELECT of their dots and terms."""
    found: Digest = connection.execute(sums(rows, SITES), given).fetchone()
    return found
