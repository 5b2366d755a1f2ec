"""Aggregates in two steps: what Spark aggregates, and how the result is made of it.

Sums are exact. BIGINTs are added as DECIMALs; DECIMALs of more than 28 digits in two halves, so that a
sum which passes 38 digits on the way and comes back is not lost; DOUBLEs as `doubles` says. An average
is the sum divided by the count; of DECIMALs whose sum has more than 38 digits it is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.engines.spark.by_python import python_call
from everview.engines.spark.decimals import quotient
from everview.engines.spark.doubles import exact_sum
from everview.engines.spark.text import Names
from everview.language.types import Kind, Type

__all__ = ["Parts", "aggregate_parts"]

_SAFE_DIGITS = 28
"""Ten digits of room: as many as Spark gives a sum, enough for 10^10 rows."""

_LOW_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Parts:
    """Spark's aggregates, `{value}` standing for the argument, and the result over their names."""

    aggregates: tuple[str, ...]
    finish: str


def aggregate_parts(
    function: str, argument: Type | None, result: Type, names: tuple[str, str], *, distinct: bool = False
) -> Parts:
    """How to compute an aggregate; `names` are those of the columns that its parts will have."""
    first, second = names
    each = "DISTINCT {value}" if distinct else "{value}"
    kind = argument.kind if argument is not None else None
    match function, kind:
        case "count", None:
            return Parts(("count(1)",), first)
        case (("count" | "min" | "max" | "bool_and" | "bool_or"), _):
            return Parts((f"{function}({each})",), first)
        case "sum", Kind.BIGINT:
            return Parts((f"sum({_as_decimal(each)})",), f"try_cast({first} AS BIGINT)")
        case "avg", Kind.BIGINT:
            mean = f"CAST({first} AS DOUBLE) / nullif({second}, 0L)"
            return Parts((f"sum({_as_decimal(each)})", f"count({each})"), mean)
        case (("sum" | "avg"), Kind.DOUBLE):
            return _of_doubles(function, names, distinct=distinct)
        case "sum", Kind.DECIMAL if argument is not None:
            return _decimal_sum(argument, each, names)
        case "avg", Kind.DECIMAL if argument is not None:
            _, scale = argument.digits
            total = f"try_cast({first} AS DECIMAL(38,{scale}))"
            scales = scale, 0, result.digits[1]
            mean = quotient(Names(), total, f"CAST({second} AS DECIMAL(19,0))", scales=scales, digits=19)
            return Parts((f"try_sum({each})", f"count({each})"), mean)
        case (("sketch_marks" | "sketch_marks_union"), _):
            return Parts(("collect_set({value})",), python_call(function, first))
        case (("sketch_counts" | "sketch_counts_sum"), _):
            return Parts(("collect_list({value})",), python_call(function, first))
        case _:
            raise AssertionError(f"{function}({argument})")


def _as_decimal(each: str) -> str:
    return each.replace("{value}", "CAST({value} AS DECIMAL(19,0))")


def _of_doubles(function: str, names: tuple[str, str], *, distinct: bool) -> Parts:
    collected = "collect_set({value})" if distinct else "collect_list({value})"
    total = exact_sum(Names(), names[0])
    if function == "avg":
        # A mean of zero is written by one zero, whatever the sign of the sum was.
        total = f"{total} / nullif(size({names[0]}), 0) + 0.0D"
    return Parts((collected,), total)


def _decimal_sum(argument: Type, each: str, names: tuple[str, str]) -> Parts:
    whole, scale = argument.digits
    if whole + scale <= _SAFE_DIGITS:
        return Parts((f"sum({each})",), f"CAST({names[0]} AS DECIMAL(38,{scale}))")
    unit = _power(_LOW_DIGITS - scale)
    top, rest = "DECIMAL(19,0)", f"DECIMAL({max(_LOW_DIGITS, scale)},{scale})"

    def halves(value: str) -> tuple[str, str]:
        return f"CAST({value} div {unit} AS {top})", f"CAST({value} % {unit} AS {rest})"

    if "DISTINCT" not in each:
        high, low = halves("{value}")
        return Parts((f"sum({high})", f"sum({low})"), _whole_sum(*names, unit, scale))
    # The halves of different values may be equal, so the values are collected first.
    kinds = "DECIMAL(38,0)", f"DECIMAL(38,{scale})"
    sums = [
        f"aggregate({names[0]}, CAST(0 AS {kind}), (s, x) -> CAST(s + {half} AS {kind}))"
        for half, kind in zip(halves("x"), kinds, strict=True)
    ]
    total = Names().let(tuple(sums), lambda high, low: _whole_sum(high, low, unit, scale))
    return Parts(("collect_set({value})",), f"CASE WHEN size({names[0]}) > 0 THEN {total} END")


def _whole_sum(high: str, low: str, unit: str, scale: int) -> str:
    """The sum of DECIMALs from the sums of their halves; NULL when it has over 38 digits."""
    tops, rest = f"({high} + {low} div {unit})", f"({low} % {unit})"
    # Both halves of one sign, so that neither step leaves the 38 digits unless the sum does.
    up = f"CASE WHEN {tops} > 0 AND {rest} < 0 THEN 1 WHEN {tops} < 0 AND {rest} > 0 THEN -1 ELSE 0 END"
    big = f"try_cast(try_multiply(CAST({tops} - ({up}) AS DECIMAL(38,0)), {unit}) AS DECIMAL(38,{scale}))"
    small = f"CAST({rest} + ({up}) * {unit} AS DECIMAL({max(_LOW_DIGITS, scale) + 1},{scale}))"
    return f"try_cast(try_add({big}, {small}) AS DECIMAL(38,{scale}))"


def _power(exponent: int) -> str:
    """10^exponent as a DECIMAL literal."""
    if exponent >= 0:
        return f"CAST('1{'0' * exponent}' AS DECIMAL({exponent + 1},0))"
    return f"CAST('0.{'0' * (-exponent - 1)}1' AS DECIMAL({-exponent},{-exponent}))"
