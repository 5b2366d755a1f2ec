"""Devices that host only aggregates of owners' rows are fed by the gate of a hub, which has all rows."""

import pytest

from everview.hub.gate import Gate
from everview.language.program import Program
from everview.replication.transports.memory import MemoryTransport
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE sales (shop TEXT NOT NULL, item TEXT, price DOUBLE) WITH (owner = 'shop', semantics = 'bag');
CREATE MATERIALIZED VIEW totals AS
    SELECT item, count(*) AS n, sum(price) AS total, max(price) AS most FROM sales GROUP BY item;
""")


@pytest.fixture
def gate(tmp_path):
    opened = Gate(str(tmp_path / "gate.db"), PROGRAM, "hub", 1)
    yield opened
    opened.close()


def sync(gate, site):
    return MemoryTransport(gate.replica, "hub").sync(site.replica)


def test_a_device_gets_what_each_shop_sold_and_no_rows(gate):
    shops = [Site.open(":memory:", PROGRAM, name=name) for name in ("north", "south")]
    device = Site.open(":memory:", PROGRAM, name="device", hosts={"totals"})
    for number, shop in enumerate(shops):
        shop.insert("sales", [(shop.name, "pen", 0.25), (shop.name, f"item {number}", 0.2)])
        sync(gate, shop)
    gate.put(1, PROGRAM.relations["sales"], [(True, iter([(["hub"], ["pen"], [0.5])]))])
    sync(gate, device)
    sync(gate, shops[0])
    assert device.rows("totals") == shops[0].rows("totals")
    assert device.rows("totals")[-1] == ("pen", 3, 1.0, 0.5)
    sync(gate, device)
    assert sync(gate, device).received_rows == 0
    shops[1].delete("sales", [("south", "pen", 0.25)])
    sync(gate, shops[1])
    sync(gate, device)
    sync(gate, shops[0])
    assert device.rows("totals") == shops[0].rows("totals")
    assert {witness.origin for witness in device.why("totals", ("pen", 2, 0.75, 0.5)).tuples()} == {
        "north",
        "hub",
    }
    for site in (*shops, device):
        site.close()
