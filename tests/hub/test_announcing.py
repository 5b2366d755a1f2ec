"""Views whose authority is the hub reach sites as the last refresh has them, and no base rows with them."""

import shutil

import pytest
from tests.hub.quick import quickly

from everview.hub import Hub
from everview.hub import peering as peering_module
from everview.hub import store as store_module
from everview.language.program import Program
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE sales (item TEXT, price DECIMAL(10, 2)) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW totals WITH (authority = 'hub') AS
    SELECT item, count(*) AS n, sum(price) AS total FROM sales GROUP BY item;
CREATE MATERIALIZED VIEW items WITH (authority = 'hub') AS SELECT item FROM sales WHERE price > 1;
CREATE MATERIALIZED VIEW often AS SELECT item FROM totals WHERE n > 1;
CREATE MATERIALIZED VIEW seen WITH (authority = 'plant') AS SELECT DISTINCT item FROM sales;
""")


def opened(folder, spark):
    return quickly(Hub.open(folder, PROGRAM, spark=spark))


def device(name="device", *hosts):
    return Site.open(":memory:", PROGRAM, name=name, hosts=hosts or ("totals", "items"))


def agree(hub, *sites):
    for site in sites:
        site.sync(hub)
        for view in ("totals", "items"):
            assert site.rows(view) == hub.rows(view), view
        assert site.sync(hub).received_rows == 0


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory):
    """A hub that has talked with a device, a shop and a plant, its folder, and these three."""
    folder = tmp_path_factory.mktemp("hubs") / "hub"
    sites = (device(), device("shop", *PROGRAM.names()), device("plant", "sales", "seen"))
    with opened(folder, spark) as hub:
        sites[1].insert("sales", [("pen", 2), ("pen", 2), ("ink", 9), (None, 0)])
        sites[1].sync(hub)
        hub.refresh()
        yield hub, folder, sites
    for site in sites:
        site.close()


def test_a_device_gets_the_result_and_no_base_rows(world):
    hub, _, (alone, shop, _) = world
    agree(hub, alone, shop)
    assert len(alone.rows("totals")) == 3
    assert hub.status().waiting.commits == 0  # what it publishes is in a commit, but is not to be taken in
    assert "published by hub; needs no base rows" in alone.explain("totals")
    assert shop.rows("often") == [("pen",)]
    shop.insert("sales", [("ink", 9)])
    shop.delete("sales", [("pen", 2)])
    shop.sync(hub)
    assert shop.rows("often") == [("pen",)]  # the hub has not refreshed yet
    hub.refresh()
    agree(hub, shop, alone)
    assert shop.rows("often") == [("ink",)]
    (witness,) = shop.why("often", ("ink",)).tuples()
    assert (witness.relation, witness.origin, witness.values["n"]) == ("totals", "hub", 2)


def test_a_view_of_another_authority_passes_through_the_hub(world):
    hub, _, (_, shop, plant) = world
    for _ in range(2):  # what follows from the rows that came is told by the next sync
        plant.sync(hub)
    shop.sync(hub)
    assert shop.rows("seen") == plant.rows("seen") != []


def test_what_a_crash_left_undone_is_done_when_the_hub_is_opened_again(world, spark, tmp_path, monkeypatch):
    """Also when by then the refresh that the gate has is retained no more."""
    hub, folder, (alone, shop, _) = world
    agree(hub, shop)
    shop.insert("sales", [("cap", 3)])
    shop.sync(hub)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(peering_module, "announce", killed)
        with pytest.raises(KeyboardInterrupt):
            hub.refresh()
    assert ("cap", 1) in [row[:2] for row in hub.rows("totals")]
    for retained in (100, 0):
        copy = tmp_path / f"copy{retained}"
        shutil.copytree(folder, copy)
        shutil.rmtree(copy / "lease", ignore_errors=True)
        if not retained:
            monkeypatch.setattr(store_module.Retention, "retained", lambda self, files: {})
        with opened(copy, spark) as again:
            agree(again, alone if retained else device())
    monkeypatch.undo()
    hub.refresh()
    agree(hub, shop)


def test_a_hub_that_was_put_back_is_believed_again(world, spark, tmp_path):
    """Sites have a later state of it: they go over to the one that it has now."""
    hub, folder, (_, shop, _) = world
    kept, site = tmp_path / "kept", device()
    agree(hub, site)
    shutil.copytree(folder, kept)
    shutil.rmtree(kept / "lease", ignore_errors=True)
    shop.insert("sales", [("hat", 5), ("hat", 6)])
    shop.sync(hub)
    hub.refresh()
    agree(hub, site)
    assert "hat" in {row[0] for row in site.rows("totals")}
    with opened(kept, spark) as back:
        agree(back, site)
        assert "hat" not in {row[0] for row in site.rows("totals")}
        shop.sync(back)
        back.refresh()
        agree(back, site)
        assert "hat" in {row[0] for row in site.rows("totals")}
    agree(hub, site)  # of two hubs with one name the one that was asked last
