"""Sites for tests: in memory or in files, with a clock that the test moves."""

import itertools
import random
from contextlib import contextmanager

from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.store import Store
from everview.language.program import Program
from everview.site import Site

PROGRAM = Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE g (a BIGINT) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW counted AS SELECT b, count(*) AS n FROM r GROUP BY b;
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.v FROM r JOIN k ON r.a = k.id;
    CREATE MATERIALIZED VIEW many AS SELECT a FROM g UNION ALL SELECT a FROM w;
""")

NAMES = ("r", "k", "g", "w", "counted", "joined", "many")


class World:
    """A clock in seconds, and chance from a seed."""

    def __init__(self, seed=0):
        self.seconds = 1_000_000
        self.random = random.Random(seed)
        self._counter = itertools.count()

    def environment(self, skew=0):
        return Environment(
            now_us=lambda: int((self.seconds + skew) * 1_000_000),
            tag=lambda: self.random.getrandbits(53),
            incarnation=self._incarnation,
        )

    def _incarnation(self):
        return f"{next(self._counter):06x}{self.random.getrandbits(40):010x}"

    def site(self, name, path=":memory:", *, program=PROGRAM, skew=0, hosts=None):
        return Site(Store(str(path), program, name, hosts=hosts, environment=self.environment(skew)))

    def sites(self, count, **options):
        return [self.site(f"s{number}", **options) for number in range(count)]


def talk(*sites, rounds=3):
    """Everybody syncs with everybody, until nothing moves."""
    for _ in range(rounds):
        moved = 0
        for one, other in itertools.permutations(sites, 2):
            report = one.sync(other)
            moved += report.sent_rows + report.received_rows
        if not moved:
            return


def contents(site, names=NAMES):
    return {name: site.rows(name) for name in names}


def assert_equal(*sites, names=NAMES):
    first = contents(sites[0], names)
    for site in sites[1:]:
        assert contents(site, names) == first
    return first


def assert_same(*sites):
    """What two sites both host is the same at both."""
    for one, other in itertools.combinations(sites, 2):
        for name in set(one._store.engine.hosted()) & set(other._store.engine.hosted()):
            assert one.rows(name) == other.rows(name), (one.name, other.name, name)


def quiet(one, other):
    report = one.sync(other)
    return (report.sent_rows, report.received_rows) == (0, 0)


@contextmanager
def opening(world, folder, program):
    """Give what opens sites in files, by name, so that they can be opened again and host more."""
    opened = {}

    def open_one(name, hosts=None):
        if name in opened:
            opened[name].close()
        opened[name] = world.site(name, folder / f"{name}.db", program=program, hosts=hosts)
        return opened[name]

    yield open_one
    for site in opened.values():
        site.close()
