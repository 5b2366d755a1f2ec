"""Window functions over computed partitions: the stale rows of a partition are found and replaced."""

from tests.site.checks import assert_fresh

PROGRAM = """
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT, x DOUBLE);
CREATE MATERIALIZED VIEW ranks AS SELECT id, rank() OVER (PARTITION BY n % 3 ORDER BY x) AS r FROM k;
CREATE MATERIALIZED VIEW two AS SELECT id, n, sum(n) OVER (PARTITION BY n % 3, n / 4 ORDER BY id) AS s,
    count(*) OVER (PARTITION BY n / 4) AS c FROM k;
CREATE MATERIALIZED VIEW mixed AS SELECT id, max(x) OVER (PARTITION BY n, abs(id)) AS m FROM k;
"""


def test_rows_that_change_partitions(open_site):
    site = open_site(PROGRAM)
    for number in range(12):
        site.insert("k", [(number % 7, number * 5 % 11, number / 2), (number % 5, number, None)])
        assert_fresh(site)
    site.execute("UPDATE k SET n = n + 1")
    assert_fresh(site)
    site.execute("DELETE FROM k WHERE id < 4")
    assert_fresh(site)
