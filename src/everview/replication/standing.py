"""What there is to say about a site and the others: for `status`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from typing import Any

from everview.engines.sqlite.examining import Finding
from everview.engines.sqlite.names import PAGES, STORE
from everview.engines.sqlite.rows import peers, serving
from everview.engines.sqlite.rows.ledger import PARTITIONS, REMOVED, SITES, VECTORS
from everview.engines.sqlite.rows.refusals import refused
from everview.engines.sqlite.stamps import microseconds
from everview.engines.sqlite.store import Store

__all__ = ["examine_others", "replication_status"]

_AHEAD_US = 60_000_000
"""A clock that is ahead by more than this wins what others write at the same time."""


def examine_others(store: Store) -> Iterator[Finding]:
    """Yield what this store knows of other sites that somebody should do something about."""
    connection = store.writer.connection
    (stamp,) = connection.execute(f"SELECT clock FROM {STORE}").fetchone()
    ahead = microseconds(stamp) - time.time_ns() // 1000
    if ahead > _AHEAD_US:
        text = f"its last commit was stamped {ahead // 1_000_000:,} s ahead of this machine's clock"
        yield Finding("warning", "clock", text, "set the clock: until then its rows win what is concurrent")
    status = replication_status(connection)
    for alarm in status["alarms"]:
        name, peer = alarm["relation"], alarm["peer"]
        text = f"{name} differs from that of {peer}, although both have seen the same"
        yield Finding("error", name, text, f"`everview repair` reads {name} again from a peer that is right")
    yield Finding("fine", "sites", f"stores whose rows were seen: {len(status['sites'])}")


def replication_status(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return who was met, what has been seen of whom, what is remembered, and alarms; all plain values."""
    pages, waiting = connection.execute(
        f"SELECT count(*), ifnull(sum(length(message)), 0) FROM {PAGES}"
    ).fetchone()
    removed = dict(
        connection.execute(
            f"SELECT p.stream, count(*) FROM {REMOVED} AS r JOIN {PARTITIONS} AS p ON p.number = r.partition "
            "GROUP BY p.stream"
        )
    )
    seen = connection.execute(
        f"SELECT s.incarnation, s.name, p.stream, v.seen FROM {VECTORS} AS v JOIN {SITES} AS s ON s.number = v.site "
        f"JOIN {PARTITIONS} AS p ON p.number = v.partition WHERE v.seen > 0 ORDER BY 1, 3"
    )
    sites: dict[str, dict[str, Any]] = {}
    for incarnation, name, stream, number in seen:
        one = sites.setdefault(incarnation, {"incarnation": incarnation, "name": name, "seen": {}})
        one["seen"][stream] = number
    return {
        "head": serving.head(connection).version,
        "sites": list(sites.values()),
        "peers": [
            {"address": address, "incarnation": incarnation, "synced_us": at}
            for address, incarnation, at in connection.execute(f"SELECT * FROM {peers.ADDRESSES} ORDER BY 1")
        ],
        "alarms": [
            {"relation": stream, "partition": value, "peer": peer, "noticed_us": at}
            for stream, value, peer, at in peers.alarms(connection)
        ],
        "removals": removed,
        "refused": [one._asdict() for one in refused(connection)],
        "staged_pages": pages,
        "staged_bytes": waiting,
    }
