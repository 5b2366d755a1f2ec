"""How Spark's SQL computes what a view may be made of: a table for people, made from what is compiled.

    python -m everview.hub.computing

prints the table that `docs/HUB.md` has.
"""

from __future__ import annotations

import sys

from everview.engines.spark.by_python import PREFIX
from everview.engines.spark.relational import compile_plan
from everview.errors import ProgramError
from everview.hub.tables import catalog
from everview.language.program import Program
from everview.planner.circuit.parts import plans_of

__all__ = ["CONSTRUCTS", "computing_table", "how"]

_TABLES = "CREATE TABLE r (k BIGINT, x DOUBLE, w DECIMAL(38,8)); CREATE TABLE s (k BIGINT, x DOUBLE);"

CONSTRUCTS = {
    "every other function, operator, cast and aggregate": (
        "SELECT sqrt(x) + k AS a, CAST(k AS TEXT) AS t, sum(DISTINCT w) AS w FROM r GROUP BY x, k"
    ),
    "power(a, b)": "SELECT power(x, k) AS p FROM r",
    "CAST of a DOUBLE to TEXT": "SELECT CAST(x AS TEXT) AS t FROM r",
    "CAST of a DOUBLE to DECIMAL": "SELECT CAST(x AS DECIMAL(10,2)) AS d FROM r",
    "a % b of DECIMALs, where the whole quotient may have over 38 digits": (
        "SELECT w % CAST(k AS DECIMAL(38,20)) AS m FROM r"
    ),
    "these four over one side, in the condition of an outer join or of EXISTS": (
        "SELECT r.k FROM r LEFT JOIN s ON r.k = s.k AND power(s.x, 2) > 1"
    ),
    "these four over both sides, in the condition of an outer join or of EXISTS": (
        "SELECT r.k FROM r LEFT JOIN s ON power(r.x, s.x) > 1"
    ),
}
"""What a view can be made of, each with a query that has it."""


def how(query: str) -> str:
    """How a query is computed on executors, or why not."""
    circuit = catalog(Program.parse(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {query};")).circuit
    try:
        texts = [compile_plan(plan, lambda scan: scan.name) for plan in plans_of(circuit, "v")]
    except ProgramError as error:
        return f"refused: {error.message.partition(': ')[2]}; {error.hint}"
    return "by Python functions" if any(PREFIX in text for text in texts) else "by Spark's functions"


def computing_table() -> str:
    """The table, in Markdown."""
    lines = ["| a view with | is computed |", "|---|---|"]
    return "\n".join(lines + [f"| {construct} | {how(query)} |" for construct, query in CONSTRUCTS.items()])


if __name__ == "__main__":
    sys.stdout.write(computing_table() + "\n")
