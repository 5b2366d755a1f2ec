"""What all kinds of relation have in common.

A write stages its rows in the relation's delta, with weight 1 or −1, and the kind's own statements turn
that into what really changed: rows that appeared or disappeared, with the lattice value stored in the
same transaction. Rows from other sites are staged in `arrived` and joined into the table; what that changed
is left in the same delta, which is then carried through the circuit. This is the only door between the
lattices outside and the Z-sets inside.

The statements are written once and take the version as a parameter: a new text for each commit would be
parsed and planned each time, which takes longer than running it.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, key_terms, same_row
from everview.engines.sqlite.measuring import Bound, Weights, fetch, long_columns
from everview.engines.sqlite.parts import CHUNK_BYTES, Arrival, Brought, Chunk, PartColumn, Position, Row
from everview.engines.sqlite.places import beyond, told
from everview.engines.sqlite.relations.commit import Commit
from everview.language.relations import Relation, Semantics

VECTOR = internal("vector")
"""Temporary: site → commit, a vector that a statement compares origins with."""

VECTOR_DDL = f"CREATE TEMP TABLE {VECTOR} (site INTEGER PRIMARY KEY, seq INTEGER NOT NULL)"


@dataclass(frozen=True)
class StoredRelation(ABC):
    """A relation's table and delta, and the statements that write to it; one part of a stream."""

    relation: Relation
    table: StateTable
    delta: str
    scratch: str
    arrived: str
    """Temporary: rows that came with a cut."""
    kept: str
    """Temporary: the keys of all rows of a snapshot by which the site joins; of sets and keyed relations also
    the causal length or stamp.
    """

    # What the circuit reads.

    @property
    @abstractmethod
    def partial(self) -> str:
        """The condition under which a stored row is there, beginning with a bare column."""

    @property
    def replaces(self) -> bool:
        """Whether an insertion can make other rows go."""
        return False

    @property
    def weight(self) -> str:
        """How often a stored row is there, if it is."""
        return "1"

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read the relation and its change."""
        names = columns(len(self.relation.schema))

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [
                from_table(circuit.names, self.table.name, names, weight=self.weight, partial=self.partial)
            ]

        return Node(
            self.relation.schema, delta, contents, is_set=self.relation.semantics is not Semantics.BAG
        )

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the delta, as if they had just appeared; return how many."""
        return connection.execute(
            f"INSERT INTO {self.delta} SELECT {self.listed}, {self.weight} FROM {self.table.name} "
            f"WHERE {self.partial}"
        ).rowcount

    # Tables.

    def ddl(self) -> list[str]:
        """Return what creates its tables."""
        return self.table.ddl()

    @abstractmethod
    def version_ddl(self) -> list[str]:
        """Return what creates the indexes by which changes and garbage are found, once there are peers."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about this relation."""
        return (self.table.name,)

    @property
    def travelling(self) -> str:
        """The table whose rows travel, with their versions and origins."""
        return self.table.name

    @property
    def origin(self) -> tuple[str, str]:
        """The site and the commit of a row's origin, as terms over its columns in that table."""
        return "site", "iif(site = 0, version, seq)"

    def brought(self, connection: sqlite3.Connection, since: int, most: int) -> list[Brought]:
        """Return what commits after `since` brought, the newest first, of about `most` rows.

        Nothing while nobody reads this table, for then it has no index to find them by.
        """
        has_index = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?"
        if connection.execute(has_index, (f"{self.travelling}_version",)).fetchone() is None:
            return []
        site, commit = self.origin
        newest = " UNION ALL ".join(
            f"SELECT * FROM (SELECT version, {site} AS s, {commit} AS c FROM {table} "
            "WHERE version > ?1 ORDER BY version DESC LIMIT ?2)"
            for table in self._versioned
        )
        grouped = "GROUP BY version, s, c ORDER BY version DESC"
        counted = f"SELECT version, s, c, count(*) FROM ({newest}) {grouped}"
        return [Brought(*found) for found in connection.execute(counted, (since, most))]

    @property
    def _versioned(self) -> tuple[str, ...]:
        """The tables that have rows with versions."""
        return (self.travelling,)

    # Writing here.

    @abstractmethod
    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Insert rows; return how many appeared. The delta holds what changed."""

    @abstractmethod
    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Delete rows, of a keyed relation those with the same key; return how many disappeared."""

    # Rows from elsewhere.

    @property
    @abstractmethod
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of its rows on the wire."""

    @property
    @abstractmethod
    def place(self) -> tuple[str, ...]:
        """The columns that order the rows of one version, in the table whose rows travel."""

    @abstractmethod
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
        """Return rows of versions above `since`, those up to `after` left out.

        They are at most about `limit`, or have about `room` bytes of texts and blobs. `where` is a further
        condition on the row's columns.
        """

    @abstractmethod
    def merge(self, connection: sqlite3.Connection, arrival: Arrival) -> int:
        """Join rows into the table, leave what changed in the delta; return how many grew."""

    def lift(self, connection: sqlite3.Connection, commit: Commit, by: int) -> int:
        """Begin of joining: what the snapshot's vector (in the temporary table) does not cover is unseen.

        It is lifted by an even number above the floor, where nobody knows the row's length; return how many
        rows were. Of rows that have owners only those of the site's own name are: nobody else can have
        written them, so that their lengths are right as they are, and nobody takes them from another.
        """
        return 0

    @abstractmethod
    def settle(self, connection: sqlite3.Connection, commit: Commit, *, from_another: bool) -> int:
        """End of joining: the snapshot, whose keys are in `kept`, decides.

        What its vector covers and it does not hold was collected there, and goes. Who comes `from_another`
        group tells every death again that the snapshot does not know, as this commit's: somebody may have
        forgotten it in the other group, and got to know the row again in this one, and would not be sent what
        its vector covers. The deaths of rows that have another owner stay as they are: nobody would take them
        as this site's, and they would be lost, for its vector covers them. Returns how many rows were
        dropped, or written anew; the delta holds what changed.
        """

    # Garbage.

    @abstractmethod
    def collect(self, connection: sqlite3.Connection, passed: int) -> tuple[int, int]:
        """Forget what is dead and stable, as the vector in the temporary table and `passed` say.

        Returns how many rows were forgotten, and the floor that this leaves.
        """

    @abstractmethod
    def garbage(self, connection: sqlite3.Connection) -> int:
        """Return how many dead rows are held."""

    # Sites.

    def writer(self, connection: sqlite3.Connection, row: Sequence[Any]) -> int | None:
        """Return the number of the site that wrote a stored row; of several insertions, the oldest's."""
        terms = key_terms(self.table.schema, ["?"] * len(self.table.columns))
        pairs = zip(key_terms(self.table.schema, [f"r.{c}" for c in self.table.columns]), terms, strict=True)
        same = " AND ".join(f"{a} = {b}" for a, b in pairs) or "1"
        found = connection.execute(self.writers.format(same=same), tuple(row)).fetchone()
        return None if found is None else int(found[0])

    @property
    def writers(self) -> str:
        """The sites that wrote a row r, first of all the one that counts."""
        return f"SELECT r.site FROM {self.table.name} AS r WHERE {{same}}"

    @abstractmethod
    def retell(self, connection: sqlite3.Connection, since: int, old: int, commit: Commit) -> int:
        """Write again, as this commit, what incarnation `old` wrote after `since`; return how many rows.

        The store went back in time unnoticed: other rows may go by these dots elsewhere.
        """

    def renumber(self, connection: sqlite3.Connection, number: int) -> None:
        """What this site wrote so far was written by an earlier incarnation, which has this number."""
        connection.execute(f"UPDATE {self.travelling} SET site = ?, seq = version WHERE site = 0", (number,))

    # For the kinds.

    @cached_property
    def weighed(self) -> Weights:
        """The columns of a row whose bytes are counted when it is read."""
        return long_columns(self.relation.schema)

    @cached_property
    def listed(self) -> str:
        """The row's columns, for a SELECT."""
        return ", ".join(self.table.columns)

    def mine(self, alias: str, name: str, *, dead: bool = False) -> tuple[str, tuple[str, ...]]:
        """Return the condition that a site of this name may tell a row as its own, and its parameters.

        Of rows that have owners nobody takes another's. Only a key that is dead names none, if the owner is
        not part of it.
        """
        relation = self.relation
        if relation.owner is None or (dead and relation.key and relation.owner not in relation.key):
            return "1", ()
        return f"{alias}.c{relation.columns.index(relation.owner)} = ?", (name,)

    def bury(
        self, connection: sqlite3.Connection, arrival: Arrival, *, alive: str, change: str, collected: str
    ) -> None:
        """What was collected here, and lives where the site joins, dies by this commit.

        Of rows that have owners nobody takes that from another. But their owners alone write them, so they
        are dead as of the last commit known here of an owner of whom the sender has less: that is told.
        """
        dot, told, owner = "site = 0, seq = 0", "", "1"
        given: tuple[str, ...] = ()
        if self.mine("a", "", dead=True)[1]:
            dot, given = "site = o.site, seq = o.seq", (json.dumps(arrival.owners),)
            told = "FROM (SELECT key AS name, value ->> 0 AS site, value ->> 1 AS seq FROM json_each(?)) AS o"
            owner = f"o.name = a.c{self.relation.columns.index(str(self.relation.owner))}"
        connection.execute(
            f"UPDATE {self.arrived} AS a SET {change}, {dot} {told} "
            f"WHERE {alive} AND {owner} AND {collected}",
            given,
        )

    def same(self, left: str, right: str) -> str:
        """Return the condition that two aliases have the same row."""
        return same_row(
            self.table.schema,
            [f"{left}.{c}" for c in self.table.columns],
            [f"{right}.{c}" for c in self.table.columns],
        )

    def keep(self, connection: sqlite3.Connection, rows: str, given: Sequence[Any] = ()) -> None:
        """Note keys of a snapshot, a SELECT of them with their values; of several values the greatest."""
        connection.execute(
            f"INSERT INTO {self.kept} {rows} WHERE 1 "
            "ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
            given,
        )

    def kept_as(self, terms: Sequence[str], condition: str = "1") -> str:
        """Return the condition that the snapshot by which the site joins has a key, with a value like this.

        The plus takes a column's affinity away, with which SQLite would not use the index.
        """
        same = " AND ".join(f"k{place} = +{term}" for place, term in enumerate(terms))
        return f"EXISTS (SELECT 1 FROM {self.kept} WHERE {same} AND {condition})"

    @cached_property
    def there(self) -> str:
        """Whether the row of a staged row d is there."""
        same = self.same("r", "d")
        return f"EXISTS (SELECT 1 FROM {self.table.name} AS r WHERE {same} AND r.{self.partial})"

    @cached_property
    def once(self) -> str:
        """Of equal staged rows keep one."""
        first = f"SELECT min(rowid) FROM {self.delta} GROUP BY {self.listed}"
        return f"DELETE FROM {self.delta} WHERE rowid NOT IN ({first})"

    @cached_property
    def summed(self) -> str:
        """The staged rows, each once."""
        return f"SELECT {self.listed}, sum(w) AS w FROM {self.delta} GROUP BY {self.listed}"

    @cached_property
    def net(self) -> str:
        """Drop staged rows that cancel, and copies."""
        group = f"SELECT min(rowid) FROM {self.delta} GROUP BY {self.listed} HAVING sum(w) <> 0"
        return f"DELETE FROM {self.delta} WHERE rowid NOT IN ({group})"


def covers(alias: str, *, own: str = "version", site: str = "site", seq: str = "seq") -> str:
    """Return the condition that the vector covers the origin of an alias's row.

    `own` is the column that has the commit where the site's number is 0 and no commit was stored.
    """
    commit = f"iif({alias}.{site} = 0, {alias}.{own}, {alias}.{seq})" if own else f"{alias}.{seq}"
    found = f"(SELECT v.seq FROM temp.{VECTOR} AS v WHERE v.site = {alias}.{site})"
    return f"ifnull({commit} <= {found}, 0)"


def read_by_version(
    connection: sqlite3.Connection,
    select: str,
    key: Sequence[str],
    since: int,
    after: Position | None,
    bound: Bound,
    *,
    version: str = "version",
    given: Sequence[Any] = (),
) -> Chunk:
    """Read rows in the order of (version, key): `select` ends with the version and the key, and has a WHERE.

    `version` is what the version's column is called, `given` are the parameters of `select`. Two reads rather
    than one over both columns: each of them is a range of the index.
    """
    order = ", ".join((version, *key))
    found: list[Row] = []
    start, used = since, 0
    if after is not None:
        start = max(since, after.version)
        if after.key and after.version >= since:
            marks, at = ", ".join("?" * len(key)), after.version
            # Where a place was cut off, rows are passed over that do not count.
            most = bound.rows if len(after.key) == len(key) else -1

            def find(compared: str, cells: Row) -> Iterator[Row]:
                return connection.execute(
                    f"{select} AND {version} = ? AND ({', '.join(key)}) {compared} ({marks}) "
                    f"ORDER BY {order} LIMIT ?",
                    (*given, at, *cells, most),
                )

            found, used = fetch(beyond(find, after.key, len(key)), bound)
    if not bound.is_reached(found, used):
        left = bound.without(found, used)
        rows = connection.execute(
            f"{select} AND {version} > ? ORDER BY {order} LIMIT ?", (*given, start, left.rows)
        )
        more, size = fetch(rows, left)
        rows.close()
        found += more
        used += size
    width = len(key) + 1
    reached = None
    if bound.is_reached(found, used):
        reached = Position(found[-1][-width], told(found[-1][-width + 1 :]))
    return Chunk([row[:-width] for row in found], reached, used)
