"""Views over the wire between sites: random writes, syncs and collections, then everybody agrees."""

import itertools
import random

import pytest
from tests.replication.sites import World

from everview.engines.reference import evaluate_views
from everview.engines.sqlite.store import Store
from everview.language.program import Program
from everview.site import Site

PROGRAM = Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
    CREATE TABLE w (x BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE TABLE g (x BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.n FROM r JOIN k ON r.b = k.id WHERE k.n <> 2;
    CREATE MATERIALIZED VIEW pairs AS SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a;
    CREATE MATERIALIZED VIEW united AS SELECT x FROM w UNION ALL SELECT a FROM r UNION ALL SELECT n FROM k;
    CREATE MATERIALIZED VIEW counted AS SELECT n, count(*) AS often FROM joined GROUP BY n;
    CREATE MATERIALIZED VIEW bagged AS SELECT g.x FROM g WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.a = g.x);
""")
VIEWS = tuple(PROGRAM.views)
HOSTS = (
    None,  # all
    {*PROGRAM.relations},
    {*VIEWS},
    {"joined", "united", "bagged"},
    {"joined", "counted", "r"},
    {"pairs", "w", "united"},
)


class Sites:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.world = World(seed)
        self.sites = [
            Site(Store(":memory:", PROGRAM, f"s{n}", environment=self.world.environment(), hosts=hosts))
            for n, hosts in enumerate(HOSTS)
        ]

    def step(self):
        self.world.seconds += self.rng.random()
        roll = self.rng.random()
        if roll < 0.5:
            self.write(self.rng.choice(self.sites))
        elif roll < 0.95:
            one, other = self.rng.sample(self.sites, 2)
            one.sync(other)
        else:
            self.rng.choice(self.sites).replica.collect()

    def write(self, site):
        names = [name for name in PROGRAM.relations if name in site.status()["relations"]]
        if names:
            name = self.rng.choice(names)
            width = len(PROGRAM.schema(name))
            rows = [[self.rng.randrange(3) for _ in range(width)] for _ in range(self.rng.choice([1, 2]))]
            getattr(site, self.rng.choice(["insert", "insert", "delete"]))(name, rows)

    def heal(self):
        for _ in range(10):
            self.world.seconds += 1
            moved = 0
            for one, other in itertools.permutations(self.sites, 2):
                report = one.sync(other)
                moved += report.sent_rows + report.received_rows
            if not moved:
                return
        raise AssertionError("the sites do not come to rest")

    def check(self):
        tables = {name: self.sites[0].rows(name) for name in PROGRAM.relations}
        views = {name: result.rows for name, result in evaluate_views(PROGRAM, tables).items()}
        for site in self.sites:
            status = site.status()
            for name in (*status["relations"], *status["views"]):
                expected = tables[name] if name in tables else views[name]
                assert sorted(site.rows(name), key=repr) == sorted(expected, key=repr), (site.name, name)


@pytest.mark.parametrize("seed", range(5))
def test_views_are_their_queries_at_every_site(seed):
    sites = Sites(seed)
    for _ in range(2):
        for _ in range(40):
            sites.step()
        sites.heal()
        sites.check()
