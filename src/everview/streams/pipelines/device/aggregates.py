"""The state of an aggregate: how many elements, and what they contribute; the same again for what waits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from everview.algebra.crdt.counter import Count
from everview.streams.pipelines.batch import Batch
from everview.streams.pipelines.change import Change
from everview.streams.pipelines.description import AggregateStage
from everview.streams.pipelines.encoding import decode, encode
from everview.streams.pipelines.hollow import Contribution, aggregate_of, through

PRIMARY, HOLLOW = 0, 1


class AggregateState:
    """Two rows: the primary, and the hollow replica that waits for the trigger."""

    def __init__(self, stage: AggregateStage, connection: sqlite3.Connection, *, deferred: bool) -> None:
        self.stage = stage
        self.deferred = deferred
        self._connection = connection

    def create(self) -> None:
        """Nothing is there at first."""

    def prepare(self) -> None:
        """A connection needs nothing."""

    def drop(self) -> None:
        """Remove both rows."""
        self._connection.execute("DELETE FROM aggregates WHERE stage = ?", (self.stage.name,))

    def gather(self, change: Change) -> int:
        """Add a batch to what waits; how many changes that are."""
        assert change.batch is not None
        batch = through(self.stage.input, change.batch)
        self.gather_rows(aggregate_of(self.stage, batch))
        return len(batch)

    def gather_rows(self, contribution: Contribution) -> int:
        """Add a contribution to what waits; how many changes that are, at least."""
        self._add(HOLLOW, contribution)
        return max(1, abs(contribution[0]))

    def take(self, change: Change) -> Change | None:
        """Add a batch to the aggregate."""
        assert change.batch is not None
        return self.merge(aggregate_of(self.stage, through(self.stage.input, change.batch)))

    def merge(self, contribution: Contribution) -> Change | None:
        """Add a contribution; return the value before and the one after."""
        old = self.read()
        self._add(PRIMARY, contribution)
        return _between(old, self.read())

    def fire(self) -> Change | None:
        """Merge what waits."""
        return self.merge(self.flush())

    def flush(self) -> Contribution:
        """Take out what waits."""
        found = self._get(HOLLOW)
        self._connection.execute(
            "DELETE FROM aggregates WHERE stage = ? AND waiting = ?", (self.stage.name, HOLLOW)
        )
        return found

    def refill(self, batches: Iterable[Batch]) -> Change | None:
        """Compute it anew from what its feeder has; what waited is in it then."""
        old = self.read()
        self.drop()
        for batch in batches:
            self._add(PRIMARY, aggregate_of(self.stage, through(self.stage.input, batch)))
        return _between(old, self.read())

    def _get(self, which: int) -> Contribution:
        found = self._connection.execute(
            "SELECT n, body FROM aggregates WHERE stage = ? AND waiting = ?", (self.stage.name, which)
        ).fetchone()
        if found is None:
            return 0, None
        return found[0], None if found[1] is None else decode(found[1])

    def _add(self, which: int, contribution: Contribution) -> None:
        old, new = self._get(which), contribution
        count, body = old[0] + new[0], new[1]
        if old[1] is not None:
            body = old[1] if new[1] is None else self.stage.aggregate.combine(old[1], new[1])
        self._connection.execute(
            "INSERT INTO aggregates VALUES (?, ?, ?, ?) "
            "ON CONFLICT (stage, waiting) DO UPDATE SET n = excluded.n, body = excluded.body",
            (self.stage.name, which, count, None if body is None else encode(body)),
        )

    def read(self) -> Any:
        """The value."""
        return value_of(self.stage, self._get(PRIMARY))

    def read_waiting(self) -> Any:
        """The value of what waits alone."""
        return value_of(self.stage, self._get(HOLLOW))

    def body(self, contribution: Contribution) -> bytes:
        """A contribution as it travels."""
        return encode(list(contribution))

    def rows_from(self, body: bytes) -> Contribution:
        """A contribution that has travelled."""
        count, found = decode(body)
        return count, found


def value_of(stage: AggregateStage, contribution: Contribution) -> Any:
    """Return what a reader is shown of a contribution."""
    count, found = contribution
    if stage.value is None and isinstance(stage.aggregate, Count):
        return count
    return stage.aggregate.value(stage.aggregate.zero() if found is None else found)


def _between(old: Any, new: Any) -> Change | None:
    return None if old == new else Change(Batch([old, new], weights=[-1, 1]))
