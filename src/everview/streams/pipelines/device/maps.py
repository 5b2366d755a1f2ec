"""The state of a map: for each partition and key, how many elements and what they contribute."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change, Place, difference
from everview.streams.pipelines.description import MapStage, is_plain_count
from everview.streams.pipelines.device.sets import CHUNK
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.hollow import Hollow, is_neutral, map_of, through
from everview.streams.pipelines.keys import Stored, load_key, store_key
from everview.streams.pipelines.partitioning import checked_part

Row = tuple[int, Stored, int, bytes | None]


class MapState:
    """A table that is added to by upserts, and a second one, hollow, for what waits for the trigger."""

    def __init__(self, stage: MapStage, connection: sqlite3.Connection, *, deferred: bool) -> None:
        self.stage = stage
        self.deferred = deferred
        self.wanted = False
        """Whether somebody asks which pairs change."""
        self._connection = connection
        self._plain = is_plain_count(stage)
        self._table = f"map_{stage.name}"
        self._hollow = f"hollow_{stage.name}"
        self._touched = f"temp.touched_{stage.name}"

    def create(self) -> None:
        """Make the tables."""
        for table in (self._table, self._hollow):
            self._connection.execute(
                f"CREATE TABLE {table} (part INTEGER NOT NULL, key NOT NULL, "
                "n INTEGER NOT NULL CHECK (typeof(n) = 'integer'), body BLOB, "
                "PRIMARY KEY (key, part)) WITHOUT ROWID"
            )

    def prepare(self) -> None:
        """Make what a connection needs."""
        self._connection.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS touched_{self.stage.name} (part INTEGER, key)"
        )
        if not self._plain:
            self._connection.create_function(
                f"combine_{self.stage.name}", 2, self._combined, deterministic=True
            )
            self._connection.create_function(
                f"neutral_{self.stage.name}", 1, self._neutral, deterministic=True
            )

    def drop(self) -> None:
        """Remove the tables."""
        for table in (self._table, self._hollow):
            self._connection.execute(f"DROP TABLE {table}")

    def clear(self) -> None:
        """Forget everything, what waits too."""
        for table in (self._table, self._hollow):
            self._connection.execute(f"DELETE FROM {table}")

    def gather(self, change: Change) -> int:
        """Add a batch to what waits; how many changes that are."""
        assert change.batch is not None
        batch = through(self.stage.input, change.batch)
        self._add(self._hollow, _rows(map_of(self.stage, batch)))
        return len(batch)

    def take(self, change: Change) -> Change | None:
        """Add a batch to the map."""
        assert change.batch is not None
        return self.merge(_rows(map_of(self.stage, through(self.stage.input, change.batch))))

    def merge(self, rows: list[Row]) -> Change | None:
        """Add contributions to the map; return what that changed."""
        if not rows:
            return None
        places: list[Place] = [row[:2] for row in rows]
        if not self.wanted:
            self._add(self._table, rows)
            return Change(None, places)
        old = self._values_at(places)
        self._add(self._table, rows)
        return Change(difference(old, self._values_at(places)), places)

    def fire(self) -> Change | None:
        """Merge what waits into the map."""
        return self.merge(self.flush())

    def flush(self) -> list[Row]:
        """Take out what waits."""
        rows: list[Row] = self._connection.execute(
            f"SELECT part, key, n, body FROM {self._hollow}"
        ).fetchall()
        self._connection.execute(f"DELETE FROM {self._hollow}")
        return rows

    def gather_rows(self, rows: list[Row]) -> int:
        """Add contributions to what waits; how many changes that are, at least."""
        self._add(self._hollow, rows)
        return sum(max(1, abs(row[2])) for row in rows)

    def refill(self, batches: Iterable[Batch]) -> Change:
        """Compute the map anew from what its feeder has."""
        old = self.read() if self.wanted else {}
        places: dict[Place, None] = dict.fromkeys(self._places())
        self.clear()
        for batch in batches:
            rows = _rows(map_of(self.stage, through(self.stage.input, batch)))
            self._add(self._table, rows)
            places.update(dict.fromkeys(row[:2] for row in rows))
        return Change(difference(old, self.read()) if self.wanted else None, list(places))

    def _add(self, table: str, rows: list[Row]) -> None:
        body = "NULL" if self._plain else f"combine_{self.stage.name}(body, excluded.body)"
        self._connection.executemany(
            f"INSERT INTO {table} (part, key, n, body) VALUES (?, ?, ?, ?) "
            f"ON CONFLICT (key, part) DO UPDATE SET n = n + excluded.n, body = {body}",
            rows,
        )
        falling = [row[:2] for row in rows if row[2] <= 0]
        if falling:
            # Nothing is left only if the values cancel too: a delta may have one element go and another come.
            nothing = "n = 0" if self._plain else f"n = 0 AND neutral_{self.stage.name}(body)"
            self._connection.executemany(
                f"DELETE FROM {table} WHERE part = ? AND key = ? AND {nothing}", falling
            )

    def _combined(self, a: bytes, b: bytes) -> bytes:
        return encode(self.stage.inner.combine(decode(a), decode(b)))

    def _neutral(self, body: bytes) -> bool:
        return is_neutral(self.stage.inner, decode(body))

    # Reading

    def value(self, count: int, body: bytes | None) -> Any:
        """What a reader is shown of a stored row."""
        return count if body is None else self.stage.inner.value(decode(body))

    def _values(self, rows: Iterable[tuple[Stored, int, bytes | None]]) -> dict[Any, Any]:
        """Key → value; of a key that is in several partitions all parts together."""
        parts: dict[Stored, tuple[int, Any]] = {}
        for key, count, body in rows:
            found = None if body is None else decode(body)
            if key in parts:
                known = parts[key]
                count += known[0]  # noqa: PLW2901
                found = None if body is None else self.stage.inner.combine(known[1], found)
            parts[key] = count, found
        value = self.stage.inner.value
        return {
            load_key(key): count if found is None else value(found) for key, (count, found) in parts.items()
        }

    def _values_at(self, places: list[Place]) -> dict[Any, Any]:
        return self._values((key, count, body) for _, key, count, body in self.rows_at(places))

    def rows_at(self, places: Iterable[Place]) -> list[Row]:
        """The stored rows of some places."""
        self._connection.execute(f"DELETE FROM {self._touched}")
        self._connection.executemany(f"INSERT INTO {self._touched} VALUES (?, ?)", places)
        return self._connection.execute(
            f"SELECT m.part, m.key, m.n, m.body FROM (SELECT DISTINCT part, key FROM {self._touched}) t "
            f"JOIN {self._table} m ON m.key = t.key AND m.part = t.part"
        ).fetchall()

    def rows_of(self, part: int, most: int | None = None) -> list[Row]:
        """The stored rows of a partition, or those of the `most` greatest counts, lesser keys first."""
        order = "" if most is None else f" ORDER BY n DESC, key LIMIT {most}"
        return self._connection.execute(
            f"SELECT part, key, n, body FROM {self._table} WHERE part = ?{order}", (part,)
        ).fetchall()

    def _places(self) -> list[Place]:
        return self._connection.execute(f"SELECT part, key FROM {self._table}").fetchall()

    def contents(self) -> Iterator[Batch]:
        """The pairs (key, value)."""
        pairs = list(self.read().items())
        for start in range(0, len(pairs), CHUNK):
            yield Batch(pairs[start : start + CHUNK])

    def read(self) -> dict[Any, Any]:
        """Key → value, in the order of the keys."""
        return self._values(self._connection.execute(f"SELECT key, n, body FROM {self._table} ORDER BY key"))

    def read_waiting(self) -> dict[Any, Any]:
        """Key → value of what waits alone."""
        return self._values(self._connection.execute(f"SELECT key, n, body FROM {self._hollow} ORDER BY key"))

    def body(self, rows: list[Row]) -> bytes:
        """Contributions as they travel."""
        return encode(
            [[part, load_key(key), n, None if b is None else decode(b)] for part, key, n, b in rows]
        )

    def rows_from(self, body: bytes) -> list[Row]:
        """Contributions that have travelled; where they belong is decided here."""
        rows = []
        for given, key, count, found in decode(body):
            part = checked_part(self.stage.partitioning, given, key)
            rows.append((part, store_key(key), count, None if found is None else encode(found)))
        return rows


def _rows(hollow: Hollow) -> list[Row]:
    return [
        (part, store_key(key), count, None if found is None else encode(found))
        for (part, key), (count, found) in hollow.items()
    ]
