"""Sites whose rows are under dots, in files that are copied and put back; what is true of all of them."""

import shutil
from dataclasses import replace

from tests.replication.sites import World

from everview.engines.sqlite.rows import serving
from everview.engines.sqlite.rows.authorship import CONTEST_US
from everview.engines.sqlite.store import Store
from everview.errors import SyncError
from everview.site import Site


class Places:
    """Sites by name, opened again at will; `hosts` says what each has."""

    def __init__(self, folder, program, hosts, *, seed=0):
        self.folder, self.program, self.hosts = folder, program, hosts
        self.world = World(seed)
        self.chance = self.world.random
        self.page_cells = self.chance.choice([10, 50, 1_000_000])
        self.sites = {place: self.open(place) for place in hosts}
        self.kept = set()

    def open(self, place, *, name="", skew=0):
        """Open a site; what stands before a dash is its name."""
        path, name = str(self.folder / f"{place}.db"), name or place.partition("-")[0]
        incarnation = lambda: f"{self.chance.getrandbits(64):016x}"
        environment = replace(self.world.environment(skew), incarnation=incarnation)
        store = Store(path, self.program, name, hosts=self.hosts[place], environment=environment)
        site = Site(store)
        site.replica.page_cells = self.page_cells
        return site

    def close(self):
        for site in self.sites.values():
            site.close()

    def keep(self, place):
        self._copy(place, "db", "kept")
        self.kept.add(place)

    def put_back(self, place):
        self._copy(place, "kept", "db")

    def _copy(self, place, source, target):
        self.sites[place].close()
        shutil.copy(self.folder / f"{place}.{source}", self.folder / f"{place}.{target}")
        self.sites[place] = self.open(place)

    def sync_somehow(self):
        """Messages get lost, or come twice."""
        one, other = self.chance.sample(list(self.sites.values()), 2)
        exchange = one.replica.exchange(other.name)
        message = exchange.open()
        while message is not None and self.chance.random() > 0.05:
            answer = other.replica.answer(message)
            if self.chance.random() < 0.1:
                answer = other.replica.answer(message)
            try:
                message = exchange.receive(answer)
            except SyncError:
                return

    def wander(self, steps, write, look, keeps):
        """Much happens, and after each of it somebody looks; then all meet, and nothing moves any more."""
        for _ in range(steps):
            what = self.chance.random()
            if what < 0.4:
                write()
            elif what < 0.92:
                self.sync_somehow()
            elif what < 0.96 or not self.kept:
                self.keep(self.chance.choice(keeps))
            else:
                self.put_back(self.chance.choice(sorted(self.kept)))
            look()
            self.world.seconds += self.chance.choice([0, 1, 50])
            self.check_digests()
        for _ in range(2):
            self.meet()
            self.meet()
            self.world.seconds += CONTEST_US
        assert sum(report.received_rows for report in self.meet()) == 0
        for site in self.sites.values():  # nothing is held that is not shown
            assert not any(stored(site._store, stream)[1] for stream in site._store.engine.owned)

    def meet(self):
        """Everybody syncs with everybody."""
        sites = self.sites.values()
        return [one.sync(other) for one in sites for other in sites if one is not other]

    def check_digests(self):
        for site in self.sites.values():
            store, connection = site._store, site._store.writer.connection
            with store.exclusive():
                store.ledger.load(connection)
                for stream, rows in store.engine.owned.items():
                    number = store.ledger.partition(connection, stream).number
                    kept = serving.digest_of(connection, rows, number, serving.head(connection).version)
                    assert kept == serving.sum_rows(connection, rows.all_rows())
            assert site.status()["replication"]["alarms"] == []


def stored(store, stream):
    """What lies in the tables of a stream: rows, copies and epochs; those shown, and those held beside."""
    rows, connection = store.engine.owned[stream], store.writer.connection
    cells = ", ".join(rows.cells)
    return [sorted(connection.execute(f"SELECT {cells} FROM {table}"), key=repr) for table in rows.tables]
