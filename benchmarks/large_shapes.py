"""The shapes of `large_commits`: relations, views, and rows, as many as are asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.order_lines import ORDER_LINES, lines

Rows = Mapping[str, Sequence[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A program, and rows for it: relation → rows, `count` together, all others for another `part`."""

    tables: str
    views: Mapping[str, str]
    rows: Callable[[int, int], Rows]
    indexes: Sequence[str] = field(default=())
    """What SQLite is given besides, after loading: what a query that it answers slowly needs."""

    @property
    def program(self) -> str:
        """The text of the program."""
        views = (f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in self.views.items())
        return "\n".join([self.tables, *views])


def _neighbours(count: int, part: int) -> Rows:
    rng, half = random.Random(f"neighbours {count} {part}"), count // 2
    nodes = range(part * half, part * half + half)
    edges = {(rng.choice(nodes), rng.choice(nodes)) for _ in range(half)}
    return {"n": [(node, node % 100) for node in nodes], "e": sorted(edges)}


def _paths(count: int, part: int) -> Rows:
    """Edges over as many nodes, of which those of even parts begin at even ones."""
    rng, half = random.Random(f"paths {count} {part}"), count // 2
    edges = {(2 * rng.randrange(half) + part % 2, rng.randrange(count)) for _ in range(count)}
    return {"e": sorted(edges)}


def _one_key(count: int, part: int) -> Rows:
    third = count // 3
    keys = list(range(part * third, part * third + third))
    found = {}
    for name in "abc":
        random.Random(f"{name} {count} {part}").shuffle(keys)
        found[name] = [(key, key % 100) for key in keys]
    return found


def _grouped(count: int, part: int) -> Rows:
    """Rows (id, k, v), four of a group in each part."""
    rng = random.Random(f"groups {count} {part}")
    groups = max(count // 4, 1)
    return {"r": [(part * count + i, rng.randrange(groups), rng.randrange(1000)) for i in range(count)]}


def _not_in(count: int, part: int) -> Rows:
    """Values of which a third are elsewhere, and some unknown."""
    rng, half = random.Random(f"not in {count} {part}"), count // 2
    values = [rng.randrange(3 * count) if rng.random() < 0.99 else None for _ in range(half)]
    there = rng.sample(range(part * 3 * count, (part + 1) * 3 * count), half)
    return {"r": [(part * half + i, value) for i, value in enumerate(values)], "s": [(v,) for v in there]}


_GROUPS = "CREATE TABLE r (id BIGINT NOT NULL, k BIGINT NOT NULL, v BIGINT NOT NULL);"

SHAPES: Mapping[str, Shape] = {
    "neighbours": Shape(
        "CREATE TABLE n (id BIGINT NOT NULL, v BIGINT);"
        "CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL);",
        {"q": "SELECT x.v AS v, y.v AS w FROM n x JOIN e ON e.a = x.id JOIN n y ON e.b = y.id"},
        _neighbours,
    ),
    "path": Shape(
        "CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL);",
        {"q": "SELECT x.a AS a, z.b AS b FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a"},
        _paths,
    ),
    "one_key": Shape(
        "".join(f"CREATE TABLE {name} (k BIGINT NOT NULL, v BIGINT NOT NULL);" for name in "abc"),
        {"q": "SELECT a.v AS x, b.v AS y, c.v AS z FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"},
        _one_key,
    ),
    "exists": Shape(
        _GROUPS,
        {"q": "SELECT id FROM r x WHERE EXISTS (SELECT 1 FROM r y WHERE y.k = x.k AND y.v <> x.v)"},
        _grouped,
        ("CREATE INDEX r_k ON r (k)",),
    ),
    "pairs": Shape(
        _GROUPS,
        {"q": "SELECT x.id AS a, y.id AS b FROM r x JOIN r y ON x.k = y.k AND x.v > y.v"},
        _grouped,
    ),
    "maximum": Shape(
        _GROUPS,
        {"q": "SELECT id FROM r x WHERE v = (SELECT max(v) FROM r y WHERE y.k = x.k)"},
        _grouped,
        ("CREATE INDEX r_k ON r (k, v)",),
    ),
    "not_in": Shape(
        "CREATE TABLE r (id BIGINT NOT NULL, k BIGINT); CREATE TABLE s (k BIGINT);",
        {"q": "SELECT id FROM r WHERE k NOT IN (SELECT k FROM s)"},
        _not_in,
    ),
    "tpch_q17": Shape(
        ORDER_LINES,
        {
            "q": "SELECT sum(extendedprice) AS total FROM lineitem, part WHERE part.partkey = "
            "lineitem.partkey AND brand = 'Brand#23' AND container = 'MED BOX' AND quantity < "
            "(SELECT 0.2 * avg(quantity) FROM lineitem y WHERE y.partkey = part.partkey)"
        },
        lines,
        ("CREATE INDEX l_p ON lineitem (partkey)",),
    ),
    "tpch_q21": Shape(
        ORDER_LINES,
        {
            "q": "SELECT sname, count(*) AS numwait FROM supplier, lineitem x, orders, nation WHERE "
            "supplier.suppkey = x.suppkey AND orders.orderkey = x.orderkey AND orderstatus = 'F' AND "
            "x.receiptdate > x.commitdate AND EXISTS (SELECT 1 FROM lineitem y WHERE y.orderkey = "
            "x.orderkey AND y.suppkey <> x.suppkey) AND NOT EXISTS (SELECT 1 FROM lineitem z WHERE "
            "z.orderkey = x.orderkey AND z.suppkey <> x.suppkey AND z.receiptdate > z.commitdate) AND "
            "supplier.nationkey = nation.nationkey AND nname = 'SAUDI ARABIA' GROUP BY sname"
        },
        lines,
        ("CREATE INDEX l_o ON lineitem (orderkey)", "CREATE INDEX l_s ON lineitem (suppkey)"),
    ),
}
