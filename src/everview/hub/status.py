"""How a hub is: its last refresh, what waits for the next, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass

from everview.hub.marks import whole_writes
from everview.hub.store import Store

__all__ = ["HubStatus", "Waiting", "status_of", "waiting"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is in no refresh yet: the hub's own writes, and what sites have pushed, as commits and rows."""

    writes: int = 0
    commits: int = 0
    rows: int = 0
    """Of what was pushed; counted no further than the limit that was asked for."""


@dataclass(frozen=True, slots=True)
class HubStatus:
    """The last refresh, when it was made (microseconds since 1970), what waits, and what is kept."""

    refresh: int
    refreshed_us: int
    waiting: Waiting
    files: int
    """Files of runs that the last refresh names."""
    bytes: int
    rows: int
    """Rows in these, of relations, views and what operators keep."""


def waiting(store: Store, most: int) -> Waiting:
    """What waits for a refresh; neither a lock nor a Spark job is needed for it."""
    record = store.record
    writes = sum(number > record.arrived for number, _ in whole_writes(store.files))
    commits, rows = store.peering.waiting(record, most)
    return Waiting(writes, commits, rows)


def status_of(store: Store, most: int) -> HubStatus:
    """How a hub is now."""
    record = store.record
    parts = [part for runs in record.tables.values() for run in runs for part in run.parts]
    return HubStatus(
        record.refresh,
        record.refreshed_us,
        waiting(store, most),
        len({part.path for part in parts}),
        sum(part.length for part in parts),
        sum(part.rows for part in parts),
    )
