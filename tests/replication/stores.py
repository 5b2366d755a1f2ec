"""Stores without a site around them, for tests that look at what travels."""

from __future__ import annotations

from typing import Any

import everview as ev
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.rows import peers, serving
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.replication.protocol.replica import Replica
from everview.replication.transports.report import SyncReport

Row = tuple[Any, ...]

KINDS = ev.Program.parse("""
    CREATE TABLE s (a BIGINT, b TEXT);
    CREATE TABLE k (a BIGINT PRIMARY KEY, b TEXT, c DOUBLE);
    CREATE TABLE g (a BIGINT NOT NULL, b TEXT) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT NOT NULL, b TEXT) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW v AS SELECT s.a, k.b FROM s JOIN k ON s.a = k.a;
    CREATE MATERIALIZED VIEW n AS SELECT g.a, count(*) AS n FROM g JOIN w ON g.a = w.a GROUP BY g.a;
""")
"""A relation of every kind, and views over them."""

RELATIONS, VIEWS = "skgw", "vn"


class Peer:
    """A store, and all that a site would have of it."""

    def __init__(self, name: str, path: str = ":memory:", program: ev.Program = KINDS) -> None:
        self.name, self.program = name, program
        self.store = Store(path, program, name)
        self.writing, self.reading = Writing(self.store), Reading(self.store)
        self.replica = Replica(self.store, self.writing)

    @property
    def connection(self) -> Any:
        return self.store.writer.connection

    def insert(self, relation: str, rows: list[Row]) -> int:
        return self.writing.run(lambda: self.writing.insert(self.program.relations[relation], rows))

    def delete(self, relation: str, rows: list[Row]) -> int:
        return self.writing.run(lambda: self.writing.delete(self.program.relations[relation], rows))

    def rows(self, name: str) -> list[Row]:
        return self.reading.sorted_rows(name, inside=False)

    def sync(self, other: Peer) -> SyncReport:
        exchange = self.replica.exchange(other.name)
        message: bytes | None = exchange.open()
        for _ in range(10_000):
            if message is None:
                return exchange.report
            message = exchange.receive(other.replica.answer(message))
        raise AssertionError("two stores never come to rest")

    def digests(self) -> dict[str, tuple[int, int]]:
        """The digests as they are kept, which are those of all rows added up."""
        found = {}
        for name, stored in self.store.engine.shares.items():
            number = self.store.ledger.partition(self.connection, name).number
            version = serving.head(self.connection).version
            found[name] = serving.digest_of(self.connection, stored, number, version)
            assert found[name] == serving.sum_rows(self.connection, stored.all_rows()), (self.name, name)
        return found

    def alarms(self) -> list[str]:
        """The streams in which it differs from a peer that has seen the same."""
        return [stream for stream, *_ in peers.alarms(self.connection)]
