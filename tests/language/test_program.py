"""Programs: declarations, dependency order, hash, writes as plans."""

import datetime as dt
import decimal
import hashlib

import pytest

from everview.engines.reference import evaluate, evaluate_views
from everview.errors import DataError
from everview.language.printing import plan_text
from everview.language.program import Program
from everview.language.relations import Semantics
from everview.language.statements import Delete, Insert, Update, arguments
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Field, Kind, Type

EVERY_TYPE = """
CREATE TABLE types (
    a INT, b SMALLINT, c INTEGER, d BIGINT, e BOOLEAN, f BOOL, g REAL, h DOUBLE PRECISION, i FLOAT8,
    j NUMERIC, k NUMERIC(5), l DECIMAL(12, 3), m TEXT, n VARCHAR, o BYTEA, p DATE,
    q TIMESTAMP, r TIMESTAMPTZ, s TIMESTAMP WITH TIME ZONE, t TIMESTAMP(6)
)
"""


def test_synonyms_of_types():
    [relation] = Program.parse(EVERY_TYPE).relations.values()
    assert [field.type for field in relation.schema] == [
        *(BIGINT, BIGINT, BIGINT, BIGINT, BOOLEAN, BOOLEAN, DOUBLE, DOUBLE, DOUBLE),
        *(Type(Kind.DECIMAL, 38, 10), Type(Kind.DECIMAL, 5, 0), Type(Kind.DECIMAL, 12, 3), TEXT, TEXT),
        *(BLOB, DATE, TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP),
    ]


def test_relations():
    program = Program.parse("""
        CREATE TABLE plain (a INT NOT NULL, "Mixed" TEXT);
        CREATE TABLE keyed (b TEXT, a INT, c INT, PRIMARY KEY (a, b));
        CREATE TABLE bag (a INT) WITH (semantics = 'bag');
        CREATE TABLE wins (a INT, site TEXT) WITH (semantics = 'add_wins', owner = 'site');
    """)
    plain, keyed, bag, wins = program.relations.values()
    assert plain.schema == (Field("a", BIGINT, nullable=False), Field("Mixed", TEXT))
    assert (plain.semantics, plain.key) == (Semantics.SET, ())
    assert (keyed.semantics, keyed.key, keyed.key_positions) == (Semantics.KEYED, ("a", "b"), (1, 0))
    assert [field.nullable for field in keyed.schema] == [False, False, True]
    assert bag.semantics is Semantics.BAG
    assert (wins.semantics, wins.owner) == (Semantics.ADD_WINS, "site")


def test_views_in_dependency_order_with_forward_references():
    program = Program.parse("""
        CREATE MATERIALIZED VIEW c AS SELECT x FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.x = b.x);
        CREATE MATERIALIZED VIEW b (x) AS SELECT y + 1 FROM a;
        CREATE MATERIALIZED VIEW a WITH (authority = 'hub') AS SELECT x, x AS y FROM t;
        CREATE TABLE t (x INT);
    """)
    assert list(program.views) == ["a", "b", "c"]
    assert program.views["a"].authority == "hub"
    assert program.views["b"].authority is None
    assert program.views["c"].reads == ("a", "b")
    assert program.views["b"].columns == ("x",)
    assert program.schema("c") == (Field("x", BIGINT),)
    assert list(program.names()) == ["t", "a", "b", "c"]
    assert evaluate_views(program, {"t": [(1,), (2,)]})["c"].rows == [(2,)]


def test_a_with_query_may_have_the_name_of_a_view():
    program = Program.parse("""
        CREATE TABLE t (x INT);
        CREATE MATERIALIZED VIEW a AS WITH b AS (SELECT x FROM t) SELECT x FROM b;
        CREATE MATERIALIZED VIEW b AS SELECT x FROM a;
        CREATE MATERIALIZED VIEW d AS
          SELECT x FROM (WITH e AS (SELECT 7 AS x) SELECT x FROM e) AS w JOIN e USING (x);
        CREATE MATERIALIZED VIEW e AS SELECT x FROM t;
    """)
    assert list(program.views) == ["a", "b", "e", "d"]
    assert evaluate_views(program, {"t": [(7,), (8,)]})["d"].rows == [(7,)]


def test_views_over_views_to_any_depth():
    views = ["CREATE TABLE v0 (x INT)"]
    views += [f"CREATE MATERIALIZED VIEW v{i} AS SELECT x + 1 AS x FROM v{i - 1}" for i in range(1, 400)]
    program = Program.parse(";\n".join(reversed(views)))
    assert evaluate_views(program, {"v0": [(0,)]})["v399"].rows == [(399,)]


def test_hash_is_over_words_not_layout():
    text = "CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a > 1 GROUP BY a"
    same = "/* x */ create materialized view V as\n select A from T -- y\n where a>1 group   by a;;"
    same += "create table T(a int);"
    program = Program.parse(text)
    assert Program.parse(same).hash == program.hash
    assert Program.parse(same) == program
    others = [text.replace("> 1", "> 2"), text.replace("a INT", "b INT, a INT"), text + ", a % 2"]
    others += [text.replace("v AS", '"V" AS')]
    assert len({Program.parse(other).hash for other in (text, *others)}) == 5
    assert Program.parse(
        "CREATE TABLE t (a TEXT); CREATE MATERIALIZED VIEW v AS SELECT 'A' AS x FROM t"
    ).hash != (
        Program.parse("CREATE TABLE t (a TEXT); CREATE MATERIALIZED VIEW v AS SELECT 'a' AS x FROM t").hash
    )


def test_hash_is_stable_across_releases():
    words = b"create table t ( a int )"
    assert Program.parse("CREATE TABLE t (a INT)").hash == hashlib.sha256(words).hexdigest()


def test_plans_are_values():
    program = Program.parse("""
        CREATE TABLE t (a INT, b TEXT);
        CREATE MATERIALIZED VIEW v AS SELECT x.b FROM t AS x WHERE x.a > 1 AND x.b LIKE 'q%';
        CREATE MATERIALIZED VIEW w AS SELECT b FROM T WHERE (a > 1) AND b like 'q%';
        CREATE MATERIALIZED VIEW z AS SELECT b FROM t WHERE a > 2 AND b LIKE 'q%';
    """)
    v, w, z = (view.plan for view in program.views.values())
    assert v == w
    assert hash(v) == hash(w)
    assert v != z


PRINTED = """\
TopK order n DESC then 2 ties limit 3
  Project city, count AS n, row_number AS place
    Window row_number() OVER (PARTITION BY city ORDER BY count DESC)
      Filter (count > 1) OR (sum > 3)
        Aggregate count(*) FILTER (a IS NOT NULL), sum(DISTINCT a) by city
          Filter EXISTS (subquery) AND (city LIKE 'x%')
            subquery:
              Project 1 AS ?column?
                Filter a = outer.a
                  Scan u
            Join left on a = a
              Scan t
              Scan u"""


def test_plans_print_one_line_a_node():
    program = Program.parse("""
        CREATE TABLE t (a INT, city TEXT);
        CREATE TABLE u (a INT);
        CREATE MATERIALIZED VIEW v AS
          SELECT city, count(*) FILTER (WHERE t.a IS NOT NULL) AS n,
                 row_number() OVER (
                   PARTITION BY city ORDER BY count(*) FILTER (WHERE t.a IS NOT NULL) DESC
                 ) AS place
          FROM t LEFT JOIN u ON t.a = u.a
          WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND city LIKE 'x%'
          GROUP BY city HAVING count(*) FILTER (WHERE t.a IS NOT NULL) > 1 OR sum(DISTINCT t.a) > 3
          ORDER BY n DESC LIMIT 3;
    """)
    assert plan_text(program.views["v"].plan) == PRINTED


@pytest.fixture
def shop():
    return Program.parse("""
        CREATE TABLE t (a BIGINT, b TEXT, x DOUBLE PRECISION, n DECIMAL(6, 2), at TIMESTAMP);
        CREATE TABLE s (b TEXT, a BIGINT);
    """)


def test_insert_fills_missing_columns_and_casts(shop):
    insert = shop.bind("INSERT INTO t (n, a, at) VALUES (1.005, 2, '2024-01-01 12:00+02'), (3, NULL, NULL)")
    assert isinstance(insert, Insert)
    assert evaluate(insert.plan, {}).rows == [
        (2, None, None, decimal.Decimal("1.01"), dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)),
        (None, None, None, decimal.Decimal("3.00"), None),
    ]
    selected = shop.bind("INSERT INTO t (b, x) SELECT b, a FROM s WHERE a > ?")
    values = arguments(selected.parameters, [1])
    rows = evaluate(selected.plan, {"s": [("p", 1), ("q", 2)]}, parameters=values).rows
    assert rows == [(None, "q", 2.0, None, None)]


def test_update_gives_old_and_new_rows(shop):
    update = shop.bind("UPDATE t AS y SET x = y.x + :by, b = NULL WHERE y.a IN (SELECT a FROM s)")
    assert isinstance(update, Update)
    row, other = (1, "p", 0.5, None, None), (2, "q", 0.5, None, None)
    values = arguments(update.parameters, {"by": 2})
    rows = evaluate(update.plan, {"t": [row, other], "s": [("p", 1)]}, parameters=values).rows
    assert rows == [(*row, 1, None, 2.5, None, None)]


def test_delete_gives_the_rows_to_go(shop):
    delete = shop.bind("DELETE FROM s WHERE a IS NULL")
    assert isinstance(delete, Delete)
    assert evaluate(delete.plan, {"s": [("p", 1), ("q", None)]}).rows == [("q", None)]


def test_parameters_take_the_type_of_their_context(shop):
    query = shop.bind_query("SELECT a FROM t WHERE x > ? AND n = ? AND b = ? AND at < ? LIMIT ?")
    assert [(p.name, p.type.kind) for p in query.parameters] == [
        ("1", Kind.DOUBLE),
        ("2", Kind.DECIMAL),
        ("3", Kind.TEXT),
        ("4", Kind.TIMESTAMP),
        ("5", Kind.BIGINT),
    ]
    values = arguments(query.parameters, [1, decimal.Decimal("1.234"), "b", dt.datetime(2024, 1, 1), 3])  # noqa: DTZ001
    assert list(values.values()) == [
        1.0,
        decimal.Decimal("1.234"),
        "b",
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        3,
    ]
    assert isinstance(values[query.parameters[0]], float)


@pytest.mark.parametrize(
    ("sql", "given", "message"),
    [
        ("SELECT a FROM t WHERE a = ?", ["x"], "parameter 1 cannot be 'x': expected BIGINT"),
        ("SELECT a FROM t WHERE a = ?", [True], "parameter 1 cannot be True: expected BIGINT"),
        ("SELECT a FROM t WHERE a = ?", [], "no value for parameter 1; the statement has 1, 0 were given"),
        ("SELECT a FROM t WHERE a = ?", [1, 2], "there is no parameter 2"),
        ("SELECT a FROM t WHERE a = :k", {"q": 1}, "no value for parameter k"),
        ("SELECT a FROM t", {"q": 1}, "there is no parameter q"),
    ],
)
def test_wrong_parameters(shop, sql, given, message):
    with pytest.raises(DataError, match=message):
        arguments(shop.bind_query(sql).parameters, given)


def test_one_name_may_have_two_types(shop):
    query = shop.bind_query("SELECT a FROM t WHERE a = :k OR x = :k")
    assert {p.type for p in query.parameters} == {BIGINT, DOUBLE}
    values = arguments(query.parameters, {"k": 2})
    rows = [(2, None, None, None, None), (3, None, 2.0, None, None), (4, None, 4.0, None, None)]
    assert evaluate(query.plan, {"t": rows}, parameters=values).rows == [(2,), (3,)]
