"""`--hosts NAME/COLUMN=VALUE,…` and `everview drop`: a store hosts values of a partitioned relation."""

import json
from pathlib import Path

PROGRAM = """
CREATE TABLE orders (region TEXT, day DATE, id BIGINT, PRIMARY KEY (region, day, id))
    PARTITION BY (region, day);
CREATE MATERIALIZED VIEW totals AS SELECT region, count(*) AS n FROM orders GROUP BY region;
"""


def test_values_are_hosted_added_and_dropped(run, fails, here):
    Path("shop.sql").write_text(PROGRAM)
    made = run("init", "a.db", "--program", "shop.sql", "--hosts", "orders/region=eu", "--hosts", "totals")
    assert "1 relation, 1 view" in made
    assert "values of orders" in run("status", "a.db")
    assert json.loads(run("status", "a.db", "--json"))["values"] == {"orders": ["region = eu"]}
    rows = "region,day,id\neu,2026-01-01,1\n"
    run("insert", "a.db", "orders", "-", "-f", "csv", stdin=rows)
    said = fails("insert", "a.db", "orders", "-", "-f", "csv", stdin=rows.replace("eu", "us"))
    assert "does not host region = us, day = 2026-01-01" in said
    run("migrate", "a.db", "--hosts", "orders/region=us,asia", "--yes")
    run("insert", "a.db", "orders", "-", "-f", "csv", stdin=rows.replace("eu", "us"))
    assert run("drop", "a.db", "orders/region=us") == "orders: region = asia; region = eu\n"
    assert run("query", "a.db", "SELECT region, n FROM totals", "--csv").split()[1:] == ["eu,1"]
    run("migrate", "a.db", "--hosts", "orders/region=us/day=2026-01-01", "--yes")
    assert "region = us, day = 2026-01-01" in run("status", "a.db")
    assert "was not chosen" in fails("drop", "a.db", "orders/region=eu/day=2026-01-01")
    assert run("drop", "a.db", "orders/region=us") == "orders: region = asia; region = eu\n"
    assert "was not chosen" in fails("drop", "a.db", "orders/region=us")
    assert "values can be dropped only where" in fails("drop", "a.db", "orders")
    for wrong in ("orders/what=1", "totals/region=eu", "nothing/region=eu", "orders/day=never"):
        fails("init", "b.db", "--program", "shop.sql", "--hosts", wrong)
    assert not Path("b.db").exists()
