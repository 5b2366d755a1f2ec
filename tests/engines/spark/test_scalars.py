"""Spark agrees with the reference on every function, cast and operator, over edges and at random.

A Spark job costs far more than a value, so hundreds of expressions are evaluated in one.
"""

from __future__ import annotations

import itertools

import pytest

from everview.engines.reference.scalars import Run
from everview.engines.spark.casts import CASTS
from everview.engines.spark.functions import IMPLEMENTED
from everview.engines.spark.scalars import scalar
from everview.engines.spark.types import frame, rows_of
from everview.language.expressions import Call, Cast, Column, Literal, walk
from everview.language.functions import FUNCTIONS
from everview.language.order import order_key
from everview.language.types import BIGINT, BOOLEAN, TEXT, Field

from .samples import EDGES, SCHEMA, Expressions, columns_of_kind, edge_rows, typed_call

BATCH = 120


def differences(spark, expressions, rows):
    """(expression, row, wanted, got) wherever Spark and the reference differ."""
    run = Run(lambda plan, outer: [], {})
    base = frame(spark, SCHEMA, rows).repartition(1).cache()
    found = []
    for batch in (
        itertools.batched(expressions, BATCH) if hasattr(itertools, "batched") else _batched(expressions)
    ):
        schema = tuple(Field(f"c{i}", e.type) for i, e in enumerate(batch))
        selected = base.selectExpr(*[f"{scalar(e)} AS e{i}" for i, e in enumerate(batch)])
        got_rows = rows_of(selected, schema)
        for row, got in zip(rows, got_rows, strict=True):
            for expression, value in zip(batch, got, strict=True):
                wanted = run.value(expression, row, ())
                if type(wanted) is not type(value) or order_key(wanted) != order_key(value):
                    found.append(
                        (
                            expression,
                            [row[c.index] for c in walk(expression) if isinstance(c, Column)],
                            wanted,
                            value,
                        )
                    )
                elif str(wanted) != str(value):
                    found.append((expression, row, repr(wanted), repr(value)))
    base.unpersist()
    return found


def _batched(items):
    items = iter(items)
    while batch := tuple(itertools.islice(items, BATCH)):
        yield batch


def every_call():
    """Each function under each signature, over several choices of columns."""
    for name, function in FUNCTIONS.items():
        if function.unified is not None:
            low, high = function.arity
            for kind in EDGES:
                columns = [c for c in columns_of_kind(kind.kind) if c.type == kind]
                if name == "concat" and kind != TEXT:
                    continue
                for count in {max(low, 1), high or 3}:
                    yield typed_call(name, tuple((columns * 3)[:count]))
            continue
        for signature in function.signatures:
            choices = [columns_of_kind(kind) for kind in signature.parameters]
            for arguments in itertools.islice(itertools.product(*choices), 40):
                if len(set(arguments)) < len(arguments):
                    continue
                if name == "round" and len(arguments) == 2:
                    for digits in (-12, -1, 0, 1, 2, 9, 40):
                        yield typed_call(name, (arguments[0], Literal(digits, BIGINT)))
                    continue
                if name in ("like", "ilike"):
                    for escape in ("\\", "a", ""):
                        yield typed_call(name, (*arguments[:2], Literal(escape, TEXT)))
                yield typed_call(name, arguments)
    for pattern, escape in (
        ("a%", "\\"),
        ("%b_", "\\"),
        ("a\\%", "\\"),
        ("a\\", "\\"),
        ("A$%.x", "x"),
        ("", "\\"),
        (None, "\\"),
    ):
        for name in ("like", "ilike"):
            yield typed_call(
                name, (columns_of_kind(TEXT.kind)[0], Literal(pattern, TEXT), Literal(escape, TEXT))
            )


def every_cast():
    for source, target in CASTS:
        for column in columns_of_kind(source):
            for kind in EDGES:
                if kind.kind is target:
                    yield Cast(column, kind)


def report(found):
    return "\n".join(f"{scalar(e)[:200]} over {r}: wanted {w!r}, got {g!r}" for e, r, w, g in found[:15])


def test_every_function_over_edges(spark):
    calls = [call for call in every_call() if call is not None]
    assert {call.function for call in calls} == set(IMPLEMENTED)
    found = differences(spark, calls, edge_rows(110))
    assert not found, report(found)


def test_every_cast_over_edges(spark):
    casts = list(every_cast())
    found = differences(spark, casts, edge_rows(110, seed=1))
    assert not found, report(found)


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions(spark, seed):
    make = Expressions(seed)
    expressions = [make.of(make.any_type(), 3) for _ in range(150)]
    found = differences(spark, expressions, edge_rows(40, seed=seed))
    assert not found, report(found)


def test_deep_expressions_do_not_explode():
    expression = Column(2, BIGINT)
    for _ in range(30):
        expression = Call(
            "/", (expression, Call("+", (expression_leaf(), Column(3, BIGINT)), BIGINT)), BIGINT
        )
    assert len(scalar(expression)) < 20_000


def expression_leaf():
    return Column(4, BIGINT)


class TestLiterals:
    def test_literals_survive_every_character(self, spark):
        texts = ["", "'", "\\", "${spark.app.name}", "a\n\r\tb", '"', "`", "😀", "\x01", "--x", "/*", "{x}"]
        row = (
            spark.range(1)
            .selectExpr(*[scalar(Literal(t, TEXT)) + f" AS c{i}" for i, t in enumerate(texts)])
            .first()
        )
        assert list(row) == texts

    def test_null_of_every_type(self, spark):
        selected = spark.range(1).selectExpr(
            *[scalar(Literal(None, kind)) + f" AS c{i}" for i, kind in enumerate(EDGES)]
        )
        assert list(selected.first()) == [None] * len(EDGES)
        assert scalar(Literal(None, BOOLEAN)) == "CAST(NULL AS BOOLEAN)"
