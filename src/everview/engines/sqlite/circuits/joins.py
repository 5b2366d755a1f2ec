"""Joins: inner ones by both sides' changes, the others by which left rows gained or lost their partners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from everview.engines.sqlite.circuits.circuit import Changed, Statement, consolidated, live
from everview.engines.sqlite.circuits.conditions import conditions
from everview.engines.sqlite.circuits.names import columns
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import (
    ONCE,
    Condition,
    Select,
    Source,
    aliases,
    equality,
    from_table,
)
from everview.language.expressions import (
    Call,
    Column,
    Expression,
    IsDistinct,
    Not,
    conjunction,
    shift,
    substitute,
)
from everview.language.plan import Join, JoinKind
from everview.language.types import BOOLEAN
from everview.planner.facts import equi_keys
from everview.planner.outer import without_partner

if TYPE_CHECKING:
    from everview.engines.sqlite.circuits.compiler import Compiler


@dataclass(frozen=True, slots=True)
class Sides:
    """Both inputs of a join with plain columns as keys, and the condition over their columns.

    An input whose key is computed is wider here than in the plan: the key is one more column of it.
    """

    left: Node
    right: Node
    condition: Expression
    keys: tuple[tuple[int, int, bool], ...]
    """Pairs of columns (left, right) that are equated, and whether NULL equals NULL there."""

    def left_contents(self) -> list[Select]:
        """Return the rows of the left input."""
        return self.left.contents() if self.left.contents else []

    def right_contents(self) -> list[Select]:
        """Return the rows of the right input."""
        return self.right.contents() if self.right.contents else []


def keyed_sides(compiler: Compiler, join: Join) -> Sides:
    """Arrange both inputs of a join so that each can be looked up by what the condition equates."""
    equated = equi_keys(join)
    left, left_keys = compiler.keyed(join.left, [pair.left for pair in equated.pairs])
    right, right_keys = compiler.keyed(join.right, [pair.right for pair in equated.pairs])
    width, wide = len(join.left.schema), len(left.schema)
    parts: list[Expression] = []
    keys: list[tuple[int, int, bool]] = []
    for pair, mine, theirs in zip(equated.pairs, left_keys, right_keys, strict=True):
        if isinstance(mine, Column) and isinstance(theirs, Column):
            keys.append((mine.index, theirs.index, pair.null_safe))
        moved = shift(theirs, wide)
        equal = Not(IsDistinct(mine, moved)) if pair.null_safe else Call("=", (mine, moved), BOOLEAN)
        parts.append(equal)
    parts.append(_moved(equated.residual, width, wide - width))
    return Sides(left, right, conjunction(parts), tuple(keys))


def _moved(expression: Expression, width: int, by: int) -> Expression:
    """The expression after the right input's columns moved to the right."""
    return substitute(expression, lambda c: Column(c.index + by, c.type, c.name) if c.index >= width else c)


def compile_inner(compiler: Compiler, join: Join) -> Node:
    """Δ(a ⋈ b) = Δa ⋈ b + a ⋈ Δb − Δa ⋈ Δb, with a and b as they are after the change.

    Nested joins come out as one flat select for every set of inputs that changed.
    """
    sides = keyed_sides(compiler, join)
    left_width, right_width = len(join.left.schema), len(join.right.schema)

    def pair(a: Select, b: Select) -> Select:
        both = a.cross(b)
        both = both.filter(*conditions(sides.condition, both.columns))
        return both.project((*a.columns[:left_width], *b.columns[:right_width]))

    def delta() -> list[Select]:
        changes = [pair(a, b) for a in sides.left.delta() for b in sides.right_contents()]
        changes += [pair(a, b) for b in sides.right.delta() for a in sides.left_contents()]
        return changes + [pair(a, b).negated() for a in sides.left.delta() for b in sides.right.delta()]

    def contents() -> list[Select]:
        return [pair(a, b) for a in sides.left_contents() for b in sides.right_contents()]

    return Node(join.schema, delta, contents, is_set=sides.left.is_set and sides.right.is_set)


def compile_join(compiler: Compiler, join: Join) -> Node:
    """Compile a join of any kind; an outer join is an inner one and the rows without a partner."""
    match join.kind:
        case JoinKind.INNER:
            return compile_inner(compiler, join)
        case JoinKind.SEMI | JoinKind.ANTI:
            return _Partners(compiler, join).node()
        case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
            sets = all(compiler.node(side).is_set for side in join.inputs)
            if join.kind is JoinKind.FULL and all(f.nullable for side in join.inputs for f in side.schema):
                sets = False  # a row of NULLs on either side, both without a partner, look the same
            return replace(compiler.node(without_partner(join)), schema=join.schema, is_set=sets)
        case _:
            assert_never(join.kind)


class _Partners:
    """SEMI and ANTI: the left rows that have, or lack, a partner on the right.

    With s(l) = 1 where the row l qualifies and 0 elsewhere,
    Δ = ΔL·s_old + L_new·(s_new − s_old), and s changes only for rows that some row of ΔR is a partner of.
    How many partners a row had before is how many it has now, less those in ΔR.
    """

    def __init__(self, compiler: Compiler, join: Join) -> None:
        self._circuit = compiler.circuit
        self._join = join
        self._sides = keyed_sides(compiler, join)
        name = f"p{compiler.number()}"
        self._change = self._circuit.scratch(f"d_{name}", join.schema)
        self._right_change = self._circuit.scratch(f"y_{name}", self._sides.right.schema)
        self._left_delta = self._sides.left.delta()
        self._right_delta = self._sides.right.delta()
        self._statements(Changed(frozenset({self._right_change}).union(*(b.needs for b in self._branches()))))
        touched = "the left rows that a changed key leads to" if self._sides.keys else "every left row"
        self._circuit.step(
            f"{join.kind.value} join",
            f"by change: changed left rows, and {touched}",
            self._branches(),
            self._statements,
            makes=self._change,
        )

    def _branches(self) -> list[Select]:
        return self._left_delta + self._right_delta

    def node(self) -> Node:
        names = columns(len(self._join.schema))

        def delta() -> list[Select]:
            return [
                from_table(self._circuit.names, self._change, names, weight="w", stored=False, delta=True)
            ]

        return Node(self._join.schema, delta, self._contents, is_set=self._sides.left.is_set)

    def _contents(self) -> list[Select]:
        kept = []
        for row in self._sides.left_contents():
            qualified = row.filter(Condition(self._qualifies(self._exists(row))))
            kept.append(qualified.project(row.columns[: len(self._join.schema)]))
        return kept

    def _statements(self, changed: Changed) -> list[Statement]:
        width = len(self._join.schema)
        made: list[Statement] = []
        right = live(self._right_delta, changed)
        if right:
            rows = consolidated(right, self._sides.right.schema)
            made.append(Statement(f"INSERT INTO {self._right_change} {rows}", self._right_change))
        for row in live(self._left_delta, changed):
            before = self._before(row) if right else self._exists(row)
            keys = [row.columns[mine] for mine, _, _ in self._sides.keys]
            kept = row.filter(Condition(self._qualifies(before))).along(keys).project(row.columns[:width])
            made.append(Statement(f"INSERT INTO {self._change} {self._sql(kept)}", self._change))
        for row in self._touched() if right else ():
            turn = f"({self._qualifies(self._exists(row))}) - ({self._qualifies(self._before(row))})"
            weight = turn if row.weight == "1" else f"({row.weight}) * ({turn})"
            turned = self._sql(row.project(row.columns[:width]).weighing(f"{weight} AS w"), ONCE)
            made.append(
                Statement(f"INSERT INTO {self._change} SELECT * FROM ({turned}) WHERE w <> 0", self._change)
            )
        return made

    def _sql(self, select: Select, tail: str = "") -> str:
        return select.sql(on_index=self._circuit.request_index, tail=tail)

    def _touched(self) -> list[Select]:
        """The left rows that some key in ΔR leads to, each once; without keys, all of them."""
        found = []
        for row in self._sides.left_contents():
            if not self._sides.keys:
                found.append(row)
                continue
            alias = self._circuit.names.alias()
            listed = ", ".join(dict.fromkeys(f"c{theirs}" for _, theirs, _ in self._sides.keys))
            keys = Source(f"(SELECT DISTINCT {listed} FROM {self._right_change})", alias, delta=True)
            led = [
                equality(f"{alias}.c{theirs}", row.columns[mine], null_safe=null_safe)
                for mine, theirs, null_safe in self._sides.keys
            ]
            found.append(replace(row, sources=(keys, *row.sources)).filter(*led))
        return found

    def _qualifies(self, partners: str) -> str:
        return partners if self._join.kind is JoinKind.SEMI else f"NOT ({partners})"

    def _exists(self, row: Select) -> str:
        """Whether the row has a partner now."""
        found = [f"EXISTS ({self._partner(row, other, '1')})" for other in self._sides.right_contents()]
        return " OR ".join(found)

    def _before(self, row: Select) -> str:
        """Whether the row had a partner before this commit."""
        gained = from_table(
            self._circuit.names,
            self._right_change,
            columns(len(self._sides.right.schema)),
            weight="w",
        )
        now = [
            f"coalesce(({self._partner(row, other, f'sum({other.weight})')}), 0)"
            for other in self._sides.right_contents()
        ]
        change = f"coalesce(({self._partner(row, gained, f'sum({gained.weight})')}), 0)"
        return f"{' + '.join(now)} > {change}"

    def _partner(self, row: Select, other: Select, shown: str) -> str:
        matched = other.filter(*conditions(self._sides.condition, row.columns + other.columns))
        bound = frozenset(source.alias for source in row.sources) | frozenset(aliases(" ".join(row.columns)))
        return matched.sql(columns=[shown], bound=bound, on_index=self._circuit.request_index)
