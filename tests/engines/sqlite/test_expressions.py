"""Random nested expressions, parameters, goldens and the meaning of failures."""

import random
import sqlite3
from decimal import Decimal
from pathlib import Path

import pytest
from tests.engines.sqlite.edge_values import TYPES, draw
from tests.engines.sqlite.expressions import Generator
from tests.engines.sqlite.harness import Bench, assert_agree, reference, same

from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.engines.sqlite.scalars.functions import register
from everview.engines.sqlite.scalars.storage import load_value
from everview.engines.sqlite.scalars.whole import nesting
from everview.errors import DataError
from everview.language.expressions import (
    TRUE,
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    walk,
)
from everview.language.functions import FUNCTIONS
from everview.language.plan import Project, Values
from everview.language.program import Program
from everview.language.types import BIGINT, BOOLEAN, DOUBLE, TEXT, decimal_type

GOLDENS = Path(__file__).parents[2] / "language" / "fixtures" / "expressions.txt"
USED: dict[str, int] = {}


def counts_are_exact(expression):
    """Not so where SQLite may leave an argument out, or compute a constant once for all rows."""
    nodes = list(walk(expression))
    varying = all(
        any(isinstance(inner, Column) for inner in walk(node))
        for node in nodes
        if isinstance(node, Call | Cast)
    )
    return varying and not any(isinstance(node, And | Or) for node in nodes)


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_agree_with_the_reference(seed):
    rng = random.Random(seed)
    types = TYPES
    bench = Bench(types, [tuple(draw(rng, kind) for kind in types) for _ in range(40)])
    generator = Generator(rng, types)
    for _ in range(25):
        expression = generator.any(rng.randrange(1, 4))
        assert_agree(bench, expression, strict_rows=8, counts=counts_are_exact(expression))
    for name, times in generator.used.items():
        USED[name] = USED.get(name, 0) + times


def test_the_generator_makes_every_function_and_node():
    generator = Generator(random.Random(1), TYPES)
    for _ in range(4000):
        generator.any(3)
    assert set(FUNCTIONS) - set(generator.used) == set()
    nodes = {"And", "Or", "Not", "IsNull", "IsDistinct", "InList", "Case", "Cast"}
    assert nodes <= set(generator.used)


def goldens():
    for line in GOLDENS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            expression, _, expected = line.partition(" => ")
            yield pytest.param(expression, expected, id=expression)


@pytest.mark.parametrize(("text", "expected"), list(goldens()))
def test_value_is_postgresqls(text, expected):
    plan = Program.parse("").bind_query(f"SELECT CAST(({text}) AS TEXT)").plan
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Values)
    (expression,) = plan.expressions
    bench = Bench([], [()])
    [value], failures = bench.lenient(expression)
    [strict] = bench.strict(expression, [0])
    if expected == "ERROR":
        assert (value, failures) == (None, 1)
        assert isinstance(strict, DataError)
    else:
        assert failures == 0
        assert ("NULL" if value is None else value) == expected
        assert strict == value


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_parameters_are_bound_in_their_stored_form(kind):
    rng = random.Random(str(kind))
    bench = Bench([kind], [(draw(rng, kind),) for _ in range(30)])
    parameter, other = Parameter("1", kind), Parameter("limit", kind)
    expression = Call("least", (Column(0, kind), parameter, other), kind)
    for _ in range(5):
        values = {parameter: draw(rng, kind), other: draw(rng, kind)}
        found, _ = bench.lenient(expression, values)
        expected, _ = reference(expression, bench.rows, values)
        assert all(map(same, expected, found))


def test_one_name_with_two_types_is_two_parameters():
    bench = Bench([], [()])
    money = decimal_type(5, 2)
    expression = Call("=", (Cast(Parameter("1", money), TEXT), Parameter("1", TEXT)), BOOLEAN)
    values = {Parameter("1", money): Decimal("1.50"), Parameter("1", TEXT): "1.50"}
    assert bench.lenient(expression, values) == ([True], 0)


def test_a_failure_raises_a_data_error_that_says_what_failed():
    connection = sqlite3.connect(":memory:")
    failures = register(connection, lambda _: None)
    quotient = Call("/", (Literal(1, BIGINT), Literal(0, BIGINT)), BIGINT)
    sql = compile_expression(quotient, [], strict=True)
    with pytest.raises(DataError, match="division by zero"), failures.surfaced():
        connection.execute(f"SELECT {sql}").fetchall()
    with pytest.raises(sqlite3.OperationalError), failures.surfaced():
        connection.execute("SELECT no_such_function()")
    assert connection.execute(f"SELECT {compile_expression(quotient, [])}").fetchall() == [(None,)]


def test_what_is_not_reached_does_not_fail():
    connection = sqlite3.connect(":memory:")
    failures = register(connection, lambda _: None)
    connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
    connection.execute("CREATE INDEX by_b ON t (b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, 0), (2, 5), (None, 0), (1, None)])
    a, b = Column(0, BIGINT), Column(1, BIGINT)
    bad = Call("/", (Literal(10, BIGINT), b), BIGINT)
    is_bad = Call(">", (bad, Literal(1, BIGINT)), BOOLEAN)
    not_zero = Call("<>", (b, Literal(0, BIGINT)), BOOLEAN)
    zero = Call("=", (b, Literal(0, BIGINT)), BOOLEAN)
    power = Call("power", (Cast(b, DOUBLE), Literal(-1.0, DOUBLE)), DOUBLE)
    constant = Call("power", (Literal(0.0, DOUBLE), Literal(-1.0, DOUBLE)), DOUBLE)
    for guarded in (
        And((not_zero, is_bad)),
        Or((zero, is_bad)),
        And((not_zero, Call("=", (a, a), BOOLEAN), is_bad)),
        Case(((not_zero, is_bad),), TRUE),
        Case(((not_zero, Call(">", (power, Literal(0.0, DOUBLE)), BOOLEAN)),), TRUE),
        Case(
            ((Call("=", (a, Literal(9, BIGINT)), BOOLEAN), Call("=", (constant, constant), BOOLEAN)),), TRUE
        ),
    ):
        sql = compile_expression(guarded, ["t.a", "t.b"], strict=True)
        with failures.surfaced():
            connection.execute(f"SELECT count(*) FROM t WHERE {sql}").fetchall()
            connection.execute(f"SELECT {sql} FROM t").fetchall()
    unguarded = compile_expression(And((is_bad, not_zero)), ["t.a", "t.b"], strict=True)
    with pytest.raises(DataError), failures.surfaced():
        connection.execute(f"SELECT count(*) FROM t WHERE {unguarded}").fetchall()


def test_nested_arithmetic_grows_linearly():
    expression = Column(0, BIGINT)
    for _ in range(60):
        expression = Call("+", (expression, Column(0, BIGINT)), BIGINT)
    sql = compile_expression(expression, ["t.c0"])
    assert len(sql) < 60 * 250
    bench = Bench([BIGINT], [(1,), (2**62,)])
    assert bench.lenient(expression) == ([61, None], 1)


def test_subqueries_are_left_to_the_planner():
    values = Values((), ((),))
    for expression in (Exists(values), OuterColumn(1, 0, BIGINT)):
        with pytest.raises(AssertionError, match="planner"):
            compile_expression(expression, [])


def test_a_fixed_beginning_uses_an_index():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a TEXT)")
    connection.execute("CREATE INDEX by_a ON t (a)")
    like = Call("like", (Column(0, TEXT), Literal("ab\\_c%", TEXT), Literal("\\", TEXT)), BOOLEAN)
    sql = compile_expression(like, ["t.a"])
    [(*_, plan)] = connection.execute(f"EXPLAIN QUERY PLAN SELECT a FROM t WHERE {sql}").fetchall()
    assert "SEARCH t USING COVERING INDEX by_a (a>? AND a<?)" in plan
    assert load_value(
        connection.execute(f"SELECT {sql} FROM (SELECT 'ab_cd' AS a) AS t").fetchone()[0], BOOLEAN
    )


@pytest.mark.parametrize(("kind", "signs"), [(BIGINT, "+-*"), (DOUBLE, "+-*/")], ids=str)
def test_chains_agree_with_the_reference(kind, signs):
    rng = random.Random(str(kind))
    types = [kind] * 6
    bench = Bench(types, [tuple(draw(rng, kind) for _ in types) for _ in range(1500)])
    for _ in range(12):
        chain = Column(0, kind)
        for index in range(1, rng.randrange(3, 7)):
            right = Column(index, kind)
            if rng.random() < 0.2:
                right = Call(rng.choice(signs), (right, Column(0, kind)), kind)
            chain = Call(rng.choice(signs), (chain, right), kind)
        assert_agree(bench, chain, strict_rows=60)


@pytest.mark.parametrize("shape", range(6))
def test_deep_nesting_never_outgrows_the_parser(shape):
    rng = random.Random(shape)
    kinds = [BIGINT, DOUBLE, TEXT, BOOLEAN]
    bench = Bench(kinds, [tuple(draw(rng, kind) for kind in kinds) for _ in range(30)])
    number, double, text, truth = (Column(i, kind) for i, kind in enumerate(kinds))
    parameter = Parameter("n", BIGINT)
    wrap = [
        lambda e: Call("abs", (Call("%", (number, e), BIGINT),), BIGINT),
        lambda e: Call("round", (Call("/", (double, e), DOUBLE),), DOUBLE),
        lambda e: Call("replace", (text, text, Call("||", (text, e), TEXT)), TEXT),
        lambda e: Case(((truth, Call("+", (number, e), BIGINT)),), Call("/", (e, number), BIGINT)),
        lambda e: Call("||", (text, e), TEXT),
        lambda e: Call("greatest", (parameter, Call("-", (number, e), BIGINT), number), BIGINT),
    ][shape]
    expression = [number, double, text, number, text, number][shape]
    for depth in range(1, 10 if shape == 3 else 40):
        expression = wrap(expression)
        if depth % 3 == 0 or depth < 10:
            values = {parameter: 5}
            found, _ = bench.lenient(expression, values)
            expected, _ = reference(expression, bench.rows, values)
            assert all(map(same, expected, found)), depth
            # The statement around it may itself be deep.
            inner = compile_expression(expression, ["v.c0", "v.c1", "v.c2", "v.c3"], strict=True)
            bench.connection.execute(
                f"EXPLAIN INSERT INTO t (c0) SELECT x FROM (SELECT x FROM (SELECT {inner} AS x FROM "
                "(SELECT * FROM t) AS v)) WHERE x IN (SELECT c0 FROM (SELECT c0 FROM t))",
                {"p_n_bigint": 5},
            )


def test_nesting_is_measured_generously():
    connection = sqlite3.connect(":memory:")
    for opening, closing in [
        ("(SELECT x + 1 FROM (SELECT ", " AS x))"),
        ("abs(", ")"),
        ("coalesce(1, 2, ", ")"),
        ("(1 + ", ")"),
        ("(", " + 1)"),
        ("(CASE WHEN 1 THEN 2 ELSE ", " END)"),
        ("(CASE WHEN ", " THEN 2 END)"),
        ("(1 IN (2, ", "))"),
        ("(SELECT CASE typeof(x) WHEN 'real' THEN NULL ELSE x END FROM (SELECT ", " AS x))"),
        ("CAST(", " AS TEXT)"),
        ("(1 BETWEEN 2 AND (", "))"),
        ("(1 + 2 * (", "))"),
        ("CASE WHEN 1 THEN 1 ELSE 2 AND (", " + 1) END"),
    ]:
        for depth in range(1, 200):
            sql = opening * depth + "1" + closing * depth
            if nesting(sql) > 90:
                break
            connection.execute(f"SELECT {sql}")
        assert depth > 5
