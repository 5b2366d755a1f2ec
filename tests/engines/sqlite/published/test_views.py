"""Views that a named authority publishes: everybody shows what it has shown, however that came to them."""

import pytest
from tests.engines.sqlite.published.worlds import Places, stored

import everview as ev
from everview.engines.sqlite.rows.ledger import SITES
from everview.engines.sqlite.store import Store
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport

PROGRAM = ev.Program.parse("""
    CREATE TABLE sales (item TEXT NOT NULL, price BIGINT) WITH (semantics = 'bag');
    CREATE TABLE notes (note TEXT);
    CREATE MATERIALIZED VIEW totals WITH (authority = 'hub') AS
        SELECT item, sum(price) AS total FROM sales GROUP BY item;
    CREATE MATERIALIZED VIEW items WITH (authority = 'hub') AS SELECT item, price FROM sales;
    CREATE MATERIALIZED VIEW dear AS SELECT item, total FROM totals WHERE total > 10;
""")
STREAM = "everview_published#totals"
ALL = {"hub": None, "device": None, "relay": {"totals", "items"}, "reader": {"dear", "items"}}


@pytest.fixture
def places(tmp_path):
    made = Places(tmp_path, PROGRAM, ALL)
    yield made
    made.close()


def published(site):
    return site.status()["replication"]["published"]["totals"]


def both(site):
    return site.rows("totals"), site.rows("items")


def test_a_site_that_meets_nobody_stores_nothing_for_others(places):
    hub = places.sites["hub"]
    hub.insert("sales", [("pen", 20)])
    assert stored(hub._store, STREAM) == [[], []]
    assert "This site publishes it for others, once it has met another." in hub.explain("totals")
    places.sites["reader"].sync(hub)
    assert [row[:3] for row in stored(hub._store, STREAM)[0]] == [("", None, 0), ("pen", 20, 1)]
    assert "publishes it for others; now epoch" in hub.explain("totals")
    assert "None has come yet" in places.sites["device"].explain("totals")
    assert "totals is published by hub, received, and not shown" in places.sites["reader"].explain("dear")


def test_of_two_sites_of_one_name_neither_gives_in_and_one_remains(tmp_path, caplog):
    places = Places(tmp_path, PROGRAM, {"hub-1": None, "hub-2": None, "reader": {"totals"}})
    one, two, reader = places.sites.values()
    two.close()
    two = places.sites["hub-2"] = places.open("hub-2", skew=-90_000)
    one.insert("sales", [("pen", 1)])
    two.insert("sales", [("cap", 3)])
    epochs = []
    for _ in range(3):
        for hub in (one, two) * 3:
            reader.sync(hub)
            assert reader.rows("totals") in (one.rows("totals"), two.rows("totals"))
            epochs.append(published(reader)["epoch"])
        assert all(reader.sync(hub).received_rows == 0 for hub in (one, two) * 3)  # within a minute
        places.world.seconds += 61
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 3
    assert published(one)["contested"] or published(two)["contested"]
    assert "another site publishes totals as hub, too" in caplog.text
    one.insert("sales", [("pen", 2)])
    for _ in range(2):
        reader.sync(one)
    assert reader.rows("totals") == one.rows("totals") == [("pen", 3)]
    places.close()


def test_a_site_that_was_put_back_takes_its_past_for_no_namesake(places, caplog):
    device, relay = places.sites["device"], places.sites["relay"]
    places.keep("hub")
    places.sites["hub"].insert("sales", [("pen", 1)])
    relay.sync(places.sites["hub"])
    past = published(relay)["epoch"]
    places.world.seconds -= 1_000
    places.put_back("hub")
    hub = places.sites["hub"]
    hub.insert("sales", [("cap", 2)])
    device.sync(hub)
    assert published(hub)["epoch"] < past
    hub.sync(relay)
    assert not published(hub)["contested"]
    relay.sync(hub)
    assert relay.rows("totals") == hub.rows("totals") == [("cap", 2)]
    assert published(hub) == {"authority": "hub", "epoch": past + 1, "publishes": True, "contested": False}
    assert "another site publishes" not in caplog.text


def test_rows_of_a_site_that_is_called_otherwise_are_removed_by_the_authority(places):
    hub, relay = places.sites["hub"], places.sites["relay"]
    hub.insert("sales", [("pen", 1)])
    places.hosts["hub-2"] = None
    impostor = places.open("hub-2", skew=3_000)
    impostor.insert("sales", [("pen", 99)])
    impostor._store.name = "nobody"  # what it says of itself
    impostor._store.writer.connection.execute(f"UPDATE {SITES} SET name = 'nobody'")
    relay.sync(impostor)
    assert (relay.rows("totals"), len(stored(relay._store, STREAM)[1])) == ([], 2)
    for _ in range(2):
        relay.sync(hub)
        assert relay.rows("totals") == hub.rows("totals") == [("pen", 1)]
    assert stored(relay._store, STREAM)[1] == stored(hub._store, STREAM)[1] == []
    impostor.close()


def test_a_site_that_gets_the_name_publishes_from_then_on(places):
    hub, device, reader = (places.sites[name] for name in ("hub", "device", "reader"))
    hub.insert("sales", [("pen", 11)])
    device.sync(hub)
    device.insert("sales", [("pen", 4)])
    device.close()
    heir = places.open("device", name="hub")
    reader.sync(heir)
    assert (reader.rows("dear"), published(heir)["publishes"]) == ([("pen", 15)], True)
    heir.close()
    device = places.sites["device"] = places.open("device")
    device.insert("sales", [("pen", 4)])
    assert device.rows("totals") == [("pen", 15)]


def test_who_may_not_write_it_brings_nothing_of_it(places):
    hub, device, relay = (places.sites[name] for name in ("hub", "device", "relay"))
    hub.insert("sales", [("pen", 1)])
    device.sync(hub)
    rights = Rights("device", reads=frozenset(["totals"]), writes=frozenset(["items"]))
    MemoryTransport(relay.replica, "relay", rights).sync(device.replica)
    assert both(relay) == ([], [("pen", 1)])


def test_views_that_are_made_anew_go_on_in_their_epoch_and_watches_hear_of_changes_alone(places):
    hub, relay, told = places.sites["hub"], places.sites["relay"], []
    hub.insert("sales", [("pen", 1)])
    relay.sync(hub)
    epoch = published(relay)["epoch"]
    relay.watch("totals", told.append)
    hub._store.writer.connection.execute("UPDATE everview_store SET layout = ''")
    hub.close()
    hub = places.sites["hub"] = places.open("hub")
    hub.insert("sales", [("ink", 1)])
    assert relay.sync(hub).received_rows == 2
    assert (both(relay), published(relay)["epoch"]) == (both(hub), epoch)
    places.keep("hub")
    places.sites["hub"].insert("notes", [("that is forgotten",)])
    relay.sync(places.sites["hub"])
    places.put_back("hub")
    relay.sync(places.sites["hub"])
    assert published(relay)["epoch"] > epoch
    assert [change for change in told if change] == [[(("ink", 1), 1)]]


def test_a_gate_puts_rows_with_weights_or_whole(tmp_path, places):
    hosts = ["sales", "notes", "totals", "items"]
    store = Store(str(tmp_path / "gate.db"), PROGRAM, "hub", hosts=hosts, computes=False)
    site, reader, author = ev.Site(store), places.sites["relay"], store.engine.authors[STREAM]

    def put(rows, weights, *, whole):
        with site._writing.transaction():
            author.stage(store.writer.connection, [*zip(*rows, strict=True), weights])
            return store.engine.put_owned(
                store.writer.connection, STREAM, site._writing.commit, 0, whole=whole
            )

    assert not author.is_own(store.writer.connection, store.ledger.site)
    assert put([("pen", 1), ("ink", 2)], [1, 3], whole=True)
    assert author.is_own(store.writer.connection, store.ledger.site)
    reader.sync(site)
    assert reader.rows("totals") == site.rows("totals") == [("ink", 2)] * 3 + [("pen", 1)]
    assert put([("ink", 2), ("cap", 9)], [-1, 1], whole=False)
    assert not put([("ink", 2), ("ink", 2)], [1, -1], whole=False)
    assert reader.sync(site).received_rows == 3  # one row goes, two come
    assert reader.rows("totals") == site.rows("totals") == [("cap", 9), ("ink", 2), ("ink", 2), ("pen", 1)]
    assert put([("pen", 1)], [1], whole=True)
    assert reader.sync(site).received_rows == 2
    assert reader.rows("totals") == site.rows("totals") == [("pen", 1)]
    site.close()
