"""Two worlds with one history: a hub among sites, and the same with a site in the hub's place.

The site takes the hub's own writes in when the hub refreshes, so after a refresh both have the same rows; and
all other sites always have the same in both worlds. In a child process a hub kills itself in a refresh.
"""

import os
import random
import signal
import sys
from pathlib import Path

from tests.hub.kills import small_session
from tests.hub.quick import quickly

from everview.engines.reference import evaluate_views
from everview.hub import Hub
from everview.hub import store as store_module
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE s (n BIGINT, t TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
CREATE TABLE m (n BIGINT, t TEXT) WITH (semantics = 'bag');
CREATE TABLE w (n BIGINT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW j AS SELECT s.n, k.v FROM s JOIN k ON s.n = k.id;
CREATE MATERIALIZED VIEW c AS SELECT t, count(*) AS n FROM m GROUP BY t;
CREATE MATERIALIZED VIEW u AS SELECT n FROM w EXCEPT SELECT n FROM s;
""")
RELATIONS = tuple(PROGRAM.relations)
NAMES = ("a", "b", "c")


def contents(peer):
    return {name: peer.rows(name) for name in PROGRAM.names()}


def check_views(hub):
    base = {name: hub.rows(name) for name in RELATIONS}
    for view, wanted in evaluate_views(PROGRAM, base).items():
        assert hub.rows(view) == sorted_rows(wanted.rows), view


class Worlds:
    """A hub and three sites, their doubles, and a folder for each of the worlds."""

    def __init__(self, hub, folder, seed):
        self.random = random.Random(seed)
        self.hub, self.double = hub, Site.open(":memory:", PROGRAM, name="hub")
        self.sites = {name: Site.open(":memory:", PROGRAM, name=name) for name in NAMES}
        self.doubles = {name: Site.open(":memory:", PROGRAM, name=name) for name in NAMES}
        self.folders = folder / "folder", folder / "double"
        self.waiting = []

    def step(self):
        actions = (self.write, self.own, self.sync, self.visit, self.meet, self.refresh)
        action = self.random.choices(actions, (8, 5, 5, 3, 1, 2))[0]
        action()
        self.check_sites()

    def drawn(self):
        one = self.random.choice
        relation = one(RELATIONS)
        width = len(PROGRAM.relations[relation].schema)
        rows = [(one((1, 2, 3)), one("xyz"))[:width] for _ in range(self.random.randrange(1, 4))]
        return relation, rows, self.random.random() < 0.6

    def write(self):
        name, (relation, rows, present) = self.random.choice(NAMES), self.drawn()
        for sites in (self.sites, self.doubles):
            (sites[name].insert if present else sites[name].delete)(relation, rows)

    def own(self):
        relation, rows, present = self.drawn()
        (self.hub.insert if present else self.hub.delete)(relation, rows)
        self.waiting.append((relation, rows, present))

    def sync(self):
        name = self.random.choice(NAMES[:2])
        if self.random.random() < 0.7:
            self.sites[name].sync(self.hub)
            self.doubles[name].sync(self.double)
        else:
            self.hub.sync(self.sites[name])
            self.double.sync(self.doubles[name])

    def visit(self):
        name = self.random.choice(("b", "c", "hub", "hub"))
        here, there = self.folders
        (self.hub if name == "hub" else self.sites[name]).sync(here)
        (self.double if name == "hub" else self.doubles[name]).sync(there)

    def meet(self):
        self.sites["a"].sync(self.sites["b"])
        self.doubles["a"].sync(self.doubles["b"])

    def refresh(self):
        self.hub.refresh()
        for relation, rows, present in self.waiting:
            (self.double.insert if present else self.double.delete)(relation, rows)
        self.waiting.clear()
        assert contents(self.hub) == contents(self.double)
        check_views(self.hub)

    def check_sites(self):
        for name in NAMES:
            assert contents(self.sites[name]) == contents(self.doubles[name]), name

    def settle(self):
        """Everything talks with everything; then all are the same, and nothing moves any more."""
        self.refresh()
        for _ in range(3):
            for peer in (*self.sites.values(), self.hub):
                peer.sync(self.folders[0])
            for name in NAMES[:2]:
                self.sites[name].sync(self.hub)
        self.hub.refresh()
        for site in self.sites.values():
            assert contents(site) == contents(self.hub)
        check_views(self.hub)
        for site in self.sites.values():
            assert moved(site.sync(self.hub)) == (0, 0)
        assert moved(self.hub.sync(self.sites["a"])) == (0, 0)
        for peer in (*self.sites.values(), self.hub):
            peer.sync(self.folders[0])
        assert moved(self.hub.sync(self.folders[0])) == (0, 0)

    def close(self):
        for site in (*self.sites.values(), *self.doubles.values(), self.double):
            site.close()


def moved(report):
    return report.sent_rows, report.received_rows


def child(store, folder, owner, name):
    """Visit a folder, write, refresh, and die where a function is about to be called."""
    hub = quickly(Hub.open(store, PROGRAM, spark=small_session()))
    hub.sync(folder)
    hub.insert("m", [(1, "own")])
    hub.delete("m", [(1, "old")])
    hub.insert("k", [(1, "own")])
    places = {"hub": store_module, "gate": store_module.Gate}
    setattr(places[owner], name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    hub.refresh()


if __name__ == "__main__":
    child(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
