"""Bank transfers: both legs in one transaction; the total is 0 in every state that any site ever shows."""

import random
import threading

import pytest
from tests.replication.sites import World, talk

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


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 12)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("seed", range(8))
def test_the_total_is_0_in_every_state_over_random_syncs(seed):
    world, rng = World(seed), random.Random(seed)
    all_banks = banks(world, rng, 4)
    for _ in range(50):
        world.seconds += rng.choice([1, 1, 5000])
        bank, other = rng.sample(all_banks, 2)
        if rng.random() < 0.5:
            for _ in range(rng.choice([1, 1, 4])):
                bank.transfer()
        elif rng.random() < 0.3:
            broken_off(bank, other, rng)
        else:
            bank.site.sync(other.site)
        bank.check()
        other.check()
    talk(*(bank.site for bank in all_banks), rounds=6)
    made = sum(bank.transfers for bank in all_banks)
    assert [bank.check() for bank in all_banks] == [made] * 4
    assert all(bank.seen > 20 for bank in all_banks)


def broken_off(bank, other, rng):
    """A sync in small pages that ends in the middle, while both go on."""
    exchange = bank.site.replica.exchange(other.site.name)
    data = exchange.open()
    for _ in range(rng.randrange(1, 8)):
        answer = other.site.replica.answer(data)
        if rng.random() < 0.3:
            other.transfer()
        if rng.random() < 0.3:
            bank.transfer()
        data = exchange.receive(answer)
        bank.check()
        other.check()
        if data is None:
            return


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("seed", range(5))
def test_the_total_is_0_in_every_state_over_a_folder(seed, tmp_path):
    world, rng = World(seed), random.Random(seed)
    all_banks = banks(world, rng, 3)
    for _ in range(40):
        bank = rng.choice(all_banks)
        if rng.random() < 0.5:
            bank.transfer()
        else:
            bank.site.sync(tmp_path / "stick")
        bank.check()
    for _ in range(4):
        for bank in all_banks:
            bank.site.sync(tmp_path / "stick")
            bank.check()
    made = sum(bank.transfers for bank in all_banks)
    assert [bank.check() for bank in all_banks] == [made] * 3


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("seed", range(5))
def test_the_total_is_0_where_only_the_views_are_hosted(seed):
    """The views travel by derivations, from either of two sites, and still whole transfers at a time."""
    world, rng = World(seed), random.Random(seed)
    one, other = banks(world, rng, 2)
    viewers = [world.site(f"v{n}", program=PROGRAM, hosts={"balances", "total"}) for n in range(2)]
    shown = []

    def look(viewer):
        (found,) = viewer.query(
            "SELECT t.total, t.legs, (SELECT sum(balance) FROM balances) AS b FROM total t"
        )
        assert (found["total"] or 0, found["b"] or 0, found["legs"] % 2) == (0, 0, 0)
        shown.append(found["legs"])

    for viewer in viewers:
        viewer.watch("total", lambda _, viewer=viewer: look(viewer))
    one.site.sync(other.site)
    for _ in range(40):
        roll = rng.random()
        if roll < 0.5:
            rng.choice([one, other]).transfer()
        elif roll < 0.6:
            one.site.sync(other.site)
        else:
            viewer, peer = rng.choice(viewers), rng.choice([one.site, other.site, *viewers])
            if viewer is not peer:
                viewer.sync(peer)
            look(viewer)
    talk(one.site, other.site, *viewers, rounds=5)
    for viewer in viewers:
        look(viewer)
    assert shown[-2:] == [2 * (one.transfers + other.transfers)] * 2


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


def test_a_transfer_whose_legs_arrive_apart_would_be_seen():
    """The check can fail: one leg alone is not 0."""
    bank = Bank(World().site("a", program=PROGRAM), random.Random(0))
    with pytest.raises(ExceptionGroup, match="several callbacks failed"):  # from each of its watches
        bank.site.insert("debits", [("x", 1, 5)])
