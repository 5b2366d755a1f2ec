"""Random writes and meetings: wherever a view is hosted, it is its query once all have talked."""

from __future__ import annotations

import random
from functools import lru_cache

import pytest
from tests.replication.views.hosts import Host, assert_shows, program

VIEWS = {
    "projection": "SELECT b FROM r",
    "either": "SELECT a FROM r WHERE a > 1 UNION ALL SELECT b FROM r UNION ALL SELECT b FROM s",
    "join": "SELECT r.a, s.d FROM r JOIN s ON r.b = s.b",
    "self_join": "SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a",
    "mixed": "SELECT a FROM r WHERE b = 1 UNION ALL SELECT x.a FROM r AS x JOIN w ON w.x = x.b",
    "keyed": "SELECT id, n + 1 AS m FROM k WHERE n > 1",
    "keyed_join": "SELECT r.a, k.n FROM r JOIN k ON k.id = r.b WHERE k.n <> 2",
    "keyed_twice": "SELECT x.id, y.n FROM k AS x JOIN k AS y ON x.n = y.id",
    "add_wins": "SELECT x + 1 AS y FROM w",
    "add_wins_join": "SELECT w.x, k.n, s.d FROM w JOIN k ON k.id = w.x JOIN s ON s.b = k.n",
    "bag": "SELECT g.x, r.b FROM g JOIN r ON r.a = g.x WHERE r.b > 0",
    "bag_total": "SELECT r.b, count(*) AS n, sum(g.x) AS t FROM g JOIN r ON r.a = g.x GROUP BY r.b",
    "bag_twice": "SELECT x.x FROM g AS x JOIN g AS y ON x.x = y.x",
    "difference": "SELECT a FROM r EXCEPT SELECT x FROM w WHERE x > 1",
    "left": "SELECT r.a, k.n FROM r LEFT JOIN k ON k.id = r.b AND k.n > 1",
}
RELATIONS = frozenset({"r", "s", "k", "w", "g"})


@lru_cache(maxsize=1)
def _program(name):
    return program(v=VIEWS[name], also=f"SELECT count(*) AS n FROM ({VIEWS[name]}) AS inner_v")


class World:
    """Writers who hold all, hosts of the view, and one that hosts it and one of its inputs."""

    def __init__(self, name, rng, folder, cells):
        made, self.rng, self.folder = _program(name), rng, folder
        hosts = [RELATIONS, None, {"v"}, {"v", "also"}, {"v", "r"}, {"also"}]
        self.hosts = [
            Host(made, f"h{n}", found, self.folder / f"h{n}.db", rng.choice(cells))
            for n, found in enumerate(hosts)
        ]

    def step(self):
        roll = self.rng.random()
        if roll < 0.5:
            self.write(self.rng.choice(self.hosts[:2]))
        elif roll < 0.54:
            self.rng.choice(self.hosts).reopen()
        else:
            one, other = self.rng.sample(self.hosts, 2)
            late = iter(self.rng.choices(self.hosts[:2], k=self.rng.randrange(4)))
            meanwhile = lambda: [self.write(host) for host in [next(late, None)] if host]
            one.read(other, self.rng.choice([None, None, None, 2, 3, 5]), meanwhile)

    def write(self, host):
        relation = self.rng.choice(sorted(RELATIONS))
        width = len(host.program.schema(relation))
        rows = [tuple(self.rng.randrange(4) for _ in range(width)) for _ in range(self.rng.choice([1, 1, 4]))]
        if relation == "s":
            rows = [(self.rng.choice([b, None]), "xyz"[d % 3]) for b, d in rows]
        host.write(self.rng.choice(["insert", "insert", "delete"]), relation, rows)

    def heal(self):
        moved = True
        while moved:
            moved = False
            for one in self.hosts:
                for other in self.hosts:
                    if one is not other:
                        report = one.read(other)
                        moved |= report.sent_rows + report.received_rows > 0

    def check(self):
        for host in self.hosts:
            assert_shows(host, self.hosts[0])
            for core in host.cores:
                assert not list(core.faults(host.store.writer.connection))


@pytest.mark.parametrize("name", VIEWS)
def test_after_healing_every_view_is_its_query(name, tmp_path):
    for seed in range(3):
        rng = random.Random(f"{name} {seed}")
        (folder := tmp_path / str(seed)).mkdir()
        world = World(name, rng, folder, [1_000_000, 40, 8])
        for _ in range(2):
            for _ in range(40):
                world.step()
            world.heal()
            world.check()
