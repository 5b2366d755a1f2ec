"""tumble, hop and window_final: event-time windows in a SELECT.

A tumbling window is named by its beginning. An event lies in size / slide hopping windows: the rows of FROM
are paired with as many steps back, and a step moves the beginning of the last window to that of another.
`window_final()` stands in expressions as a column with a negative position until the groups are known; what
it becomes is for `finality` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.language.expressions import TRUE, Call, Column, Expression, Literal
from everview.language.plan import Join, JoinKind, Plan, Values
from everview.language.sql.names import Scope, Visible
from everview.language.types import BIGINT, BOOLEAN, TIMESTAMP, Field

if TYPE_CHECKING:
    from everview.language.sql.context import Context
    from everview.language.sql.scalars import Scalars
    from everview.language.sql.tables import From

__all__ = ["FINAL", "STEP", "bind_final", "bind_hop", "bind_tumble", "spread"]

FINAL = Column(-2_000_000, BOOLEAN, "window_final")
"""The stand-in for `window_final()`."""

MOST_STEPS = 100
"""In so many windows an event lies at the most: each of them is a row that is kept."""

STEP = "everview_step"
"""The column that moves the beginning of the last window that an event lies in to that of another."""

_STEPS = "everview_steps"


def bind_tumble(
    self: Scalars, node: exp.Expr, moment: Expression | None, lengths: Sequence[int | None]
) -> Expression:
    """tumble(t, size)."""
    if moment is None or len(lengths) != 1 or lengths[0] is None:
        raise self.context.source.error(
            node, "tumble takes a TIMESTAMP and an INTERVAL", hint="write tumble(at, INTERVAL '10 minutes')"
        )
    return _tumbled(self.context, node, moment, lengths[0])


def _tumbled(context: Context, node: exp.Expr, moment: Expression, size: int) -> Call:
    if size <= 0:
        raise context.source.error(node, "a window is longer than nothing", hint="write '10 minutes'")
    return Call("tumble", (moment, Literal(size, BIGINT)), TIMESTAMP)


def bind_hop(
    self: Scalars, node: exp.Expr, moment: Expression | None, lengths: Sequence[int | None]
) -> Expression:
    """hop(t, slide, size), over rows that `spread` has paired with the steps."""
    source = self.context.source
    steps = self.scope.find(STEP, _STEPS)
    if moment is None or len(lengths) != 2 or None in lengths:
        hint = "write hop(at, INTERVAL '5 minutes', INTERVAL '15 minutes')"
        raise source.error(node, "hop takes a TIMESTAMP, the slide and the size of its windows", hint=hint)
    if not steps:
        raise source.error(
            node,
            f"hop is not allowed in {self.clause}: an event lies in several windows",
            hint="write it in GROUP BY and the select list",
        )
    begun = _tumbled(self.context, node, moment, int(lengths[0] or 0))
    return Call("add_microseconds", (begun, steps[0].expression), TIMESTAMP)


def bind_final(self: Scalars, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Expression:
    """window_final()."""
    source = self.context.source
    if arguments:
        raise source.error(node, "window_final takes no argument")
    if self.collector is None or self.clause not in ("the select list", "HAVING"):
        hint = "write it in the select list or HAVING of a SELECT that groups by tumble or hop"
        raise source.error(node, f"window_final() is not allowed in {self.clause}", hint=hint)
    self.collector.final = node
    return FINAL


def spread(context: Context, node: exp.Expr, origin: From, plan: Plan) -> tuple[Plan, Scope]:
    """The rows of a SELECT, each once per window that `hop` puts it into; as they are without `hop`."""
    calls = [call for call in _own_calls(node) if str(call.this).lower() == "hop"]
    if not calls:
        return plan, origin.scope
    source = context.source
    lengths = {tuple(part.sql() for part in call.expressions[1:]) for call in calls}
    if len(lengths) > 1:
        raise source.error(calls[1], "one SELECT has one kind of hopping windows", hint="write two views")
    slide, size = _lengths(context, calls[0])
    if size % slide or not 1 <= size // slide <= MOST_STEPS:
        raise source.error(
            calls[0],
            "the size of a hopping window is a whole multiple of its slide, "
            f"and at most {MOST_STEPS} times as long",
            hint="choose a longer slide, or tumble",
        )
    rows = tuple((Literal(-step * slide, BIGINT),) for step in range(size // slide))
    steps = Values((Field(STEP, BIGINT, nullable=False),), rows)
    place = Visible(_STEPS, STEP, Column(len(plan.schema), BIGINT, STEP), hidden=True)
    return Join(JoinKind.INNER, plan, steps, TRUE), Scope((*origin.scope.columns, place))


def _own_calls(select: exp.Expr) -> list[exp.Anonymous]:
    """The calls in a SELECT's own list, GROUP BY, HAVING and ORDER BY."""
    clauses = [*select.expressions, *(select.args.get(key) for key in ("group", "having", "order"))]
    return [
        call
        for clause in clauses
        if clause is not None
        for call in clause.find_all(exp.Anonymous)
        if call.find_ancestor(exp.Select) is select
    ]


def _lengths(context: Context, call: exp.Anonymous) -> tuple[int, int]:
    from everview.language.sql.calls import fixed_length  # noqa: PLC0415  (calls bind their windows here)

    parts = call.expressions[1:]
    if len(parts) != 2 or not all(isinstance(part, exp.Interval) for part in parts):
        hint = "write hop(at, INTERVAL '5 minutes', INTERVAL '15 minutes')"
        raise context.source.error(
            call, "hop takes a TIMESTAMP, the slide and the size of its windows", hint=hint
        )
    slide, size = (fixed_length(context.source, part) for part in parts)
    if slide <= 0:
        raise context.source.error(call, "a window is longer than nothing", hint="write '10 minutes'")
    return slide, size
