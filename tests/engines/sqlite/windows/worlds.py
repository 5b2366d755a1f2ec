"""Random worlds of sources and readers: a final row, wherever it is seen, never changes.

Two sources and two readers hold two windowed relations; a relay holds one of them only, so that markers of
the other come by it before the events do. Syncs stop in their middle, and messages come again much later. One
site of a world is put back from a backup now and then, a reader also unnoticed, and the file of a source is
copied and goes on in two places.
"""

import datetime as dt
import random
import shutil
from pathlib import Path

from everview import Program, StoreError, SyncError
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.rows import digests, serving
from everview.engines.sqlite.store import Store
from everview.language.windowed import PARTICIPANTS
from everview.site import Site

SIZE = 10
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SOURCES = ("a", "b")

PROGRAM = Program.parse("""
    CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value BIGINT NOT NULL)
        WITH (owner = 'source', event_time = 'at', sources = 'a, b');
    CREATE TABLE alarm (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value BIGINT NOT NULL)
        WITH (owner = 'source', event_time = 'at', sources = 'a, b', lateness = '15 minutes',
              semantics = 'bag');
    CREATE MATERIALIZED VIEW tumbling AS
        SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS n, sum(value) AS total,
               window_final() AS final
        FROM reading GROUP BY 1;
    CREATE MATERIALIZED VIEW hopping AS
        SELECT hop(at, INTERVAL '10 minutes', INTERVAL '20 minutes') AS w, count(*) AS n,
               sum(value) AS total, window_final() AS final
        FROM alarm GROUP BY 1;
    CREATE MATERIALIZED VIEW both_kinds AS
        SELECT tumble(r.at, INTERVAL '10 minutes') AS w, count(*) AS n, sum(r.value * a.value) AS total,
               window_final() AS final
        FROM reading AS r
        JOIN alarm AS a ON tumble(r.at, INTERVAL '10 minutes') = tumble(a.at, INTERVAL '10 minutes')
        GROUP BY 1;
""")
VIEWS = ("tumbling", "hopping", "both_kinds")
WINDOWS = 3


def opened_as(name, path, *, program, hosts=None, world):
    """A site of rows under dots, with a clock and chance of a world."""
    environment = Environment(
        now_us=lambda: int(world.seconds * 1_000_000),
        tag=lambda: world.random.getrandbits(53),
        incarnation=lambda: f"{world.random.getrandbits(64):016x}",
    )
    return Site(Store(str(path), program, name, hosts=hosts, environment=environment))


def check_digests(*sites):
    """Digests are those of the rows, and nobody has an alarm."""
    for site in sites:
        store = site._store
        connection = store.writer.connection
        head = serving.head(connection).version
        for name, stored in store.engine.shares.items():
            number = store.ledger.partition(connection, name).number
            kept = serving.digest_of(connection, stored, number, head)
            assert kept == connection.execute(digests.sums(stored.all_rows(), serving.SITES)).fetchone(), name
        alarms = connection.execute("SELECT * FROM everview_alarms").fetchall()
        assert not alarms, (site.name, alarms)


class World:
    """A clock in seconds, and chance from a seed."""

    def __init__(self, seed):
        self.seconds, self.random = 1_000_000, random.Random(seed)


class Histories:
    """One run."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.world = World(seed)
        self.folder = Path(folder)
        self.hosts = {"relay": {"alarm"}}
        self.sites, self.names = {}, {}
        for name in (*SOURCES, "r0", "r1", "relay"):
            self.names[name] = name
            self.open(name)
        self.messages = []
        self.final = {view: {} for view in VIEWS}
        self.events = self.refused = self.late = self.restores = 0
        self.troubled = self.random.choice((*SOURCES, "r0", None))
        self.copies = self.random.random() < 0.4
        self.all_talk(rounds=2)  # who was told something by a source that forgets it must be known to others

    def open(self, place):
        self.sites[place] = opened_as(
            self.names[place],
            self.folder / f"{place}.db",
            program=PROGRAM,
            hosts=self.hosts.get(place),
            world=self.world,
        )

    def close(self):
        for site in self.sites.values():
            site.close()

    # What happens.

    def write(self, place):
        site = self.sites[place]
        self.events += 1
        at = START + dt.timedelta(minutes=self.random.randrange(SIZE * WINDOWS))
        relation = self.random.choice(("reading", "alarm"))
        try:
            self.late += not site.insert(relation, [(site.name, at, self.events)])
        except StoreError:
            self.refused += 1

    def delete(self, place):
        site = self.sites[place]
        relation = self.random.choice(("reading", "alarm"))
        mine = [row for row in site.rows(relation) if row[0] == site.name]
        if mine:
            try:
                self.late += not site.delete(relation, [self.random.choice(mine)])
            except StoreError:
                self.refused += 1

    def shut(self, place):
        until = START + dt.timedelta(minutes=SIZE * self.random.randrange(1, WINDOWS + 1))
        try:
            self.sites[place].close_windows(until, [self.random.choice(("reading", "alarm"))])
        except StoreError:
            self.refused += 1

    def talk(self, place):
        """A sync, which may stop anywhere."""
        self.world.seconds += 1
        one = self.sites[place].replica
        other = self.sites[self.random.choice([p for p in self.sites if p != place])].replica
        talk = one.exchange("there")
        message = talk.open()
        while message is not None and self.random.random() < 0.95:
            self.messages.append(message)
            answer = other.answer(message)
            self.messages.append(answer)
            if self.random.random() < 0.05:
                return
            try:
                message = talk.receive(answer)
            except SyncError as error:
                if not error.retry:
                    raise
                return

    def replay(self, place):
        """A message comes again, to anybody."""
        self.sites[place].replica.answer(self.random.choice(self.messages[-40:] or [b""]))

    def back_up(self, place):
        self.sites.pop(place).close()
        self._copy(place, "db", "kept")
        self._copy(place, "db-shown", "kept-shown")
        self.open(place)

    def restore(self, place):
        """Put the file back; of a reader now and then also what lies beside it: opening does not notice."""
        if (self.folder / f"{place}.kept").exists():
            for rows in self.final.values():
                for w in [w for w, (_, places) in rows.items() if places == {place}]:
                    del rows[w]  # of what only this store had seen nobody knows
            self.sites.pop(place).close()
            self._copy(place, "kept", "db")
            if self.names[place] not in SOURCES and self.random.random() < 0.5:
                self._copy(place, "kept-shown", "db-shown")
            self.open(place)
            self.restores += 1

    def _copy(self, place, old, new):
        source = self.folder / f"{place}.{old}"
        if source.exists():
            shutil.copyfile(source, self.folder / f"{place}.{new}")

    def copy(self):
        """Source a goes on in two places."""
        self.sites.pop("a").close()
        shutil.copyfile(self.folder / "a.db", self.folder / "copy.db")
        self.names["copy"] = "a"
        self.open("a")
        self.open("copy")
        self.copies = False

    def step(self):
        place = self.random.choice(list(self.sites))
        source = self.random.choice([place for place, name in self.names.items() if name in SOURCES])
        chance = self.random.random()
        if chance < 0.35:
            self.random.choice((self.write, self.write, self.delete, self.shut))(source)
        elif chance < 0.43:
            if self.sites[source].replica.closing.charge.reason() is not None:
                self.sites[source].take_charge()
        elif chance < 0.86:
            self.talk(place)
        elif chance < 0.9:
            self.replay(place)
        elif self.troubled is not None and chance < 0.97:
            self.random.choice((self.back_up, self.restore))(self.troubled)
        elif self.copies and chance > 0.97:
            self.copy()
        self.check()

    # The promise.

    def check(self):
        for place, site in self.sites.items():
            for view in VIEWS if place != "relay" else ():
                for w, n, total, final in site.rows(view):
                    if final:
                        seen, places = self.final[view].setdefault(w, ((n, total), set()))
                        places.add(place)
                        assert seen == (n, total), f"{view} {w} at {place}: {(n, total)}, before {seen}"

    def heal(self):
        """Everybody hears of everything; then whoever is in charge of a source closes all of it."""
        self.all_talk(rounds=4)
        alive = {site.replica.incarnation for site in self.sites.values()}
        r1 = self.sites["r1"]
        for incarnation, _ in r1.rows(PARTICIPANTS):  # lives that a restored store does not know of
            if incarnation not in alive:
                r1.replica.give_up(incarnation)
        for site in self.sites.values():
            site.take_charge()
        self.all_talk(rounds=4)
        for source in SOURCES:
            places = [place for place, name in self.names.items() if name == source]
            charged = [p for p in places if self.sites[p].replica.closing.charge.reason() is None]
            assert len(charged) == 1, f"{charged} are in charge of {source}: {self.why(places)}"
            self.sites[charged[0]].close_windows(START + dt.timedelta(minutes=SIZE * (WINDOWS + 3)))
        self.all_talk(rounds=3)
        for place, site in self.sites.items():
            for view in VIEWS if place != "relay" else ():
                rows = site.rows(view)
                assert all(final for *_, final in rows), f"{view} at {place}: {rows}"
                assert rows == r1.rows(view), f"{view} at {place}"
                held = {w: seen for w, (seen, _) in self.final[view].items()}
                assert {w: (n, total) for w, n, total, _ in rows} == held
        check_digests(*self.sites.values())

    def why(self, places):
        return [self.sites[place].replica.closing.charge.reason() for place in places]

    def all_talk(self, rounds):
        for _ in range(rounds):
            self.world.seconds += 1
            for place, site in self.sites.items():
                if place != "r1":
                    site.sync(self.sites["r1"])
            self.check()


def run_history(folder, seed, steps=150):
    """One run; an AssertionError if a final row changed, or did not come."""
    history = Histories(folder, seed)
    try:
        for _ in range(steps):
            history.step()
        history.heal()
    finally:
        history.close()
    return history
