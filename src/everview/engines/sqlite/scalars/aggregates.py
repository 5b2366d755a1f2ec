"""Aggregates over a bag, as one SQL aggregate expression each.

The rows carry a weight, how often each occurs, which is positive; the results are the exact ones of
`language.aggregates`. Whole numbers are summed by SQLite in two halves of 32 bits each, so that no sum
overflows on the way below a total weight of 2^31; beyond, SQLite raises rather than be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.engines.sqlite.scalars.expressions import compile_expression
from everview.engines.sqlite.scalars.fragments import Writer
from everview.engines.sqlite.scalars.storage import is_long
from everview.engines.sqlite.scalars.sums import HALF, average_name
from everview.language.aggregates import AggregateCall
from everview.language.expressions import Column, can_fail
from everview.language.types import Kind, Type

__all__ = ["aggregate_sql"]

_MASK = (1 << HALF) - 1
_LIMIT = 1 << (HALF - 1)


def aggregate_sql(
    call: AggregateCall, columns: Sequence[str], weight: str | None = None, *, strict: bool = False
) -> str:
    """The aggregate over rows of these columns, each occurring `weight` times (None: once)."""
    where = ""
    if call.filter is not None:
        where = f" FILTER (WHERE {compile_expression(call.filter, columns, strict=strict)})"
    if call.argument is None:
        return f"coalesce(sum({weight}){where}, 0)" if weight else f"count(*){where}"
    argument = compile_expression(call.argument, columns, strict=strict)
    return _Aggregation(call, argument, weight, where, strict=strict).sql(call.argument.type)


class _Aggregation:
    def __init__(
        self, call: AggregateCall, argument: str, weight: str | None, where: str, *, strict: bool
    ) -> None:
        self._call = call
        self._argument = argument
        self._weight = None if call.distinct else weight
        self._where = where
        self._writer = Writer(strict=strict)

    def sql(self, kind: Type) -> str:
        distinct = "DISTINCT " if self._call.distinct else ""
        match self._call.function:
            case "count" if self._weight:
                return f"coalesce({self._count()}, 0)"
            case "count":
                return f"count({distinct}{self._argument}){self._where}"
            case "min" | "bool_and":
                return f"min({self._argument}){self._where}"
            case "max" | "bool_or":
                return f"max({self._argument}){self._where}"
            case "exact":
                return self._carried("ev_total_of_doubles", "ev_total_as_text")
            case "exact_sum":
                return self._carried("ev_total_of_texts", "ev_total_as_double")
            case "sketch_marks" | "sketch_marks_union":
                read = "codes" if kind.kind is Kind.BIGINT else "marks"
                return f"ev_sketch_marks({self._sketch(read)})"
            case "sketch_counts" | "sketch_counts_sum":
                read = "codes" if kind.kind is Kind.BIGINT else "texts"
                return self._sketch(read)
            case function if not self._halved(kind):
                return self._by_python(function, kind)
            case "sum" if kind.kind is Kind.BIGINT:
                return self._bigint_sum()
            case "sum":
                return f"{self._named('halves_sum_decimal')}({self._upper()}, {self._lower()})"
            case _:
                return self._average(kind)

    def _carried(self, total: str, value: str) -> str:
        """What goes from site to site, or comes of it; NULL over no values."""
        found = f"{value}({total}({self._argument}, {self._weight or 1}){self._where})"
        return f"(CASE WHEN {self._count()} > 0 THEN {found} END)"

    def _sketch(self, read: str) -> str:
        """How often each place of a sketch is there; NULL over no values."""
        return f"nullif(ev_sketch_of_{read}({self._argument}, {self._weight or 1}){self._where}, '')"

    def _halved(self, kind: Type) -> bool:
        """Whether the sum is written as sums of halves.

        That repeats the argument and the filter, so one must be a column and the other must not fail.
        """
        if self._call.distinct or kind.kind is Kind.DOUBLE or is_long(kind):
            return False
        simple = isinstance(self._call.argument, Column)
        return simple and (self._call.filter is None or not can_fail(self._call.filter))

    def _named(self, name: str) -> str:
        return f"ev_{name}_strict" if self._writer.strict else f"ev_{name}"

    def _by_python(self, function: str, kind: Type) -> str:
        name = f"{function}_{kind.kind.name.lower()}"
        if function == "avg" and kind.kind is Kind.DECIMAL:
            name = average_name(self._call.type.digits[1] - kind.digits[1])
        distinct = "DISTINCT " if self._call.distinct else ""
        weight = f", {self._weight}" if self._weight else ""
        return f"{self._named(name)}({distinct}{self._argument}{weight}){self._where}"

    def _weighted(self, value: str) -> str:
        return f"sum({value} * {self._weight}){self._where}" if self._weight else f"sum({value}){self._where}"

    def _upper(self) -> str:
        return self._weighted(f"({self._argument} >> {HALF})")

    def _lower(self) -> str:
        return self._weighted(f"({self._argument} & {_MASK})")

    def _count(self) -> str:
        if not self._weight:
            return f"count({self._argument}){self._where}"
        return f"sum(CASE WHEN {self._argument} IS NOT NULL THEN {self._weight} END){self._where}"

    def _bigint_sum(self) -> str:
        """The carry of the lower half goes up; the whole fits if the upper half has 32 bits then."""
        lower = self._lower()
        upper = f"({self._upper()} + ({lower} >> {HALF}))"
        failure = self._writer.fail("sum does not fit BIGINT")
        return (
            f"(CASE WHEN {upper} NOT BETWEEN -{_LIMIT} AND {_LIMIT - 1} THEN {failure} "
            f"ELSE ({upper} << {HALF}) | ({lower} & {_MASK}) END)"
        )

    def _average(self, kind: Type) -> str:
        parts = [self._upper(), self._lower(), self._count()]
        if kind.kind is Kind.BIGINT:
            return f"{self._named('halves_avg_bigint')}({', '.join(parts)})"
        shift = self._call.type.digits[1] - kind.digits[1]
        return f"{self._named('halves_avg_decimal')}({', '.join([*parts, str(shift)])})"
