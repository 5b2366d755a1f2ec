"""Sites of one program that host parts of it, and pages that are as small as one likes."""

from __future__ import annotations

from collections import Counter

import everview as ev
from everview.engines.reference import evaluate
from everview.engines.sqlite.explain import explain
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.witnesses import Witnesses
from everview.engines.sqlite.writing import Writing
from everview.replication.protocol.exchange import Exchange
from everview.replication.protocol.replica import Replica

TABLES = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT, d TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE w (x BIGINT NOT NULL) WITH (semantics = 'add_wins');
CREATE TABLE g (x BIGINT NOT NULL) WITH (semantics = 'bag');
"""


def program(**views: str) -> ev.Program:
    """A program with a relation of every kind, and views of them."""
    made = [f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in views.items()]
    return ev.Program.parse(TABLES + "".join(made))


class Host:
    """A site, without a transport."""

    def __init__(self, program, name, hosts=None, path=":memory:", cells=1_000_000):
        self.program, self.name, self.hosts, self.path, self.cells = program, name, hosts, path, cells
        self.open()

    def open(self):
        self.store = Store(str(self.path), self.program, self.name, hosts=self.hosts)
        self.writing, self.reading = Writing(self.store), Reading(self.store)
        self.replica = Replica(self.store, self.writing, page_cells=self.cells)

    def reopen(self):
        self.replica.close()
        self.open()

    def write(self, verb, relation, rows):
        found = self.program.relations[relation]
        return self.writing.run(lambda: getattr(self.writing, verb)(found, rows))

    def insert(self, relation, *rows):
        return self.write("insert", relation, rows)

    def delete(self, relation, *rows):
        return self.write("delete", relation, rows)

    def rows(self, name):
        return self.reading.sorted_rows(name, inside=False)

    def read(self, other, pages=None, meanwhile=None):
        """Sync, this site dialling; after so many messages the connection breaks."""
        exchange = Exchange(self.replica, other.name)
        message, count = exchange.open(), 0
        while message is not None:
            count += 1
            assert count < 2_000
            if pages is not None and count > pages:
                return None
            message = exchange.receive(other.replica.answer(message))
            if meanwhile is not None:
                meanwhile()
        return exchange.report

    def explain(self, view):
        return explain(self.store.engine, view, self.store.writer.connection)

    def why(self, view, row):
        return Witnesses(self.reading).why(view, row)

    @property
    def cores(self):
        return list(self.store.engine.received.values())


def expected(holder, view):
    """What a view is over the relations of a site that holds all."""
    tables = {name: holder.rows(name) for name in holder.program.relations}
    known = dict(tables)
    for name, declared in holder.program.views.items():
        known[name] = list(Counter(evaluate(declared.plan, known).rows).elements())
        if name == view:
            break
    return Counter(known[view])


def assert_shows(host, holder):
    """Every view that a site hosts is its query over what another one holds."""
    for name in host.store.engine.hosted():
        if name in host.program.views:
            assert Counter(host.rows(name)) == expected(holder, name), (host.name, name)
        else:
            assert Counter(host.rows(name)) == Counter(holder.rows(name)), (host.name, name)
