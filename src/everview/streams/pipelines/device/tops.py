"""The state of a top-N: of each partition of its map the n keys with the greatest values, and no others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change
from everview.streams.pipelines.description import MapStage, TopStage, is_plain_count
from everview.streams.pipelines.device.maps import MapState
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.keys import Stored, load_key, store_key
from everview.streams.pipelines.ranking import greatest, merged, reranked


class TopState:
    """A ranking for each partition, brought up to date by the keys that changed."""

    def __init__(
        self, stage: TopStage, connection: sqlite3.Connection, ranked: MapState, *, deferred: bool
    ) -> None:
        self.stage = stage
        self.deferred = deferred
        self._connection = connection
        self._map = ranked
        assert isinstance(stage.input.feeder, MapStage)
        self._plain = is_plain_count(stage.input.feeder)
        self._table = f"top_{stage.name}"
        self._dirty = f"dirty_{stage.name}"

    def create(self) -> None:
        """Make the tables."""
        self._connection.execute(
            f"CREATE TABLE {self._table} (part INTEGER PRIMARY KEY, ranking BLOB NOT NULL)"
        )
        self._connection.execute(
            f"CREATE TABLE {self._dirty} (part INTEGER, key, PRIMARY KEY (key, part)) WITHOUT ROWID"
        )

    def prepare(self) -> None:
        """A connection needs nothing."""

    def drop(self) -> None:
        """Remove the tables."""
        self._connection.execute(f"DROP TABLE {self._table}")
        self._connection.execute(f"DROP TABLE {self._dirty}")

    def gather(self, change: Change) -> int:
        """Note the keys that changed; how many."""
        self._connection.executemany(f"INSERT OR IGNORE INTO {self._dirty} VALUES (?, ?)", change.places)
        return len(change.places)

    def take(self, change: Change) -> Change | None:
        """Look at the keys that changed."""
        old = self.read()
        touched: dict[int, set[Stored]] = {}
        for part, key in change.places:
            touched.setdefault(part, set()).add(key)
        for part, keys in touched.items():
            self._rank(part, keys)
        return _between(old, self.read())

    def fire(self) -> Change | None:
        """Look at the keys that were noted."""
        places = self._connection.execute(f"SELECT part, key FROM {self._dirty}").fetchall()
        self._connection.execute(f"DELETE FROM {self._dirty}")
        return self.take(Change(None, places))

    def refill(self, _batches: Iterable[Batch]) -> Change | None:
        """Look through all partitions."""
        old = self.read()
        for table in (self._table, self._dirty):
            self._connection.execute(f"DELETE FROM {table}")
        for part in range(self._map.stage.partitioning.count):
            self._keep(part, self._searched(part))
        return _between(old, self.read())

    def _rank(self, part: int, touched: set[Stored]) -> None:
        old = self._ranking(part)
        places = [(part, key) for key in {*touched, *(store_key(key) for key, _ in old)}]
        found = {load_key(key): self._map.value(n, body) for _, key, n, body in self._map.rows_at(places)}
        self._keep(part, reranked(old, found, self.stage.n, lambda: self._searched(part)))

    def _searched(self, part: int) -> list[tuple[Any, Any]]:
        rows = self._map.rows_of(part, self.stage.n if self._plain else None)
        return greatest(((load_key(key), self._map.value(n, body)) for _, key, n, body in rows), self.stage.n)

    def _keep(self, part: int, ranking: list[tuple[Any, Any]]) -> None:
        self._connection.execute(
            f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?)", (part, encode(ranking))
        )

    def _ranking(self, part: int) -> list[tuple[Any, Any]]:
        found = self._connection.execute(
            f"SELECT ranking FROM {self._table} WHERE part = ?", (part,)
        ).fetchone()
        return decode(found[0]) if found else []

    def read(self) -> tuple[tuple[Any, Any], ...]:
        """The n greatest of all partitions' rankings, greatest first."""
        found = self._connection.execute(f"SELECT ranking FROM {self._table} ORDER BY part").fetchall()
        return merged([decode(ranking) for (ranking,) in found], self.stage.n)

    def read_waiting(self) -> list[Any]:
        """The keys that changed."""
        found = self._connection.execute(f"SELECT DISTINCT key FROM {self._dirty} ORDER BY key")
        return [load_key(key) for (key,) in found]


def _between(old: tuple[Any, ...], new: tuple[Any, ...]) -> Change | None:
    gone = [entry for entry in old if entry not in new]
    come = [entry for entry in new if entry not in old]
    if not gone and not come:
        return None
    return Change(Batch([*gone, *come], weights=[-1] * len(gone) + [1] * len(come)))
