"""A world of a gate and sites, in which the hub is a model.

A few lines take in what a gate exports, as a refresh does, so that no Spark is needed.
"""

import random
import shutil
from collections import Counter

import msgspec

from everview.engines.spark.types import arrow_rows
from everview.engines.sqlite.reading import Reading
from everview.hub.files import LocalFiles
from everview.hub.inbox import Inbox, read_arrivals, read_mark
from everview.hub.peering import Peering
from everview.hub.record import Record
from everview.hub.relations import lattice_table
from everview.hub.tables import catalog
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.relations import Semantics
from everview.language.values import NAN
from everview.replication.transports.memory import MemoryTransport
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE s (n BIGINT, t TEXT);
CREATE TABLE k (a BIGINT, v DOUBLE, b TEXT, PRIMARY KEY (b, a));
CREATE TABLE m (n BIGINT, t TEXT) WITH (semantics = 'bag');
CREATE TABLE w (n BIGINT NOT NULL, t DATE) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW j AS SELECT s.n, k.v FROM s JOIN k ON s.n = k.a;
""")
CATALOG = catalog(PROGRAM)
STEPS = 60


class Model:
    """The relations of a hub that has taken in what its gate told it."""

    def __init__(self, files):
        self.files = files
        self.tables = {name: Counter() for name in PROGRAM.relations}

    def refresh(self, arrivals):
        for arrival in sorted(arrivals, key=lambda arrival: arrival.number):
            relation = PROGRAM.relations[arrival.relation]
            schema = lattice_table(relation).arrived.schema
            rows = [row[:-1] for row in arrow_rows(read_arrivals(self.files, schema, [arrival]), schema)]
            assert len(rows) == arrival.rows
            self.merge(relation, rows, arrival)

    def merge(self, relation, rows, arrival):
        table = self.tables[relation.name]
        match relation.semantics:
            case Semantics.BAG if arrival.clears:
                for row in rows:
                    del table[row]
            case Semantics.BAG:
                table.update(rows)
            case Semantics.KEYED:
                keys = {_key(relation, row) for row in rows}
                for row in [row for row in table if _key(relation, row) in keys]:
                    del table[row]
                table.update(rows if arrival.present else ())
            case _:
                for row in rows:
                    table[row] = int(arrival.present)

    def rows(self, name):
        return sorted_rows(self.tables[name].elements())


def _key(relation, row):
    return tuple(row[place] for place in relation.key_positions)


class World:
    """A gate, its model of a hub, and sites."""

    def __init__(self, folder, seed, *, losses=0):
        self.losses = losses
        self.random = random.Random(seed)
        self.files = self.files_in(folder)
        self.record = Record(number=1, refresh=1, program=PROGRAM.hash, epoch=1, made_us=1, refreshed_us=1)
        self.inbox = Inbox(self.files, 0)
        self.model = Model(self.files)
        self.peering = self.peering_of(self.record)
        self.record = self.peering.make(self.record, None)
        self.sites = [Site.open(":memory:", PROGRAM, name=name) for name in ("a", "b")]
        self.sites.append(Site.open(":memory:", PROGRAM, name="v", hosts={"j"}))
        self.folder, self.kept, self.lost = folder, None, False

    def files_in(self, folder):
        return LocalFiles(folder)

    def peering_of(self, record):
        return Peering(self.files, CATALOG, "hub", record)

    @property
    def gate(self):
        return self.peering.gate

    def row(self, relation):
        one = self.random.choice
        match relation:
            case "k":
                return (one((1, 2)), one((0.5, NAN, None)), one("xy"))
            case "w":
                return (one((1, 2)), None)
            case _:
                return (one((1, 2, None)), one(("x", None)))

    def step(self):
        one = self.random.choice
        relation = one(sorted(PROGRAM.relations))
        rows = [self.row(relation) for _ in range(self.random.randrange(1, 4))]
        site = one(self.sites)
        actions = (self.write, self.own, self.sync, self.meet, self.refresh)
        action = self.random.choices(
            (*actions, self.keep, self.put_back), (24, 16, 24, 8, 16, 1, self.losses)
        )[0]
        action(site, relation, rows, present=self.random.random() < 0.55)

    def write(self, site, relation, rows, *, present):
        if site.name != "v":
            (site.insert if present else site.delete)(relation, rows)

    def own(self, site, relation, rows, *, present):
        self.inbox.put_rows(PROGRAM.relations[relation], rows, present=present)

    def sync(self, site, *_, **__):
        site.sync(self.transport())

    def transport(self):
        return MemoryTransport(self.gate.replica, "hub")

    def meet(self, site, *_, **__):
        other = self.random.choice(self.sites)
        if other is not site:
            site.sync(other)

    def refresh(self, *_, crash=True, **__):
        """Take in what the gate tells; now and then the hub dies on the way, before or after its record."""
        names = self.inbox.waiting(self.record.arrived)
        arrivals = [read_mark(self.files, name) for name in names]
        export = self.peering.take_in(arrivals, self.record, None)
        dies = self.random.randrange(6) if crash else None
        if dies != 0:
            after = msgspec.structs.replace(self.record, number=self.record.number + 1)
            record = self.peering.recorded(export, after)
        if dies not in (0, 1):
            self.model.refresh(export.arrivals)
            self.record = record
        if dies in (0, 1, 2):
            self.reopen()
            return
        self.inbox.forget(record.arrived)
        self.peering.finish(export, record)
        self.check()

    def reopen(self):
        """The next hub opens the store, as of a version that lays views out in another way."""
        with self.gate._store.writing() as connection:
            connection.execute("UPDATE everview_store SET layout = 'another'")
        self.peering.close()
        self.open()

    def open(self):
        self.record = msgspec.structs.replace(self.record, epoch=self.record.epoch + 1)
        self.peering = self.peering_of(self.record)
        self.inbox = Inbox(self.files, self.record.arrived)
        self.inbox.pass_over(self.peering.arrived)

    def keep(self, *_, **__):
        """Back the hub's folder up, when it is closed and nothing waits."""
        self.refresh(crash=False)
        self.peering.close()
        backup = self.folder.with_name(f"{self.folder.name}-backup")
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(self.folder, backup)
        tables = {name: Counter(table) for name, table in self.model.tables.items()}
        self.kept = backup, self.record, tables
        self.open()

    def put_back(self, *_, **__):
        """The folder is lost, and the backup takes its place."""
        if self.kept is not None:
            backup, self.record, tables = self.kept
            self.peering.close()
            shutil.rmtree(self.folder)
            shutil.copytree(backup, self.folder)
            self.model.tables = {name: Counter(table) for name, table in tables.items()}
            self.open()
            self.lost = True

    def check(self):
        reading = Reading(self.gate._store)
        for name in PROGRAM.relations:
            assert self.model.rows(name) == reading.sorted_rows(name, inside=False), name

    def end(self):
        """Everything has talked with everything."""
        for _ in range(3):
            self.refresh(crash=False)
            for site in self.sites:
                site.sync(self.transport())
        self.refresh(crash=False)
        a, b, v = self.sites
        for name in PROGRAM.relations:
            assert a.rows(name) == b.rows(name) == self.model.rows(name), name
        if not self.lost:  # else it may show what it got of commits that are lost
            assert v.rows("j") == a.rows("j")
        for site in self.sites:
            report = site.sync(self.transport())
            assert (report.sent_rows, report.received_rows) == (0, 0)
        for replica in (self.gate.replica, a.replica, b.replica):
            assert replica.status()["alarms"] == []

    def close(self):
        self.peering.close()
        for site in self.sites:
            site.close()


def run(folder, seed, kind=World, **options):
    """One random history."""
    world = kind(folder, seed, **options)
    for _ in range(STEPS):
        world.step()
    world.end()
    world.close()
