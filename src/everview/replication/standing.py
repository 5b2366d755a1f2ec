"""What there is to say about a site and the others: for `status`."""

from __future__ import annotations

import sqlite3
from typing import Any

from everview.engines.sqlite.names import PAGES
from everview.engines.sqlite.rows import peers, serving
from everview.engines.sqlite.rows.ledger import PARTITIONS, REMOVED, SITES, VECTORS

__all__ = ["replication_status"]


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
        "staged_pages": pages,
        "staged_bytes": waiting,
    }
