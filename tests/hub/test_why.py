"""Why at a hub: as a site says it of the same rows, and as the naive twin does."""

from __future__ import annotations

import itertools
import random

import pytest
from tests.hub.quick import quickly
from tests.hub.test_fuzz import is_short
from tests.planner.annotated import Annotated

import everview as ev
from everview.errors import DataError, LimitError, ProgramError, StoreError
from everview.hub import Hub, why
from everview.hub.tables import catalog
from everview.testing.fuzz.case import generate_case
from everview.testing.fuzz.histories import Write

PAIRS = 120
STATEMENTS = 4
MOST = 60
"""A case with a table of more rows is passed over: the naive twin takes their products."""


@pytest.fixture
def by_spark(monkeypatch):
    """Nothing is small enough for the driver."""
    monkeypatch.setattr(why, "SMALL", -1)


def filled(folder, spark, program, history):
    """A hub and a site after the same writes."""
    hub, site = quickly(Hub.open(folder, program, spark=spark)), ev.Site.open(":memory:", program)
    for write in itertools.chain.from_iterable(history):
        for store in (hub, site):
            getattr(store, write.action)(write.relation, write.rows)
    hub.refresh()
    return hub, site


def same(hub, site, name, row):
    """What both say, which is the same."""
    theirs, ours = site.why(name, row), hub.why(name, row)
    assert ours == theirs, (name, row)
    assert str(ours) == str(theirs)
    assert list(map(shown, ours.tuples())) == list(map(shown, theirs.tuples()))
    assert {witness.origin for witness in ours.tuples()} <= {"hub"}
    return ours.monomials


def shown(witness):
    return witness.label, witness.id, witness.relation, repr(dict(witness.values))


def test_random_views_and_rows(spark, tmp_path):
    compared, several = 0, 0
    for seed in itertools.count(0, 2):
        case = generate_case(seed, statements=STATEMENTS)
        if not is_short(case):
            continue
        try:
            hub, site = filled(tmp_path / str(seed), spark, case.program, case.history)
        except ProgramError:
            continue
        with hub, site:
            tables = {name: site.rows(name) for name in case.program.names()}
            if max(map(len, tables.values())) > MOST:
                continue
            naive = Annotated(case.program, catalog(case.program).plans, tables)
            rng = random.Random(seed)
            for name, rows in tables.items():
                for row in rng.sample(rows, min(4, len(rows))):
                    found = same(hub, site, name, row)
                    assert found == naive.of(name)[row].monomials, (name, row)
                    compared += 1
                    several += len(found) > 1
        if compared >= PAIRS:
            break
    assert several >= PAIRS // 20


TABLES = """
CREATE TABLE r (a BIGINT, b BIGINT);
CREATE TABLE s (b BIGINT, c BIGINT) WITH (semantics = 'bag');
CREATE TABLE k (id BIGINT PRIMARY KEY, c BIGINT);
"""
VIEWS = {
    "three": "SELECT r.a, k.c FROM r JOIN s ON r.b = s.b JOIN k ON s.c = k.id",
    "partners": "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c > r.a)",
    "alone": "SELECT r.a, s.c FROM r FULL JOIN s ON r.b = s.b AND s.c > 1",
    "sets": "SELECT b FROM r INTERSECT SELECT b FROM s EXCEPT SELECT id FROM k WHERE c IS NULL",
    "united": "SELECT a, 'r' AS t FROM r UNION SELECT b, 's' FROM s UNION SELECT id, 'r' FROM k",
    "top": "SELECT a, b FROM r ORDER BY b DESC, a LIMIT 3",
    "grouped": "SELECT top.b, count(*) AS n, sum(c) AS t FROM top JOIN s ON top.b = s.b GROUP BY top.b",
    "running": "SELECT a, sum(a) OVER (PARTITION BY b % 2 ORDER BY a) AS t FROM r",
    "over": "SELECT g.n, o.t FROM grouped AS g JOIN running AS o ON o.a = g.b",
}
ROWS = {
    "r": [(1, 1), (2, 1), (3, 2), (1, 2), (2, 3), (None, None)],
    "s": [(1, 2), (1, 2), (1, 3), (2, 2), (3, 1), (None, None), (4, 4)],
    "k": [(1, 5), (2, None), (3, 5), (7, 7)],
}


def test_every_operator_by_spark(spark, tmp_path, by_spark):
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {sql};" for name, sql in VIEWS.items())
    program = ev.Program.parse(TABLES + views)
    writes = [[Write("insert", name, tuple(rows))] for name, rows in ROWS.items()]
    hub, site = filled(tmp_path, spark, program, writes)
    naive = Annotated(program, catalog(program).plans, {name: site.rows(name) for name in ROWS})
    with hub, site:
        for name in VIEWS:
            reasons = naive.of(name)
            row = max(reasons, key=lambda row: (len(reasons[row]), len(reasons[row].ids)))
            assert same(hub, site, name, row) == reasons[row].monomials
