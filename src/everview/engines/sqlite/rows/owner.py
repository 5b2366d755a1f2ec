"""Owners: how the owner of rows changes them, under dots of its own, in epochs of its own.

An epoch is the stamp of the commit that begins it, or above all others that are known here. Of each tuple
that changes the old row goes and a new one comes. The commit may have applied a cut of the same rows before.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from everview.engines.sqlite.circuits.statetable import key_terms
from everview.engines.sqlite.rows.commit import Commit
from everview.engines.sqlite.rows.ledger import ENDED, PARTITIONS, SITES, Partition, log
from everview.engines.sqlite.rows.owned import OwnedRows
from everview.engines.sqlite.rows.serving import NO_DIGEST, change_digest, sum_rows
from everview.engines.sqlite.rows.taking import REMEMBERED, trim_log
from everview.engines.sqlite.scalars.literals import text_literal
from everview.engines.sqlite.scalars.storage import column_type, encode_long
from everview.language.limits import LONGEST
from everview.language.types import Field, Kind


@dataclass(frozen=True)
class Owner:
    """Who writes rows of a stream as `name`."""

    rows: OwnedRows
    name: str
    is_read: bool
    """Whether circuits read the view from these rows: then the delta holds what changes."""

    def owns(self, alias: str) -> str:
        """Return the condition that a row is of this owner."""
        return "1" if self.rows.authority is not None else f"{alias}.c0 = {text_literal(self.name)}"

    def index_ddl(self) -> str:
        """Return what creates the index by which tuples are found; it is made anew with the views."""
        table, width = self.rows.table, self.rows.width
        key = ", ".join(key_terms(table.schema[:width], table.columns[:width]))
        return f"CREATE INDEX {table.name}_by_row ON {table.name} ({key})"

    def epoch(self, connection: sqlite3.Connection, site: int) -> int | None:
        """Return the owner's epoch that is shown, if it belongs to a site."""
        found = connection.execute(
            f"SELECT m.epoch FROM {self.rows.table.name} AS m "
            f"WHERE m.copies = 0 AND m.dot >> 40 = ? AND {self.owns('m')}",
            (site,),
        ).fetchone()
        return None if found is None else int(found[0])

    def is_of_the_lost(self, connection: sqlite3.Connection) -> bool:
        """Whether the owner's epoch that is shown is of a store that was given up."""
        found = connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM {self.rows.table.name} AS m "
            f"JOIN {SITES} AS s ON s.number = m.dot >> 40 "
            f"JOIN {ENDED} AS e ON e.incarnation = s.incarnation WHERE m.copies = 0 AND {self.owns('m')})"
        )
        return bool(found.fetchone()[0])

    def is_in(self, connection: sqlite3.Connection, table: str) -> bool:
        """Whether one of the tables has rows of this owner."""
        found = f"SELECT EXISTS (SELECT 1 FROM {table} AS r WHERE {self.owns('r')})"
        return bool(connection.execute(found).fetchone()[0])

    def begin(self, connection: sqlite3.Connection, rows: str, commit: Commit) -> None:
        """Begin an epoch with rows, a SELECT with weights as w; all others of this owner go."""
        stored = self.rows
        marks = " UNION ALL ".join(
            f"SELECT epoch FROM {table} AS r WHERE r.copies = 0 AND r.epoch < {LONGEST} AND {self.owns('r')}"
            for table in stored.tables
        )
        (known,) = connection.execute(f"SELECT ifnull(max(epoch), 0) FROM ({marks})").fetchone()
        epoch = max(commit.stamp, known + 1)
        self._set_aside(connection, rows, "> 0")
        self._tell(connection, f"{stored.table.name} AS r WHERE copies > 0 AND {self.owns('r')}", "-copies")
        for table in stored.tables:
            self.remove(connection, table, commit)
        ledger, partition = stored.partition(connection, commit)
        connection.execute(
            f"INSERT INTO {stored.table.name} ({stored.stored}) SELECT {self._mark()}, 0, ?, ?, ?",
            (epoch, ledger.base(partition) + 1, commit.version),
        )
        self._came(connection, 1, commit)
        self._tell(connection, stored.scratch, "copies")
        self._add(connection, epoch, commit)

    def change(self, connection: sqlite3.Connection, rows: str, commit: Commit, *, whole: bool) -> int:
        """Add rows with weights to those there are, or put them in their place; return how many changed."""
        stored, epoch = self.rows, self.epoch(connection, commit.site)
        assert epoch is not None
        if whole:
            mine = f"FROM {stored.table.name} AS r WHERE copies > 0 AND {self.owns('r')}"
            rows = f"{rows} UNION ALL SELECT {self.listed('-copies')} {mine}"
        self._set_aside(connection, rows, "<> 0")
        self._tell(connection, stored.scratch, "copies")
        table, scratch = stored.table.name, stored.scratch
        had = f"FROM {table} AS r WHERE {stored.same('r', 'd')} AND r.copies > 0"
        connection.execute(
            f"UPDATE {scratch} AS d SET (copies, dot) = "
            f"(SELECT d.copies + ifnull(sum(r.copies), 0), max(r.dot) {had})"
        )
        replaced = f"FROM {scratch} AS d CROSS JOIN {table} AS r ON r.dot = d.dot"
        self._go(connection, f"SELECT r.dot, {stored.term('r')} AS term {replaced}", commit)
        connection.execute(f"DELETE FROM {table} WHERE dot IN (SELECT dot FROM {scratch})")
        return self._add(connection, epoch, commit)

    def remove(self, connection: sqlite3.Connection, table: str, commit: Commit) -> None:
        """Remove all rows of this owner from one of the tables, no matter where they came from."""
        if self.is_in(connection, table):
            mine = f"FROM {table} AS r WHERE {self.owns('r')}"
            self._go(connection, f"SELECT r.dot, {self.rows.term('r')} AS term {mine}", commit)
            connection.execute(f"DELETE {mine}")
            self._came(connection, 1, commit)

    def listed(self, *more: str) -> str:
        """Return the columns of a tuple, and more."""
        return ", ".join([*self.rows.table.columns, *more])

    # Inside.

    def _mark(self) -> str:
        """What a mark has in the columns of a tuple: the owner, NULLs, and zeros where no NULL may be."""
        cells = [_nothing(field) for field in self.rows.relation.schema]
        return ", ".join(cells if self.rows.authority is not None else [text_literal(self.name), *cells[1:]])

    def _set_aside(self, connection: sqlite3.Connection, rows: str, which: str) -> None:
        """Put into the scratch table what rows with weights come to."""
        connection.execute(
            f"INSERT INTO {self.rows.scratch} ({self.listed('copies')}) "
            f"SELECT {self.listed('sum(w)')} FROM ({rows}) GROUP BY {self.listed()} HAVING sum(w) {which}"
        )

    def _tell(self, connection: sqlite3.Connection, rows: str, weight: str) -> None:
        if self.is_read:
            delta = f"INSERT INTO {self.rows.delta} ({self.listed('w')})"
            connection.execute(f"{delta} SELECT {self.listed(weight)} FROM {rows}")

    def _add(self, connection: sqlite3.Connection, epoch: int, commit: Commit) -> int:
        """Write the rows of the scratch table; return how many tuples it has."""
        stored = self.rows
        ledger, partition = stored.partition(connection, commit)
        (count,) = connection.execute(f"SELECT ifnull(max(rowid), 0) FROM {stored.scratch}").fetchone()
        if count:
            cells = self.listed("copies", "?", "? + rowid", "?")
            connection.execute(
                f"INSERT INTO {stored.table.name} ({stored.stored}) "
                f"SELECT {cells} FROM {stored.scratch} WHERE copies > 0",
                (epoch, ledger.base(partition), commit.version),
            )
            connection.execute(f"DELETE FROM {stored.scratch}")
            self._came(connection, count, commit)
        return int(count)

    def _go(self, connection: sqlite3.Connection, rows: str, commit: Commit) -> None:
        """Log rows that are about to be removed: a SELECT of their dots and terms."""
        _, partition = self.rows.partition(connection, commit)
        if _is_summed(connection, partition, commit):
            change_digest(connection, partition.number, (), sum_rows(connection, rows), commit.version)
        if partition.is_logged:
            log(connection, partition.number, commit.version, rows)

    def _came(self, connection: sqlite3.Connection, count: int, commit: Commit) -> None:
        """Use up numbers, by rows that were just added or by removals; now and then forget old removals."""
        stored = self.rows
        ledger, partition = stored.partition(connection, commit)
        base, before = ledger.base(partition), partition.seen
        ledger.advance(connection, partition, count, commit.version)
        commit.grown = True
        if _is_summed(connection, partition, commit):
            added = f"FROM {stored.table.name} AS r WHERE r.dot > {base} AND r.dot <= {base + count}"
            came = sum_rows(connection, f"SELECT r.dot, {stored.term('r')} AS term {added}")
            change_digest(connection, partition.number, [came], NO_DIGEST, commit.version)
            connection.execute(
                f"UPDATE {PARTITIONS} SET own = ? WHERE number = ?", (partition.seen, partition.number)
            )
        if partition.seen // REMEMBERED > before // REMEMBERED:
            trim_log(connection, stored, partition.number)


def _is_summed(connection: sqlite3.Connection, partition: Partition, commit: Commit) -> bool:
    """Whether the digest has been brought up to this commit already, by a cut that it applies."""
    found = f"SELECT summed FROM {PARTITIONS} WHERE number = ?"
    return bool(connection.execute(found, (partition.number,)).fetchone()[0] == commit.version)


def _nothing(field: Field) -> str:
    """Return a literal for a column that nobody looks at: a stored value of its type."""
    if field.nullable:
        return "NULL"
    if field.type.kind is Kind.BLOB:
        return "x''"
    match column_type(field.type):
        case "TEXT":
            digits = sum(field.type.digits) if field.type.kind is Kind.DECIMAL else 0
            return text_literal(encode_long(0, digits) if digits else "")
        case "REAL":
            return "0.0"
        case _:
            return "0"
