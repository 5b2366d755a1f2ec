"""Examples of every clause, which the compiler has to take, and of what it has to refuse."""

from __future__ import annotations

__all__ = ["ACCEPTED", "REFUSED", "TABLES"]

TABLES = """
CREATE TABLE r (a BIGINT, b TEXT);
CREATE TABLE s (a BIGINT, c DOUBLE);
CREATE TABLE every (
    b BOOLEAN, n BIGINT, m DECIMAL(10,2), d DOUBLE, t TEXT, x BLOB, day DATE, at TIMESTAMP
);
"""

ACCEPTED: dict[str, list[tuple[str, str]]] = {
    "Declarations": [
        ("a relation: a set of rows", "CREATE TABLE visits (id BIGINT NOT NULL, place TEXT)"),
        (
            "one row per key, the last writer wins",
            "CREATE TABLE sectors (sector BIGINT PRIMARY KEY, team TEXT)",
        ),
        ("a key of several columns", "CREATE TABLE link (a TEXT, b TEXT, km BIGINT, PRIMARY KEY (a, b))"),
        ("rows that may be there several times", "CREATE TABLE sales (item TEXT) WITH (semantics = 'bag')"),
        ("an insertion wins over a deletion", "CREATE TABLE notes (text TEXT) WITH (semantics = 'add_wins')"),
        (
            "only the named site writes a row",
            "CREATE TABLE votes (site TEXT, n BIGINT) WITH (owner = 'site')",
        ),
        (
            "events in windows that close",
            (
                "CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL) "
                "WITH (owner = 'source', event_time = 'at', sources = 'x, y', lateness = '30 seconds')"
            ),
        ),
        ("a view", "CREATE MATERIALIZED VIEW v AS SELECT a FROM r"),
        ("with names for its columns", "CREATE MATERIALIZED VIEW v (one, two) AS SELECT a, b FROM r"),
        ("published by one site", "CREATE MATERIALIZED VIEW v WITH (authority = 'hub') AS SELECT a FROM r"),
        (
            "a recursive view",
            (
                "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE t(x) AS "
                "(SELECT a FROM r UNION SELECT s.a FROM t JOIN s ON s.a = t.x) SELECT x FROM t"
            ),
        ),
    ],
    "Queries": [
        ("all columns, or some", "SELECT r.*, c AS d FROM r JOIN s ON r.a = s.a"),
        ("rows that satisfy a condition", "SELECT a FROM r WHERE b LIKE 'x%' AND a BETWEEN 1 AND 9"),
        ("without duplicates", "SELECT DISTINCT b FROM r"),
        ("groups", "SELECT b, count(*) AS n FROM r GROUP BY b HAVING count(*) > 1"),
        ("groups by position or alias", "SELECT a % 10 AS k, count(*) AS n FROM r GROUP BY k"),
        ("a part of a group", "SELECT count(*) FILTER (WHERE a > 0) AS n FROM r"),
        ("sorted", "SELECT a FROM r ORDER BY b DESC NULLS LAST, a"),
        ("the first rows", "SELECT a FROM r ORDER BY a LIMIT 3 OFFSET 1"),
        ("the same, by the standard", "SELECT a FROM r ORDER BY a FETCH FIRST 3 ROWS ONLY"),
        ("both, one, or one without the other", "SELECT a FROM r UNION SELECT a FROM s"),
        ("with duplicates", "SELECT a FROM r EXCEPT ALL SELECT a FROM s"),
        ("what both have", "SELECT a FROM r INTERSECT SELECT a FROM s"),
        ("named parts", "WITH big AS (SELECT a FROM r WHERE a > 9) SELECT count(*) AS n FROM big"),
        ("given rows", "SELECT x FROM (VALUES (1, 'one'), (2, 'two')) AS t (x, y)"),
    ],
    "Joins and subqueries": [
        ("inner", "SELECT b, c FROM r JOIN s ON r.a = s.a AND c > 0"),
        ("outer", "SELECT b, c FROM r LEFT JOIN s USING (a)"),
        ("outer, of the other side or of both", "SELECT b, c FROM r FULL JOIN s ON r.a = s.a"),
        ("by equal names", "SELECT b, c FROM r NATURAL JOIN s"),
        ("all pairs", "SELECT b, c FROM r CROSS JOIN s"),
        ("the same, by a comma", "SELECT b, c FROM r, s WHERE r.a < s.a"),
        ("a subquery in FROM", "SELECT n FROM (SELECT count(*) AS n FROM r) AS t"),
        ("is there", "SELECT b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)"),
        ("is among", "SELECT b FROM r WHERE a IN (SELECT a FROM s) OR a NOT IN (1, 2)"),
        ("a single value", "SELECT a, (SELECT max(c) FROM s WHERE s.a = r.a) AS m FROM r"),
    ],
    "Expressions": [
        ("conditions", "SELECT a FROM r WHERE (a > 1 AND NOT b = 'x') OR a IS NULL"),
        ("truth", "SELECT a FROM r WHERE (a > 1) IS NOT TRUE"),
        ("equal, NULL like a value", "SELECT a FROM r WHERE b IS NOT DISTINCT FROM 'x'"),
        ("patterns", "SELECT a FROM r WHERE b ILIKE '%x!_%' ESCAPE '!'"),
        ("branches", "SELECT CASE WHEN a > 9 THEN 'big' WHEN a > 3 THEN 'mid' ELSE 'small' END AS k FROM r"),
        ("branches by value", "SELECT CASE b WHEN 'x' THEN 1 ELSE 0 END AS k FROM r"),
        ("casts", "SELECT CAST(a AS TEXT) AS t, b::BIGINT AS n FROM r"),
        ("literals", "SELECT 1 AS i, 1.5 AS d, 'it''s' AS t, TRUE AS b, NULL AS n, DATE '2026-01-31' AS day"),
        ("moments", "SELECT TIMESTAMP '2026-01-31 12:30:00' + INTERVAL '90 minutes' AS at"),
        ("parts of a moment", "SELECT extract(hour FROM at) AS h, date_trunc('day', at) AS d FROM every"),
        ("parameters, in queries and writes", "SELECT a FROM r WHERE a > :least AND b = :name"),
        ("parameters by position", "SELECT a FROM r WHERE a > ?"),
    ],
    "Windows over rows": [
        ("numbers", "SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS k FROM r"),
        ("neighbours", "SELECT a, lag(a, 1, 0) OVER (ORDER BY a) AS before FROM r"),
        (
            "running sums",
            "SELECT a, sum(a) OVER (ORDER BY a ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM r",
        ),
        ("over peers", "SELECT a, count(*) OVER (ORDER BY b RANGE UNBOUNDED PRECEDING) AS n FROM r"),
    ],
    "Writes": [
        ("rows", "INSERT INTO r (a, b) VALUES (1, 'x'), (2, ?)"),
        ("the rows of a query", "INSERT INTO r SELECT a, 'from s' FROM s"),
        ("changes", "UPDATE r SET b = upper(b) WHERE a = :which"),
        ("deletions", "DELETE FROM r WHERE a IN (SELECT a FROM s)"),
    ],
}

REFUSED = [
    "SELECT now() AS t",
    "SELECT random() AS x",
    "CREATE TABLE t (a BIGINT UNIQUE)",
    "CREATE TABLE t (a BIGINT CHECK (a > 0))",
    "CREATE TABLE t (a BIGINT REFERENCES r)",
    "CREATE TABLE t (a BIGINT DEFAULT 1)",
    "CREATE TABLE t (a VARCHAR(20))",
    "CREATE VIEW v AS SELECT a FROM r",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM r ORDER BY a",
    (
        "CREATE MATERIALIZED VIEW v AS "
        "WITH RECURSIVE t(x) AS (SELECT a FROM r UNION ALL SELECT x FROM t) SELECT x FROM t"
    ),
    "SELECT DISTINCT ON (b) a, b FROM r",
    "SELECT b, count(*) AS n FROM r GROUP BY ROLLUP (b)",
    "SELECT a FROM r, LATERAL (SELECT c FROM s WHERE s.a = r.a) AS t",
    "SELECT a FROM r ORDER BY a FETCH FIRST 3 ROWS WITH TIES",
    "SELECT a FROM r WHERE a = ANY (SELECT a FROM s)",
    "SELECT a FROM r WHERE (a, b) IN (SELECT a, 'x' FROM s)",
    "SELECT a FROM r WHERE b ~ 'x.*'",
    'SELECT b COLLATE "C" AS b FROM r',
    "SELECT a FROM r FOR UPDATE",
    "INSERT INTO r VALUES (1, 'x') RETURNING a",
    "INSERT INTO r VALUES (1, 'x') ON CONFLICT DO NOTHING",
    "UPDATE r SET b = 'x' FROM s WHERE r.a = s.a",
    "DELETE FROM r USING s WHERE r.a = s.a",
]
