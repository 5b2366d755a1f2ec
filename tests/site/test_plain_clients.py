"""Any SQLite client that opens the file read-only sees plain tables with readable values."""

import datetime as dt
import math
import sqlite3
import subprocess
import sys
from decimal import Decimal

import pytest

import everview as ev

PROGRAM = """
CREATE TABLE v (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(6,2), l DECIMAL(30,4), t TEXT, x BLOB,
    d DATE, s TIMESTAMP) WITH (semantics = 'bag');
CREATE TABLE k (id BIGINT PRIMARY KEY, "Mixed Case" TEXT, w DOUBLE);
CREATE MATERIALIZED VIEW dups AS SELECT t, d FROM v;
CREATE MATERIALIZED VIEW sums AS SELECT t, sum(f) AS f, avg(f) AS m, sum(l) AS l, avg(i) AS i, min(d) AS d
    FROM v GROUP BY t;
CREATE MATERIALIZED VIEW shown AS SELECT t, f / 2 AS h, upper(t) AS u, date_trunc('month', s) AS m FROM v;
CREATE MATERIALIZED VIEW over_sums AS SELECT t, CAST(f AS TEXT) AS f, i / 3 AS q FROM sums WHERE i > 0;
CREATE MATERIALIZED VIEW top AS SELECT id, w FROM k ORDER BY w DESC LIMIT 2;
CREATE MATERIALIZED VIEW w AS SELECT w, count(*) AS n FROM k GROUP BY w;
CREATE MATERIALIZED VIEW ranks AS SELECT id, sum(w) OVER (ORDER BY id) AS s FROM k;
CREATE MATERIALIZED VIEW sides AS SELECT k.id, v.t FROM k LEFT JOIN v ON v.i = k.id;
CREATE MATERIALIZED VIEW pieces AS SELECT t, sum(i) AS i, count(*) AS n FROM v GROUP BY t;
CREATE MATERIALIZED VIEW whole AS SELECT sum(id) AS s, avg(id) AS a FROM k;
CREATE MATERIALIZED VIEW sets AS SELECT id FROM k INTERSECT SELECT i FROM v;
"""
ROW = (
    True,
    7,
    math.nan,
    Decimal("-12.50"),
    Decimal("-99999999999999999999999999.0001"),
    "é'x",
    b"\x00\xff",
    dt.date(2024, 2, 29),
    dt.datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=dt.UTC),
)


@pytest.fixture
def path(tmp_path, open_site):
    path = tmp_path / "site.db"
    site = open_site(PROGRAM, path)
    site.insert("v", [ROW, ROW, {"t": "null"}])
    site.insert("k", [(7, "x", 1.5), (2, None, math.inf), (3, "y", None)])
    site.delete("k", [(3,)])
    return path


def read(path, sql):
    raw = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return raw.execute(sql).fetchall()
    finally:
        raw.close()


def test_values_are_readable(path):
    shown = (
        1,
        7,
        "NaN",
        "-12.50",
        "-99999999999999999999999999.0001",
        "é'x",
        b"\x00\xff",
        "2024-02-29",
        "1969-12-31 23:59:59.000005",
    )
    nothing = (None, None, None, None, None, "null", None, None, None)
    assert read(path, "SELECT * FROM v ORDER BY t") == [nothing, shown, shown]
    assert read(path, 'SELECT "Mixed Case" FROM k ORDER BY id') == [(None,), ("x",)]


def test_duplicates_are_repeated(path):
    assert sorted(read(path, "SELECT t, d FROM dups")) == [("null", None), *[("é'x", "2024-02-29")] * 2]


def test_every_relation_and_view_is_a_plain_table(path, open_site):
    site = open_site(None, path)
    for name in site.program.names():
        rows = read(path, f'SELECT * FROM "{name}"')
        assert len(rows) == len(site.rows(name)), name
        columns = [field.name for field in site.program.schema(name)]
        assert [row[1] for row in read(path, f"PRAGMA table_info({name})")] == columns
    assert read(path, "SELECT f, m, l, i, d FROM sums WHERE t > 'o'") == [
        ("NaN", "NaN", "-199999999999999999999999998.0002", 7.0, "2024-02-29")
    ]
    assert read(path, "SELECT i, n FROM pieces ORDER BY n") == [(None, 1), (14, 2)]
    site.insert("k", [(2**63 - 1, "", 0.0)])
    assert site.rows("whole")[0][0] is None
    assert read(path, "SELECT s FROM whole") == [(None,)]
    site.delete("k", [(2**63 - 1,)])
    assert read(path, "SELECT s, a FROM whole") == [(9, 4.5)]
    assert read(path, "SELECT * FROM top") == [(2, math.inf), (7, 1.5)]
    assert read(path, "SELECT f, q FROM over_sums") == [("NaN", 7 / 3)]


def test_another_process_reads_while_the_site_is_open(path, open_site):
    site = open_site(None, path)
    site.insert("k", [(9, "z", 2.0)])
    script = (
        "import sqlite3, sys\n"
        "raw = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n"
        "print(raw.execute('SELECT count(*) FROM k').fetchone()[0])\n"
        "raw.execute('DELETE FROM everview_r1')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "3"
    assert "readonly" in done.stderr


def test_what_is_written_under_our_hands_is_not_possible_through_the_views(path):
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.OperationalError):
        raw.execute("INSERT INTO k VALUES (1, 'x', 1.0)")
    raw.close()
    assert ev.Site.open(path).close() is None
