"""After every refresh each view of a hub equals its defining query, over random histories."""

from __future__ import annotations

import random

import pytest

from everview.engines.reference import evaluate_views
from everview.hub import Hub
from everview.language.order import sorted_rows
from everview.language.program import Program

TABLES = """
CREATE TABLE people (id BIGINT, name TEXT, city TEXT, score DOUBLE);
CREATE TABLE orders (person BIGINT, item TEXT, amount DECIMAL(10,2));
"""
PROGRAMS = {
    "select and project": """
        CREATE MATERIALIZED VIEW v AS SELECT city, score * 2 AS twice FROM people WHERE id > 1;
        CREATE MATERIALIZED VIEW w AS SELECT DISTINCT city FROM people;
    """,
    "join": """
        CREATE MATERIALIZED VIEW v AS SELECT name, item, amount FROM people JOIN orders ON id = person;
        CREATE MATERIALIZED VIEW w AS SELECT item FROM people, orders WHERE id = person AND city = 'B';
    """,
    "self-join": """
        CREATE MATERIALIZED VIEW v AS SELECT a.name AS one, b.name AS two
            FROM people a JOIN people b ON a.city = b.city;
        CREATE MATERIALIZED VIEW w AS SELECT a.id AS i FROM people a, people b, people c
            WHERE a.id = b.id AND b.city = c.city;
    """,
    "group by": """
        CREATE MATERIALIZED VIEW v AS SELECT city, count(*) AS n, sum(score) AS s, avg(score) AS a, min(name) AS lo,
            max(name) AS hi, count(DISTINCT id) AS d FROM people GROUP BY city;
        CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n, sum(amount) AS total FROM orders;
    """,
    "group by over a join": """
        CREATE MATERIALIZED VIEW v AS SELECT city, sum(amount) AS total, count(item) AS n
            FROM people JOIN orders ON id = person GROUP BY city HAVING count(*) > 1;
    """,
    "views over views": """
        CREATE MATERIALIZED VIEW v AS SELECT city FROM people JOIN orders ON id = person;
        CREATE MATERIALIZED VIEW w AS SELECT city, count(*) AS n FROM v GROUP BY city;
        CREATE MATERIALIZED VIEW x AS SELECT a.city AS c, b.n AS n FROM v a JOIN w b ON a.city = b.city;
    """,
    "outer joins": """
        CREATE MATERIALIZED VIEW v AS SELECT name, item FROM people LEFT JOIN orders ON id = person;
        CREATE MATERIALIZED VIEW w AS SELECT name, item FROM people FULL JOIN orders ON id = person AND amount > 2;
        CREATE MATERIALIZED VIEW x AS SELECT name, item FROM people RIGHT JOIN orders ON id < person;
    """,
    "set operations": """
        CREATE MATERIALIZED VIEW v AS SELECT id FROM people EXCEPT ALL SELECT person FROM orders;
        CREATE MATERIALIZED VIEW w AS SELECT id FROM people INTERSECT SELECT person FROM orders;
        CREATE MATERIALIZED VIEW x AS SELECT name AS t FROM people UNION ALL SELECT item FROM orders;
    """,
    "windows and top": """
        CREATE MATERIALIZED VIEW v AS SELECT city, name, row_number() OVER (PARTITION BY city ORDER BY score) AS r
            FROM people;
        CREATE MATERIALIZED VIEW w AS SELECT name, score FROM people ORDER BY score DESC LIMIT 3;
    """,
    "expressions": """
        CREATE MATERIALIZED VIEW v AS SELECT upper(name) || '!' AS n, amount / (id - 2) AS q,
            CASE WHEN item LIKE 't%' THEN 1 ELSE 0 END AS tea
            FROM people JOIN orders ON id = person WHERE coalesce(score, 0) < 5 OR item IS NULL;
    """,
}


class Chance:
    """Random rows with few values, so that they meet, vanish and come back."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *values):
        return self.random.choice(values)

    def row(self, relation):
        import decimal

        if relation == "people":
            score = self.one(None, 0.1, 0.2, 0.7, 1e16, -1e16, float("nan"))
            return (
                self.one(1, 2, 3, 4, None),
                self.one("Ada", "Bob", "eve"),
                self.one("A", "B", "C", None),
                score,
            )
        amount = decimal.Decimal(self.one(100, 250, 1))
        return (self.one(1, 2, 3, 9, None), self.one("tea", "cake", None), amount.scaleb(-2))


@pytest.mark.parametrize("name", PROGRAMS)
def test_views_equal_their_queries_after_every_refresh(spark, tmp_path, name):
    program = Program.parse(TABLES + PROGRAMS[name])
    chance = Chance(name)
    base = {relation: set() for relation in program.relations}
    seen = {relation: [] for relation in program.relations}
    with Hub.open(tmp_path, program, spark=spark) as hub:
        for step in range(5):
            for relation in program.relations:
                if step and chance.random.random() < 0.2:
                    continue
                rows = [chance.row(relation) for _ in range(8 if step == 0 else 3)]
                rows += [chance.one(*seen[relation]) for _ in range(2) if seen[relation]]
                hub.insert(relation, rows)
                base[relation] |= set(map(canonical, rows))
                gone = chance.random.sample(sorted(base[relation], key=repr), min(len(base[relation]), step))
                hub.delete(relation, gone)
                base[relation] -= set(gone)
                seen[relation] += rows
            report = hub.refresh()
            for relation, rows in base.items():
                assert repr(hub.rows(relation)) == repr(sorted_rows(rows))
            for view, wanted in evaluate_views(program, base).items():
                assert repr(hub.rows(view)) == repr(sorted_rows(wanted.rows)), (view, step, report)


def canonical(row):
    from everview.language.values import NAN

    return tuple(NAN if cell != cell else cell for cell in row)  # noqa: PLR0124  (NaN)
