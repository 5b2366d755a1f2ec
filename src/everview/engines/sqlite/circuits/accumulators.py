"""Accumulators: what a group remembers of an aggregate, so that a change of its rows is enough.

An aggregate that is linear in the weights of its rows (count, sum, avg, bool_and, bool_or) is kept as
columns that add up. The sum of BIGINTs is kept in two halves of 32 bits, which cannot overflow before
two thousand million rows; sums of DOUBLE and DECIMAL are kept exactly (see `totals`), sketches as how often
each of their places is there (see `sketches`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everview.language.aggregates import AggregateCall
from everview.language.types import Kind

_HALF = 4294967296


@dataclass(frozen=True, slots=True)
class Column:
    """A column that adds up: what a row contributes (`{v}` its value, `{w}` its weight), and how to add."""

    total: str
    type: str = "INTEGER NOT NULL"
    adds: str = ""
    """The function that adds, where it is not `+`."""
    nothing: str = "0"

    def merged(self, name: str) -> str:
        """Return the assignment that adds a change, in an upsert."""
        added = f"{self.adds}({name}, excluded.{name})" if self.adds else f"{name} + excluded.{name}"
        return f"{name} = {added}"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The columns of one aggregate, and its value over them."""

    columns: tuple[Column, ...]
    value: Callable[[Sequence[str]], str]
    fails: Callable[[Sequence[str]], str] | None = None
    """Where the value can be NULL by failure: whether it is so. In this way plain SQL shows the value, and
    any client can read it from the group's own table; the failure is counted when the group changes."""


_COUNT = Column("coalesce(sum(CASE WHEN {v} IS NOT NULL THEN {w} ELSE 0 END), 0)")
_HIGH = Column("coalesce(sum({w} * ({v} >> 32)), 0)")
_LOW = Column(f"coalesce(sum({{w}} * ({{v}} & {_HALF - 1})), 0)")


def accumulator(call: AggregateCall) -> Accumulator | None:
    """Return how a call adds up, or None if it does not: it is computed again from the group's rows."""
    if call.distinct:
        return None
    kind = call.argument.type.kind if call.argument is not None else None
    match call.function, kind:
        case "count", None:
            return Accumulator((Column("coalesce(sum({w}), 0)"),), lambda c: c[0])
        case "count", _:
            return Accumulator((_COUNT,), lambda c: c[0])
        case "sum", Kind.BIGINT:
            return Accumulator((_COUNT, _HIGH, _LOW), _halves_sum, _sum_overflows)
        case "avg", Kind.BIGINT:
            return Accumulator((_COUNT, _HIGH, _LOW), _halves_mean)
        case "sum", Kind.DOUBLE:
            return _exact("doubles", lambda c: f"ev_total_as_double({c[1]})")
        case "exact", Kind.DOUBLE:
            return _exact("doubles", lambda c: f"ev_total_as_text({c[1]})")
        case "exact_sum", Kind.TEXT:
            return _exact("texts", lambda c: f"ev_total_as_double({c[1]})")
        case "avg", Kind.DOUBLE:
            return _exact("doubles", lambda c: f"ev_total_mean_double({c[1]}, {c[0]})")
        case "sum", Kind.DECIMAL:
            return _exact("scaled", lambda c: f"ev_total_as_decimal({c[1]})")
        case "avg", Kind.DECIMAL:
            more = decimal_places(call)
            return _exact("scaled", lambda c: f"ev_total_mean_decimal({c[1]}, {c[0]}, {more})")
        case "sketch_marks" | "sketch_marks_union", _:
            return _counted("codes" if kind is Kind.BIGINT else "marks", lambda c: f"ev_sketch_marks({c[1]})")
        case "sketch_counts" | "sketch_counts_sum", _:
            return _counted("codes" if kind is Kind.BIGINT else "texts", lambda c: c[1])
        case "bool_and" | "bool_or", _:
            true = Column("coalesce(sum(CASE WHEN {v} THEN {w} ELSE 0 END), 0)")
            if call.function == "bool_and":
                return Accumulator((_COUNT, true), lambda c: f"CASE WHEN {c[0]} > 0 THEN {c[1]} = {c[0]} END")
            return Accumulator((_COUNT, true), lambda c: f"CASE WHEN {c[0]} > 0 THEN {c[1]} > 0 END")
        case _:
            return None


def decimal_places(call: AggregateCall) -> int:
    """Return how many digits after the point an average has more than what is averaged."""
    assert call.argument is not None
    return call.type.digits[1] - call.argument.type.digits[1]


def _exact(kind: str, value: Callable[[Sequence[str]], str]) -> Accumulator:
    total = Column(
        f"coalesce(ev_total_of_{kind}({{v}}, {{w}}), '0')", "TEXT NOT NULL", "ev_total_added", "'0'"
    )
    return Accumulator((_COUNT, total), lambda c: f"CASE WHEN {c[0]} > 0 THEN {value(c)} END")


def _counted(kind: str, value: Callable[[Sequence[str]], str]) -> Accumulator:
    """A sketch: how often each mark or step is there, in one text."""
    counts = Column(
        f"coalesce(ev_sketch_of_{kind}({{v}}, {{w}}), '')", "TEXT NOT NULL", "ev_sketch_added", "''"
    )
    return Accumulator((_COUNT, counts), lambda c: f"CASE WHEN {c[0]} > 0 THEN {value(c)} END")


def _halves_sum(columns: Sequence[str]) -> str:
    count, high, low = columns
    top = f"({high} + ({low} >> 32))"
    whole = f"({top} << 32) | ({low} & {_HALF - 1})"
    return f"CASE WHEN {count} > 0 AND {top} BETWEEN -{_HALF // 2} AND {_HALF // 2 - 1} THEN {whole} END"


def _sum_overflows(columns: Sequence[str]) -> str:
    _, high, low = columns
    return f"({high} + ({low} >> 32)) NOT BETWEEN -{_HALF // 2} AND {_HALF // 2 - 1}"


def _halves_mean(columns: Sequence[str]) -> str:
    count, high, low = columns
    top = f"({high} + ({low} >> 32))"
    whole = f"CAST(({top} << 32) | ({low} & {_HALF - 1}) AS REAL)"
    return (
        f"CASE WHEN {count} = 0 THEN NULL WHEN {top} BETWEEN -{_HALF // 2} AND {_HALF // 2 - 1} "
        f"THEN {whole} / {count} ELSE ev_halves_avg_bigint({high}, {low}, {count}) END"
    )
