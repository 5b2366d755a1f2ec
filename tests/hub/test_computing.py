"""How a hub computes: as the documentation has it, and to the last digit as a site does."""

import math
from decimal import Decimal
from pathlib import Path

from tests.hub.quick import quickly

import everview as ev
from everview.hub import Hub
from everview.hub.computing import computing_table

DOCS = Path(__file__).parents[2] / "docs" / "HUB.md"
PROGRAM = ev.Program.parse("""
CREATE TABLE r (k BIGINT, f DOUBLE, g DOUBLE, w DECIMAL(38,8));
CREATE MATERIALIZED VIEW shown AS
    SELECT k, power(f, g) AS p, CAST(f AS TEXT) AS t, CAST(f AS DECIMAL(20,5)) AS d,
           w % CAST(k AS DECIMAL(38,20)) AS m FROM r WHERE power(g, 2) < 100;
""")
ROWS = [
    (3, 0.1, 0.7, Decimal("123456789012345678901234567890.12345678")),
    (7, 1.1, 2.0, Decimal("-1.5")),
    (0, 2.0, 0.5, Decimal(5)),
    (9, -8.0, 1 / 3, None),
    (1, 1e308, 2.0, Decimal(0)),
    (2, 5e-324, 0.7, Decimal(1)),
    (4, math.nan, 2.0, Decimal(2)),
    (5, 123456.789e3, -3.0, Decimal(9)),
]


def test_the_documentation_has_the_table():
    assert computing_table() in DOCS.read_text()


def test_executors_and_a_site_agree(spark, tmp_path):
    with quickly(Hub.open(tmp_path, PROGRAM, spark=spark)) as hub, ev.Site.open(":memory:", PROGRAM) as site:
        hub._store.driver_rows = 0
        for store in (hub, site):
            store.insert("r", ROWS)
        hub.refresh()
        assert repr(hub.rows("shown")) == repr(site.rows("shown"))
