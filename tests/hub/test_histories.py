"""After every refresh each view of a hub equals its defining query, over random histories."""

from __future__ import annotations

import decimal
import random
from collections import Counter

import pytest
from tests.hub.quick import quickly

from everview.engines.reference import evaluate_views
from everview.hub import Change, Hub
from everview.hub.costs import Choice, Costs
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.values import NAN

TABLES = """
CREATE TABLE people (id BIGINT, name TEXT, city TEXT, score DOUBLE);
CREATE TABLE orders (person BIGINT, item TEXT, amount DECIMAL(10,2));
"""
VIEWS = """
CREATE MATERIALIZED VIEW cities AS SELECT DISTINCT city FROM people;
CREATE MATERIALIZED VIEW bought AS SELECT name, item, amount FROM people JOIN orders ON id = person;
CREATE MATERIALIZED VIEW triangle AS SELECT a.id AS i FROM people a, people b, people c
    WHERE a.id = b.id AND b.city = c.city;
CREATE MATERIALIZED VIEW by_city AS SELECT city, count(*) AS n, sum(score) AS s, max(name) AS hi,
    count(DISTINCT id) AS d FROM people GROUP BY city;
CREATE MATERIALIZED VIEW about AS SELECT city, approx_count_distinct(name) AS d,
    approx_percentile(score, 0.5) AS m,
    approx_percentile(id, 0.9) FILTER (WHERE id > 1) AS p FROM people GROUP BY city;
CREATE MATERIALIZED VIEW about_all AS SELECT approx_count_distinct(item) AS d,
    approx_percentile(amount, 0.5) AS m FROM orders;
CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, sum(amount) AS total FROM orders;
CREATE MATERIALIZED VIEW turnover AS SELECT city, sum(amount) AS total, count(item) AS n
    FROM people JOIN orders ON id = person GROUP BY city HAVING count(*) > 1;
CREATE MATERIALIZED VIEW places AS SELECT city FROM people JOIN orders ON id = person;
CREATE MATERIALIZED VIEW place_counts AS SELECT city, count(*) AS n FROM places GROUP BY city;
CREATE MATERIALIZED VIEW over_views AS SELECT a.city AS c, b.n AS n
    FROM places a JOIN place_counts b ON a.city = b.city;
CREATE MATERIALIZED VIEW left_joined AS SELECT name, item FROM people LEFT JOIN orders ON id = person;
CREATE MATERIALIZED VIEW full_joined AS SELECT name, item
    FROM people FULL JOIN orders ON id = person AND amount > 2;
CREATE MATERIALIZED VIEW except_all AS SELECT id FROM people EXCEPT ALL SELECT person FROM orders;
CREATE MATERIALIZED VIEW either AS SELECT name AS t FROM people UNION ALL SELECT item FROM orders;
CREATE MATERIALIZED VIEW ranked AS SELECT city, name,
    row_number() OVER (PARTITION BY city ORDER BY score) AS r FROM people;
CREATE MATERIALIZED VIEW best AS SELECT name, score FROM people ORDER BY score DESC LIMIT 3;
CREATE MATERIALIZED VIEW computed AS SELECT upper(name) || '!' AS n, amount / (id - 2) AS q,
    CASE WHEN item LIKE 't%' THEN 1 ELSE 0 END AS tea
    FROM people JOIN orders ON id = person WHERE coalesce(score, 0) < 5 OR item IS NULL;
"""
PROGRAM = Program.parse(TABLES + VIEWS)


class Chance:
    """Random rows with few values, so that they meet, vanish and come back."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *values):
        return self.random.choice(values)

    def row(self, relation):
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


@pytest.mark.parametrize("way", ["driver", "executors", "anew"])
def test_views_equal_their_queries_after_every_refresh(spark, tmp_path, monkeypatch, way):
    """On the driver; where it takes few rows, on the executors; and where some views are computed anew."""
    chance = Chance(0)
    anew = []

    def by_chance(_costs, group, _arrived):
        anew.extend([group] * (chance.random.random() < 0.5))
        return Choice(group in anew[-1:], 2.0, 0.0)

    if way == "anew":
        monkeypatch.setattr(Costs, "choice", by_chance)
    base = {relation: set() for relation in PROGRAM.relations}
    seen = {relation: [] for relation in PROGRAM.relations}
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        quickly(hub)
        hub._store.driver_rows = 1_000_000 if way == "driver" else 30
        before = {view: Counter() for view in PROGRAM.views}
        for step in range(5):
            for relation in PROGRAM.relations:
                # One step each in which a relation is left alone.
                if (step, relation) in ((2, "people"), (3, "orders")):
                    continue
                rows = [chance.row(relation) for _ in range(6 if step == 0 else 2)]
                rows += [chance.one(*seen[relation]) for _ in range(2) if seen[relation]]
                hub.insert(relation, rows)
                base[relation] |= set(map(canonical, rows))
                gone = chance.random.sample(sorted(base[relation], key=repr), min(len(base[relation]), step))
                hub.delete(relation, gone)
                base[relation] -= set(gone)
                seen[relation] += rows
            report = hub.refresh()
            for view, wanted in evaluate_views(PROGRAM, base).items():
                assert repr(hub.rows(view)) == repr(sorted_rows(wanted.rows)), (view, step, report)
                after = Counter(map(repr, wanted.rows))
                change = Change((after - before[view]).total(), (before[view] - after).total())
                assert report.changes.get(view, Change(0, 0)) == change, (view, step, report)
                before[view] = after
        for name in PROGRAM.relations:
            assert repr(hub.rows(name)) == repr(sorted_rows(base[name]))
    assert (len(anew) > 10) == (way == "anew")


def canonical(row):
    return tuple(NAN if cell != cell else cell for cell in row)  # only NaN differs from itself
