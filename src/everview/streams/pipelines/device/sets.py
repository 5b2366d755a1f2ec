"""The state of a set: every element that came, and which of them stands for its key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from everview.errors import DataError
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change
from everview.streams.pipelines.description import SetStage
from everview.streams.pipelines.encoding import decode, encode, encode_json
from everview.streams.pipelines.functions import called
from everview.streams.pipelines.hollow import through
from everview.streams.pipelines.keys import Stored, store_key

CHUNK = 50_000
"""How many elements a stage that is filled later is given at once."""


class SetState:
    """Elements by key, with how often each came less how often it went.

    Of the elements of a key that are there the one with the greatest bytes counts, so it does not matter
    which came first, nor how often.
    """

    def __init__(self, stage: SetStage, connection: sqlite3.Connection, owned: frozenset[int] | None) -> None:
        self.stage = stage
        self._connection = connection
        self._owned = owned
        self._table = f"set_{stage.name}"
        self._batch = f"temp.batch_{stage.name}"

    def create(self) -> None:
        """Make the table."""
        self._connection.execute(
            f"CREATE TABLE {self._table} (part INTEGER NOT NULL, key NOT NULL, element BLOB NOT NULL, "
            "w INTEGER NOT NULL, PRIMARY KEY (key, element)) WITHOUT ROWID"
        )

    def prepare(self) -> None:
        """Make what a connection needs."""
        self._connection.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS batch_{self.stage.name} "
            "(part INTEGER, key, element BLOB, w INTEGER)"
        )

    def drop(self) -> None:
        """Remove the table."""
        self._connection.execute(f"DROP TABLE {self._table}")

    def take(self, change: Change) -> Change | None:
        """Put a batch's elements in; return which now stand for their keys and which no longer do."""
        assert change.batch is not None
        batch = through(self.stage.input, change.batch)
        rows, given = self._rows(batch)
        if not rows:
            return None
        run = self._connection
        run.execute(f"DELETE FROM {self._batch}")
        run.executemany(f"INSERT INTO {self._batch} VALUES (?, ?, ?, ?)", rows)
        old = self._standing()
        run.execute(
            f"INSERT INTO {self._table} SELECT * FROM {self._batch} WHERE true "
            "ON CONFLICT (key, element) DO UPDATE SET w = w + excluded.w"
        )
        if batch.weights is not None:
            run.execute(
                f"DELETE FROM {self._table} WHERE w = 0 "
                f"AND key IN (SELECT key FROM {self._batch} WHERE w < 0)"
            )
        new = self._standing()
        return _changed(old, new, given)

    def _rows(self, batch: Batch) -> tuple[list[tuple[int, Stored, bytes, int]], dict[bytes, Any]]:
        """Each element once, with its weight, if its partition is kept here; and elements by their bytes."""
        pack = encode_json if batch.from_json and not self.stage.input.steps else encode
        parts, owned = self.stage.partitioning, self._owned
        keys: dict[bytes, Any] = {}
        given: dict[bytes, Any] = {}
        weights: dict[bytes, int] = {}
        for place, (key, element) in enumerate(
            zip(called(self.stage.key, batch), batch.elements(), strict=True)
        ):
            packed = pack(element)
            keys[packed] = key
            given[packed] = element
            weight = 1 if batch.weights is None else batch.weights[place]
            weights[packed] = weights.get(packed, 0) + weight
        rows = []
        for packed, key in keys.items():
            if weights[packed]:
                part = parts.of_key(key)
                if owned is None or part in owned:
                    rows.append((part, self._key(key), packed, weights[packed]))
        return rows, given

    def _key(self, key: Any) -> Stored:
        if key is None:
            raise DataError(f"an element of the set {self.stage.name} has no key: None", value=key)
        return store_key(key)

    def _standing(self) -> dict[Stored, bytes]:
        """The elements that stand for the keys of the batch."""
        found = self._connection.execute(
            f"SELECT s.key, max(s.element) FROM (SELECT DISTINCT key FROM {self._batch}) b "
            f"JOIN {self._table} s ON s.key = b.key WHERE s.w > 0 GROUP BY s.key"
        )
        return dict(found.fetchall())

    def contents(self) -> Iterator[Batch]:
        """The elements that stand for their keys."""
        found = self._connection.execute(
            f"SELECT max(element) FROM {self._table} WHERE w > 0 GROUP BY key ORDER BY key"
        )
        while rows := found.fetchmany(CHUNK):
            yield Batch([decode(element) for (element,) in rows])

    def read(self) -> list[Any]:
        """The same in one list, in the order of the keys."""
        return [element for batch in self.contents() for element in batch.elements()]


def _changed(old: dict[Stored, bytes], new: dict[Stored, bytes], given: dict[bytes, Any]) -> Change | None:
    gone = [decode(element) for key, element in old.items() if new.get(key) != element]
    come = [
        given[element] if element in given else decode(element)
        for key, element in new.items()
        if old.get(key) != element
    ]
    if not gone:
        return Change(Batch(come)) if come else None
    return Change(Batch([*gone, *come], weights=[-1] * len(gone) + [1] * len(come)))
