"""Aggregates over weighted rows are the reference's over the rows written out."""

import random
import sqlite3
from decimal import Decimal

import pytest
from tests.engines.sqlite.edge_values import TYPES, draw
from tests.engines.sqlite.harness import same

from everview.engines.reference import evaluate
from everview.engines.sqlite.scalars.aggregates import aggregate_sql
from everview.engines.sqlite.scalars.functions import register
from everview.engines.sqlite.scalars.storage import column_type, load_value, store_rows
from everview.errors import DataError
from everview.language.aggregates import AGGREGATES, AggregateCall, aggregate_type
from everview.language.expressions import Call, Column
from everview.language.functions import NoSignatureError
from everview.language.plan import Aggregate, Field, Scan
from everview.language.types import BIGINT, BOOLEAN, DOUBLE, decimal_type


def calls(kind):
    """Every aggregate that takes this type: with DISTINCT, with FILTER, over a column and over more."""
    column, keep = Column(1, kind), Column(2, BOOLEAN)
    arguments = [column, Call("coalesce", (column, column), kind)]
    for function in AGGREGATES:
        try:
            aggregate_type(function, kind)
        except NoSignatureError:
            continue
        for argument in arguments:
            for distinct in (False, True):
                for condition in (None, keep):
                    yield AggregateCall(function, argument, distinct, condition)
    yield AggregateCall("count", None)
    yield AggregateCall("count", None, filter=keep)


def run(kind, rows, call, *, weighted, strict=False):
    """The aggregate of each group by SQLite, and the failures counted."""
    messages = []
    connection = sqlite3.connect(":memory:")
    failures = register(connection, messages.append)
    connection.execute(f"CREATE TABLE t (g INTEGER, v {column_type(kind)}, k INTEGER, w INTEGER)")
    types = [BIGINT, kind, BOOLEAN, BIGINT]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", store_rows(types, rows))
    sql = aggregate_sql(call, ["t.g", "t.v", "t.k"], "t.w" if weighted else None, strict=strict)
    with failures.surfaced():
        found = connection.execute(f"SELECT g, {sql} FROM t GROUP BY g").fetchall()
    return {group: load_value(value, call.type) for group, value in found}, len(messages)


def by_reference(kind, rows, call, *, strict=False):
    schema = (Field("g", BIGINT), Field("v", kind), Field("k", BOOLEAN))
    written_out = [row[:3] for row in rows for _ in range(row[3])]
    plan = Aggregate(Scan("t", schema), (Column(0, BIGINT),), (call,), ("g", "a"))
    result = evaluate(plan, {"t": written_out}, strict=strict)
    return dict(result.rows), result.failures


def groups(kind, rng, *, weighted):
    sizes = [1, 1, 1, 2, 2, 3, 3, 5, 8, 20]
    return [
        (
            group,
            draw(rng, kind),
            rng.choice([True, True, False, None]),
            rng.choice([1, 1, 2, 5]) if weighted else 1,
        )
        for group, size in enumerate(sizes * 2)
        for _ in range(size)
    ]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_aggregates_agree_with_the_reference(kind, weighted):
    rng = random.Random(f"{kind}{weighted}")
    for _ in range(3):
        rows = groups(kind, rng, weighted=weighted)
        for call in calls(kind):
            expected, failures = by_reference(kind, rows, call)
            found, counted = run(kind, rows, call, weighted=weighted)
            assert found.keys() == expected.keys()
            wrong = [(g, expected[g], found[g]) for g in found if not same(expected[g], found[g])]
            assert not wrong, f"{call}: {wrong[:3]}"
            assert counted == failures, call


def test_a_sum_that_overflows_on_the_way_fits_in_the_end():
    rows = [(0, 2**63 - 1, True, 3), (0, -(2**63), True, 3), (0, 5, None, 1)]
    total = AggregateCall("sum", Column(1, BIGINT))
    assert run(BIGINT, rows, total, weighted=True) == ({0: 2}, 0)
    rows = [(0, 1.7e308, True, 3), (0, -1.7e308, True, 2), (0, -1.7e308, True, 1), (0, 0.1, True, 1)]
    assert run(DOUBLE, rows, AggregateCall("sum", Column(1, DOUBLE)), weighted=True) == ({0: 0.1}, 0)


@pytest.mark.parametrize("kind", [BIGINT, DOUBLE, decimal_type(38, 2)], ids=str)
def test_a_sum_that_does_not_fit_raises_in_a_query(kind):
    most = {BIGINT: 2**63 - 1, DOUBLE: 1.7e308}.get(kind, Decimal(10**36 - 1))
    rows = [(0, most, True, 2)]
    total = AggregateCall("sum", Column(1, kind))
    assert run(kind, rows, total, weighted=True) == ({0: None}, 1)
    with pytest.raises(DataError):
        run(kind, rows, total, weighted=True, strict=True)
    with pytest.raises(DataError):
        by_reference(kind, rows, total, strict=True)


@pytest.mark.parametrize("function", ["sum", "avg", "count"])
def test_an_argument_that_fails_is_counted_once(function):
    value = Call("/", (Column(1, BIGINT), Call("-", (Column(1, BIGINT), Column(0, BIGINT)), BIGINT)), BIGINT)
    rows = [(2, 2, True, 1), (2, 4, True, 3), (3, 3, None, 1)]
    call = AggregateCall(function, value)
    assert run(BIGINT, rows, call, weighted=True) == by_reference(BIGINT, rows, call)
