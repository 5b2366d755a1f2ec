"""What `window_final()` means, and where it may be said.

A group is final when every declared source of every relation it is made from has closed its window, and all
that the source wrote by then is here (`everview_progress`). For a final row never to change, every row that
it is made from must lie in its window: so FROM has windowed relations only, joined by their windows, and
nothing else is read or compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from everview.language.aggregates import AggregateCall
from everview.language.expressions import (
    And,
    Call,
    Case,
    Column,
    Exists,
    Expression,
    InList,
    InSubquery,
    Literal,
    ScalarSubquery,
    shift,
    walk,
)
from everview.language.plan import Aggregate, Filter, Join, JoinKind, Plan, Project, Scan, Values
from everview.language.sql.context import Context
from everview.language.sql.event_windows import STEP
from everview.language.types import BIGINT, BOOLEAN, TEXT, TIMESTAMP
from everview.language.windowed import PROGRESS

__all__ = ["Finality"]

_HOW = "group by tumble(at, …) or hop(at, …) of the declared event_time"
_JOIN = "add tumble(a.at, …) = tumble(b.at, …) to its condition, with the length by which is grouped"


@dataclass(slots=True)
class Finality:
    """A SELECT with `window_final()`: its place, and the plan under its groups."""

    context: Context
    node: exp.Expr
    relations: list[str] = field(default_factory=list)
    """The relations of FROM, in the order of their columns."""
    _times: dict[int, int] = field(default_factory=dict)
    """Position of an event time in the rows of FROM → the place of its relation."""

    def final(self, grouped: Aggregate, outputs: Sequence[Expression]) -> tuple[Plan, Expression]:
        """The groups beside the last window that is closed, and whether a group's window is.

        `outputs` are the select list and HAVING.
        """
        window, slide, size = self._checked(grouped, outputs)
        progress = self._progress(slide, size)
        last = Column(len(grouped.schema), TIMESTAMP, "last")
        beginning = Column(window, TIMESTAMP, grouped.schema[window].name)
        closed = Call("<=", (beginning, last), BOOLEAN)
        plan = Join(JoinKind.INNER, grouped, progress, Literal(True, BOOLEAN))
        return plan, Call("coalesce", (closed, Literal(False, BOOLEAN)), BOOLEAN)

    def _error(self, message: str, hint: str) -> Exception:
        return self.context.source.error(self.node, message, hint=hint)

    # Where it may be said.

    def _checked(self, grouped: Aggregate, outputs: Sequence[Expression]) -> tuple[int, int, int]:
        """The key that is the window, with slide and size."""
        parts: list[Expression] = [*grouped.keys, *outputs]
        parts += [p for c in grouped.aggregates for p in (c.argument, c.filter) if p is not None]
        plan, steps = _without_steps(grouped.input)
        conditions: list[Expression] = []
        if isinstance(plan, Filter):
            conditions, plan = list(_conjuncts(plan.predicate)), plan.input
        parts += conditions
        pairs = [pair for condition in conditions for pair in _equal(condition)]
        pairs += self._tables(plan, 0, parts)
        if any(isinstance(n, Exists | InSubquery | ScalarSubquery) for p in parts for n in walk(p)):
            raise self._error(
                "a subquery reads what the window does not hold, so a final row could change",
                "join windowed relations by their windows",
            )
        found = [(place, *read) for place, key in enumerate(grouped.keys) if (read := self._window(key))]
        if len(found) != 1:
            raise self._error("window_final() needs one window in GROUP BY", _HOW)
        window, slide, time = found[0]
        self._check_joined(pairs, slide, self._times[time])
        return window, slide, slide * steps

    def _tables(self, plan: Plan, start: int, parts: list[Expression]) -> list[tuple[int, int, int]]:
        """Note the relations of FROM; return what their joins equate: (position, position, length)."""
        match plan:
            case Scan(name):
                relation = self.context.catalog.relation(name)
                if relation is None or relation.event_time is None:
                    raise self._error(
                        f"{name} is not a windowed relation, so a final row could change",
                        f"declare {name} WITH (owner = …, event_time = …, sources = …), or leave it out",
                    )
                self._times[start + relation.columns.index(relation.event_time)] = len(self.relations)
                self.relations.append(name)
                return []
            case Join(kind, left, right, condition) if kind in (JoinKind.INNER, JoinKind.LEFT):
                found = self._tables(left, start, parts)
                middle = start + len(left.schema)
                found += self._tables(right, middle, parts)
                for part in _conjuncts(shift(condition, start)):
                    parts.append(part)
                    # What an outer join compares on one side only does not choose rows of that side.
                    pairs = _equal(part)
                    found += [
                        p for p in pairs if kind is JoinKind.INNER or (p[0] < middle) != (p[1] < middle)
                    ]
                return found
            case Join():
                raise self._error(
                    "window_final() goes with JOIN and LEFT JOIN",
                    "turn the tables around, or write two views",
                )
            case _:
                raise self._error(
                    "window_final() reads relations, not subqueries and views",
                    "name the windowed relations in FROM",
                )

    def _window(self, key: Expression) -> tuple[int, int] | None:
        """Slide and event time, if a key is a window of one."""
        match key:
            case Call("add_microseconds", (Call() as inner, Column())):
                return self._window(inner)
            case Call("tumble", (Column(index), Literal(size))) if index in self._times:
                return int(size), index
            case _:
                return None

    def _check_joined(self, pairs: list[tuple[int, int, int]], slide: int, first: int) -> None:
        """Every relation is tied to the window, directly or by others."""
        tied, before = {first}, 0
        while len(tied) > before:
            before = len(tied)
            for one, other, length in pairs:
                ends = {self._times.get(one, -1), self._times.get(other, -1)}
                if -1 not in ends and length in (0, slide) and ends & tied:
                    tied |= ends
        for place, name in enumerate(self.relations):
            if place not in tied:
                raise self._error(f"rows of {name} from other windows could change a final row", _JOIN)

    # What it means.

    def _progress(self, slide: int, size: int) -> Plan:
        """One row: the beginning of the last window that all sources have closed, or NULL.

        Rounded before the least is taken: so the row changes once per window, and not with every marker.
        """
        catalog = self.context.catalog
        schema = catalog.schema(PROGRESS) or ()
        names = sorted(set(self.relations))
        of = tuple(Literal(name, TEXT) for name in names)
        rows = Filter(Scan(PROGRESS, schema), InList(Column(1, TEXT, "relation"), of))
        ended = Call("add_microseconds", (Column(2, TIMESTAMP, "until"), Literal(-size, BIGINT)), TIMESTAMP)
        last = Call("tumble", (ended, Literal(slide, BIGINT)), TIMESTAMP)
        calls = (AggregateCall("count", last), AggregateCall("min", last))
        sources = sum(len(relation.sources) for name in names if (relation := catalog.relation(name)))
        complete = Call("=", (Column(0, BIGINT), Literal(sources, BIGINT)), BOOLEAN)
        known = Case(((complete, Column(1, TIMESTAMP)),), Literal(None, TIMESTAMP))
        return Project(Aggregate(rows, (), calls, ("sources", "last")), (known,), ("last",))


def _without_steps(plan: Plan) -> tuple[Plan, int]:
    """The rows that `hop` has spread, and over how many windows; 1 where it has not."""
    match plan:
        case Join(JoinKind.INNER, left, Values(schema, rows)) if schema[0].name == STEP:
            return left, len(rows)
        case _:
            return plan, 1


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, And):
        for part in condition.arguments:
            yield from _conjuncts(part)
    else:
        yield condition


def _equal(condition: Expression) -> list[tuple[int, int, int]]:
    """Which moments a condition puts into one window: (position, position, length), of length 0 if equal."""
    match condition:
        case Call("=", (Column(one), Column(other))):
            return [(one, other, 0)]
        case Call("=", (Call("tumble", (Column(one), a)), Call("tumble", (Column(other), b)))) if a == b:
            return [(one, other, int(a.value))] if isinstance(a, Literal) else []
        case _:
            return []
