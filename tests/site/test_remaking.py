"""Views made anew from stored relations are what they were: the path of an upgraded library."""

import sqlite3

from tests.site.checks import assert_fresh

PROGRAM = """
CREATE TABLE s (a BIGINT, b BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
CREATE TABLE aw (a BIGINT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW j AS SELECT s.a, k.n, bag.a AS c FROM s JOIN k ON s.b = k.id JOIN bag ON bag.a = s.a;
CREATE MATERIALIZED VIEW selfs AS SELECT x.a, y.b FROM s AS x JOIN s AS y ON x.b = y.a;
CREATE MATERIALIZED VIEW lefts AS SELECT s.a, k.n FROM s FULL JOIN k ON s.b = k.id;
CREATE MATERIALIZED VIEW sums AS SELECT a, count(*) AS c, sum(a) AS t, max(a) AS m FROM bag GROUP BY a;
CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS c, sum(n) AS n, min(n) AS low FROM k;
CREATE MATERIALIZED VIEW fixed AS SELECT x FROM (VALUES (1), (2)) AS v (x) JOIN aw ON aw.a = v.x;
CREATE MATERIALIZED VIEW sets AS SELECT a FROM s UNION SELECT a FROM aw EXCEPT SELECT a FROM bag;
CREATE MATERIALIZED VIEW top AS SELECT a, b FROM s ORDER BY b DESC LIMIT 2;
CREATE MATERIALIZED VIEW ranks AS SELECT a, rank() OVER (ORDER BY b) AS r FROM s;
CREATE MATERIALIZED VIEW having_none AS SELECT a FROM s WHERE NOT EXISTS (SELECT 1 FROM k WHERE k.id = s.b);
CREATE MATERIALIZED VIEW over_views AS SELECT count(*) AS n FROM sums JOIN top ON sums.a = top.a;
CREATE MATERIALIZED VIEW more AS SELECT a, (SELECT sum(n) FROM k WHERE k.id > s.a) AS n FROM s;
"""


def test_all_kinds_of_views(tmp_path, open_site):
    path = tmp_path / "site.db"
    site = open_site(PROGRAM, path)
    site.insert("s", [(1, 2), (2, 1), (2, 3), (None, 2), (3, None)])
    site.delete("s", [(2, 3)])
    site.insert("k", [(1, 5), (2, None), (9, 7)])
    site.delete("k", [(9,)])
    site.insert("bag", [(1,), (1,), (2,), (5,)])
    site.delete("bag", [(5,)])
    site.insert("aw", [(1,), (2,), (3,)])
    site.delete("aw", [(2,)])
    before = {name: site.rows(name) for name in site.program.names()}
    assert_fresh(site)
    assert all(before.values())
    site.close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE everview_store SET layout = 'of another version'")
    raw.commit()
    raw.close()
    site = open_site(None, path)
    assert {name: site.rows(name) for name in site.program.names()} == before
    site.execute("UPDATE s SET b = 1 WHERE a = 1")
    site.insert("k", [(1, 6), (2, 2)])
    site.insert("bag", [(2,)])
    site.insert("aw", [(2,)])
    assert_fresh(site)
