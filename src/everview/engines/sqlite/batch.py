"""A whole plan as one SELECT: for queries, for `why`, and to check views against their definitions.

Every node becomes a SELECT of its columns c0, c1, … and how often each row occurs, w. Nothing is kept and
nothing is incremental, so this is the short twin of the circuit's compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, assert_never

from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.ranked import copies, in_places, window_sql
from everview.engines.sqlite.circuits.setops import multiplicity
from everview.engines.sqlite.scalars.aggregates import aggregate_sql
from everview.engines.sqlite.scalars.expressions import compile_expression, sort_key_sql
from everview.errors import ProgramError
from everview.language.expressions import Expression, Literal, Parameter
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
    map_inputs,
)
from everview.planner.outer import without_partner

_LEVELS = 4
"""So many nodes are nested in one SELECT; each takes several levels of the parser's hundred."""


@dataclass(slots=True)
class Batch:
    """Compiles plans over named sources: `scans` gives the SELECT of a relation or view.

    `strict` makes failing expressions raise, as in a query; otherwise they are NULL, as in a view.
    """

    scans: Callable[[str], str]
    strict: bool = False
    parameters: Mapping[Parameter, Any] | None = None
    _aliases: count[int] = field(default_factory=lambda: count(1))
    _parts: dict[str, str] = field(default_factory=dict)

    def query(self, plan: Plan) -> str:
        """Return the statement of a plan of any depth: SQLite parses only so many levels of SELECTs.

        What lies deeper becomes a part of its own, in WITH. The topmost node does not, for it may order rows.
        """
        self._parts = {}
        text = self.sql(map_inputs(plan, lambda child: self._cut(child)[0]))
        listed = ", ".join(f"{name} AS ({part})" for name, part in self._parts.items())
        return f"WITH {listed} {text}" if listed else text

    def _cut(self, plan: Plan) -> tuple[Plan, int]:
        """A plan with parts in place of what lies deep, and how many levels are left."""
        below = [self._cut(child) for child in plan.inputs]
        children = iter([child for child, _ in below])
        plan = map_inputs(plan, lambda _: next(children))
        levels = 1 + max((levels for _, levels in below), default=0)
        if levels < _LEVELS:
            return plan, levels
        name = f"everview_p{len(self._parts) + 1}"
        self._parts[name] = self.sql(plan)
        return Scan(name, plan.schema), 1

    def sql(self, plan: Plan) -> str:
        """Return the SELECT of a plan's rows and their multiplicities."""
        match plan:
            case Scan(name):
                return f"SELECT * FROM {name}" if name in self._parts else self.scans(name)
            case Values():
                return self._values(plan)
            case Filter():
                source = self._from(plan.input)
                return (
                    f"SELECT {source.star}, w FROM {source} WHERE {self._expression(plan.predicate, source)}"
                )
            case Project():
                source = self._from(plan.input)
                return self._select([self._expression(e, source) for e in plan.expressions], "w", source)
            case UnionAll():
                return " UNION ALL ".join(f"SELECT * FROM ({self.sql(part)})" for part in plan.inputs)
            case Distinct():
                source = self._from(plan.input)
                return f"SELECT DISTINCT {source.star}, 1 AS w FROM {source}"
            case Join():
                return self._join(plan)
            case Intersect() | Except():
                return self._set_operation(plan)
            case Aggregate():
                return self._aggregate(plan)
            case TopK():
                return self._top_k(plan)
            case Window():
                return self._window(plan)
            case RecursiveScan() | Fixpoint():
                raise ProgramError(
                    "a query cannot be recursive", hint="declare a recursive view, and query that"
                )
            case _:
                assert_never(plan)

    def _from(self, plan: Plan) -> _From:
        return _From(self.sql(plan), f"b{next(self._aliases)}", len(plan.schema))

    def _expression(self, expression: Expression, *sources: _From) -> str:
        names = [name for source in sources for name in source.columns]
        return compile_expression(expression, names, strict=self.strict)

    def _select(self, cells: Sequence[str], weight: str, source: object) -> str:
        shown = [f"{cell} AS {name}" for cell, name in zip(cells, columns(len(cells)), strict=True)]
        return f"SELECT {', '.join([*shown, f'{weight} AS w'])} FROM {source}"

    def _values(self, plan: Values) -> str:
        names = columns(len(plan.schema))
        rows = []
        for row in plan.rows:
            cells = [f"{self._expression(cell)} AS {name}" for cell, name in zip(row, names, strict=True)]
            rows.append(f"SELECT {', '.join([*cells, '1 AS w'])}")
        nothing = f"SELECT {', '.join([*(f'NULL AS {name}' for name in names), '1 AS w'])} WHERE 0"
        return " UNION ALL ".join(rows) or nothing

    def _join(self, plan: Join) -> str:
        if plan.kind in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
            return self.sql(without_partner(plan))
        left, right = self._from(plan.left), self._from(plan.right)
        condition = self._expression(plan.condition, left, right)
        if plan.kind is JoinKind.INNER:
            cells = [*left.columns, *right.columns]
            pairs = f"{left} JOIN {right} ON {condition}"
            return self._select(cells, f"{left.alias}.w * {right.alias}.w", pairs)
        none = "NOT " if plan.kind is JoinKind.ANTI else ""
        partner = f"{none}EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        return f"SELECT {left.star}, w FROM {left} WHERE {partner}"

    def _set_operation(self, plan: Intersect | Except) -> str:
        sides = []
        for part, weight in ((plan.left, "w, 0"), (plan.right, "0, w")):
            source = self._from(part)
            sides.append(f"SELECT {source.star}, {weight} FROM {source}")
        names = ", ".join(columns(len(plan.schema)))
        both = f"SELECT {names}, sum(l) AS l, sum(r) AS r FROM ({_named(sides, plan)}) GROUP BY {names}"
        often = multiplicity(plan, "l", "r")
        return f"SELECT {names}, {often} AS w FROM ({both}) WHERE {often} > 0"

    def _aggregate(self, plan: Aggregate) -> str:
        source = self._from(plan.input)
        keys = [self._expression(key, source) for key in plan.keys]
        weight = f"{source.alias}.w"
        calls = [aggregate_sql(call, source.columns, weight, strict=self.strict) for call in plan.aggregates]
        # By position, because a constant key would be taken for one.
        group = ", ".join(str(position + 1) for position in range(len(keys)))
        rows = self._select([*keys, *calls], "1", source)
        return f"{rows} GROUP BY {group}" if keys else rows

    def _top_k(self, plan: TopK) -> str:
        names = columns(len(plan.schema))
        order = ", ".join(sort_key_sql(key, names, strict=self.strict) for key in (*plan.order, *plan.ties))
        source = self._from(plan.input)
        rows = f"SELECT {source.star}, w FROM {source}"
        limit, offset = self._count(plan.limit), self._count(plan.offset)
        chosen = in_places(rows, names, order, limit, offset)
        return f"SELECT * FROM ({chosen})" + (f" ORDER BY {order}" if order else "")

    def _count(self, bound: Literal | Parameter | None) -> int | None:
        if isinstance(bound, Parameter):
            return int((self.parameters or {})[bound])
        return None if bound is None else int(bound.value)

    def _window(self, plan: Window) -> str:
        names = columns(len(plan.input.schema))
        source = self._from(plan.input)
        rows = copies(f"SELECT {source.star}, w FROM {source}", names)
        calls = [window_sql(call, names) for call in plan.calls]
        return self._select([*names, *calls], "1", f"({rows})")


@dataclass(frozen=True, slots=True)
class _From:
    """A plan's SELECT in a FROM clause."""

    sql: str
    alias: str
    width: int

    def __str__(self) -> str:
        return f"({self.sql}) AS {self.alias}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{name}" for name in columns(self.width))

    @property
    def star(self) -> str:
        return ", ".join(f"{self.alias}.{name} AS {name}" for name in columns(self.width)) or "NULL AS none"


def _named(sides: Sequence[str], plan: Plan) -> str:
    names = [*columns(len(plan.schema)), "l", "r"]
    nothing = ", ".join(f"NULL AS {name}" for name in names)
    return " UNION ALL ".join([f"SELECT {nothing} WHERE 0", *sides])
