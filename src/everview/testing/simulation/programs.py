"""Programs of simulations: relations of all four kinds, and views of every shape over few rows."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.language.program import Program

Row = tuple[Any, ...]

RELATIONS = {
    "s": "CREATE TABLE s (a BIGINT NOT NULL, b BIGINT NOT NULL)",
    "k": "CREATE TABLE k (a BIGINT PRIMARY KEY, b BIGINT)",
    "g": "CREATE TABLE g (a BIGINT, b BIGINT) WITH (semantics = 'bag')",
    "w": "CREATE TABLE w (a BIGINT, b BIGINT) WITH (semantics = 'add_wins')",
    "n": "CREATE TABLE n (a BIGINT, b TEXT)",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A view over one relation x, or over two, x and y."""

    text: str
    inputs: int = 1


SHAPES = {
    "projection": Shape("SELECT a FROM {x} WHERE a > 0 OR b IS NOT NULL"),
    "distinct": Shape("SELECT DISTINCT a FROM {x}"),
    "aggregate": Shape("SELECT a, count(*) AS n, min(b) AS least FROM {x} GROUP BY a"),
    "top": Shape("SELECT a, b FROM {x} ORDER BY a DESC, b LIMIT 2"),
    "ranked": Shape("SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS place FROM {x}"),
    "join": Shape("SELECT x.a, x.b, y.b AS c FROM {x} AS x JOIN {y} AS y ON x.a = y.a", 2),
    "selfjoin": Shape("SELECT x.a, y.b FROM {x} AS x JOIN {x} AS y ON x.a = y.a"),
    "left": Shape("SELECT x.a, x.b, y.b AS c FROM {x} AS x LEFT JOIN {y} AS y ON x.a = y.a", 2),
    "except": Shape("SELECT a FROM {x} EXCEPT SELECT a FROM {y}", 2),
    "union": Shape("SELECT a FROM {x} UNION SELECT a FROM {y}", 2),
    "both": Shape("SELECT a FROM {x} UNION ALL SELECT a FROM {y}", 2),
    "absent": Shape("SELECT a, b FROM {x} AS x WHERE NOT EXISTS (SELECT 1 FROM {y} AS y WHERE y.a = x.a)", 2),
}

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
CREATE MATERIALIZED VIEW some AS SELECT a FROM s WHERE b < 10;
CREATE MATERIALIZED VIEW groups AS SELECT b, count(*) AS n, sum(a) AS total FROM s GROUP BY b;
CREATE MATERIALIZED VIEW kinds AS SELECT DISTINCT b FROM k;
"""


def large_views(tables: Mapping[str, Counter[Row]]) -> dict[str, Counter[Row]]:
    """The views of `LARGE`, written out: where there are many rows the reference takes longest of all."""
    groups: dict[int, list[int]] = {}
    for a, b in tables["s"]:
        groups.setdefault(b, []).append(a)
    return {
        "some": Counter([(a,) for a, b in tables["s"] if b < 10]),
        "groups": Counter([(b, len(found), sum(found)) for b, found in groups.items()]),
        "kinds": Counter({(b,) for _, b in tables["k"]}),
    }


def random_program(rng: random.Random, most: int = 4) -> str:
    """A program with one to four relations and a few views over them."""
    names = rng.sample(sorted(RELATIONS), min(rng.choice([1, 1, 2, 2, 3, 4]), most))
    lines = [f"{RELATIONS[name]};" for name in sorted(names)]
    shapes = [name for name, shape in sorted(SHAPES.items()) if shape.inputs <= len(names)]
    for number, name in enumerate(rng.sample(shapes, rng.randint(2, 3))):
        x, y, *_ = rng.sample(names, len(names)) * 2
        text = SHAPES[name].text.format(x=x, y=y)
        lines.append(f"CREATE MATERIALIZED VIEW v{number} AS {text};")
    if rng.random() < 0.3:  # a view over a view
        lines.append("CREATE MATERIALIZED VIEW over AS SELECT a, count(*) AS n FROM v0 GROUP BY a;")
    return "\n".join(lines)


def with_authorities(text: str, rng: random.Random, names: list[str]) -> str:
    """The program, some of whose views one of these sites publishes for all."""
    lines = text.splitlines()
    views = [place for place, line in enumerate(lines) if line.startswith("CREATE MATERIALIZED VIEW v")]
    for place in rng.sample(views, min(rng.choice([1, 1, 2]), len(views))):
        lines[place] = lines[place].replace(" AS ", f" WITH (authority = '{rng.choice(names)}') AS ", 1)
    return "\n".join(lines)


OWNED = {
    "s": "CREATE TABLE s (a BIGINT NOT NULL, b BIGINT NOT NULL, o TEXT NOT NULL) WITH (owner = 'o')",
    "k": "CREATE TABLE k (a BIGINT, b BIGINT, o TEXT, PRIMARY KEY (a, o)) WITH (owner = 'o')",
    "g": "CREATE TABLE g (a BIGINT, b BIGINT, o TEXT NOT NULL) WITH (owner = 'o', semantics = 'bag')",
    "w": "CREATE TABLE w (a BIGINT, b BIGINT, o TEXT NOT NULL) WITH (owner = 'o', semantics = 'add_wins')",
    "n": "CREATE TABLE n (a BIGINT, b TEXT, o TEXT NOT NULL) WITH (owner = 'o')",
}
"""The same, of rows that only their owner writes; the owner is the last column."""


def with_owners(text: str, rng: random.Random) -> str:
    """The program, some of whose relations have owners."""
    for name, plain in sorted(RELATIONS.items()):
        if rng.random() < 0.8:
            text = text.replace(f"{plain};", f"{OWNED[name]};")
    return text


def evolved(text: str, rng: random.Random) -> str:
    """The program with a relation and a view more, and some views changed; its own relations stay."""
    lines = text.splitlines()
    names = [name for name in RELATIONS if any(line.startswith(f"CREATE TABLE {name} ") for line in lines)]
    for place, line in enumerate(lines):
        if line.startswith("CREATE MATERIALIZED VIEW v") and rng.random() < 0.5:
            lines[place] = f"{line.partition(' AS ')[0]} AS {_query(rng, names)};"
    lines.append(f"CREATE MATERIALIZED VIEW late AS {_query(rng, [*names, 'z'])};")
    lines.append("CREATE TABLE z (a BIGINT NOT NULL, b BIGINT NOT NULL);")
    rng.shuffle(lines)
    return "\n".join(lines)


def _query(rng: random.Random, names: list[str]) -> str:
    shapes = [name for name, shape in sorted(SHAPES.items()) if shape.inputs <= len(names)]
    x, y, *_ = rng.sample(names, len(names)) * 2
    return SHAPES[rng.choice(shapes)].text.format(x=x, y=y)


@functools.lru_cache(maxsize=256)
def parsed(text: str) -> Program:
    """Parse a program once."""
    return Program.parse(text)
