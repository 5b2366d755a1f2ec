"""Why at a hub: as a site says it of the same rows, and as the naive twin does."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from decimal import Decimal

import pytest
from examples.streams_figure_1 import FIRST, SECOND
from examples.streams_figure_1 import PROGRAM as FIGURE_1
from tests.hub.quick import quickly
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
        hub, site = filled(tmp_path / str(seed), spark, case.program, case.history)
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
    "running": "SELECT a, sum(a) OVER (PARTITION BY b % 2 ORDER BY a) AS t, "
    "rank() OVER (PARTITION BY a, b % 2 ORDER BY b) AS k FROM r",
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


TABLE_2 = """
CREATE TABLE r (a TEXT, b TEXT, c TEXT);
CREATE MATERIALIZED VIEW r1 AS SELECT DISTINCT a, b FROM r;
CREATE MATERIALIZED VIEW r2 AS SELECT DISTINCT b, c FROM r;
CREATE MATERIALIZED VIEW r3 AS SELECT DISTINCT r1.a, r2.c FROM r1 JOIN r2 ON r1.b = r2.b;
CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r;
"""
BASE = [("a1", "b", "c1"), ("a1", "b", "c2"), ("a2", "b", "c2")]


@pytest.fixture
def streams(spark, tmp_path):
    """Streams, Table 2."""
    with quickly(Hub.open(tmp_path, ev.Program.parse(TABLE_2), spark=spark, name="cloud")) as hub:
        hub.insert("r", BASE)
        hub.refresh()
        yield hub


@pytest.mark.parametrize(
    ("view", "row", "said"),
    [
        ("r1", ("a1", "b"), "t1 + t2"),
        ("r2", ("b", "c2"), "t1 + t2"),
        ("r3", ("a1", "c1"), "t1"),
        ("r3", ("a1", "c2"), "t1·t3 + t2"),
        ("r3", ("a2", "c1"), "t1·t2"),
        ("r3", ["a2", "c2"], "t1"),
        ("r3", {"a": "a2"}, "0"),
        ("r3", ("a2", "c9"), "0"),
        ("n", (3,), "t1·t2·t3"),
        ("n", (2,), "0"),
        ("r", ("a2", "b", "c2"), "t1"),
        ("r", ("a2", "b", "c1"), "0"),
    ],
)
def test_table_2(streams, view, row, said):
    assert str(streams.why(view, row)) == said


def test_witnesses_carry_values_and_the_hubs_name(streams):
    found = streams.why("r3", ("a1", "c2"))
    assert [tuple(witness.values.values()) for witness in found.tuples()] == BASE
    assert {(witness.relation, witness.origin) for witness in found.tuples()} == {("r", "cloud")}


def test_it_is_of_the_last_refresh_or_of_the_one_named(streams):
    streams.delete("r", [BASE[1]])
    assert str(streams.why("r3", ("a1", "c2"))) == "t1·t3 + t2"
    streams.refresh()
    assert str(streams.why("r3", ("a1", "c2"))) == "t1·t2"
    assert str(streams.why("r3", ("a1", "c2"), at=1)) == "t1·t3 + t2"
    with pytest.raises(DataError, match="refresh 7 is not retained"):
        streams.why("r3", ("a1", "c2"), at=7)


@pytest.mark.parametrize("row", [("a1",), ("a1", 5), {"x": "a1"}, "a1"])
def test_a_row_that_does_not_fit_is_a_data_error(streams, row):
    with pytest.raises(DataError):
        streams.why("r3", row)


def test_a_name_that_is_not_there_is_a_data_error(streams):
    with pytest.raises(DataError, match="there is no relation or view r9"):
        streams.why("r9", ("a1",))


def test_a_closed_hub_says_so(streams):
    streams.close()
    with pytest.raises(StoreError, match="closed"):
        streams.why("r3", ("a1", "c2"))


@pytest.mark.parametrize("small", [why.SMALL, -1])
def test_too_many_rows_are_refused_by_the_limits_name(streams, monkeypatch, small):
    monkeypatch.setattr(why, "SMALL", small)
    streams._store.driver_rows = 3
    assert str(streams.why("r", BASE[0])) == "t1"
    with pytest.raises(LimitError, match="more than 3 rows") as raised:
        streams.why("n", (3,))
    assert raised.value.limit == 3


def test_before_the_first_refresh_nothing_is_there(spark, tmp_path):
    with Hub.open(tmp_path, ev.Program.parse(TABLE_2), spark=spark) as hub:
        assert str(hub.why("n", (0,))) == "0"
        hub.refresh()
        assert str(hub.why("n", (0,))) == "1"


def test_figure_1(spark, tmp_path):
    """R5 of Streams, Figure 1: by which tuples of R0 a row is there, as s5 says it."""
    hub, site = filled(tmp_path, spark, FIGURE_1, [[Write("insert", "r0", (FIRST, SECOND))]])
    with hub, site:
        assert str(hub.why("r5", FIRST)) == "t1"
        assert str(hub.why("r4", ("b1", "c1"))) == "t1 + t2"
        for name in FIGURE_1.names():
            for row in site.rows(name):
                same(hub, site, name, row)


TYPES = """
CREATE TABLE v (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(6,2), l DECIMAL(30,4), t TEXT, x BLOB, d DATE,
                s TIMESTAMP);
CREATE MATERIALIZED VIEW shown AS SELECT DISTINCT *, 1 AS one FROM v;
CREATE MATERIALIZED VIEW some AS SELECT f, t FROM v;
"""
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
KINDS = [
    (True, -(2**63), math.nan, Decimal("-0.01"), Decimal("-1.0001"), "x'y", b"\0", dt.date(1, 1, 1), NOON),
    (False, 0, 0.1, Decimal("1.00"), Decimal(99999999999999999999999999), "", b"", None, None),
    (None, None, math.inf, None, None, None, None, None, None),
    (None, None, 5e-324, None, None, "$", None, None, None),
]


def test_rows_of_every_type_are_found_by_their_hashes(spark, tmp_path, by_spark):
    writes = [[Write("insert", "v", tuple(KINDS))]]
    hub, site = filled(tmp_path, spark, ev.Program.parse(TYPES), writes)
    with hub, site:
        for row in site.rows("shown"):
            (witness,) = hub.why("shown", row).tuples()
            assert repr(tuple(witness.values.values())) == repr(row[:-1])
            same(hub, site, "v", row[:-1])
        for row in (KINDS[0], KINDS[3]):
            same(hub, site, "some", (row[2], row[5]))


def test_many_rows_are_asked_for_at_once(spark, tmp_path, monkeypatch):
    """Over 100 values are no list, over 100 rows several statements of SQLite's; the answer is one group."""
    program = ev.Program.parse("""
        CREATE TABLE r (a BIGINT, b BIGINT);
        CREATE MATERIALIZED VIEW doubled AS SELECT a * 2 AS a, b FROM r;
        CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(a) AS a FROM doubled;
    """)
    rows = tuple((number, number % 3 or None) for number in range(250))
    hub, site = filled(tmp_path, spark, program, [[Write("insert", "r", rows)]])
    with hub, site:
        (total,) = site.rows("total")
        (monomial,) = same(hub, site, "total", total)
        assert len(monomial) == 250
        monkeypatch.setattr(why, "SMALL", -1)
        assert same(hub, site, "total", total) == {monomial}


def test_what_sql_cannot_ask_is_refused_only_where_it_would_have_to(spark, tmp_path, monkeypatch):
    program = ev.Program.parse(
        "CREATE TABLE t (f DOUBLE); CREATE MATERIALIZED VIEW v AS "
        "SELECT a.f FROM t AS a LEFT JOIN t AS b ON power(a.f, b.f) > 2"
    )
    with quickly(Hub.open(tmp_path, program, spark=spark)) as hub, ev.Site.open(":memory:", program) as site:
        for store in (hub, site):
            store.insert("t", [(1.5,), (3.0,)])
        hub.refresh()
        assert hub.rows("v") == site.rows("v")
        same(hub, site, "v", (3.0,))
        monkeypatch.setattr(why, "SMALL", -1)
        with pytest.raises(ProgramError, match=r"power.*cannot be run on Spark: Python"):
            hub.why("v", (3.0,))
