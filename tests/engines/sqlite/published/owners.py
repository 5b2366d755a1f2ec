# ruff: noqa: E501 - queries are easier to read in one line
"""A program with aggregates over rows that only their owners write."""

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE votes (site TEXT NOT NULL, item TEXT, n BIGINT, x DOUBLE)
        WITH (owner = 'site', semantics = 'bag');
    CREATE TABLE meters (site TEXT, id BIGINT, n BIGINT, PRIMARY KEY (site, id)) WITH (owner = 'site');
    CREATE TABLE notes (note TEXT);
    CREATE MATERIALIZED VIEW tally AS
        SELECT item, count(*) AS c, sum(n) AS s, min(n) AS lo, max(n) AS hi, avg(x) AS a FROM votes GROUP BY item;
    CREATE MATERIALIZED VIEW best AS SELECT site, item, n FROM votes WHERE n > 0 ORDER BY n DESC LIMIT 3;
    CREATE MATERIALIZED VIEW firsts AS SELECT item, n, i FROM (
        SELECT item, n, row_number() OVER (PARTITION BY item ORDER BY n DESC) AS i FROM votes
    ) AS u WHERE i <= 2;
    CREATE MATERIALIZED VIEW about AS SELECT item, approx_count_distinct(n) AS d, approx_percentile(x, 0.5) AS m,
        approx_percentile(x, 0.9) FILTER (WHERE n > 2) AS p FROM votes GROUP BY item HAVING approx_count_distinct(n) > 0;
    CREATE MATERIALIZED VIEW used AS SELECT id, sum(n) AS n FROM meters GROUP BY id;
""")
VIEWS = ("tally", "best", "firsts", "about", "used")


def shown(site, views=VIEWS):
    return {view: site.rows(view) for view in views}
