"""Views that a named authority publishes: everybody shows what it has shown, however that came to them."""

import random
import shutil

import pytest
from tests.replication.sites import World, talk

import everview as ev
from everview.replication import budget, publishing
from everview.replication.rights import Rights
from everview.replication.transports.memory import MemoryTransport

PROGRAM = ev.Program.parse("""
    CREATE TABLE sales (item TEXT NOT NULL, price BIGINT) WITH (semantics = 'bag');
    CREATE TABLE stock (item TEXT PRIMARY KEY, n BIGINT);
    CREATE MATERIALIZED VIEW totals WITH (authority = 'hub') AS
        SELECT item, sum(price) AS total FROM sales GROUP BY item;
    CREATE MATERIALIZED VIEW items WITH (authority = 'hub') AS SELECT item, price FROM sales;
    CREATE MATERIALIZED VIEW dear AS SELECT item, total FROM totals WHERE total > 10;
    CREATE MATERIALIZED VIEW left_over AS
        SELECT stock.item, stock.n, totals.total FROM stock LEFT JOIN totals ON stock.item = totals.item;
""")
PUBLISHED = ("totals", "items")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def hub(world):
    return world.site("hub", program=PROGRAM)


@pytest.fixture
def device(world):
    return world.site("device", program=PROGRAM)


def published(site):
    return site.status()["replication"]["published"]


def stored(site, view="totals"):
    """What lies in the table of a published view: rows, multiplicities, and where they last changed."""
    (found,) = (p for p in site._store.engine.published.values() if p.view.name == view)
    return sorted(site._store.writer.connection.execute(f"SELECT * FROM {found.table.name}").fetchall())


def test_everybody_shows_what_the_authority_shows(hub, device):
    hub.insert("sales", [("pen", 2), ("pen", 2), ("ink", 9)])
    device.insert("sales", [("ink", 4)])
    assert [device.rows(name) for name in (*PUBLISHED, "dear")] == [[], [], []]
    device.sync(hub)
    assert device.rows("totals") == hub.rows("totals") == [("ink", 13), ("pen", 4)]
    assert device.rows("items") == hub.rows("items") == [("ink", 4), ("ink", 9), ("pen", 2), ("pen", 2)]
    assert device.rows("dear") == [("ink", 13)]
    device.delete("sales", [("ink", 4)])
    assert device.rows("totals") == [("ink", 13), ("pen", 4)]  # the authority has not heard of it
    device.sync(hub)
    assert device.rows("totals") == [("ink", 9), ("pen", 4)]
    assert device.rows("dear") == []
    report = device.sync(hub)
    assert (report.sent_rows, report.received_rows) == (0, 0)


def test_only_what_has_changed_travels(hub, device):
    hub.insert("sales", [(f"item {n}", n) for n in range(300)])
    device.sync(hub)
    hub.insert("sales", [("item 7", 1)])
    assert device.sync(hub).received_rows < 10
    assert device.rows("totals") == hub.rows("totals")


def test_it_passes_through_others_also_unseen(world, hub):
    """One that hosts the view alone, and one that hosts a view over it, and reads it of the former."""
    relay = world.site("relay", program=PROGRAM, hosts={"totals"})
    reader = world.site("reader", program=PROGRAM, hosts={"dear"})
    hub.insert("sales", [("pen", 20)])
    for _ in range(2):
        relay.sync(hub)
        reader.sync(relay)
    assert relay.rows("totals") == [("pen", 20)]
    assert reader.rows("dear") == [("pen", 20)]
    with pytest.raises(ev.DataError, match="not hosted here"):
        reader.rows("totals")
    assert "totals is published by hub, received, and not shown" in reader.explain("dear")
    hub.delete("sales", [("pen", 20)])
    relay.sync(hub)
    assert reader.sync(relay).received_rows == 1  # the row that has gone
    assert reader.rows("dear") == []


def test_a_view_over_it_and_over_relations_that_are_elsewhere(world, hub, device):
    """Its monotone parts come as derivations, the published view as it is."""
    reader = world.site("reader", program=PROGRAM, hosts={"left_over"})
    hub.insert("stock", [("pen", 3), ("cap", 1)])
    device.insert("sales", [("pen", 7)])
    device.sync(hub)
    reader.sync(hub)
    assert reader.rows("left_over") == hub.rows("left_over") == [("cap", 1, None), ("pen", 3, 7)]


def test_the_authority_needs_no_inputs_of_its_own(world, device):
    hub = world.site("hub", program=PROGRAM, hosts={"totals"})
    device.insert("sales", [("pen", 7)])
    hub.sync(device)
    assert hub.rows("totals") == [("pen", 7)]
    device.sync(hub)
    assert device.rows("totals") == [("pen", 7)]


def test_explain_says_whose_result_it_is(hub, device):
    assert "totals is published by hub; needs no base rows" in device.explain("totals")
    assert "None has come yet" in device.explain("totals")
    assert "This site publishes it for others, once it has met another" in hub.explain("totals")
    device.sync(hub)
    assert "Its state here is that after commit 0 of epoch" in device.explain("totals")
    assert "publishes it for others; now commit 0" in hub.explain("totals")


def test_why_ends_at_the_authority(hub, device):
    hub.insert("sales", [("pen", 20)])
    device.sync(hub)
    (witness,) = device.why("dear", ("pen", 20)).tuples()
    assert (witness.relation, witness.origin) == ("totals", "hub")
    assert witness.values == {"item": "pen", "total": 20}
    (own,) = hub.why("dear", ("pen", 20)).tuples()
    assert own.relation == "sales"
    assert not device.why("totals", ("cap", 1))


def test_watches_are_told_of_what_really_changed(hub, device):
    """Also by a whole, which has every row."""
    told = []
    hub.insert("sales", [("pen", 20), ("ink", 5)])
    device.sync(hub)
    device.watch("totals", lambda changes: told.append(sorted(changes)))
    device.watch("dear", told.append)
    hub.delete("sales", [("pen", 20)])
    hub.insert("sales", [("cap", 1)])
    device.sync(hub)
    change = [(("cap", 1), 1), (("pen", 20), -1)]
    assert told == [change, [(("pen", 20), -1)]]
    hub.insert("sales", [("cap", 1)])
    hub.delete("sales", [("ink", 5)])
    hub.replica.collect()
    device.sync(hub)
    assert told[2:] == [[(("cap", 1), -1), (("cap", 2), 1), (("ink", 5), -1)]]


def test_nobody_writes_to_it(hub):
    with pytest.raises(ev.DataError, match="totals is a view"):
        hub.insert("totals", [("pen", 1)])


def test_a_site_that_meets_nobody_stores_nothing_for_others(hub, device):
    hub.insert("sales", [("pen", 20)])
    assert stored(hub) == []
    device.sync(hub)
    assert [row[:3] for row in stored(hub)] == [("pen", 20, 1)]


# Garbage.


def test_who_missed_what_was_forgotten_gets_the_whole(world, hub, device):
    late = world.site("late", program=PROGRAM)
    hub.insert("sales", [(f"item {n}", n) for n in range(20)])
    talk(hub, device, late)
    hub.delete("sales", [(f"item {n}", n) for n in range(15)])
    device.sync(hub)
    assert sum(row[-2] == 0 for row in stored(hub)) == sum(row[-2] == 0 for row in stored(device)) == 15
    hub.replica.collect()
    device.replica.collect()
    assert len(stored(hub)) == len(stored(device)) == 5
    late.sync(device)
    assert late.rows("totals") == hub.rows("totals")
    assert late.rows("items") == hub.rows("items")


def test_few_that_have_gone_are_kept_and_many_are_not(world, hub, device):
    hub.insert("sales", [(f"item {n}", n) for n in range(1_500)])
    device.sync(hub)
    for start in (1, 501, 1_001):
        hub.delete("sales", [(f"item {n}", n) for n in range(start, min(start + 500, 1_500))])
    for _ in range(2):
        world.seconds += 3_700
        device.sync(hub)
    assert sum(row[-2] == 0 for row in stored(device)) == 999
    assert device.rows("totals") == hub.rows("totals") == [("item 0", 0)]


# Pages.


@pytest.mark.parametrize("seed", range(6))
def test_pages_between_which_much_happens(world, hub, device, monkeypatch, seed):
    """A cut is taken as it ends, also when rows were forgotten meanwhile, or the sender took a whole."""
    monkeypatch.setattr(budget.Budget.__init__, "__defaults__", (3, budget.PAGE_BYTES))
    chance = random.Random(seed)
    states = []
    site = world.site("reader", program=PROGRAM, hosts={"totals", "dear"})
    site._replica._page_rows = device._replica._page_rows = hub._replica._page_rows = 3

    def write():
        name = f"item {chance.randrange(12)}"
        with hub.transaction():
            for row in [row for row in hub.rows("sales") if row[0] == name]:
                hub.delete("sales", [row])
            if chance.random() < 0.6:
                hub.insert("sales", [(name, chance.randrange(99))])
        states.append(hub.rows("totals"))

    def happen():
        if chance.random() < 0.6:
            write()
        elif chance.random() < 0.5:
            chance.choice([hub, device]).replica.collect()
        else:
            device.sync(hub)
            states.append(hub.rows("totals"))

    for _ in range(20):
        write()
    for _ in range(12):
        sender = chance.choice([hub, device])
        exchange = site.replica.exchange(sender.name)
        message = exchange.open()
        while message is not None:
            answer = sender.replica.answer(message)
            if chance.random() < 0.4:
                happen()
            message = exchange.receive(answer)
            assert site.rows("totals") in [[], *states]
        if chance.random() < 0.5:
            write()
    talk(hub, device, site)
    assert site.rows("totals") == device.rows("totals") == hub.rows("totals")


# Files.


def test_a_folder_carries_it(world, tmp_path):
    folder = tmp_path / "folder"
    hub = world.site("hub", tmp_path / "hub.db", program=PROGRAM)
    device = world.site("device", tmp_path / "device.db", program=PROGRAM)
    only = world.site("only", tmp_path / "only.db", program=PROGRAM, hosts={"totals"})
    for price in (3, 4, 5):
        hub.insert("sales", [("pen", price)])
        for _ in range(3):
            for site in (hub, device, only):
                site.sync(folder)
        assert device.rows("totals") == only.rows("totals") == hub.rows("totals")
    hub.delete("sales", [("pen", 4)])
    for site in (hub, only, device):
        report = site.sync(folder)
    assert report.received_rows < 10
    assert device.rows("totals") == only.rows("totals") == [("pen", 8)]
    late = world.site("late", tmp_path / "late.db", program=PROGRAM, hosts={"sales"})
    for _ in range(3):
        for site in (late, hub):
            site.sync(folder)
    late.close()
    late = world.site("late", tmp_path / "late.db", program=PROGRAM, hosts={"dear"})  # one more
    for _ in range(3):
        for site in (late, hub):
            site.sync(folder)
    hub.insert("sales", [("pen", 50)])
    for site in (hub, late):
        site.sync(folder)
    assert late.rows("dear") == hub.rows("dear") == [("pen", 58)]


# Authorities that forget, and two of one name.


@pytest.mark.parametrize("written", [False, True])
def test_an_authority_that_was_put_back_is_believed_again(world, tmp_path, device, written):
    path, kept = tmp_path / "hub.db", tmp_path / "kept.db"
    hub = world.site("hub", path, program=PROGRAM)
    hub.insert("sales", [("pen", 1)])
    device.sync(hub)
    hub.close()
    shutil.copy(path, kept)
    hub = world.site("hub", path, program=PROGRAM)
    hub.insert("sales", [("ink", 2)])
    device.sync(hub)
    before = published(device)["totals"]["epoch"]
    hub.close()
    shutil.copy(kept, path)
    hub = world.site("hub", path, program=PROGRAM)
    if written:
        hub.insert("sales", [("cap", 3)])
    device.sync(hub)
    device.sync(hub)
    assert device.rows("totals") == hub.rows("totals")
    assert ("ink", 2) in device.rows("totals")  # which the device has brought back
    assert published(device)["totals"]["epoch"] > before
    assert not published(hub)["totals"]["contested"]


def test_an_authority_whose_clock_went_back_with_it(world, tmp_path, device):
    """It cannot know that there was a later epoch of its own before somebody tells it."""
    hub = world.site("hub", tmp_path / "one.db", program=PROGRAM)
    hub.insert("sales", [("pen", 1)])
    device.sync(hub)
    epoch = published(device)["totals"]["epoch"]
    other = world.site("hub", tmp_path / "two.db", program=PROGRAM, skew=-90_000)
    other.insert("sales", [("cap", 3)])
    reader = world.site("reader", program=PROGRAM, hosts={"totals"})
    reader.sync(other)
    assert reader.rows("totals") == [("cap", 3)]
    assert published(reader)["totals"]["epoch"] < epoch
    reader.sync(device)
    assert reader.rows("totals") == [("pen", 1)]
    reader.sync(other)
    assert reader.rows("totals") == [("cap", 3)]
    assert published(reader)["totals"]["epoch"] > epoch


def test_of_two_sites_of_one_name_neither_gives_in_and_one_remains(world, device, caplog):
    one, two = (world.site("hub", program=PROGRAM) for _ in range(2))
    reader = world.site("reader", program=PROGRAM, hosts={"totals"})
    one.insert("sales", [("pen", 1)])
    two.insert("stock", [("cap", 3)])
    for _ in range(20):
        for hub in (one, two):
            reader.sync(hub)
            device.sync(reader)
            assert reader.rows("totals") in (one.rows("totals"), two.rows("totals"))
    epochs = {published(hub)["totals"]["epoch"] for hub in (one, two)}
    for _ in range(20):  # within a minute nothing more comes of it
        reader.sync(one)
        reader.sync(two)
    assert {published(hub)["totals"]["epoch"] for hub in (one, two)} == epochs
    world.seconds += 61
    for hub in (one, two, one, two):
        reader.sync(hub)
    assert published(one)["totals"]["contested"]
    assert "another site publishes totals as hub, too" in caplog.text
    world.seconds += 61
    for _ in range(2):
        for site in (reader, device):
            site.sync(one)
    assert reader.rows("totals") == device.rows("totals") == [("pen", 1)]
    one.insert("sales", [("pen", 2)])
    reader.sync(one)
    assert reader.rows("totals") == [("pen", 3)]


def test_a_site_that_gets_the_name_publishes_from_then_on(world, tmp_path, hub):
    path = tmp_path / "device.db"
    device = world.site("device", path, program=PROGRAM)
    reader = world.site("reader", program=PROGRAM, hosts={"totals"})
    for number in range(20):  # commits of the old authority are later than those of the new one
        hub.insert("stock", [("pen", number)])
    hub.insert("sales", [("pen", 1), ("cap", 2)])
    device.sync(hub)
    reader.sync(device)
    device.insert("sales", [("pen", 4)])
    device.close()
    heir = world.site("hub", path, program=PROGRAM)
    assert heir.rows("totals") == [("cap", 2), ("pen", 5)]
    reader.sync(heir)
    assert reader.rows("totals") == [("cap", 2), ("pen", 5)]
    newcomer = world.site("newcomer", program=PROGRAM, hosts={"totals"})
    newcomer.sync(heir)
    assert newcomer.rows("totals") == heir.rows("totals")
    heir.close()
    device = world.site("device", path, program=PROGRAM)
    assert device.rows("totals") == [("cap", 2), ("pen", 5)]
    device.insert("sales", [("pen", 4)])
    assert device.rows("totals") == [("cap", 2), ("pen", 5)]


# Rights.


def test_who_may_not_write_it_brings_nothing_of_it(world, hub, device):
    """Neither rows nor a later epoch; who may read it gets it all the same."""
    reader = world.site("reader", program=PROGRAM, hosts={"totals"})
    hub.insert("sales", [("pen", 1)])
    device.sync(hub)
    relays = Rights("device", reads=frozenset(["totals"]), writes=frozenset(["sales"]))
    MemoryTransport(reader.replica, "reader", relays).sync(device.replica)
    assert reader.rows("totals") == []
    MemoryTransport(device.replica, "device", Rights("reader", writes=frozenset())).sync(reader.replica)
    assert reader.rows("totals") == [("pen", 1)]
    impostor = world.site("hub", program=PROGRAM, skew=3_000)
    impostor.insert("sales", [("pen", 99)])
    impostor.sync(world.site("nobody", program=PROGRAM))
    with pytest.raises(ev.SyncError, match="the token belongs to 'device'"):
        MemoryTransport(hub.replica, "hub", relays).sync(impostor.replica)
    epoch = published(hub)["totals"]["epoch"]
    MemoryTransport(hub.replica, "hub", Rights(reads=frozenset(), writes=frozenset())).sync(impostor.replica)
    assert published(hub)["totals"]["epoch"] == epoch


def test_rows_of_who_may_not_write_it_are_dropped_and_counted(world, hub, device, monkeypatch):
    """A sender that sends them unasked."""
    monkeypatch.setattr(publishing, "wanted", lambda engine, connection: list(engine.published))
    reader = world.site("reader", program=PROGRAM)
    hub.insert("sales", [("pen", 1)])
    device.sync(hub)
    rights = Rights(writes=frozenset(["sales", "stock"]))
    asked = reader.replica._request

    def request(connection, sender, _rights):
        return asked(connection, sender, Rights())

    monkeypatch.setattr(reader.replica, "_request", request)
    MemoryTransport(reader.replica, "reader", rights).sync(device.replica)
    assert reader.rows("sales") == [("pen", 1)]
    assert reader.rows("totals") == []
    assert reader.status()["replication"]["dropped_rows"] >= 2
