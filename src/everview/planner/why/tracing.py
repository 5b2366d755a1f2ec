"""Tracing: rows are followed backwards through their plan, one operator at a time, all rows at once.

Which rows of the input could a row come from, and why are those there. Alternatives add up, joined rows
multiply (Streams §5). Of an aggregate or a window function it is one monomial: all rows of the group. A
store is asked once or twice for an operator, however many rows are traced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from everview.algebra.ids import Id
from everview.algebra.provenance import Provenance
from everview.language.expressions import (
    TRUE,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    shift,
    substitute,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Field,
    Filter,
    Fixpoint,
    Intersect,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    Schema,
    TopK,
    UnionAll,
    Values,
    Window,
)
from everview.language.types import Kind
from everview.planner.conditions import all_columns, rejects_null, same
from everview.planner.outer import without_partner
from everview.planner.why.evidence import Evidence, Question, Row, ask
from everview.planner.why.proofs import Fact, Proof, Search

__all__ = ["Tracing"]

Reasons = Mapping[Row, Provenance]


class Tracing:
    """Traces rows over one state of a store."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._known: defaultdict[str, dict[Row, Provenance]] = defaultdict(dict)
        self._searches: dict[object, Search] = {}

    def why(self, scan: Scan, row: Row) -> Provenance:
        """Why a row of a relation or view is there; 0 for one that is not."""
        return self._scan(scan, self._there(scan, [row])).get(row, Provenance.ZERO)

    def _there(self, plan: Plan, rows: Sequence[Row]) -> list[Row]:
        """Those of the rows that the plan has."""
        found = {row for row, _ in self._meet(rows, plan, all_columns(plan.schema))}
        return [row for row in rows if row in found]

    def _scan(self, plan: Scan, rows: Sequence[Row]) -> Reasons:
        known = self._known[plan.name]
        new = [row for row in rows if row not in known]
        if new:
            made = self._evidence.plans.get(plan.name)
            known.update(self._evidence.base(plan.name, new) if made is None else self._trace(made, new))
        return known

    def _trace(self, plan: Plan, rows: Sequence[Row]) -> Reasons:
        """Why rows are there, different ones that the plan has; a row for which none is found has 0."""
        match plan:
            case Scan():
                return self._scan(plan, rows)
            case Values():
                return dict.fromkeys(rows, Provenance.ONE)
            case Filter() | Distinct() | TopK():
                return self._trace(plan.input, rows)
            case Project():
                return self._project(plan, rows)
            case UnionAll():
                return self._union(plan, rows)
            case Join():
                return self._join(plan, rows)
            case Intersect():
                left, right = self._trace(plan.left, rows), self._trace(plan.right, rows)
                return {row: left[row] * right[row] for row in rows}
            case Except():
                return self._trace(plan.left, rows)
            case Aggregate():
                keys = {row: row[: len(plan.keys)] for row in rows}
                return self._groups(plan.input, plan.keys, keys)
            case Window():
                return self._window(plan, rows)
            case Fixpoint():
                return self._recursive(plan, rows)
            case RecursiveScan():
                raise AssertionError(f"{plan.name} is read outside its recursion")
            case _:
                assert_never(plan)

    def proof(self, scan: Scan, row: Row) -> Proof | None:
        """The proof of a row of a recursive view that was traced; none for other rows."""
        plan = self._evidence.plans.get(scan.name)
        while plan is not None:
            match plan:
                case Fixpoint(names, plans=plans, result=result):
                    search, fact = self._searches.get((names, plans)), Fact(result, row)
                    if search is None or fact not in search.chosen:
                        return None
                    return replace(search.proof(fact), relation=scan.name)
                case Project() if (places := _inverse(plan)) is not None:
                    row, plan = tuple(row[place] for place in places), plan.input
                case Filter() | Distinct():
                    plan = plan.input
                case Scan():
                    plan = self._evidence.plans.get(plan.name)
                case _:
                    return None
        return None

    def _recursive(self, plan: Fixpoint, rows: Sequence[Row]) -> Reasons:
        """One proof of each row suffices: the rows of the inputs that it ends with."""
        search = self._searches.setdefault((plan.names, plan.plans), Search(self._evidence, plan))
        search = replace(search, group=plan)
        search.prove(rows)
        facts = {row: Fact(plan.result, row) for row in rows}
        ids = self._ids(search, search.behind(list(facts.values())))
        return {row: Provenance([ids[fact]]) for row, fact in facts.items()}

    def _ids(self, search: Search, facts: Sequence[Fact]) -> Mapping[Fact, frozenset[Id]]:
        """The ids that proofs of facts end with; of several reasons for an input's row a smallest."""
        wanted: defaultdict[Plan, dict[Row, None]] = defaultdict(dict)
        for fact in facts:
            for plan, row in search.chosen[fact].inputs():
                wanted[plan][row] = None
        reasons = {plan: self._trace(plan, list(rows)) for plan, rows in wanted.items()}
        found: dict[Fact, frozenset[Id]] = {}
        for fact in facts:
            chosen = search.chosen[fact]
            own = [_least(reasons[plan][row]) for plan, row in chosen.inputs()]
            found[fact] = frozenset[Id]().union(*own, *(found[premise] for premise in chosen.facts()))
        return found

    def _project(self, plan: Project, rows: Sequence[Row]) -> Reasons:
        """Any row that is projected to it suffices."""
        places = _inverse(plan)
        if places is not None:
            return self._renamed(plan.input, {row: tuple(row[place] for place in places) for row in rows})
        return self._sums(plan.input, rows, self._meet(rows, plan.input, plan.expressions))

    def _renamed(self, plan: Plan, of: Mapping[Row, Row]) -> Reasons:
        """Why rows are there that stand for others."""
        below = self._trace(plan, _once(of.values()))
        return {row: below[other] for row, other in of.items()}

    def _sums(self, plan: Plan, rows: Sequence[Row], pairs: Sequence[tuple[Row, Row]]) -> Reasons:
        below = self._trace(plan, _once(other for _, other in pairs))
        found: defaultdict[Row, dict[Row, None]] = defaultdict(dict)
        for row, other in pairs:
            found[row][other] = None
        return {row: _sum(below[other] for other in found[row]) for row in rows}

    def _union(self, plan: UnionAll, rows: Sequence[Row]) -> Reasons:
        """Each part that has the row is an alternative. A row that only one can have is not looked for."""
        parts = list(dict.fromkeys(plan.inputs))
        possible = {row: [_may_have(part, row) for part in parts] for row in rows}
        found: defaultdict[Row, list[Provenance]] = defaultdict(list)
        for place, part in enumerate(parts):
            mine = [row for row in rows if possible[row][place]]
            doubtful = [row for row in mine if sum(possible[row]) > 1]
            if doubtful and not (isinstance(part, Project) and _inverse(part) is None):
                there = set(self._there(part, doubtful))
                mine = [row for row in mine if row in there or sum(possible[row]) == 1]
            reasons = self._trace(part, mine) if mine else {}
            for row in mine:
                found[row].append(reasons[row])
        return {row: _sum(found[row]) for row in rows}

    def _join(self, plan: Join, rows: Sequence[Row]) -> Reasons:
        width = len(plan.left.schema)
        match plan.kind:
            case JoinKind.ANTI:
                return self._trace(plan.left, rows)
            case JoinKind.SEMI:
                left, partners = self._trace(plan.left, rows), self._partners(plan, rows)
                return {row: left[row] * partners[row] for row in rows}
            case JoinKind.INNER:
                left = self._renamed(plan.left, {row: row[:width] for row in rows})
                right = self._renamed(plan.right, {row: row[width:] for row in rows})
                return {row: left[row] * right[row] for row in rows}
            case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
                # The row may be a pair, or a row of either side that found no partner.
                return self._trace(without_partner(plan), rows)
            case _:
                assert_never(plan.kind)

    def _partners(self, plan: Join, rows: Sequence[Row]) -> Reasons:
        """Why rows on the left have partners: rows that the condition cannot tell apart share them."""
        width = len(plan.left.schema)
        used = sorted(column for column in columns_of(plan.condition) if column < width)
        keys = {row: tuple(row[place] for place in used) for row in rows}
        schema = tuple(plan.left.schema[place] for place in used)
        position = {place: at for at, place in enumerate(used)}
        theirs = range(width, width + len(plan.right.schema))
        position |= {place: place - width + len(used) for place in theirs}
        condition = substitute(plan.condition, lambda c: Column(position[c.index], c.type, c.name))
        wanted = _once(keys.values())
        pairs = ask(self._evidence, Question(wanted, schema, plan.right, condition))
        reasons = self._sums(plan.right, wanted, pairs)
        return {row: reasons[keys[row]] for row in rows}

    def _window(self, plan: Window, rows: Sequence[Row]) -> Reasons:
        """All rows of the partition that every call has in common."""
        width = len(plan.input.schema)
        keys = [key for key in plan.calls[0].partition if all(key in call.partition for call in plan.calls)]
        own = {row: row[:width] for row in rows}
        values = self._values(plan.input, keys, _once(own.values()))
        return self._groups(plan.input, keys, {row: values[own[row]] for row in rows})

    def _values(
        self, plan: Plan, expressions: Sequence[Expression], rows: Sequence[Row]
    ) -> Mapping[Row, Row]:
        """What the expressions are for rows of a plan."""
        if all(isinstance(expression, Column) for expression in expressions):
            places = [e.index for e in expressions if isinstance(e, Column)]
            return {row: tuple(row[place] for place in places) for row in rows}
        columns = all_columns(plan.schema)
        names = tuple(f"x{place}" for place in range(len(expressions) + len(columns)))
        valued = Project(plan, (*expressions, *columns), names)
        shown = [shift(column, len(expressions)) for column in columns]
        found = self._meet(rows, valued, shown)
        return {row: other[: len(expressions)] for row, other in found}

    def _groups(self, plan: Plan, keys: Sequence[Expression], of: Mapping[Row, Row]) -> Reasons:
        """All rows with a row's keys are needed: one monomial of everything behind them."""
        wanted = _once(of.values())
        pairs = self._meet(wanted, plan, keys)
        below = self._trace(plan, _once(other for _, other in pairs))
        groups: defaultdict[Row, set[Id]] = defaultdict(set)
        for key, other in pairs:
            groups[key] |= below[other].ids
        reasons = {key: Provenance([groups[key]]) for key in wanted}
        return {row: reasons[key] for row, key in of.items()}

    def _meet(
        self, rows: Sequence[Row], plan: Plan, expressions: Sequence[Expression]
    ) -> list[tuple[Row, Row]]:
        """The rows of a plan for which the expressions have the values of given rows, NULL equal to NULL."""
        schema: Schema = tuple(Field(f"x{place}", e.type) for place, e in enumerate(expressions))
        own = all_columns(schema)
        others = [shift(expression, len(own)) for expression in expressions]
        condition = conjunction([same(one, other) for one, other in zip(own, others, strict=True)])
        return ask(self._evidence, Question(rows, schema, plan, condition)) if rows else []


def _once(rows: Iterable[Row]) -> list[Row]:
    return list(dict.fromkeys(rows))


def _sum(reasons: Iterable[Provenance]) -> Provenance:
    """All of them as alternatives; put together once, for each time takes as long."""
    found = list(reasons)
    return found[0] if len(found) == 1 else Provenance({m for reason in found for m in reason.monomials})


def _least(reason: Provenance) -> frozenset[Id]:
    return min(reason.monomials, key=lambda monomial: (len(monomial), sorted(monomial)), default=frozenset())


def _inverse(plan: Project) -> list[int] | None:
    """Where each column of the input is shown, if all are: then the row tells which row it was."""
    shown = {e.index: place for place, e in enumerate(plan.expressions) if isinstance(e, Column)}
    columns = range(len(plan.input.schema))
    return [shown[column] for column in columns] if all(column in shown for column in columns) else None


def _may_have(plan: Plan, row: Row) -> bool:
    """Whether a plan may have a row, as far as its topmost operator says."""
    match plan:
        case Project(_, expressions):
            return all(_may_be(e, cell) for e, cell in zip(expressions, row, strict=True))
        case Join(JoinKind.INNER, _, _, condition) | Filter(_, condition):
            return condition == TRUE or not rejects_null(condition, lambda place: row[place] is None)
        case _:
            return True


def _may_be(expression: Expression, cell: object) -> bool:
    if not isinstance(expression, Literal) or expression.type.kind is Kind.DOUBLE:
        return True
    return bool(cell == expression.value)
