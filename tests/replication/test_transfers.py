"""Bank transfers: both legs in one transaction; the total is 0 in every state that any site ever shows."""

import random
import threading

from tests.replication.sites import World

import everview as ev
from everview.replication.protocol.replica import Replica

PROGRAM = ev.Program.parse("""
    CREATE TABLE debits (id TEXT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL);
    CREATE TABLE credits (id TEXT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL)
        WITH (semantics = 'add_wins');
    CREATE TABLE audit (id TEXT PRIMARY KEY, amount BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW legs AS
        SELECT id, account, -amount AS amount FROM debits UNION ALL SELECT id, account, amount FROM credits;
    CREATE MATERIALIZED VIEW balances AS SELECT account, sum(amount) AS balance FROM legs GROUP BY account;
    CREATE MATERIALIZED VIEW total AS SELECT sum(amount) AS total, count(*) AS legs FROM legs;
""")
EVERYTHING = (
    "SELECT (SELECT total FROM total) AS total, (SELECT sum(balance) FROM balances) AS balances, "
    "(SELECT count(*) FROM debits) AS debits, (SELECT count(*) FROM credits) AS credits, "
    "(SELECT count(*) FROM audit) AS audit, (SELECT legs FROM total) AS legs"
)


class Bank:
    """A site at which money is moved, and that looks at itself after each commit."""

    def __init__(self, site, rng):
        self.site, self.rng = site, rng
        self.transfers = self.seen = 0
        for view in ("legs", "total", "balances"):
            site.watch(view, lambda _: self.check())

    def transfer(self):
        self.transfers += 1
        name, amount = f"{self.site.name}-{self.transfers}", self.rng.randrange(1, 100)
        one, other = self.rng.sample(range(5), 2)
        with self.site.transaction():
            self.site.insert("debits", [(name, one, amount)])
            self.site.insert("audit", [(name, amount)])
            self.site.insert("credits", [(name, other, amount)])

    def check(self):
        (found,) = self.site.query(EVERYTHING)
        assert (found["total"] or 0, found["balances"] or 0) == (0, 0), self.site.name
        assert found["debits"] == found["credits"] == found["audit"], self.site.name
        assert found["legs"] == 2 * found["debits"]
        self.seen += 1
        return found["debits"]


def banks(world, rng, count, hosts=None, paths=None):
    paths = paths or [":memory:"] * count
    return [Bank(world.site(f"s{n}", paths[n], program=PROGRAM, hosts=hosts), rng) for n in range(count)]


def test_a_reader_that_never_rests_sees_whole_transfers_only(tmp_path, monkeypatch):
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 20)
    world, rng = World(), random.Random(1)
    pair = banks(world, rng, 2, paths=[tmp_path / "a.db", tmp_path / "b.db"])
    stop, wrong, looks = threading.Event(), [], [0, 0]

    def read(number):
        while not stop.is_set():
            try:
                pair[number].check()
                looks[number] += 1
            except (AssertionError, ev.EverviewError) as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for step in range(60):
            for _ in range(3):
                pair[step % 2].transfer()
            pair[(step + step // 2) % 2].site.sync(pair[(step + step // 2 + 1) % 2].site)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[0]
    assert min(looks) > 10
    pair[0].site.sync(pair[1].site)
    assert [bank.check() for bank in pair] == [180, 180]
    for bank in pair:
        bank.site.close()
