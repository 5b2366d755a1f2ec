"""Random histories of sites that host values of partitioned relations, against what was written in all.

Every row is inserted once. So in the end there is what was inserted and never deleted, and each site shows
the rows of its values. A row that moves is deleted under one value and inserted under another.
"""

import random
from collections import Counter

import pytest

import everview as ev

KINDS = {
    "s": "CREATE TABLE s (p TEXT, id BIGINT, age BIGINT) PARTITION BY (p);",
    "k": "CREATE TABLE k (p TEXT, id BIGINT, age BIGINT, PRIMARY KEY (id, p, age)) PARTITION BY (p);",
    "g": "CREATE TABLE g (p TEXT, id BIGINT, age BIGINT) PARTITION BY (p) WITH (semantics = 'bag');",
    "w": "CREATE TABLE w (p TEXT, id BIGINT, age BIGINT) WITH (semantics = 'add_wins') PARTITION BY (p);",
    "m": (
        "CREATE TABLE m (p TEXT NOT NULL, id BIGINT, age BIGINT, PRIMARY KEY (p, id, age)) "
        "PARTITION BY (p) WITH (merge = 'column');"
    ),
    "two": (
        "CREATE TABLE two (p TEXT, id BIGINT, age BIGINT, PRIMARY KEY (p, id, age)) PARTITION BY (p, id);"
    ),
}
VALUES = ["eu", "us", "asia", None]


def program(kind):
    view = f"CREATE MATERIALIZED VIEW v AS SELECT p, count(*) AS n FROM {kind} GROUP BY p;"
    return ev.Program.parse(f"{KINDS[kind]} CREATE TABLE plain (id BIGINT); {view}")


class World:
    """A hub that hosts all, and sites that host some values."""

    def __init__(self, kind, seed, folder):
        self.kind, self.rng, self.folder = kind, random.Random(f"{kind} {seed}"), folder
        self.program, self.ids = program(kind), iter(range(1_000_000))
        keyed = self.program.relations[kind].is_keyed
        self.values = [value for value in VALUES if value is not None or not keyed]
        self.inserted, self.deleted, self.hosts = set(), set(), {"hub": None}
        self.sites = {"hub": ev.Site.open(folder / "hub.db", self.program, name="hub")}
        for number in range(self.rng.choice([1, 2, 3])):
            self.add(f"s{number}")

    def add(self, name):
        self.hosts[name] = set(self.rng.sample(self.values, self.rng.choice([1, 1, 2])))
        hosts = {self.kind: {"p": list(self.hosts[name])}, "v": ..., "plain": ...}
        self.sites[name] = ev.Site.open(self.folder / f"{name}.db", self.program, name=name, hosts=hosts)

    def hosted(self, name):
        return self.values if self.hosts[name] is None else sorted(self.hosts[name], key=str)

    def step(self):
        acts = [self.write, self.move, self.delete, self.sync, self.host, self.drop]
        (act,) = self.rng.choices(acts, WEIGHTS)
        act(self.rng.choice(sorted(self.sites)))
        self.check()

    def write(self, name):
        rows = [
            (self.rng.choice(self.hosted(name)), next(self.ids), 0) for _ in range(self.rng.choice([1, 1, 3]))
        ]
        assert self.sites[name].insert(self.kind, rows) == len(rows)
        self.inserted |= set(rows)
        missing = [value for value in self.values if value not in self.hosted(name)]
        if missing:
            with pytest.raises(ev.DataError, match="does not host p = "):
                self.sites[name].insert(self.kind, [(missing[0], -1, 0)])

    def move(self, name):
        site, rows = self.sites[name], self.sites[name].rows(self.kind)
        if rows:
            p, id_, age = self.rng.choice(rows)
            target, to = (self.rng.choice(self.hosted(name)), id_, age + 1), next(self.ids)
            target = (target[0], id_, to)
            where = "p IS NOT DISTINCT FROM ? AND id = ? AND age = ?"
            sql = f"UPDATE {self.kind} SET p = ?, age = ? WHERE {where}"
            assert site.execute(sql, [target[0], to, p, id_, age]) == 1
            self.deleted.add((p, id_, age))
            self.inserted.add(target)

    def delete(self, name):
        rows = self.sites[name].rows(self.kind)
        if rows:
            gone = self.rng.sample(rows, min(len(rows), self.rng.choice([1, 2])))
            assert self.sites[name].delete(self.kind, gone) == len(gone)
            self.deleted |= set(gone)

    def sync(self, name):
        others = [other for other in sorted(self.sites) if other != name]
        if self.rng.random() < 0.3:
            self.sites[name].sync(self.folder / "shared")
        else:
            self.sites[name].sync(self.sites[self.rng.choice(others)])

    def host(self, name):
        if self.hosts[name] is not None:
            more = self.rng.choice(self.values)
            self.sites[name].close()
            hosts = {self.kind: {"p": [more]}}
            self.sites[name] = ev.Site.open(self.folder / f"{name}.db", hosts=hosts)
            self.hosts[name].add(more)

    def drop(self, name):
        if self.hosts[name] is not None and len(self.hosts[name]) > 1:
            self.sites[name].sync(self.sites["hub"])  # else what only this site has is lost
            less = self.rng.choice(self.hosted(name))
            self.sites[name].drop(self.kind, {"p": [less]})
            self.hosts[name].remove(less)

    def check(self):
        for name, site in self.sites.items():
            rows = site.rows(self.kind)
            assert {row[0] for row in rows} <= set(self.hosted(name))
            assert set(rows) <= self.inserted
            assert len(set(rows)) == len(rows)
            assert dict(site.rows("v")) == Counter(row[0] for row in rows)

    def settle(self):
        for _ in range(3):
            for name, site in self.sites.items():
                if name != "hub":
                    site.sync(self.sites["hub"])
        there = self.inserted - self.deleted
        for name, site in self.sites.items():
            assert set(site.rows(self.kind)) == {row for row in there if row[0] in self.hosted(name)}, name
            assert site.status()["replication"]["alarms"] == []
        for site in reversed(self.sites.values()):
            site.close()


WEIGHTS = [8, 4, 4, 10, 2, 2]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_each_site_shows_the_rows_of_its_values(kind, seed, tmp_path):
    (tmp_path / "shared").mkdir()
    world = World(kind, seed, tmp_path)
    for _ in range(40):
        world.step()
    world.settle()
