"""Bodies of rules, to plans: atoms are joined, comparisons filter or bind, negated atoms take away.

Every variable must be bound: by an atom that is not negated, or by an equality with what is bound. An
aggregate has a body of its own; the variables that it shares with the rest of its rule are what it is
grouped by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from everview.errors import ProgramError
from everview.language import plan as plans
from everview.language.aggregates import AggregateCall
from everview.language.datalog.ast import (
    Aggregate,
    Anonymous,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Fold,
    Negation,
    Operation,
    Place,
    Rule,
    Term,
    Variable,
    variables_of,
)
from everview.language.datalog.parser import error_at
from everview.language.datalog.terms import call, fitted, term_expression
from everview.language.expressions import (
    Call,
    Column,
    Expression,
    IsNull,
    Literal,
    Not,
    conjunction,
)
from everview.language.functions import NoSignatureError
from everview.language.plan import Filter, Join, JoinKind, Plan, Schema, Values
from everview.language.types import BIGINT, BOOLEAN

__all__ = ["Body", "ReadAtom", "aggregate_call", "not_null", "set_apart", "unsafe"]

ReadAtom = Callable[[Atom], Plan]
"""The plan that gives the rows of an atom's relation; it has checked the name and the number of arguments."""

ONE_ROW = Values((), ((),))


@dataclass(slots=True)
class Body:
    """A body while it is compiled: the rows of what was taken so far, and the variables bound over them."""

    rule: Rule
    read: ReadAtom
    plan: Plan = ONE_ROW
    bound: dict[str, Expression] = field(default_factory=dict)
    _computed: list[tuple[Column, Term, Atom]] = field(default_factory=list)
    """Columns of atoms that an expression stands for."""

    def take(self, literals: Iterable[BodyLiteral], outside: Collection[str]) -> None:
        """Take all literals; `outside` are the variables that an aggregate shares with its rule."""
        waiting: list[BodyLiteral] = []
        for literal in literals:
            if isinstance(literal, Atom):
                self._join(literal)
            else:
                waiting.append(literal)
        while (ready := next((one for one in waiting if self._is_ready(one, outside)), None)) is not None:
            waiting.remove(ready)
            self._take(ready, outside)
        for column, term, atom in self._computed:
            self.check_bound(term)
            value = fitted(term_expression(term, self.bound), column.type, _named(atom, column), term.place)
            self._filter(call("=", [column, value], term.place))
        for literal in waiting:
            self.check_bound(literal)
            raise error_at(
                literal.place, "this is bound only by itself", hint="bind its variables by an atom"
            )

    def check_bound(self, *parts: Term | BodyLiteral) -> None:
        """Refuse what reads a variable that nothing binds."""
        for part in parts:
            if isinstance(part, Comparison) and isinstance(part.right, Aggregate):
                self.check_bound(*(v for v in variables_of(*part.right.body) if v.name not in self.bound))
        free = next((v for v in variables_of(*parts) if v.name not in self.bound), None)
        if free is not None:
            raise unsafe(self.rule, free)

    # Atoms.

    def _join(self, atom: Atom) -> None:
        rows = self.read(atom)
        own = _columns(rows.schema, len(self.plan.schema))
        parts: list[Expression] = []
        for column, argument in zip(own, atom.arguments, strict=True):
            match argument:
                case Anonymous():
                    pass
                case Variable(name) if name not in self.bound:
                    self.bound[name] = column
                case Variable() | Constant():
                    parts.append(self._equal(argument, column, atom))
                case Operation():
                    self._computed.append((column, argument, atom))
                case Aggregate(place=place) | Fold(place=place):
                    raise error_at(
                        place, "an aggregate stands in a comparison or a head", hint="write n = count : { … }"
                    )
        if self.plan != ONE_ROW:
            self.plan = Join(JoinKind.INNER, self.plan, rows, conjunction(parts))
        else:
            self.plan = Filter(rows, conjunction(parts)) if parts else rows

    def _equal(self, argument: Term, column: Column, atom: Atom) -> Expression:
        """An argument of an atom is equal to the atom's column."""
        value = term_expression(argument, self.bound)
        if isinstance(value, Literal):
            value = fitted(value, column.type, _named(atom, column), argument.place)
        if value.type == column.type:
            return Call("=", (value, column), BOOLEAN)
        try:
            return call("=", [value, column], argument.place)
        except ProgramError:
            both = f"{value.type} elsewhere in the rule"
            raise error_at(
                argument.place, f"{_named(atom, column)} is {column.type}, and this is {both}"
            ) from None

    # Comparisons and negated atoms.

    def _knows(self, part: Term | BodyLiteral) -> bool:
        return all(variable.name in self.bound for variable in variables_of(part))

    def _is_ready(self, literal: BodyLiteral, outside: Collection[str]) -> bool:
        match literal:
            case Comparison("=", Variable(), Aggregate() as aggregate):
                return all(name in self.bound for name in _shared(aggregate, outside))
            case Comparison("=", Variable(name), other) | Comparison("=", other, Variable(name)) if (
                name not in self.bound
            ):
                return self._knows(other)
            case _:
                return self._knows(literal)

    def _take(self, literal: BodyLiteral, outside: Collection[str]) -> None:
        match literal:
            case Comparison("=", Variable(name), Aggregate() as aggregate, place):
                value = self._aggregated(aggregate, outside)
                if name in self.bound:
                    self._filter(call("=", [self.bound[name], value], place))
                self.bound.setdefault(name, value)
            case Comparison("=", Variable(name), other) | Comparison("=", other, Variable(name)) if (
                name not in self.bound
            ):
                self.bound[name] = term_expression(other, self.bound)
            case Comparison(operator, left, right, place):
                sides = [term_expression(left, self.bound), term_expression(right, self.bound)]
                self._filter(call("<>" if operator == "!=" else operator, sides, place))
            case Negation(atom):
                rows = self.read(atom)
                own = _columns(rows.schema, len(self.plan.schema))
                pairs = zip(atom.arguments, own, strict=True)
                parts = [self._equal(a, c, atom) for a, c in pairs if not isinstance(a, Anonymous)]
                self.plan = Join(JoinKind.ANTI, self.plan, rows, conjunction(parts))
            case Atom():
                raise AssertionError("atoms are taken first")

    def _filter(self, condition: Expression) -> None:
        self.plan = Filter(self.plan, condition)

    # Aggregates.

    def _aggregated(self, aggregate: Aggregate, outside: Collection[str]) -> Expression:
        """Join what an aggregate comes to for each value of the variables that it shares with the rule."""
        shared = _shared(aggregate, outside)
        inner = Body(self.rule, self.read)
        literals, argument = _inside(aggregate)
        inner.take(literals, {v.name for v in variables_of(*literals)} | {*outside})
        inner.check_bound(*(v for v in variables_of(*aggregate.body) if v.name in shared))
        if argument is not None:
            inner.check_bound(argument)
        value = None if argument is None else term_expression(argument, inner.bound)
        made = aggregate_call(aggregate.function, value, aggregate.place)
        keys = tuple(inner.bound[name] for name in shared)
        groups = plans.Aggregate(inner.plan, keys, (made,), (*shared, "value"))
        own = _columns(groups.schema, len(self.plan.schema))
        pairs = zip(shared, own, strict=False)
        condition = conjunction([call("=", [self.bound[n], c], aggregate.place) for n, c in pairs])
        # Over no rows a count and a sum are 0; a least value there is none.
        zero = aggregate.function in ("count", "sum")
        kind = JoinKind.LEFT if zero and keys else JoinKind.INNER
        self.plan = Join(kind, self.plan, groups, condition)
        if zero:
            return call("coalesce", [own[-1], Literal(0, BIGINT)], aggregate.place)
        self._filter(not_null(own[-1]))
        return own[-1]


def _inside(aggregate: Aggregate) -> tuple[list[BodyLiteral], Term | None]:
    """The literals of an aggregate and its argument, with aggregates inside these set apart."""
    numbers = count(1)
    arguments = () if aggregate.argument is None else (aggregate.argument,)
    literals, terms = set_apart(aggregate.body, arguments, numbers, mark="'")
    return literals, terms[0] if terms else None


def set_apart(
    body: Iterable[BodyLiteral], terms: Iterable[Term], numbers: Iterator[int], *, mark: str = ""
) -> tuple[list[BodyLiteral], list[Term]]:
    """A body, and terms over it, with each aggregate inside a term replaced by a variable that equals it."""
    made: list[BodyLiteral] = []

    def one(term: Term) -> Term:
        match term:
            case Operation(name, arguments, place):
                return Operation(name, tuple(map(one, arguments)), place)
            case Aggregate(place=place):
                variable = Variable(f"{mark}aggregate {next(numbers)}", place)
                made.append(Comparison("=", variable, term, place))
                return variable
            case _:
                return term

    def literal(part: BodyLiteral) -> BodyLiteral:
        match part:
            case Comparison("=", Variable(), Aggregate()):
                return part
            case Comparison(operator, left, right, place):
                return Comparison(operator, one(left), one(right), place)
            case _:
                return part

    replaced = [literal(part) for part in body]
    named = [one(term) for term in terms]
    return [*replaced, *made], named


def _shared(aggregate: Aggregate, outside: Collection[str]) -> list[str]:
    """The variables of an aggregate that the rest of its rule uses too."""
    arguments = () if aggregate.argument is None else (aggregate.argument,)
    mine = dict.fromkeys(v.name for v in variables_of(*aggregate.body, *arguments))
    return [name for name in mine if name in outside]


def not_null(expression: Expression) -> Expression:
    """The condition that a value is there."""
    return Not(IsNull(expression))


def aggregate_call(function: str, argument: Expression | None, place: Place) -> AggregateCall:
    """An aggregate of ours by its Datalog name."""
    try:
        return AggregateCall("avg" if function == "mean" else function, argument)
    except NoSignatureError as error:
        raise error_at(place, str(error)) from None


def _columns(schema: Schema, start: int = 0) -> tuple[Column, ...]:
    return tuple(Column(start + index, f.type, f.name) for index, f in enumerate(schema))


def _named(atom: Atom, column: Column) -> str:
    return f"column {column.name} of {atom.relation}"


def unsafe(rule: Rule, variable: Variable) -> ProgramError:
    """The error for a variable that nothing binds."""
    return error_at(
        variable.place,
        f"{variable.name} is not bound in the rule for {rule.head.relation} on line {rule.place.line}",
        hint="use it in an atom of the body that is not negated, or say what it equals",
    )
