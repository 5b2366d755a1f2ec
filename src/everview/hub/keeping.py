"""How each construct of a view is kept: a table for people, made from what the circuit says.

    python -m everview.hub.keeping

prints the table that `docs/HUB.md` has.
"""

from __future__ import annotations

import sys

from everview.hub.tables import catalog
from everview.language.program import Program
from everview.planner.circuit import Circuit, Keeping

__all__ = ["CONSTRUCTS", "keeping_of", "keeping_table"]

_TABLES = "CREATE TABLE r (k BIGINT, g TEXT, x DOUBLE PRECISION); CREATE TABLE s (k BIGINT, y TEXT);"

CONSTRUCTS = {
    "WHERE, expressions, UNION ALL": "SELECT k + 1 AS a FROM r WHERE x > 0 UNION ALL SELECT k FROM s",
    "DISTINCT, UNION": "SELECT g FROM r UNION SELECT y FROM s",
    "INTERSECT, EXCEPT, with and without ALL": "SELECT k FROM r EXCEPT ALL SELECT k FROM s",
    "JOIN on equal values": "SELECT r.k, y FROM r JOIN s ON r.k = s.k",
    "JOIN on other conditions, CROSS JOIN": "SELECT r.k, y FROM r JOIN s ON r.k < s.k",
    "LEFT, RIGHT, FULL JOIN": "SELECT r.k, y FROM r FULL JOIN s ON r.k = s.k",
    "EXISTS, IN, NOT IN, scalar subqueries": "SELECT g FROM r WHERE k IN (SELECT k FROM s)",
    "count, sum, avg, bool_and, bool_or": "SELECT g, count(*) AS n, sum(x) AS t FROM r GROUP BY g",
    "min, max": "SELECT g, min(x) AS a, max(x) AS b FROM r GROUP BY g",
    "aggregates with DISTINCT or FILTER": (
        "SELECT g, count(DISTINCT x) FILTER (WHERE k > 0) AS n FROM r GROUP BY g"
    ),
    "aggregates without GROUP BY": "SELECT count(*) AS n, max(x) AS m FROM r",
    "approx_count_distinct, approx_percentile": (
        "SELECT g, approx_count_distinct(x) AS n, approx_percentile(x, 0.5) AS m FROM r GROUP BY g"
    ),
    "sum and avg of DECIMALs with over 28 digits, over 13 of them after the point": (
        "SELECT g, sum(CAST(k AS DECIMAL(38,20))) AS t FROM r GROUP BY g"
    ),
    "ORDER BY … LIMIT, OFFSET": "SELECT k, x FROM r ORDER BY x DESC LIMIT 3 OFFSET 1",
    "the first rows of a partition: row_number() <= n": (
        "SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY g ORDER BY x) AS n FROM r) q WHERE n <= 3"
    ),
    "aggregates and ends over whole partitions": (
        "SELECT k, sum(x) OVER (PARTITION BY g) AS t, first_value(x) OVER (ORDER BY k) AS f FROM r"
    ),
    "other window functions, PARTITION BY": ("SELECT k, lag(x) OVER (PARTITION BY g ORDER BY k) AS p FROM r"),
    "other window functions, no PARTITION BY": "SELECT k, rank() OVER (ORDER BY x) AS p FROM r",
    "WITH RECURSIVE": (
        "WITH RECURSIVE t(a) AS (SELECT k FROM r UNION SELECT s.k FROM t JOIN s ON t.a = s.k) SELECT a FROM t"
    ),
}
"""What a view can be made of, each with a query that has it."""

_ORDER = (Keeping.DELTA, Keeping.PARTITION, Keeping.FULL)


def keeping_of(circuit: Circuit, view: str) -> Keeping:
    """How much of what a view reads is read again for a change: the most that one of its operators needs."""
    found: list[Keeping] = []
    wanted = [view]
    while wanted:
        operator = circuit.operators[wanted.pop()]
        found.append(operator.keeping)
        wanted += [name for name in operator.reads if name in circuit.operators and name not in circuit.views]
    return max(found, key=_ORDER.index)


def keeping_table() -> str:
    """The table, in Markdown."""
    lines = ["| a view with | is kept |", "|---|---|"]
    for construct, query in CONSTRUCTS.items():
        made = catalog(Program.parse(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {query};"))
        lines.append(f"| {construct} | {keeping_of(made.circuit, 'v').value} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(keeping_table() + "\n")
