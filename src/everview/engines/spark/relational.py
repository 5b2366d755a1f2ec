"""Plans as Spark SQL text: one SELECT per node, columns by position, multiplicities as SQL has them.

Every node is compiled, or refused by name with a ProgramError before any data flows. Who supplies the
rows of a Scan is the caller's business: it gives a FROM item with the columns `c0`, `c1` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from everview.engines.spark.aggregates import aggregate_parts
from everview.engines.spark.by_python import is_by_python
from everview.engines.spark.refusals import Refusal, refuse
from everview.engines.spark.scalars import scalar
from everview.engines.spark.text import literal
from everview.engines.spark.types import NOTHING, column_names
from everview.engines.spark.windows import sort_text, window_columns
from everview.language.aggregates import AggregateCall
from everview.language.expressions import Call, Expression, Literal, Parameter, columns_of, walk
from everview.language.functions import FUNCTIONS
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
)

__all__ = ["compile_plan"]

_JOINS = {
    JoinKind.INNER: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
_INT_MAX = 2**31 - 1
_RECURSION = Refusal(
    "Spark's SQL has no recursion over sets",
    "the circuit of its view has rounds for it",
)
_PARTNERS = Refusal(
    "Python computes it, and Spark lets no Python say which rows have a partner",
    "compute it of each side by itself, or by an inner join in a view of its own",
)


def compile_plan(plan: Plan, table: Callable[[Scan], str]) -> str:
    """The SQL text of a plan; `table` gives the FROM item of a Scan."""
    return _Compiler(table).query(plan)


def _check_partners(condition: Expression, width: int) -> None:
    """Refuse what Spark refuses: a Python function of both sides that decides who has a partner."""
    for part in walk(condition):
        sides = {index < width for index in columns_of(part)}
        if len(sides) > 1 and is_by_python(part):
            raise refuse(f"{_named(part)} of both sides of a semi, anti or outer join", _PARTNERS)


def _named(expression: Expression) -> str:
    if isinstance(expression, Call):
        return FUNCTIONS[expression.function].sql
    return f"a cast to {expression.type}"


def _columns(width: int, *, of: str = "") -> str:
    """`c0, c1, …`, or the column that stands for no columns."""
    names = column_names(width) or [NOTHING]
    return ", ".join(f"{of}{name}" for name in names)


def _aliased(texts: Sequence[str], *, prefix: str = "c") -> str:
    return ", ".join(f"{text} AS {prefix}{index}" for index, text in enumerate(texts)) or f"true AS {NOTHING}"


class _Compiler:
    def __init__(self, table: Callable[[Scan], str]) -> None:
        self._table = table

    def query(self, plan: Plan) -> str:
        """One SELECT, or several joined by UNION ALL and the like, without parentheses around it."""
        match plan:
            case Scan(_, schema):
                return f"SELECT {_columns(len(schema))} FROM {self._table(plan)}"
            case Values():
                return self._values(plan)
            case Filter(child, predicate):
                return f"SELECT * FROM ({self.query(child)}) WHERE {scalar(predicate)}"
            case Project(child, expressions):
                return f"SELECT {_aliased([*map(scalar, expressions)])} FROM ({self.query(child)})"
            case Join():
                return self._join(plan)
            case UnionAll(inputs):
                return " UNION ALL ".join(f"({self.query(child)})" for child in inputs)
            case Distinct(child):
                return f"SELECT DISTINCT * FROM ({self.query(child)})"
            case Intersect(left, right, keep):
                return f"({self.query(left)}) INTERSECT {'ALL' if keep else 'DISTINCT'} ({self.query(right)})"
            case Except(left, right, keep):
                return f"({self.query(left)}) EXCEPT {'ALL' if keep else 'DISTINCT'} ({self.query(right)})"
            case Aggregate():
                return self._aggregate(plan)
            case TopK():
                return self._top(plan)
            case Window(child, calls):
                return window_columns(self.query(child), len(child.schema), calls)
            case RecursiveScan() | Fixpoint():
                raise refuse("recursion", _RECURSION)
            case _:
                assert_never(plan)

    def _values(self, plan: Values) -> str:
        if not plan.rows:
            nothing = [literal(None, field.type) for field in plan.schema]
            return f"SELECT {_aliased(nothing)} WHERE false"
        rows = (", ".join(map(scalar, row)) or "true" for row in plan.rows)
        return (
            f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS t({_columns(len(plan.schema))})"
        )

    def _join(self, plan: Join) -> str:
        left, right = len(plan.left.schema), len(plan.right.schema)
        condition = scalar(
            plan.condition, column=lambda index: f"l.c{index}" if index < left else f"r.c{index - left}"
        )
        if plan.kind is not JoinKind.INNER:
            _check_partners(plan.condition, left)
        texts = [f"l.c{index}" for index in range(left)]
        if plan.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            texts += [f"r.c{index}" for index in range(right)]
        return (
            f"SELECT {_aliased(texts)} FROM ({self.query(plan.left)}) l "
            f"{_JOINS[plan.kind]} ({self.query(plan.right)}) r ON {condition}"
        )

    def _aggregate(self, plan: Aggregate) -> str:
        """Keys, arguments and filters are given names first, so that no key is read as a position."""
        inner = [f"{scalar(key)} AS k{place}" for place, key in enumerate(plan.keys)]
        keys = [f"k{place}" for place in range(len(plan.keys))]
        middle, outer = list(keys), list(keys)
        for place, call in enumerate(plan.aggregates):
            if call.argument is not None:
                inner.append(f"{scalar(call.argument)} AS a{place}")
            if call.filter is not None:
                inner.append(f"{scalar(call.filter)} AS f{place}")
            parts = self._parts(call, place)
            only = f" FILTER (WHERE f{place})" if call.filter is not None else ""
            middle += [
                f"{text.format(value=f'a{place}')}{only} AS g{place}{side}"
                for text, side in zip(parts[0], "xy", strict=False)
            ]
            outer.append(parts[1])
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        source = f"SELECT {', '.join(inner) or f'true AS {NOTHING}'} FROM ({self.query(plan.input)})"
        grouped = f"SELECT {', '.join(middle) or 'count(1) AS n'} FROM ({source}){by}"
        return f"SELECT {_aliased(outer)} FROM ({grouped})"

    def _parts(self, call: AggregateCall, place: int) -> tuple[tuple[str, ...], str]:
        kind = call.argument.type if call.argument is not None else None
        names = f"g{place}x", f"g{place}y"
        parts = aggregate_parts(call.function, kind, call.type, names, distinct=call.distinct)
        return parts.aggregates, parts.finish

    def _top(self, plan: TopK) -> str:
        keys = ", ".join(map(sort_text, (*plan.order, *plan.ties)))
        order = f" ORDER BY {keys}" if keys else ""
        limit, offset = self._count(plan.limit), self._count(plan.offset)
        if offset is not None and offset > _INT_MAX:
            limit, offset = 0, None
        some = f" LIMIT {limit}" if limit is not None and limit <= _INT_MAX else ""
        after = f" OFFSET {offset}" if offset else ""
        return f"SELECT * FROM ({self.query(plan.input)}){order}{some}{after}"

    def _count(self, count: Literal | Parameter | None) -> int | None:
        match count:
            case None:
                return None
            case Literal(value):
                return int(value)
            case Parameter(name):
                raise refuse(f"parameter {name}", Refusal("a view has no parameters", "write the number out"))
            case _:
                assert_never(count)
