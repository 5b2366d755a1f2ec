"""What all kinds of relation have in common: rows that are written once, under dots, and removed.

A write stages its rows in the relation's delta and leaves there what appeared or disappeared; so does a cut
from another site. That delta is the only door to the circuits, which never see a dot.

The plain table has one row a key, or tuple: the one that is shown, if any is. What is held beside it, rows of
concurrent writers, lies in a second table, which nearly always is empty.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Select, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, key_terms, same_row
from everview.engines.sqlite.measuring import Bound, Weights, fetch, long_columns
from everview.engines.sqlite.parts import COUNT, PartColumn, Row, value
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.digests import sum_columns, sums, term
from everview.engines.sqlite.rows.dots import NUMBERS, SHIFT, site_of
from everview.engines.sqlite.rows.ledger import SITES, Ledger, Partition
from everview.engines.sqlite.rows.staging import pour, stage
from everview.errors import WireError
from everview.language.partitions import cells_of
from everview.language.relations import Relation, Semantics

GONE = f"temp.{internal('gone')}"
"""Temporary: the dots that a cut removes from a partition."""

RANGES = f"temp.{internal('ranges')}"
"""Temporary: ranges of dots that a reader lacks, both ends included."""

TEMPORARY = {
    GONE: f"CREATE TEMP TABLE {internal('gone')} (dot INTEGER PRIMARY KEY)",
    RANGES: f"CREATE TEMP TABLE {internal('ranges')} (low INTEGER PRIMARY KEY, high INTEGER NOT NULL)",
}


@dataclass(frozen=True, slots=True)
class Arrived:
    """Rows from a cut, column by column as `columns` says, sites numbered as in this store; then dots."""

    columns: Sequence[Sequence[Any]]
    dots: Sequence[int]
    version: int


@dataclass(frozen=True)
class StoredRows(ABC):
    """A relation's tables and delta, and the statements that write to them."""

    relation: Relation
    table: StateTable
    delta: str
    """Temporary: rows that appear (w = 1) or disappear (w = −1); staged rows have their dot here, too."""
    scratch: str
    """Temporary: rows, their kind's own columns, dot, version, and whether they were shown before."""
    touched: str
    """Temporary: the keys that a cut touches."""

    @classmethod
    def extras_of(cls, relation: Relation) -> tuple[str, ...]:  # noqa: ARG003
        """Return the kind's own columns: a causal length, a stamp; none for some."""
        return ()

    @cached_property
    def extras(self) -> tuple[str, ...]:
        """Its own columns; all hold integers that are not negative."""
        return self.extras_of(self.relation)

    is_summed = True
    """Whether it has a digest, which is that of every replica."""

    is_dotted = True
    """Whether every row of the plain table has a dot, and so lies there by it."""
    extra_type = "INTEGER NOT NULL"
    """The type of its own columns."""

    # What circuits read.

    @property
    def partial(self) -> str:
        """The condition under which a row of the table is there, beginning with a bare column; else empty."""
        return ""

    @property
    def weight(self) -> str:
        """How often a row of the table is there, if it is."""
        return "1"

    @property
    def replaces(self) -> bool:
        """Whether an insertion can make other rows go."""
        return False

    def node(self, circuit: Circuit) -> Node:
        """Return how circuits read the relation and its change."""
        names = columns(len(self.relation.schema))

        def delta() -> list[Select]:
            return [from_table(circuit.names, self.delta, names, weight="w", stored=False, delta=True)]

        def contents() -> list[Select]:
            return [from_table(circuit.names, self.table.name, names, partial=self.partial)]

        return Node(
            self.relation.schema, delta, contents, is_set=self.relation.semantics is not Semantics.BAG
        )

    def stage_all(self, connection: sqlite3.Connection) -> int:
        """Put all rows there are into the delta, as if they had just appeared; return how many."""
        return connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) "
            f"SELECT {self._listed('1')} FROM {self.table.name} WHERE {self.is_shown()}"
        ).rowcount

    def is_shown(self, alias: str = "") -> str:
        """Return the condition that a row of the table is shown."""
        at = f"{alias}." if alias else ""
        return f"{at}{self.partial}" if self.partial else "1"

    # Tables.

    @property
    def held(self) -> str:
        """The table of rows that are held beside those of the plain table."""
        return f"{self.table.name}_held"

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are the truth about this relation."""
        return (self.table.name, self.held)

    @abstractmethod
    def ddl(self) -> list[str]:
        """Return what creates its tables."""

    def dot_ddl(self) -> list[str]:
        """Return what creates an index by dots, once there are peers; tables that lie by them need none."""
        return []

    # Writing here.

    @abstractmethod
    def insert(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Insert rows; return how many appeared. The delta holds what changed."""

    @abstractmethod
    def delete(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], commit: Commit) -> int:
        """Delete rows, of a keyed relation those with the same key; return how many disappeared."""

    @property
    def stream(self) -> str:
        """The name of the relation as it travels."""
        return self.relation.name

    def partition(self, connection: sqlite3.Connection, commit: Commit) -> tuple[Ledger, Partition]:
        """Return the ledger, and the partition in it that is being written."""
        ledger = commit.ledger
        if commit.value and self.relation.partitioned:
            return ledger, ledger.partition(connection, self.stream, commit.value)
        return ledger, ledger.partition(connection, self.stream)

    def _stage(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], weight: int) -> None:
        stage(connection, f"{self.delta} ({self._listed('w')})", rows, weight)

    # Rows from elsewhere.

    @cached_property
    def columns(self) -> tuple[PartColumn, ...]:
        """The columns of its rows on the wire, their dots left out."""
        return (*map(value, self.relation.schema), *(COUNT for _ in self.extras))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The same columns, in its tables."""
        return (*self.table.columns, *self.extras)

    def read(self, connection: sqlite3.Connection, limit: int, room: int) -> tuple[list[Row], int]:
        """Return rows whose dots lie in the ranges, by dot: at most so many, or of about so many bytes.

        Their dots stand behind their columns. Also returned is how much of the room they use up.
        """
        listed = ", ".join(f"r.{cell}" for cell in (*self.cells, "dot"))
        sql = f"SELECT {listed} FROM {RANGES} AS g CROSS JOIN {self.table.name} AS r {_IN_RANGE}"
        if self.is_crowded(connection):
            beside = f"SELECT {listed} FROM {RANGES} AS g CROSS JOIN {self.held} AS r {_IN_RANGE}"
            sql = f"SELECT * FROM ({sql} UNION ALL {beside}) ORDER BY dot"
        else:
            sql += " ORDER BY g.low, r.dot"
        return fetch(connection.execute(f"{sql} LIMIT ?", (limit,)), Bound(limit, room, self.weighed))

    def is_crowded(self, connection: sqlite3.Connection) -> bool:
        """Whether any rows are held beside those of the plain table."""
        return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {self.held})").fetchone()[0])

    def remove(self, connection: sqlite3.Connection, version: int) -> None:
        """Remove the rows that are named in `GONE`; the delta holds what disappeared, or came to be shown."""
        if self.is_crowded(connection):
            self.settle(connection, version)
            return
        gone = f"FROM {GONE} AS g CROSS JOIN {self.table.name} AS r ON r.dot = g.dot"
        listed = ", ".join([*(f"r.{c}" for c in self.table.columns), "-1"])
        connection.execute(
            f"INSERT INTO {self.delta} ({self._listed('w')}) "
            f"SELECT {listed} {gone} WHERE {self.is_shown('r')}"
        )
        connection.execute(f"DELETE FROM {self.table.name} WHERE dot IN (SELECT dot FROM {GONE})")

    def merge(
        self, connection: sqlite3.Connection, arrived: Arrived, *, unless: str = ""
    ) -> tuple[int, tuple[int, int]]:
        """Add rows that were not seen; return how many, and their digest.

        The delta holds what appeared and disappeared. `unless` is a condition on a staged row's `dot` under
        which it is left out.
        """
        names = ", ".join(["w", *self.cells, "dot"])
        (before,) = connection.execute(f"SELECT ifnull(max(rowid), 0) FROM {self.delta}").fetchone()
        pour(
            connection,
            lambda rows: f"INSERT INTO {self.delta} ({names}) {rows}",
            [*arrived.columns, arrived.dots],
            1,
        )
        if unless:
            connection.execute(f"DELETE FROM {self.delta} WHERE rowid > ? AND ({unless})", (before,))
        digest = (0, 0)
        if self.is_summed:
            digest = self._digest(connection, arrived, before, is_whole=not unless)
        return self._take(connection, before, arrived), digest

    def _digest(
        self, connection: sqlite3.Connection, arrived: Arrived, before: int, *, is_whole: bool
    ) -> tuple[int, int]:
        """Return the digest of staged rows; mostly all of a page came from one site and were staged."""
        dots = arrived.dots
        if is_whole and site_of(min(dots, default=0)) == site_of(max(dots, default=0)):
            salt = connection.execute(_SALT, (site_of(dots[0]),)).fetchone() if dots else (0,)
            return sum_columns(self.relation.schema, arrived.columns, dots, *salt)
        rows = f"SELECT d.dot, {self.term('d')} AS term FROM {self.delta} AS d WHERE d.rowid > {before}"
        found: tuple[int, int] = connection.execute(sums(rows, SITES)).fetchone()
        return found

    @abstractmethod
    def _take(self, connection: sqlite3.Connection, before: int, arrived: Arrived) -> int:
        """Store what was staged after a place in the delta; return how many rows that were."""

    @abstractmethod
    def settle(self, connection: sqlite3.Connection, version: int) -> None:
        """Bring the keys of `GONE`, and of rows in the scratch table, to what their rows now show."""

    def decide_anew(self, connection: sqlite3.Connection, version: int) -> None:
        """Decide again what keys with several rows show, as incarnations have changed; see the delta."""

    @abstractmethod
    def net(self, connection: sqlite3.Connection) -> None:
        """Take out of the delta what comes and goes."""

    def completed(self, columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return the columns of rows from elsewhere, with what a narrower program does not say of values."""
        return columns

    def check(self, columns: Sequence[Sequence[Any]]) -> None:
        """Raise WireError for rows from elsewhere that no honest site would tell; types were checked."""

    def follow(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Bring what names its rows up to date, after a cut; return the deltas that have rows for it."""
        return ()

    def all_rows(self, *, within: bool = False) -> str:
        """Return the SELECT of all live rows, shown or not, as r: their dot and term of the digest.

        Of a relation that has several partitions, those of all, or `within` the one numbered `:partition`.
        """
        if self.is_partitioned and within:
            rows = f"SELECT r.dot, {self.term('r')} AS term FROM"
            return " UNION ALL ".join(f"{rows} {dots_within(table)}" for table in self.tables)
        both = f"SELECT {', '.join(self.cells)}, dot FROM"
        return (
            f"SELECT r.dot, {self.term('r')} AS term FROM "
            f"({both} {self.table.name} UNION ALL {both} {self.held}) AS r"
        )

    @property
    def is_partitioned(self) -> bool:
        """Whether every value of some columns has a vector of its own."""
        return bool(self.relation.partitioned)

    def check_value(self, columns: Sequence[Sequence[Any]], value: str) -> None:
        """Raise WireError for rows from elsewhere that are not of the value they are said to be of."""
        if not self.is_partitioned:
            return
        for place, cell in zip(self.relation.partition_positions, cells_of(value), strict=True):
            if any(other != cell for other in set(columns[place])):
                raise WireError(f"a row of {self.relation.name} is of another partition", where="value")

    def gone_rows(self) -> str:
        """Return the SELECT of the live rows that are named in `GONE`: their dot and term of the digest.

        SQLite finds them by their dots only table by table: of a join with `all_rows` it computes all terms.
        """
        named = f"SELECT r.dot, {self.term('r')} AS term FROM {GONE} AS g CROSS JOIN"
        return " UNION ALL ".join(f"{named} {table} AS r ON r.dot = g.dot" for table in self.tables)

    def term(self, alias: str) -> str:
        """Return the term of a row in its partition's digest."""
        if alias not in self._terms:
            cells, extras = ([f"{alias}.{one}" for one in each] for each in (self.table.columns, self.extras))
            self._terms[alias] = term(self.relation.schema, cells, extras)
        return self._terms[alias]

    @cached_property
    def _terms(self) -> dict[str, str]:
        return {}

    def writer(self, connection: sqlite3.Connection, row: Sequence[Any]) -> int | None:
        """Return the number of the site that wrote a stored row."""
        terms = key_terms(self.table.schema, ["?"] * len(self.table.columns))
        pairs = zip(key_terms(self.table.schema, [f"r.{c}" for c in self.table.columns]), terms, strict=True)
        same = " AND ".join(f"{a} = {b}" for a, b in pairs) or "1"
        found = connection.execute(
            f"SELECT min(r.dot) FROM {self.table.name} AS r WHERE {same}", tuple(row)
        ).fetchone()
        return None if found is None or found[0] is None else int(found[0]) >> 40

    # For the kinds.

    @cached_property
    def weighed(self) -> Weights:
        """The columns of a row whose bytes are counted when it is read."""
        return long_columns(self.relation.schema)

    def _listed(self, *more: str) -> str:
        return ", ".join([*self.table.columns, *more])

    def same(self, left: str, right: str) -> str:
        """Return the condition that two aliases have the same row."""
        return same_row(
            self.table.schema,
            [f"{left}.{c}" for c in self.table.columns],
            [f"{right}.{c}" for c in self.table.columns],
        )


def dots_within(table: str) -> str:
    """What stands after FROM to read the rows r of a table that lie in the value numbered `:partition`."""
    sites = f"SELECT number << {SHIFT} AS low FROM {SITES} WHERE partition = :partition"
    return f"({sites}) AS g CROSS JOIN {table} AS r ON r.dot BETWEEN g.low AND g.low | {NUMBERS}"


_SALT = f"SELECT salt FROM {SITES} WHERE number = ?"

_IN_RANGE = "ON r.dot BETWEEN g.low AND g.high"


def name_gone(connection: sqlite3.Connection, dots: Iterable[int]) -> None:
    """Name the dots that a cut removes."""
    connection.execute(f"DELETE FROM {GONE}")
    connection.executemany(f"INSERT OR IGNORE INTO {GONE} VALUES (?)", ((one,) for one in dots))


INCARNATION = f"(SELECT s.incarnation FROM {SITES} AS s WHERE s.number = {{dot}} >> 40)"
"""The incarnation of a dot: of rows that are equally late the greater one's is shown, everywhere."""
