"""Status: what there is to say about a store and the others."""

from __future__ import annotations

import sqlite3
from typing import Any

from everview.engines.sqlite.names import PAGES, STORE
from everview.engines.sqlite.rows import peers, serving
from everview.engines.sqlite.rows.ledger import PARTITIONS, REMOVED, SITES, VECTORS
from everview.engines.sqlite.rows.refusals import refused
from everview.planner.published import view_of

__all__ = ["replication_status", "subject_of"]


def subject_of(stream: str) -> str:
    """Return the relation or view that a stream tells of, as people know it.

    >>> subject_of("everview_published#alerts"), subject_of("#a6a40df98c44ebb6>visit"), subject_of("visit")
    ('alerts', 'visit', 'visit')
    """
    return view_of(stream.rpartition(">")[2])


def replication_status(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return who was met, what has been seen of whom, what is remembered, and alarms; all plain values."""
    (own,) = connection.execute(f"SELECT incarnation FROM {STORE}").fetchone()
    pages, waiting = connection.execute(
        f"SELECT count(*), ifnull(sum(length(message)), 0) FROM {PAGES}"
    ).fetchone()
    return {
        "incarnation": own,
        "head": serving.head(connection).version,
        "sites": _sites(connection, own),
        "peers": _peers(connection),
        "alarms": [
            {"relation": stream, "partition": value, "peer": peer, "noticed_us": at}
            for stream, value, peer, at in peers.alarms(connection)
        ],
        "removals": dict(
            connection.execute(
                f"SELECT p.stream, count(*) FROM {REMOVED} AS r JOIN {PARTITIONS} AS p "
                "ON p.number = r.partition GROUP BY p.stream ORDER BY p.stream"
            )
        ),
        "refused": [one._asdict() for one in refused(connection)],
        "staged_pages": pages,
        "staged_bytes": waiting,
    }


def _sites(connection: sqlite3.Connection, own: str) -> list[dict[str, Any]]:
    """Other stores whose rows were seen: up to which number of each relation, and when they were met."""
    found: dict[str, dict[str, Any]] = {}
    for incarnation, name, stream, number, synced_us in connection.execute(
        f"SELECT s.incarnation, s.name, p.stream, max(v.seen), "
        f"(SELECT ifnull(max(synced_us), 0) FROM {peers.ADDRESSES} AS a WHERE a.incarnation = s.incarnation) "
        f"FROM {VECTORS} AS v JOIN {SITES} AS s ON s.number = v.site "
        f"JOIN {PARTITIONS} AS p ON p.number = v.partition "
        "WHERE v.seen > 0 AND s.incarnation <> ? GROUP BY s.incarnation, p.stream ORDER BY s.name, 1, 3",
        (own,),
    ):
        one = found.setdefault(
            incarnation,
            {"incarnation": incarnation, "name": name, "names": [], "seen": {}, "synced_us": synced_us},
        )
        one["seen"][stream] = number
        one["names"] = sorted({*one["names"], subject_of(stream)})
    return list(found.values())


def _peers(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Who answered at each address that was dialled, and when."""
    return [
        {"address": address, "incarnation": incarnation, "name": name, "synced_us": at}
        for address, incarnation, name, at in connection.execute(
            f"SELECT a.address, a.incarnation, ifnull(s.name, ''), a.synced_us FROM {peers.ADDRESSES} AS a "
            f"LEFT JOIN {SITES} AS s ON s.incarnation = a.incarnation AND s.partition = 0 ORDER BY 1"
        )
    ]
