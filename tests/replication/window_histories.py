"""Random histories of sources and readers: a final row, wherever it is seen, never changes.

Two sources and two readers hold two windowed relations; a relay holds one of them only, so that markers of
the other come by it before the events do. Sites sync, leave batches that arrive late, twice, or never; one
site of a run is put back from a backup now and then, a reader also unnoticed, and the file of a source is
copied and goes on in two places. `tests/model/windows.py` is the same without stores.
"""

import contextlib
import datetime as dt
import random
import shutil
from pathlib import Path

from tests.replication.sites import World

from everview import Program, StoreError, SyncError

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
WINDOWS = 5


class Histories:
    """One run."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.world = World(seed)
        self.folder = Path(folder)
        self.hosts = {"relay": {"alarm"}}
        self.sites = {}
        self.names = {}
        for name in (*SOURCES, "r0", "r1", "relay"):
            self.names[name] = name
            self.open(name)
        self.batches = []
        self.final = {view: {} for view in VIEWS}
        self.events = 0
        self.refused = self.late = 0
        self.troubled = self.random.choice((*SOURCES, "r0", None))
        self.copies = self.random.random() < 0.3

    def open(self, place):
        self.sites[place] = self.world.site(
            self.names[place], self.folder / f"{place}.db", program=PROGRAM, hosts=self.hosts.get(place)
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
            came = site.insert(relation, [(site.name, at, self.events)])
        except StoreError:
            self.refused += 1
            return
        self.late += not came

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
        until = START + dt.timedelta(minutes=SIZE * self.random.randrange(1, WINDOWS))
        try:
            self.sites[place].close_windows(until, [self.random.choice(("reading", "alarm"))])
        except StoreError:
            self.refused += 1

    def talk(self, place):
        other = self.random.choice([p for p in self.sites if p != place])
        self.world.seconds += 1
        try:
            self.sites[place].sync(self.sites[other])
        except SyncError as error:
            if not error.retry:
                raise

    def leave(self, place):
        self.batches.append(list(self.sites[place].replica.batch(0)))

    def find(self, place):
        with contextlib.suppress(SyncError):  # its own
            self.sites[place].replica.take(self.random.choice(self.batches[-8:] or [()]))

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
        chance = self.random.random()
        if chance < 0.35 and self.names[place] in SOURCES:
            self.random.choice((self.write, self.write, self.write, self.delete, self.shut))(place)
        elif chance < 0.42:
            if self.sites[place].replica.closing is not None:
                self.sites[place].take_charge()
        elif chance < 0.8:
            self.talk(place)
        elif chance < 0.86:
            self.leave(place)
        elif chance < 0.92:
            self.find(place)
        elif place == self.troubled:
            self.random.choice((self.back_up, self.restore))(place)
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
        for site in self.sites.values():  # lives that a restored store does not know of are waited for
            for member in site.replica.members()["members"]:
                if member["incarnation"] not in alive:
                    site.replica.expire(member["incarnation"])
            site.take_charge()
        self.all_talk(rounds=4)
        end = START + dt.timedelta(minutes=SIZE * (WINDOWS + 3))
        for source in SOURCES:
            places = [place for place, name in self.names.items() if name == source]
            charged = [place for place in places if self.sites[place].replica.closing.charge.reason() is None]
            assert len(charged) == 1, f"{charged} are in charge of {source}: {self.why(places)}"
            self.sites[charged[0]].close_windows(end)
        self.all_talk(rounds=3)
        for place, site in self.sites.items():
            for view in VIEWS if place != "relay" else ():
                rows = site.rows(view)
                assert all(final for *_, final in rows), f"{view} at {place}: {rows}"
                assert rows == self.sites["r1"].rows(view), f"{view} at {place}"
                assert {w: (n, total) for w, n, total, _ in rows} == {
                    w: seen for w, (seen, _) in self.final[view].items()
                }

    def why(self, places):
        return [self.sites[place].replica.closing.charge.reason() for place in places]

    def all_talk(self, rounds):
        for _ in range(rounds):
            self.world.seconds += 1
            for place, site in self.sites.items():
                if place != "r1":
                    site.sync(self.sites["r1"])
            self.check()


def run_history(folder, seed, steps=120):
    """One run; an AssertionError if a final row changed, or did not come."""
    history = Histories(folder, seed)
    try:
        for _ in range(steps):
            history.step()
        history.heal()
    finally:
        history.close()
    return history
