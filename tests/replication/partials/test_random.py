"""Random histories of sites with rows and sites that are fed: what is shown is what owners' rows came to.

After every step the view at a site that is fed is the view over rows that each owner had, at one of its
states: the standing says which, and some site with rows has shown those rows at that standing.
"""

import random
import shutil

import pytest
from tests.replication.sites import World

import everview as ev
from everview.engines.reference import evaluate_views
from everview.errors import SyncError
from everview.replication import partials

PROGRAM = ev.Program.parse("""
    CREATE TABLE s (o TEXT NOT NULL, g TEXT, n BIGINT) WITH (owner = 'o');
    CREATE TABLE b (o TEXT NOT NULL, g TEXT, n BIGINT) WITH (owner = 'o', semantics = 'bag');
    CREATE TABLE k (o TEXT, i BIGINT, g TEXT, n BIGINT, PRIMARY KEY (o, i)) WITH (owner = 'o');
    CREATE TABLE w (o TEXT NOT NULL, g TEXT, n BIGINT) WITH (owner = 'o', semantics = 'add_wins');
    CREATE MATERIALIZED VIEW sets AS SELECT g, count(*) AS c, min(n) AS lo, max(n) AS hi,
        approx_count_distinct(n) AS d, approx_percentile(n, 0.5) AS p FROM s GROUP BY g;
    CREATE MATERIALIZED VIEW bags AS SELECT g, n FROM b ORDER BY n DESC, g LIMIT 2;
    CREATE MATERIALIZED VIEW keys AS SELECT count(*) AS c, sum(n) AS s, avg(n) AS a FROM k WHERE n > 0;
    CREATE MATERIALIZED VIEW both AS
        SELECT g, sum(n) AS n FROM (SELECT g, n FROM w UNION ALL SELECT g, n FROM s) AS u GROUP BY g;
""")
VIEWS = tuple(PROGRAM.views)


class Sites:
    """Two owners, sometimes of one name, a holder of rows, and two that are fed; all in files."""

    def __init__(self, seed, folder):
        self.chance = random.Random(f"partials {seed}")
        self.world, self.folder = World(seed), folder
        names = self.chance.choice([("a", "b"), ("a", "b"), ("a", "a")])
        self.names = [*names, "holder", "v", "w"]
        self.hosts = [None, None, tuple(PROGRAM.relations), VIEWS, VIEWS[: self.chance.choice([2, 4])]]
        self.page_rows = self.chance.choice([1, 3, 20_000])
        self.sites = [self.open(number) for number in range(5)]
        self.kept = set()
        self.known = {}

    def open(self, number):
        path = self.folder / f"{number}.db"
        site = self.world.site(self.names[number], path, program=PROGRAM, hosts=self.hosts[number])
        site._replica._page_rows = self.page_rows
        return site

    def close(self):
        for site in self.sites:
            site.close()

    # What happens.

    def write(self):
        site, chance = self.chance.choice(self.sites[:2]), self.chance
        with site.transaction():
            for _ in range(chance.choice([1, 1, 3])):
                name = chance.choice("sbkw")
                row = (site.name, chance.choice(["x", "y", None]), chance.choice([1, 2, None]))
                if name == "k":
                    row = (site.name, chance.randrange(2), *row[1:])
                act = site.delete if chance.random() < 0.45 else site.insert
                act(name, [row])

    def sync(self):
        one, other = self.chance.sample(self.sites, 2)
        exchange = one.replica.exchange(other.name)
        message = exchange.open()
        while message is not None:
            if self.chance.random() < 0.05:
                return  # lost
            answer = other.replica.answer(message)
            if self.chance.random() < 0.1:
                answer = other.replica.answer(message)  # doubled
            try:
                message = exchange.receive(answer)
            except SyncError:
                return

    def visit(self):
        for site in self.chance.sample(self.sites, 3):
            site.sync(self.folder / "stick")

    def backup(self):
        number = self.chance.randrange(5)
        self.sites[number].close()
        shutil.copy(self.folder / f"{number}.db", self.folder / f"{number}.kept")
        self.kept.add(number)
        self.sites[number] = self.open(number)

    def restore(self):
        if self.kept:
            number = self.chance.choice(sorted(self.kept))
            self.sites[number].close()
            shutil.copy(self.folder / f"{number}.kept", self.folder / f"{number}.db")
            self.sites[number] = self.open(number)
            self.forget_what_nobody_heard(self.sites[number])

    def forget_what_nobody_heard(self, site):
        """A store that had told nobody of its last commits goes on under its name, and makes them anew."""
        own, head = site.replica.incarnation, site.replica.head
        self.known = {
            key: rows
            for key, rows in self.known.items()
            if all(incarnation != own or seq <= head for (_, incarnation), seq in key[2])
        }

    def collect(self):
        self.chance.choice(self.sites).replica.collect()

    def wait(self):
        self.world.seconds += self.chance.choice([1, 100, 4_000])

    # What must hold.

    def standings(self, site, stream):
        engine, knowledge = site._store.engine, site.replica._knowledge
        connection = site._store.writer.connection
        with site._store.exclusive():
            knowledge.refresh(connection)
            knowledge.membership.advance(knowledge.head(connection), 0)
            return partials.standings(knowledge, connection, engine.telling(stream))

    def look(self):
        """Note what sites with rows show of each owner."""
        for site in self.sites[:3]:
            rows = {name: site.rows(name) for name in PROGRAM.relations}
            for stream, feed in site._store.engine.feeds.items():
                for owner, standing in self.standings(site, stream).items():
                    had = {name: [r for r in rows[name] if r[0] == owner] for name in feed.partials.inputs}
                    key = stream, owner, tuple(sorted(standing.items()))
                    assert self.known.setdefault(key, had) == had  # feeders never contradict each other

    def check(self):
        self.look()
        for site in self.sites[3:]:
            for stream, stored in site._store.engine.partials.items():
                tables = {name: [] for name in PROGRAM.relations}
                for owner, standing in self.standings(site, stream).items():
                    for name, rows in self.known[stream, owner, tuple(sorted(standing.items()))].items():
                        tables[name] += rows
                view = stored.partials.view
                wanted = evaluate_views(PROGRAM, tables)[view].rows
                assert sorted(site.rows(view), key=repr) == sorted(wanted, key=repr)

    def run(self, steps):
        moves = ["write", "sync", "visit", "backup", "restore", "collect", "wait"]
        for _ in range(steps):
            self.look()
            getattr(self, self.chance.choices(moves, [10, 14, 2, 1, 1, 2, 2])[0])()
            self.check()
        for _ in range(3):
            for one in self.sites:
                for other in self.sites:
                    if one is not other:
                        one.sync(other)
                        self.check()
        for site in self.sites[3:]:
            for view in site._store.engine.partials.values():
                name = view.partials.view
                lost = [
                    owner
                    for owner, standing in self.standings(site, view.stream).items()
                    if not self.covers(self.standings(self.sites[2], view.stream).get(owner, {}), standing)
                ]
                if not lost:  # of commits that only it had heard of before a store was put back
                    assert site.rows(name) == self.sites[0].rows(name)

    @staticmethod
    def covers(mine, theirs):
        return all(mine.get(key, 0) >= seq for key, seq in theirs.items())


@pytest.mark.parametrize("seed", range(4))
def test_what_is_shown_is_what_owners_rows_came_to(seed, tmp_path):
    run(seed, tmp_path)


def run(seed, folder, steps=40):
    sites = Sites(seed, folder)
    try:
        sites.run(steps)
    finally:
        sites.close()
