"""Aggregates, sort keys and window calls: the parts of Aggregate, TopK and Window nodes.

Sums are exact and rounded once: BIGINT to BIGINT (or it fails), DECIMAL(p,s) to DECIMAL(38,s), DOUBLE
to the double nearest to the exact sum, so that the order of rows never shows. avg is the sum divided
by the count: of BIGINT and DOUBLE a DOUBLE (the exact sum is rounded to DOUBLE, then divided), of
DECIMAL(p,s) a DECIMAL(38, s + 6), rounded half away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from everview.language.expressions import Expression
from everview.language.functions import NoSignatureError, quotient_scale
from everview.language.hashing import HashedOnce, hashed_once
from everview.language.types import BIGINT, BOOLEAN, DECIMAL_DIGITS, DOUBLE, TEXT, Kind, Type, decimal_type

__all__ = [
    "AGGREGATES",
    "APPROXIMATE",
    "CARRIED",
    "RANKINGS",
    "SHIFTS",
    "AggregateCall",
    "Frame",
    "SortKey",
    "WindowCall",
    "aggregate_type",
]

AGGREGATES: dict[str, str] = {
    "count": "count(*): number of rows; count(a): of those where a is not NULL",
    "sum": "exact sum, rounded once; NULL over no values",
    "avg": "sum divided by count; DOUBLE, of DECIMAL(p,s) a DECIMAL(38,s+6)",
    "min": "least value",
    "max": "greatest value; NaN is the greatest DOUBLE",
    "bool_and": "whether all are true",
    "bool_or": "whether any is true",
}
"""Every aggregate and what it means; all skip NULLs, all may say DISTINCT and FILTER (WHERE …)."""

APPROXIMATE: dict[str, str] = {
    "approx_count_distinct": "about how many different values there are: 2.3% standard error",
    "approx_percentile": "approx_percentile(a, p): about the number that a part p of all is not above, as "
    "DOUBLE: at most a 128th nearer to 0; p is written as a number from 0 to 1",
}
"""Aggregates by sketches (see `sketches`); they skip NULLs and may say FILTER (WHERE …)."""

CARRIED: dict[str, str] = {
    "exact": "exact sum of DOUBLEs, as text that can be added up elsewhere",
    "exact_sum": "the DOUBLE nearest to the sum of such texts",
    "sketch_marks": "the greatest mark of each slot, as text",
    "sketch_marks_union": "the same over such texts",
    "sketch_counts": "how often each step is there, as text",
    "sketch_counts_sum": "the sum of such texts",
}
"""What plans have besides, and programs do not: sketches, and what of an aggregate goes from site to site."""

RANKINGS: dict[str, str] = {
    "row_number": "number of the row in its partition, from 1; ties broken by the remaining columns",
    "rank": "number of the first row with the same sort keys",
    "dense_rank": "number of the group of rows with the same sort keys",
}
SHIFTS: dict[str, str] = {
    "lag": "value n rows before (1), else the default (NULL)",
    "lead": "value n rows after (1), else the default (NULL)",
    "first_value": "value in the first row of the frame",
    "last_value": "value in the last row of the frame",
}


def aggregate_type(function: str, argument: Type | None) -> Type:
    """The type of an aggregate over values of this type (None for `count(*)`)."""
    kind = argument.kind if argument is not None else None
    match function, kind:
        case "count", _:
            return BIGINT
        case (("bool_and" | "bool_or"), Kind.BOOLEAN):
            return BOOLEAN
        case (("min" | "max"), _) if argument is not None:
            return argument
        case "sum", Kind.BIGINT:
            return BIGINT
        case "sum", Kind.DECIMAL if argument is not None:
            return decimal_type(DECIMAL_DIGITS, argument.digits[1])
        case "avg", Kind.DECIMAL if argument is not None:
            return decimal_type(DECIMAL_DIGITS, quotient_scale(argument.digits[1]))
        case "exact", Kind.DOUBLE:
            return TEXT
        case "exact_sum", Kind.TEXT:
            return DOUBLE
        case (("sketch_marks" | "sketch_counts"), Kind.BIGINT):
            return TEXT
        case (("sketch_marks_union" | "sketch_counts_sum"), Kind.TEXT):
            return TEXT
        case ("sum", Kind.DOUBLE) | ("avg", Kind.BIGINT | Kind.DOUBLE):
            return DOUBLE
        case _:
            raise NoSignatureError(f"{function}({argument if argument is not None else '*'}) does not exist")


@hashed_once
@dataclass(frozen=True, slots=True)
class AggregateCall(HashedOnce):
    """An aggregate over the rows of a group for which `filter` is true; `argument` None is `count(*)`."""

    function: str
    argument: Expression | None
    distinct: bool = False
    filter: Expression | None = None

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES and self.function not in CARRIED:
            raise ValueError(f"no aggregate {self.function}")
        if self.distinct and self.argument is None:
            raise ValueError("count(DISTINCT *) does not exist")
        if self.filter is not None and self.filter.type != BOOLEAN:
            raise ValueError("FILTER takes a BOOLEAN")
        aggregate_type(self.function, self.argument.type if self.argument is not None else None)

    @property
    def type(self) -> Type:
        """The type of the result."""
        return aggregate_type(self.function, self.argument.type if self.argument is not None else None)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> AggregateCall:
        """The same call over the images of its expressions."""
        return replace(
            self,
            argument=None if self.argument is None else function(self.argument),
            filter=None if self.filter is None else function(self.filter),
        )


@hashed_once
@dataclass(frozen=True, slots=True)
class SortKey(HashedOnce):
    """An expression to sort by. NaN is greatest and text goes by bytes; NULLs as `nulls_first` says."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False

    def map_expressions(self, function: Callable[[Expression], Expression]) -> SortKey:
        """The same key over the image of its expression."""
        return replace(self, expression=function(self.expression))


@hashed_once
@dataclass(frozen=True, slots=True)
class Frame(HashedOnce):
    """The rows around the current one that a window function sees, both ends included.

    In "rows" mode `start` and `end` count rows from the current one: −2 is two preceding, 0 the current
    row, 1 one following; None is unbounded. In "range" mode they are None or 0, and 0 takes in all rows
    that are equal to the current one by the sort keys.
    """

    mode: OneOf["rows", "range"]
    start: int | None
    end: int | None

    def __post_init__(self) -> None:
        if self.mode == "range" and (self.start or self.end):
            raise ValueError("a RANGE frame reaches to UNBOUNDED or CURRENT ROW")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError("a frame starts before it ends")


@hashed_once
@dataclass(frozen=True, slots=True)
class WindowCall(HashedOnce):
    """A function over the rows of the current row's partition, in the order of `order`, then `ties`.

    Peers, for rank, dense_rank and "range" frames, are rows equal by `order` alone. lag and lead have
    three arguments: value, offset (a literal), default. `frame` is None for functions without one.
    """

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    ties: tuple[SortKey, ...]
    frame: Frame | None
    type: Type

    def __post_init__(self) -> None:
        if self.function not in {**AGGREGATES, **RANKINGS, **SHIFTS}:
            raise ValueError(f"no window function {self.function}")
        framed = self.function in AGGREGATES or self.function in {"first_value", "last_value"}
        if framed != (self.frame is not None):
            raise ValueError(f"{self.function} {'needs a' if framed else 'has no'} frame")

    @property
    def nullable(self) -> bool:
        """Whether the result may be NULL; only counts and ranks surely are not."""
        return self.function != "count" and self.function not in RANKINGS

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions inside, in the order of the fields."""
        keys = (key.expression for key in (*self.order, *self.ties))
        return (*self.arguments, *self.partition, *keys)

    def map_expressions(self, function: Callable[[Expression], Expression]) -> WindowCall:
        """The same call over the images of its expressions."""
        return replace(
            self,
            arguments=tuple(map(function, self.arguments)),
            partition=tuple(map(function, self.partition)),
            order=tuple(key.map_expressions(function) for key in self.order),
            ties=tuple(key.map_expressions(function) for key in self.ties),
        )
