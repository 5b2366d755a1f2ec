"""Programs of worlds: relations of all kinds, and views of every shape over few rows."""

from __future__ import annotations

import functools
import random

from everview.language.program import Program

RELATIONS = {
    "s": "CREATE TABLE s (a BIGINT NOT NULL, b BIGINT NOT NULL)",
    "k": "CREATE TABLE k (a BIGINT PRIMARY KEY, b BIGINT)",
    "g": "CREATE TABLE g (a BIGINT, b BIGINT) WITH (semantics = 'bag')",
    "w": "CREATE TABLE w (a BIGINT, b BIGINT) WITH (semantics = 'add_wins')",
    "n": "CREATE TABLE n (a BIGINT, b TEXT)",
    "m": "CREATE TABLE m (a BIGINT, b BIGINT, PRIMARY KEY (a, b))",
    "c": "CREATE TABLE c (a BIGINT PRIMARY KEY, b BIGINT, d BIGINT) WITH (merge = 'column')",
    "o": "CREATE TABLE o (a BIGINT, b BIGINT, c TEXT NOT NULL) WITH (owner = 'c')",
    "p": "CREATE TABLE p (a BIGINT, b BIGINT, c TEXT, PRIMARY KEY (a, c)) WITH (owner = 'c')",
    "x": "CREATE TABLE x (a BIGINT PRIMARY KEY, b BIGINT) WITH (merge = 'max')",
}

SHAPES = {
    "projection": "SELECT a FROM {x} WHERE a > 0 OR b IS NOT NULL",
    "distinct": "SELECT DISTINCT a FROM {x}",
    "aggregate": "SELECT a, count(*) AS n, min(b) AS least FROM {x} GROUP BY a",
    "top": "SELECT a, b FROM {x} ORDER BY a DESC, b LIMIT 2",
    "ranked": "SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS place FROM {x}",
    "join": "SELECT x.a, x.b, y.b AS c FROM {x} AS x JOIN {y} AS y ON x.a = y.a",
    "selfjoin": "SELECT x.a, y.b FROM {x} AS x JOIN {x} AS y ON x.a = y.a",
    "left": "SELECT x.a, x.b, y.b AS c FROM {x} AS x LEFT JOIN {y} AS y ON x.a = y.a",
    "except": "SELECT a FROM {x} EXCEPT SELECT a FROM {y}",
    "union": "SELECT a FROM {x} UNION SELECT a FROM {y}",
    "both": "SELECT a FROM {x} UNION ALL SELECT a FROM {y}",
    "absent": "SELECT a, b FROM {x} AS x WHERE NOT EXISTS (SELECT 1 FROM {y} AS y WHERE y.a = x.a)",
    "recursive": (
        "WITH RECURSIVE t(x, y) AS (SELECT a, b FROM {x} UNION "
        "SELECT t.x, e.b FROM t JOIN {x} AS e ON t.y = e.a) SELECT * FROM t"
    ),
}
"""Views over one relation x, or over two, x and y."""

TRANSFERS = """
CREATE TABLE debit (id BIGINT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE TABLE credit (id BIGINT NOT NULL, account BIGINT NOT NULL, amount BIGINT NOT NULL)
    WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW move AS
    SELECT id, account, amount FROM debit UNION ALL SELECT id, account, amount FROM credit;
CREATE MATERIALIZED VIEW balance AS SELECT account, sum(amount) AS amount FROM move GROUP BY account;
CREATE MATERIALIZED VIEW torn AS SELECT id FROM move GROUP BY id HAVING sum(amount) <> 0;
"""
"""Each transfer is a row in `debit` and one in `credit`, of two kinds; `torn` shows those seen in part."""

LARGE = """
CREATE TABLE s (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE k (a BIGINT PRIMARY KEY, b BIGINT);
CREATE TABLE g (a BIGINT, b BIGINT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW totals AS SELECT b, count(*) AS n, sum(a) AS total FROM s GROUP BY b;
"""


def random_program(rng: random.Random, most: int = 4) -> str:
    """A program with one to four relations and two or three views over them."""
    names = rng.sample(sorted(RELATIONS), min(rng.choice([1, 1, 2, 2, 3, 4]), most))
    lines = [f"{RELATIONS[name]};" for name in sorted(names)]
    shapes = [name for name, text in sorted(SHAPES.items()) if len(names) > 1 or "{y}" not in text]
    for number, name in enumerate(rng.sample(shapes, rng.randint(2, 3))):
        x, y, *_ = rng.sample(names, len(names)) * 2
        shape = SHAPES[name]
        if name == "recursive" and x == "n":  # its columns are of two types
            x = next((one for one in names if one != "n"), "n")
            shape = SHAPES["distinct"] if x == "n" else shape
        lines.append(f"CREATE MATERIALIZED VIEW v{number} AS {shape.format(x=x, y=y)};")
    if rng.random() < 0.3:  # a view over a view
        first = "x" if "RECURSIVE" in lines[len(names)] else "a"
        lines.append(
            f"CREATE MATERIALIZED VIEW over AS SELECT {first}, count(*) AS n FROM v0 GROUP BY {first};"
        )
    return "\n".join(lines)


def with_authorities(text: str, rng: random.Random, names: list[str]) -> str:
    """The program, some of whose views one of these sites publishes for all."""
    lines = text.splitlines()
    views = [place for place, line in enumerate(lines) if line.startswith("CREATE MATERIALIZED VIEW v")]
    for place in rng.sample(views, min(rng.choice([1, 1, 2]), len(views))):
        lines[place] = lines[place].replace(" AS ", f" WITH (authority = '{rng.choice(names)}') AS ", 1)
    return "\n".join(lines)


def with_partitions(text: str, rng: random.Random) -> str:
    """The program, some of whose relations are partitioned by their first column."""
    lines = text.splitlines()
    tables = [
        place for place, line in enumerate(lines) if line.startswith("CREATE TABLE") and "owner" not in line
    ]
    for place in rng.sample(tables, min(rng.choice([1, 1, 2]), len(tables))):
        lines[place] = lines[place].replace(";", " PARTITION BY (a);")
    return "\n".join(lines)


def inputs_of(program: Program, view: str) -> set[str]:
    """The relations that a view is made from; of published views it needs none."""
    found: set[str] = set()
    for name in program.views[view].reads:
        if name in program.relations:
            found.add(name)
        elif program.views[name].authority is None:
            found |= inputs_of(program, name)
    return found


@functools.lru_cache(maxsize=256)
def parsed(text: str) -> Program:
    """Parse a program once."""
    return Program.parse(text)
