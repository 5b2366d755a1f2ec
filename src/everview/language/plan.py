"""Relational plans: frozen nodes with SQL's own multiplicities, checked when built.

A plan denotes a bag of rows: a row may occur several times, and only the nodes that say so (Distinct,
Aggregate, the set operations) change how often. Each node has `inputs` and a `schema`; expressions
refer to the columns of their node's input by position. Plans are equal and hashed by value, so equal
sub-plans of different views are the same key.

Nothing here depends on the order of rows except through explicit sort keys, and where a result would
depend on the order of equal keys (TopK, row_number, lag, …) the node carries `ties`, further keys that
make the order total up to equal rows. So a plan is a function of its inputs, and pruning a column that
ties need is visible as an error, not as another result.

A recursive view is a Fixpoint, which binds names for the RecursiveScans below it, the inmost one first: sets
of rows that are defined by each other, and grow until none of their plans has anything to add.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from everview.language.aggregates import AggregateCall, Frame, SortKey, WindowCall
from everview.language.expressions import Expression, Literal, Parameter, columns_of, is_nullable
from everview.language.hashing import HashedOnce, hashed_once
from everview.language.types import BIGINT, BOOLEAN, Field, Type

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Distinct",
    "Except",
    "Field",
    "Filter",
    "Fixpoint",
    "Frame",
    "Intersect",
    "Join",
    "JoinKind",
    "Plan",
    "Project",
    "RecursiveScan",
    "Scan",
    "Schema",
    "SortKey",
    "TopK",
    "UnionAll",
    "Values",
    "Window",
    "WindowCall",
    "expressions_of",
    "free_names",
    "map_expressions",
    "map_inputs",
    "rewrite",
    "types_of",
    "walk_plan",
]

Schema: TypeAlias = tuple[Field, ...]


class JoinKind(enum.Enum):
    """How rows without a partner are treated; SEMI and ANTI keep left rows with, or without, one."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    def __repr__(self) -> str:
        return f"JoinKind.{self.name}"


class PlanError(ValueError):
    """A node was built from parts that do not fit: a fault of the code that built it."""


def _check(expression: Expression, width: int) -> None:
    """Every column that the expression reads, inside subqueries too, is one of the row's."""
    outside = [index for index in columns_of(expression) if not 0 <= index < width]
    if outside:
        raise PlanError(f"column {outside[0]} of a row of {width} columns")


def _check_truth(predicate: Expression, width: int) -> None:
    if predicate.type != BOOLEAN:
        raise PlanError(f"a condition is BOOLEAN, not {predicate.type}")
    _check(predicate, width)


def _set(node: Plan, schema: Schema) -> None:
    """Fill in the schema of a frozen node that is being built."""
    object.__setattr__(node, "schema", schema)


def types_of(plan: Plan) -> tuple[Type, ...]:
    """The types of the columns."""
    return tuple(column.type for column in plan.schema)


@hashed_once
@dataclass(frozen=True, slots=True)
class Scan(HashedOnce):
    """The rows of a relation or a view, by name."""

    name: str
    schema: Schema

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """None."""
        return ()


@hashed_once
@dataclass(frozen=True, slots=True)
class RecursiveScan(HashedOnce):
    """The rows, so far, of a relation of the Fixpoint around."""

    name: str
    schema: Schema

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """None."""
        return ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Values(HashedOnce):
    """Rows written out: constants and parameters. One row of no columns is the FROM of `SELECT 1`."""

    schema: Schema
    rows: tuple[tuple[Expression, ...], ...]

    def __post_init__(self) -> None:
        kinds = tuple(column.type for column in self.schema)
        for row in self.rows:
            if tuple(cell.type for cell in row) != kinds:
                raise PlanError(f"a row of {[cell.type for cell in row]} among {kinds}")
            for cell in row:
                _check(cell, 0)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """None."""
        return ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Filter(HashedOnce):
    """The rows for which the predicate is true (neither false nor NULL)."""

    input: Plan
    predicate: Expression
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_truth(self.predicate, len(self.input.schema))
        _set(self, self.input.schema)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


@hashed_once
@dataclass(frozen=True, slots=True)
class Project(HashedOnce):
    """One row per input row: the expressions, under these names. Duplicates stay."""

    input: Plan
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = self.input.schema
        for expression in self.expressions:
            _check(expression, len(fields))
        columns = zip(self.names, self.expressions, strict=True)
        _set(self, tuple(Field(name, e.type, is_nullable(e, fields)) for name, e in columns))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


def _optional(fields: Schema) -> Schema:
    return tuple(replace(column, nullable=True) for column in fields)


@hashed_once
@dataclass(frozen=True, slots=True)
class Join(HashedOnce):
    """Pairs of rows for which the condition, over left columns then right columns, is true.

    A cross join is INNER with TRUE. SEMI and ANTI give left rows with their own multiplicity. NOT IN is
    ANTI with a condition that counts NULL as a match: `coalesce(x = y, true)`.
    """

    kind: JoinKind
    left: Plan
    right: Plan
    condition: Expression
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        left, right = self.left.schema, self.right.schema
        _check_truth(self.condition, len(left) + len(right))
        match self.kind:
            case JoinKind.INNER:
                _set(self, left + right)
            case JoinKind.LEFT:
                _set(self, left + _optional(right))
            case JoinKind.RIGHT:
                _set(self, _optional(left) + right)
            case JoinKind.FULL:
                _set(self, _optional(left) + _optional(right))
            case JoinKind.SEMI | JoinKind.ANTI:
                _set(self, left)
            case _:
                assert_never(self.kind)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """Left, right."""
        return (self.left, self.right)


def _united(inputs: Sequence[Plan]) -> Schema:
    """The schema of rows from any of the inputs: the first one's names, NULL where any may have it."""
    kinds = {types_of(plan) for plan in inputs}
    if len(kinds) != 1:
        raise PlanError(f"inputs of different types: {kinds}")
    columns = zip(*(plan.schema for plan in inputs), strict=True)
    return tuple(replace(same[0], nullable=any(c.nullable for c in same)) for same in columns)


@hashed_once
@dataclass(frozen=True, slots=True)
class UnionAll(HashedOnce):
    """The rows of all inputs; multiplicities add."""

    inputs: tuple[Plan, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("a union of nothing")
        _set(self, _united(self.inputs))


@hashed_once
@dataclass(frozen=True, slots=True)
class Distinct(HashedOnce):
    """Every row once; NULLs are equal here."""

    input: Plan
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, self.input.schema)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


@hashed_once
@dataclass(frozen=True, slots=True)
class Intersect(HashedOnce):
    """Rows of both: with `all` the lesser of the two multiplicities, else once."""

    left: Plan
    right: Plan
    all: bool
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, _united((self.left, self.right)))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """Left, right."""
        return (self.left, self.right)


@hashed_once
@dataclass(frozen=True, slots=True)
class Except(HashedOnce):
    """Rows of the left only: with `all` the difference of multiplicities, else once if not in the right."""

    left: Plan
    right: Plan
    all: bool
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _united((self.left, self.right))
        _set(self, self.left.schema)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """Left, right."""
        return (self.left, self.right)


@hashed_once
@dataclass(frozen=True, slots=True)
class Aggregate(HashedOnce):
    """One row per group: the keys, then the aggregates. NULLs are equal as keys.

    Without keys there is exactly one group, also over no rows at all.
    """

    input: Plan
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = self.input.schema
        for call in self.aggregates:
            for part in (call.argument, call.filter):
                if part is not None:
                    _check(part, len(fields))
        for key in self.keys:
            _check(key, len(fields))
        columns = [(key.type, is_nullable(key, fields)) for key in self.keys]
        columns += [(call.type, call.function != "count") for call in self.aggregates]
        named = zip(self.names, columns, strict=True)
        _set(self, tuple(Field(name, kind, nullable) for name, (kind, nullable) in named))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


def _check_count(count: Literal | Parameter | None) -> None:
    if count is None:
        return
    negative = isinstance(count, Literal) and (count.value is None or count.value < 0)
    if count.type != BIGINT or negative:
        raise PlanError("LIMIT and OFFSET are whole numbers, not negative")


@hashed_once
@dataclass(frozen=True, slots=True)
class TopK(HashedOnce):
    """The rows from `offset` on, at most `limit`, in the order of `order` and then `ties`.

    `ties` are all columns that `order` does not name, ascending, NULLs last, so that rows which still
    compare equal are equal. As the root of a query it also orders the result; `limit` None keeps all.
    """

    input: Plan
    order: tuple[SortKey, ...]
    ties: tuple[SortKey, ...]
    limit: Literal | Parameter | None
    offset: Literal | Parameter | None
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key in (*self.order, *self.ties):
            _check(key.expression, len(self.input.schema))
        _check_count(self.limit)
        _check_count(self.offset)
        _set(self, self.input.schema)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


@hashed_once
@dataclass(frozen=True, slots=True)
class Window(HashedOnce):
    """The input's columns, then one column per call, computed over the row's partition."""

    input: Plan
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = self.input.schema
        for call in self.calls:
            for part in call.expressions:
                _check(part, len(fields))
        named = zip(self.names, self.calls, strict=True)
        _set(self, fields + tuple(Field(name, call.type, call.nullable) for name, call in named))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)


@hashed_once
@dataclass(frozen=True, slots=True)
class Fixpoint(HashedOnce):
    """The rows of `result`, one of a group of relations that are defined by each other.

    They are the least sets of rows such that each holds what its plan gives over all of them. The plans are
    monotone in the relations of the group (`recursion` says which plans are), so these sets exist; they are
    reached by applying the plans, from empty sets on, until nothing is added.
    """

    names: tuple[str, ...]
    schemas: tuple[Schema, ...]
    plans: tuple[Plan, ...]
    result: str
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or self.result not in self.names:
            raise PlanError(f"{self.result} is not one of {self.names}")
        for name, schema, plan in zip(self.names, self.schemas, self.plans, strict=True):
            if types_of(plan) != tuple(column.type for column in schema):
                raise PlanError(f"{name} has the columns {schema}, its plan {plan.schema}")
        _set(self, self.schemas[self.names.index(self.result)])

    @property
    def inputs(self) -> tuple[Plan, ...]:
        """The plans of the group."""
        return self.plans


Plan: TypeAlias = (
    Scan
    | RecursiveScan
    | Values
    | Filter
    | Project
    | Join
    | UnionAll
    | Distinct
    | Intersect
    | Except
    | Aggregate
    | TopK
    | Window
    | Fixpoint
)


def map_inputs(plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
    """The same node over the images of its inputs: the very same node if each is its own image."""
    before = plan.inputs
    images = [function(child) for child in before]
    if all(image is child for image, child in zip(images, before, strict=True)):
        return plan
    match plan:
        case Scan() | RecursiveScan() | Values():
            return plan
        case UnionAll():
            return UnionAll(tuple(images))
        case Fixpoint():
            return replace(plan, plans=tuple(images))
        case Join() | Intersect() | Except():
            return replace(plan, left=images[0], right=images[1])
        case Filter() | Project() | Distinct() | Aggregate() | TopK() | Window():
            return replace(plan, input=images[0])
        case _:
            assert_never(plan)


def expressions_of(plan: Plan) -> tuple[Expression, ...]:
    """The expressions that this node itself holds."""
    match plan:
        case Scan() | RecursiveScan() | UnionAll() | Distinct() | Intersect() | Except() | Fixpoint():
            return ()
        case Values(_, rows):
            return tuple(cell for row in rows for cell in row)
        case Filter(_, predicate):
            return (predicate,)
        case Project(_, expressions):
            return expressions
        case Join(condition=condition):
            return (condition,)
        case Aggregate(_, keys, aggregates):
            parts = (part for call in aggregates for part in (call.argument, call.filter))
            return (*keys, *(part for part in parts if part is not None))
        case TopK(_, order, ties):
            return tuple(key.expression for key in (*order, *ties))
        case Window(_, calls):
            return tuple(part for call in calls for part in call.expressions)
        case _:
            assert_never(plan)


def map_expressions(plan: Plan, function: Callable[[Expression], Expression]) -> Plan:
    """The same node with each of its own expressions replaced; inputs are not entered.

    Of most nodes it is the very same one if each expression is its own image.
    """
    match plan:
        case Scan() | RecursiveScan() | UnionAll() | Distinct() | Intersect() | Except() | Fixpoint():
            return plan
        case Values(schema, rows):
            return Values(schema, tuple(tuple(map(function, row)) for row in rows))
        case Filter(child, predicate):
            image = function(predicate)
            return plan if image is predicate else Filter(child, image)
        case Project(child, expressions, names):
            images = tuple(map(function, expressions))
            same = all(one is other for one, other in zip(images, expressions, strict=True))
            return plan if same else Project(child, images, names)
        case Join(kind, left, right, condition):
            image = function(condition)
            return plan if image is condition else Join(kind, left, right, image)
        case Aggregate(child, keys, aggregates, names):
            calls = tuple(call.map_expressions(function) for call in aggregates)
            return Aggregate(child, tuple(map(function, keys)), calls, names)
        case TopK():
            return replace(
                plan,
                order=tuple(key.map_expressions(function) for key in plan.order),
                ties=tuple(key.map_expressions(function) for key in plan.ties),
            )
        case Window(child, calls, names):
            return Window(child, tuple(call.map_expressions(function) for call in calls), names)
        case _:
            assert_never(plan)


def walk_plan(plan: Plan) -> Iterator[Plan]:
    """The plan and every plan below it, parents first; plans inside subquery expressions are not entered."""
    waiting = [plan]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.inputs))


def rewrite(plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
    """Rebuilt from the leaves: `function` sees each node after its inputs were rewritten."""
    return function(map_inputs(plan, lambda child: rewrite(child, function)))


def free_names(plan: Plan) -> frozenset[str]:
    """The names of RecursiveScans in the plan that a Fixpoint around it binds."""
    match plan:
        case RecursiveScan(name):
            return frozenset([name])
        case Fixpoint(names):
            return frozenset[str]().union(*map(free_names, plan.plans)) - frozenset(names)
        case _:
            return frozenset[str]().union(*map(free_names, plan.inputs))
