"""A model site and a real one that live the same life, and what of the two must be equal.

The store has names, numbers and chances of its own. So that they do not matter here:

- incarnations are counted by site, on both sides alike, so that "the greater name leaves" says the same;
- the time is in whole seconds, and within one the stamps count the steps of the run: two stamps of one
  second are in the order of their steps on both sides, however many readings lie between;
- no clock differs from another by just the 60 s that are tolerated.
"""

from collections import Counter

from tests.model.site import TOLERANCE, Site
from tests.model.views import VIEWS

from everview.algebra.clock import HybridClock, Stamp
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.reading import Reading
from everview.engines.sqlite.relations.entries import EntriesRelation
from everview.engines.sqlite.stamps import SHIFT, StampClock, microseconds
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.language.program import Program
from everview.replication.replica import Replica
from everview.testing.simulation.device import Device
from everview.testing.simulation.lattices import lengths, versions

SECOND = 1_000_000

ROOM = 4_096
"""So many stamps a step may mint, within one second."""

PROGRAM = Program.parse("""
    CREATE TABLE b (a BIGINT NOT NULL, c BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE k (a BIGINT PRIMARY KEY, c BIGINT NOT NULL);
    CREATE TABLE r (a BIGINT NOT NULL, c BIGINT NOT NULL);
    CREATE TABLE w (a BIGINT NOT NULL, c BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW j AS
        SELECT r.c AS rc, k.c AS kc FROM r JOIN k ON r.a = k.a WHERE r.c <> 2 AND k.c <> 2;
    CREATE MATERIALIZED VIEW v AS
        SELECT x.c + y.c AS c FROM r AS x JOIN r AS y ON x.a = y.a UNION ALL SELECT c FROM w;
""")
"""The relations of the model, and its two views; in the order in which the model goes through them."""


class ModelClock(HybridClock):
    """A clock whose counters tell the steps of the run."""

    def __init__(self, site):
        super().__init__(site.inc, site.physical, tolerance_us=TOLERANCE)
        self._world = site.world

    def stamp(self):
        last = super().stamp()
        least = self._world.step * ROOM
        if last.counter < least:
            self._last = Stamp(last.time_us, least, last.incarnation)
        return self._last


class ModelSite(Site):
    """A site of the model with such a clock."""

    def _start_clock(self):
        self.clock = ModelClock(self)
        self.observe()


class StoreClock(StampClock):
    """The same for a store."""

    def __init__(self, now_us, last, world):
        super().__init__(now_us, last)
        self._world = world

    def stamp(self):
        last, second = super().stamp(), SECOND << SHIFT
        self.last = max(last, last - last % second + self._world.step * ROOM)
        return self.last


class UntidyReplica(Replica):
    """The protocol without its own hours: what rests, and for how long, is the store's alone."""

    def tidy(self):
        return 0


class RealSite(Device):
    """A store in a file, and the protocol over it."""

    def __init__(self, world, name, hosts, skew, *, image=b""):
        self.world, self.skew = world, skew
        self._numbers = 0
        real = frozenset(host.lower() for host in hosts)
        super().__init__(name, world.folder, PROGRAM, None, world.page_rows, image=image, hosts=real)

    def environment(self):
        return Environment(
            lambda: (self.world.now + self.skew) * SECOND,
            lambda: self.world.chance.getrandbits(53),
            self._incarnation,
        )

    def _incarnation(self):
        self._numbers += 1
        return f"{self.name}.{self._numbers:02}"

    def open(self):
        environment = self.environment()
        self.store = Store(str(self.path), PROGRAM, self.name, environment=environment, hosts=self._hosts)
        self.store.clock = StoreClock(environment.now_us, self.store.clock.last, self.world)
        self.writing = Writing(self.store)
        self.reading = Reading(self.store)
        self.replica = UntidyReplica(self.store, self.writing, page_rows=self._page_rows)
        self._handle = self.store.writer

    def write(self, operations):
        with self.writing.transaction():
            for operation, name, row in operations:
                change = self.writing.insert if operation == "insert" else self.writing.delete
                change(PROGRAM.relations[name.lower()], [row])


def of_model(site):
    """All that is compared of a model site."""
    tables = {}
    for name in site.bases:
        table = site.tables[name]
        if name == "R":
            tables[name] = {row: held.value for row, held in table.items()}
        elif name == "K":
            tables[name] = Counter((key, stamp.time_us, held.value) for (key, stamp), held in table.items())
        elif name == "B":
            tables[name] = Counter(held.value for held in table.values())
        else:
            tables[name] = Counter((key[0], held.value) for key, held in table.items())
    groups = {
        stream: "+".join(group) if stream in VIEWS else group
        for stream, group in site.groups.items()
        if stream in site.joined or stream in site.provisional
    }
    return {
        "incarnation": site.inc,
        "rows": {name: +Counter(site.rows(name)) for name in sorted(site.hosts)},
        "tables": tables,
        "floor": site.floors["R"],
        "joined": sorted(site.joined),
        "waits": sorted(site.provisional),
        "groups": groups,
        "listed": _listed(
            {(i, s, "+".join(g) if s in VIEWS else g): n for (i, s, g), n in site.members.items()}
        ),
        "given up": sorted({*site.expired_at, *site.retired}),
    }


def of_store(site):
    """The same of a real site."""
    connection, engine, state = site.store.writer.connection, site.store.engine, site.state
    tables = {}
    for name in sorted(site.hosts):
        if name not in PROGRAM.relations:
            continue
        stored = engine.relations[name]
        if name == "r":
            tables["R"] = lengths(connection, engine, name)
        elif name == "k":
            tables["K"] = Counter(
                (key[0], microseconds(stamp) // SECOND, row if action == "insert" else None)
                for (key, stamp, _), (action, row) in versions(connection, engine, name).items()
            )
        else:
            assert isinstance(stored, EntriesRelation)
            value = "w" if name == "b" else "cl"
            found = connection.execute(
                f"SELECT {stored.listed}, e.{value} FROM {stored.entries} AS e "
                f"JOIN {stored.table.name} AS r ON r.id = e.row"
            )
            tables[name.upper()] = Counter((tuple(row), held) for *row, held in found)
    groups = {_stream(s): g for s, g in state.joined.items()}
    groups |= {_stream(s): waits.group for s, waits in state.provisional.items()}
    return {
        "incarnation": site.incarnation,
        "rows": {_stream(name): +site.rows(name) for name in sorted(site.hosts)},
        "tables": tables,
        "floor": state.floors.get("r", 0),
        "joined": sorted(map(_stream, state.joined)),
        "waits": sorted(map(_stream, state.provisional)),
        "groups": groups,
        "listed": _listed(
            {
                (incarnation, _stream(stream), group): held.length
                for incarnation, streams in state.members.items()
                for stream, in_groups in streams.items()
                for group, held in in_groups.items()
            }
        ),
        "given up": sorted(state.expired),
    }


def _listed(members):
    """Who is a member of what: an even length is final, and says no more than that."""
    return sorted(holder for holder, length in members.items() if length % 2)


def _stream(name):
    plain = name.partition("#")[0]
    return plain if plain in VIEWS else plain.upper()
