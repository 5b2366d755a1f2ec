"""The reference engine where it differs from PostgreSQL on purpose, and where order could show."""

import decimal
import itertools
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.engines.reference import evaluate, evaluate_views
from everview.engines.reference.aggregates import exact_sum
from everview.engines.reference.functions import IMPLEMENTED
from everview.errors import DataError
from everview.language.functions import FUNCTIONS
from everview.language.program import Program
from everview.language.values import NAN

D = decimal.Decimal


def view(query, *declarations, **tables):
    program = Program.parse(";".join([*declarations, f"CREATE MATERIALIZED VIEW v AS {query}"]))
    return evaluate_views(program, tables)["v"]


T = "CREATE TABLE t (a BIGINT, b TEXT, x DOUBLE PRECISION, n DECIMAL(10, 2))"


def test_every_function_is_implemented():
    assert set(IMPLEMENTED) == set(FUNCTIONS)


def test_failing_calls_are_null_and_counted_in_a_view():
    rows = [(0, "x", None, None), (2, "5", None, None)]
    result = view(
        "SELECT a, 10 / a AS q, coalesce(10 / a, -1) AS c, CAST(b AS BIGINT) AS i FROM t", T, t=rows
    )
    assert result.rows == [(0, None, -1, None), (2, 5, 5, 5)]
    assert result.failures == 3


def test_a_failing_condition_drops_the_row():
    result = view("SELECT a FROM t WHERE 10 / a > 1", T, t=[(0, "", None, None), (2, "", None, None)])
    assert result.rows == [(2,)]
    assert result.failures == 1


def test_failing_calls_raise_in_a_query():
    program = Program.parse(T)
    query = program.bind_query("SELECT 10 / a FROM t")
    with pytest.raises(DataError, match="division by zero"):
        evaluate(query.plan, {"t": [(0, "", None, None)]}, strict=True)


def test_what_and_or_case_and_coalesce_do_not_need_is_not_evaluated():
    query = """SELECT a <> 0 AND 1 / a > 0 AS p, a = 0 OR 1 / a > 0 AS q,
                      CASE WHEN a <> 0 THEN 1 / a END AS r, coalesce(a, 1 / a) AS s FROM t"""
    result = view(query, T, t=[(0, "", None, None)])
    assert (result.rows, result.failures) == ([(False, True, None, 0)], 0)


def test_a_scalar_subquery_with_two_rows_fails():
    rows = [(1, "", None, None), (2, "", None, None)]
    result = view("SELECT (SELECT a FROM t) AS s FROM t WHERE a = 1", T, t=rows)
    assert (result.rows, result.failures) == ([(None,)], 1)


def test_sums_have_the_types_of_the_contract():
    rows = [(2**62, "", 0.1, D("1.10")), (2**62, "", 0.2, D("2.25"))]
    result = view(
        "SELECT sum(a) AS a, sum(x) AS x, sum(n) AS n, avg(a) AS p, avg(x) AS q, avg(n) AS r FROM t",
        T,
        t=rows,
    )
    [(a, x, n, p, q, r)] = result.rows
    assert a is None  # beyond BIGINT, although avg is not
    assert result.failures == 1
    assert (x, n, p) == (float(Fraction(0.1) + Fraction(0.2)), D("3.35"), float(2**62))
    assert q == x / 2
    assert (r, str(r)) == (D("1.675"), "1.67500000")


def test_average_of_decimals_rounds_half_away_from_zero_at_six_more_digits():
    rows = [(None, "", None, D(n)) for n in ("-0.01", "0.00", "0.00")]
    [(average,)] = view("SELECT avg(n) AS r FROM t", T, t=rows).rows
    assert str(average) == "-0.00333333"
    rows = [(None, "", None, D(n)) for n in ("0.05", "0.00", "0.00", *["0.00"] * 61)]
    [(average,)] = view("SELECT avg(n) AS r FROM t", T, t=rows).rows
    assert str(average) == "0.00078125"


def test_division_of_decimals():
    assert [
        str(cell)
        for cell in view(
            "SELECT n / 3 AS a, -n / 3 AS b, n / 0.7 AS c FROM t", T, t=[(None, "", None, D("2.00"))]
        ).rows[0]
    ] == ["0.66666667", "-0.66666667", "2.85714286"]


def test_text_orders_by_bytes():
    rows = [(None, b, None, None) for b in ("a", "B", "é", "z", "", "😀", "ￜ")]
    assert view("SELECT b FROM t ORDER BY b LIMIT 9", T, t=rows).rows == [
        (b,) for b in sorted(("a", "B", "é", "z", "", "😀", "ￜ"), key=str.encode)
    ]


def test_ties_of_top_k_and_row_number_are_broken_by_the_remaining_columns():
    rows = [(1, b, x, None) for b in ("p", "q", None) for x in (2.0, NAN, None, 1.0)]
    expected_top = [(1, "p"), (1, "p"), (1, "p"), (1, "p"), (1, "q")]
    numbered = None
    for seed in range(10):
        random.Random(seed).shuffle(rows)
        assert view("SELECT a, b FROM t ORDER BY a LIMIT 5", T, t=rows).rows == expected_top
        result = view("SELECT b, x, row_number() OVER (ORDER BY a) AS r FROM t", T, t=rows)
        inside = view(
            "SELECT b, lag(x) OVER (ORDER BY a) AS l, sum(x) OVER (ORDER BY a ROWS 1 PRECEDING) AS s FROM t",
            T,
            t=rows,
        )
        by_number = sorted(result.rows, key=lambda row: row[2]), sorted(inside.rows, key=repr)
        numbered = numbered or by_number
        assert by_number == numbered
    assert [row[:2] for row in numbered[0]][:5] == [
        ("p", 1.0),
        ("p", 2.0),
        ("p", NAN),
        ("p", None),
        ("q", 1.0),
    ]


def test_limit_without_order_takes_the_least_rows():
    rows = [(3, "", None, None), (1, "", None, None), (2, "", None, None)]
    assert view("SELECT a FROM t LIMIT 2", T, t=rows).rows == [(1,), (2,)]


def test_duplicates_keep_their_multiplicities():
    rows = [(1, "x", None, None), (1, "y", None, None), (2, "x", None, None)]
    assert sorted(view("SELECT a FROM t", T, t=rows).rows) == [(1,), (1,), (2,)]
    both = view("SELECT p.a FROM t AS p JOIN t AS q ON p.a = q.a", T, t=rows).rows
    assert sorted(both) == [(1,), (1,), (1,), (1,), (2,)]


def test_nan_groups_joins_and_is_distinct_as_a_value():
    rows = [(1, "", NAN, None), (2, "", NAN, None), (3, "", None, None), (4, "", None, None)]
    assert view("SELECT x, count(*) AS n FROM t GROUP BY x", T, t=rows).rows == [(NAN, 2), (None, 2)]
    assert len(view("SELECT p.a FROM t AS p JOIN t AS q ON p.x = q.x", T, t=rows).rows) == 4
    assert view("SELECT DISTINCT x FROM t", T, t=rows).rows == [(NAN,), (None,)]


@given(st.lists(st.floats(), max_size=6), st.randoms())
def test_sums_of_doubles_do_not_depend_on_order(values, shuffler):
    try:
        total = exact_sum(values)
    except OverflowError:
        total = None
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    if total is None:
        with pytest.raises(OverflowError):
            exact_sum(shuffled)
        return
    assert exact_sum(shuffled) == total or (math.isnan(total) and math.isnan(exact_sum(shuffled)))
    if all(map(math.isfinite, values)):
        assert total == math.fsum(values)


def test_sums_of_infinities():
    assert exact_sum([math.inf, 1e308, 1e308]) == math.inf
    assert exact_sum([math.inf, -math.inf]) is NAN
    with pytest.raises(OverflowError):
        exact_sum([1e308, 1e308])
    assert exact_sum([1e308, 1e308, -1e308]) == 1e308


def test_correlated_subqueries_see_every_row_around_them():
    program = ["CREATE TABLE a (x BIGINT)", "CREATE TABLE b (x BIGINT)", "CREATE TABLE c (x BIGINT)"]
    query = """
        SELECT x FROM a WHERE EXISTS (
            SELECT 1 FROM b WHERE b.x > a.x AND NOT EXISTS (
                SELECT 1 FROM c WHERE c.x = a.x + b.x))"""
    numbers = range(4)
    for ys, zs in itertools.product([(1, 2), (3,), ()], [(3,), (2, 5), ()]):
        expected = [(x,) for x in numbers if any(y > x and x + y not in zs for y in ys)]
        result = view(query, *program, a=[(x,) for x in numbers], b=[(y,) for y in ys], c=[(z,) for z in zs])
        assert result.rows == expected
