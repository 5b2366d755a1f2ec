"""Scalar expressions: frozen, typed, columns by position.

An expression is a value of the algebra, equal and hashed by what it says; names of columns are kept
for people and do not count. Every implicit conversion is written out as a Cast, so an engine never
guesses. Truth is three-valued: NULL is "not known".

Subqueries (`Exists`, `InSubquery`, `ScalarSubquery`) hold a plan. Inside it `OuterColumn(1, i)` is
column i of the row that the subquery is evaluated for, `OuterColumn(2, i)` of the row around that, and
so on. A planner rule turns them into joins; the reference evaluates them row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from everview.language.casts import can_cast, cast_fails
from everview.language.functions import FUNCTIONS
from everview.language.hashing import HashedOnce, hashed_once
from everview.language.types import BOOLEAN, Field, Kind, Type
from everview.language.values import canonical_double

if TYPE_CHECKING:
    from everview.language.plan import Plan

__all__ = [
    "FALSE",
    "TRUE",
    "And",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Exists",
    "Expression",
    "InList",
    "InSubquery",
    "IsDistinct",
    "IsNull",
    "Literal",
    "Not",
    "Or",
    "OuterColumn",
    "Parameter",
    "ScalarSubquery",
    "can_fail",
    "children",
    "columns_of",
    "conjunction",
    "is_nullable",
    "map_children",
    "shift",
    "substitute",
    "transform",
    "walk",
]


def _require(condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        raise ValueError(message)


@hashed_once
@dataclass(frozen=True, slots=True)
class Column(HashedOnce):
    """Column `index` of the input row; of a join, of the left row followed by the right one."""

    index: int
    type: Type
    name: str = field(default="", compare=False)


@hashed_once
@dataclass(frozen=True, slots=True)
class OuterColumn(HashedOnce):
    """Column `index` of the row `depth` subqueries further out."""

    depth: int
    index: int
    type: Type
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _require(self.depth >= 1, "an outer column is at least one subquery out")


@hashed_once
@dataclass(frozen=True, slots=True)
class Literal(HashedOnce):
    """A constant in its one form (see `values`), or NULL."""

    value: Any
    type: Type

    def __reduce__(self) -> tuple[Callable[[Any, Type], Literal], tuple[Any, Type]]:
        return _literal, (self.value, self.type)


def _literal(value: Any, kind: Type) -> Literal:
    """A constant from another process, where the one NaN was another object."""
    return Literal(canonical_double(value) if isinstance(value, float) else value, kind)


@hashed_once
@dataclass(frozen=True, slots=True)
class Parameter(HashedOnce):
    """A value given with the query: `name` is "1", "2", … for `?`, else the name after the colon."""

    name: str
    type: Type


@hashed_once
@dataclass(frozen=True, slots=True)
class Call(HashedOnce):
    """A function or operator of `functions.FUNCTIONS`; the arguments have exactly a signature's kinds."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type

    def __post_init__(self) -> None:
        function = FUNCTIONS.get(self.function)
        _require(function is not None, f"no function {self.function}")
        if function is not None and function.signatures:
            kinds = tuple(argument.type.kind for argument in self.arguments)
            fits = any(kinds == signature.parameters for signature in function.signatures)
            _require(fits, f"{self.function} does not take {kinds}")
        elif self.function != "concat":
            _require(len({argument.type for argument in self.arguments}) == 1, "types must be one")


@hashed_once
@dataclass(frozen=True, slots=True)
class Cast(HashedOnce):
    """CAST(operand AS type), explicit or made so by the binder."""

    operand: Expression
    type: Type

    def __post_init__(self) -> None:
        _require(can_cast(self.operand.type, self.type), f"no cast {self.operand.type} → {self.type}")


@hashed_once
@dataclass(frozen=True, slots=True)
class And(HashedOnce):
    """False if any argument is false, else NULL if any is NULL, else true; read from the left."""

    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(all(a.type == BOOLEAN for a in self.arguments), "AND is over BOOLEANs")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class Or(HashedOnce):
    """True if any argument is true, else NULL if any is NULL, else false; read from the left."""

    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(all(a.type == BOOLEAN for a in self.arguments), "OR is over BOOLEANs")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class Not(HashedOnce):
    """NOT; of NULL, NULL."""

    operand: Expression

    def __post_init__(self) -> None:
        _require(self.operand.type == BOOLEAN, "NOT is over a BOOLEAN")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class IsNull(HashedOnce):
    """IS NULL; never NULL itself."""

    operand: Expression

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class IsDistinct(HashedOnce):
    """IS DISTINCT FROM: different, where NULL equals NULL; never NULL itself."""

    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        _require(self.left.type == self.right.type, "both sides of IS DISTINCT FROM have one type")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class InList(HashedOnce):
    """Operand = any item; NULL when no item is equal and something is NULL."""

    operand: Expression
    items: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(bool(self.items), "IN needs items")
        _require(all(i.type == self.operand.type for i in self.items), "items have the operand's type")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class Case(HashedOnce):
    """The result of the first branch whose condition is true, else `default`; later ones are not read."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression

    def __post_init__(self) -> None:
        _require(bool(self.branches), "CASE needs a branch")
        _require(all(c.type == BOOLEAN for c, _ in self.branches), "WHEN is over a BOOLEAN")
        _require(all(r.type == self.default.type for _, r in self.branches), "branches have one type")

    @property
    def type(self) -> Type:
        """The one type of all results."""
        return self.default.type


@hashed_once
@dataclass(frozen=True, slots=True)
class Exists(HashedOnce):
    """Whether the plan has any row."""

    plan: Plan

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class InSubquery(HashedOnce):
    """Operand = any row of a one-column plan; NULL when none is equal and something is NULL."""

    operand: Expression
    plan: Plan

    def __post_init__(self) -> None:
        _require(len(self.plan.schema) == 1, "IN takes a plan of one column")
        _require(self.plan.schema[0].type == self.operand.type, "the plan has the operand's type")

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@hashed_once
@dataclass(frozen=True, slots=True)
class ScalarSubquery(HashedOnce):
    """The only value of a one-column plan: NULL without rows, a failure with several."""

    plan: Plan

    def __post_init__(self) -> None:
        _require(len(self.plan.schema) == 1, "a scalar subquery has one column")

    @property
    def type(self) -> Type:
        """The type of its one column."""
        return self.plan.schema[0].type


Expression: TypeAlias = (
    Column
    | OuterColumn
    | Literal
    | Parameter
    | Call
    | Cast
    | And
    | Or
    | Not
    | IsNull
    | IsDistinct
    | InList
    | Case
    | Exists
    | InSubquery
    | ScalarSubquery
)

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside, left to right; the plan of a subquery is not entered."""
    match expression:
        case Column() | Literal():
            return ()
        case Call(_, arguments, _) | And(arguments) | Or(arguments):
            return arguments
        case OuterColumn() | Parameter() | Exists() | ScalarSubquery():
            return ()
        case Cast(operand, _) | Not(operand) | IsNull(operand) | InSubquery(operand, _):
            return (operand,)
        case IsDistinct(left, right):
            return (left, right)
        case InList(operand, items):
            return (operand, *items)
        case Case(branches, default):
            return (*(part for branch in branches for part in branch), default)
        case _:
            assert_never(expression)


def map_children(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """The same expression with `function` applied to each direct child.

    It is the very same one if each child is its own image: nothing is built that is there already.
    """
    before = children(expression)
    images = [function(child) for child in before]
    if all(image is child for image, child in zip(images, before, strict=True)):
        return expression
    match expression:
        case Column() | OuterColumn() | Literal() | Parameter() | Exists() | ScalarSubquery():
            return expression
        case Call(name, _, kind):
            return Call(name, tuple(images), kind)
        case And():
            return And(tuple(images))
        case Or():
            return Or(tuple(images))
        case Cast(_, kind):
            return Cast(images[0], kind)
        case Not():
            return Not(images[0])
        case IsNull():
            return IsNull(images[0])
        case IsDistinct():
            return IsDistinct(images[0], images[1])
        case InList():
            return InList(images[0], tuple(images[1:]))
        case InSubquery(_, plan):
            return InSubquery(images[0], plan)
        case Case():
            return Case(tuple(zip(images[:-1:2], images[1:-1:2], strict=True)), images[-1])
        case _:
            assert_never(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, parents first; plans of subqueries are not entered."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def transform(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """Rebuilt from the leaves: `function` sees each node after its children were transformed."""
    return function(map_children(expression, lambda child: transform(child, function)))


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of the input row that the expression reads, subqueries included."""
    if isinstance(expression, Column):  # most are, and plans ask for it when they are built
        return frozenset((expression.index,))
    from everview.language.correlation import outer_columns  # noqa: PLC0415  (plans hold expressions)

    found: set[int] = set()
    for node in walk(expression):
        match node:
            case Column(index):
                found.add(index)
            case Exists(plan) | ScalarSubquery(plan) | InSubquery(_, plan):
                found.update(column.index for column in outer_columns(plan) if column.depth == 1)
            case _:
                pass
    return frozenset(found)


def substitute(expression: Expression, columns: Callable[[Column], Expression]) -> Expression:
    """The expression with each column of its row replaced, in subqueries too.

    A column that a subquery reads must be replaced by another column.
    """
    from everview.language.correlation import replace_outer  # noqa: PLC0415  (plans hold expressions)

    def one(node: Expression) -> Expression:
        match node:
            case Column():
                return columns(node)
            case Exists(plan) | ScalarSubquery(plan) | InSubquery(_, plan):
                return replace(node, plan=replace_outer(plan, columns))
            case _:
                return node

    return transform(expression, one)


def shift(expression: Expression, by: int) -> Expression:
    """The expression over a row that has `by` more columns in front."""
    return substitute(expression, lambda column: Column(column.index + by, column.type, column.name))


def conjunction(predicates: Sequence[Expression]) -> Expression:
    """All of them; TRUE for none; nested ANDs made flat."""
    flat: list[Expression] = []
    for predicate in predicates:
        flat.extend(predicate.arguments if isinstance(predicate, And) else (predicate,))
    flat = [predicate for predicate in flat if predicate != TRUE]
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def can_fail(expression: Expression) -> bool:
    """Whether evaluating it may fail for some row; a subquery counts as failing."""
    match expression:
        case Call(name) if FUNCTIONS[name].fails:
            return True
        case Cast(operand, target) if cast_fails(operand.type, target):
            return True
        case Exists() | InSubquery() | ScalarSubquery():
            return True
        case _:
            return any(can_fail(child) for child in children(expression))


def is_nullable(expression: Expression, fields: Sequence[Field]) -> bool:
    """Whether it may be NULL over rows of these fields; when in doubt, yes."""
    match expression:
        case Column(index):
            return fields[index].nullable
        case Literal(value):
            return value is None
        case IsNull() | IsDistinct() | Exists():
            return False
        case Cast(operand, target):
            return cast_fails(operand.type, target) or is_nullable(operand, fields)
        case Call("coalesce", arguments):
            return all(is_nullable(argument, fields) for argument in arguments)
        case Call("concat"):
            return False
        case Call(name, arguments):
            function = FUNCTIONS[name]
            if function.fails or name == "nullif":
                return True
            return any(is_nullable(argument, fields) for argument in arguments)
        case And(arguments) | Or(arguments):
            return any(is_nullable(argument, fields) for argument in arguments)
        case Not(operand):
            return is_nullable(operand, fields)
        case InList(operand, items):
            return any(is_nullable(part, fields) for part in (operand, *items))
        case Case(branches, default):
            results = (*(result for _, result in branches), default)
            return any(is_nullable(result, fields) for result in results)
        case _:
            return True


def kinds_of(expression: Expression) -> tuple[Kind, ...]:
    """The kinds of the direct children: what an engine looks a function up by."""
    return tuple(child.type.kind for child in children(expression))
