"""A hub hosts all values of partitioned relations, and devices some."""

import random

from tests.hub.quick import quickly

import everview as ev
from everview.hub import Hub

PROGRAM = ev.Program.parse("""
CREATE TABLE orders (region TEXT, id BIGINT, what TEXT, PRIMARY KEY (region, id)) PARTITION BY (region);
CREATE TABLE seen (region TEXT, id BIGINT) PARTITION BY (region) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW totals AS SELECT region, count(*) AS n FROM orders GROUP BY region;
CREATE MATERIALIZED VIEW told WITH (authority = 'hub') AS
    SELECT region, count(*) AS n FROM seen GROUP BY region;
""")
HOSTED = {"eu": ["eu"], "us": ["us"], "both": ["eu", "us"]}


def device(name):
    values = {"region": HOSTED[name]}
    hosts = {"orders": values, "seen": values, "totals": ..., "told": ...}
    return ev.Site.open(":memory:", PROGRAM, name=name, hosts=hosts)


def test_devices_that_host_values_sync_with_a_hub(spark, tmp_path):
    rng, devices = random.Random(3), {name: device(name) for name in HOSTED}
    with quickly(Hub.open(tmp_path / "hub", PROGRAM, spark=spark, name="hub")) as hub:
        hub.insert("orders", [("eu", 1, "hub"), ("us", 1, "hub"), ("asia", 1, "hub")])
        for turn in range(3):
            for name, site in devices.items():
                region = rng.choice(HOSTED[name])
                site.insert("orders", [(region, rng.randrange(5), f"{name} {turn}")])
                site.insert("seen", [(region, turn), (region, turn)])
                site.sync(hub)
            hub.delete("orders", [("eu", 1)] if turn else [("us", 1)])
            hub.refresh()
        both = devices["both"]
        both.sync(hub)
        both.execute("UPDATE orders SET region = 'us', id = id + 100 WHERE region = 'eu'")  # they move
        for site in devices.values():
            site.sync(hub)
        hub.refresh()
        for name, site in devices.items():
            site.sync(hub)
            for relation in ("orders", "seen"):
                expected = [row for row in hub.rows(relation) if row[0] in HOSTED[name]]
                assert site.rows(relation) == expected
            assert site.rows("totals") == [row for row in hub.rows("totals") if row[0] in HOSTED[name]]
            assert site.rows("told") == hub.rows("told")
        assert ("asia", 1, "hub") in hub.rows("orders")
        assert not [row for row in hub.rows("orders") if row[0] == "eu"]
        assert len(hub.rows("seen")) == 18
    for site in devices.values():
        site.close()
