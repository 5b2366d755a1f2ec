"""Random writes and cuts between holders, receivers and relays: after healing every view is its query."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

import pytest
from tests.engines.sqlite.derivations.peers import Peer

from everview.engines.reference import evaluate
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.relations.base import VECTOR
from everview.language.program import Program
from everview.planner.exchange import Way

TABLES = """
CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT, d TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE w (x BIGINT NOT NULL) WITH (semantics = 'add_wins');
CREATE TABLE g (x BIGINT) WITH (semantics = 'bag');
"""

VIEWS = {
    "projection": "SELECT b FROM r",
    "selection": "SELECT a, b FROM r WHERE a > b",
    "join": "SELECT r.a, s.d FROM r JOIN s ON r.b = s.b",
    "self_join": "SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a",
    "symmetric": "SELECT x.a + y.a AS n FROM r AS x JOIN r AS y ON x.b = y.b",
    "union": "SELECT a FROM r UNION ALL SELECT b FROM r UNION ALL SELECT b FROM s",
    "keyed": "SELECT id, n + 1 AS m FROM k WHERE n > 1",
    "keyed_join": "SELECT r.a, k.n FROM r JOIN k ON k.id = r.b WHERE k.n <> 2",
    "keyed_twice": "SELECT x.id, y.n FROM k AS x JOIN k AS y ON x.n = y.id",
    "add_wins": "SELECT x + 1 AS y FROM w",
    "add_wins_join": "SELECT w.x, k.n, s.d FROM w JOIN k ON k.id = w.x JOIN s ON s.b = k.n",
    "constant": "SELECT a FROM r WHERE a > 1 UNION ALL SELECT 7",
    "total": "SELECT b, count(*) AS n, sum(a) AS t FROM r GROUP BY b",
    "number": "SELECT count(*) AS n FROM r",
    "different": "SELECT DISTINCT x.n FROM k AS x JOIN r ON r.a = x.n",
    "difference": "SELECT a FROM r EXCEPT SELECT x FROM w WHERE x > 1",
    "left": "SELECT r.a, k.n FROM r LEFT JOIN k ON k.id = r.b AND k.n > 1",
    "bag": "SELECT g.x, r.b FROM g JOIN r ON r.a = g.x WHERE r.b > 0",
}


@lru_cache(maxsize=1)
def _program(name):
    return Program.parse(TABLES + f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]};")


class World:
    """Two sites that hold all, two that receive the view from anyone, and cuts on their way.

    In a `chain` each reads from its neighbour alone, so nothing that one loses comes from another.
    """

    def __init__(self, name, rng, *, chain=False, followed=True):
        program = _program(name)
        relations = frozenset(program.relations)
        hosts = [relations, frozenset({*relations, "v"}), frozenset({"v"}), frozenset({"v"})]
        self.rng, self.program = rng, program
        self.peers = [Peer(Engine(program, h), n + 1) for n, h in enumerate(hosts)]
        self.chain = chain
        for peer in self.peers:
            peer.index()
            for shown in peer.engine.hosted() if followed else ():
                peer.follow(shown)
        self.cursors = Counter()
        self.under_way = []
        self.floors = Counter()

    def step(self):
        roll = self.rng.random()
        if roll < 0.35:
            self.write()
        elif roll < 0.65:
            self.send()
        elif self.under_way:
            self.deliver(self.rng.choice(self.under_way))

    def write(self):
        peer = self.rng.choice(self.peers[:2])
        relation = self.rng.choice(list(self.program.relations))
        width = len(self.program.schema(relation))
        cell = lambda: self.rng.randrange(4)
        rows = [tuple(cell() for _ in range(width)) for _ in range(self.rng.choice([1, 1, 3]))]
        if relation == "s":
            rows = [(self.rng.choice([b, None]), "xyz"[d % 3]) for b, d in rows]
        action = self.rng.choice(["insert", "insert", "delete"])
        stamp = max(peer.latest(), self.rng.randrange(50)) + 1
        peer.write(action, relation, rows, stamp=stamp, floors=dict(self.floors))

    def pairs(self):
        for reader in self.peers:
            for sender in self.peers:
                near = abs(sender.number - reader.number) == 1
                if sender is not reader and (near or not self.chain):
                    for stream in reader.engine.streams.keys() & set(sender.engine.offers):
                        yield sender, reader, stream

    def send(self):
        sender, reader, stream = self.rng.choice(sorted(self.pairs(), key=_named))
        since = self.cursors[sender.number, reader.number, stream]
        since = self.rng.choice([since, since, self.rng.randint(0, since)])
        cut = sender.cut(stream, since, limit=self.rng.choice([1, 3, 100]))
        self.under_way.append((sender, reader, since, cut))

    def deliver(self, item):
        sender, reader, since, cut = item
        stream, head, sections = cut
        if self.rng.random() < 0.6:
            self.under_way.remove(item)  # else it comes once more
        sections = self.rng.sample(sections, len(sections))
        if self.rng.random() < 0.2:  # some of it arrives alone, and nobody counts on it
            reader.take((stream, head, sections[: self.rng.randrange(len(sections) + 1)]))
            return
        place = (sender.number, reader.number, stream)
        if since <= self.cursors[place] <= head:
            reader.take((stream, head, sections))
            self.cursors[place] = head

    def heal(self):
        quiet = False
        while not quiet:
            quiet = True
            for sender, reader, stream in sorted(self.pairs(), key=_named):
                place = (sender.number, reader.number, stream)
                cut = sender.cut(stream, self.cursors[place])
                self.cursors[place] = cut[1]
                quiet &= reader.take(cut) == 0

    def check(self):
        tables = {name: list(self.peers[0].rows(name).elements()) for name in self.program.relations}
        expected = Counter(evaluate(self.program.views["v"].plan, tables).rows)
        for peer in self.peers:
            for name in peer.engine.hosted():
                known = expected if name == "v" else Counter(tables[name])
                assert peer.rows(name) == known, (peer.number, name)
            peer.check_told()

    def collect(self):
        """Everybody has everything: what is dead is forgotten everywhere."""
        self.under_way.clear()
        for peer in self.peers:
            peer.connection.execute(f"INSERT INTO {VECTOR} SELECT number, 1000000 FROM everview_sites")
            for name, stream in peer.engine.streams.items():
                for part in stream.held:
                    _, floor = part.collect(peer.connection, 2**62)
                    if floor:
                        self.floors[name] = max(self.floors[name], floor)
            peer.connection.execute(f"DELETE FROM {VECTOR}")
            for stream in peer.engine.received.values():
                assert all(part.garbage(peer.connection) == 0 for part in stream.parts)


def _named(triple):
    sender, reader, stream = triple
    return sender.number, reader.number, stream


@pytest.mark.parametrize("name", VIEWS)
def test_after_healing_every_view_is_its_query(name):
    for seed in range(8):
        rng = random.Random(f"{name} {seed}")
        world = World(name, rng, chain=seed % 2 == 1, followed=seed % 4 < 2)
        for _ in range(3):
            for _ in range(40):
                world.step()
            world.heal()
            world.check()
            world.collect()
            world.check()


def test_the_views_are_kept_in_all_ways():
    ways = {name: Engine(_program(name), frozenset({"v"})).exchange.views["v"].way for name in VIEWS}
    assert set(ways.values()) == {Way.RECEIVED, Way.CUT}
    assert ways["keyed_twice"] is Way.RECEIVED
    assert ways["left"] is Way.CUT
