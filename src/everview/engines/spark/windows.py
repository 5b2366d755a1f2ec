"""Window functions as Spark SQL.

Rows are sorted by `order`, then by `ties`, so that equal places are equal rows. Peers are equal by `order`
alone: ranks and RANGE frames sort by that only, and the first or last row of a RANGE frame is found among
the peers, sorted by the ties.
"""

from __future__ import annotations

from everview.engines.spark.aggregates import aggregate_parts
from everview.engines.spark.scalars import scalar
from everview.engines.spark.text import literal
from everview.engines.spark.types import NOTHING
from everview.language.aggregates import AGGREGATES, Frame, SortKey, WindowCall
from everview.language.expressions import Literal

__all__ = ["sort_text", "window_columns"]

_FARTHEST = 2**31 - 1


def sort_text(key: SortKey) -> str:
    """A sort key; both of its choices are written out, since Spark's defaults are not PostgreSQL's."""
    direction = "DESC" if key.descending else "ASC"
    return f"{scalar(key.expression)} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def window_columns(source: str, width: int, calls: tuple[WindowCall, ...]) -> str:
    """The columns of `source`, then one per call."""
    kept = [f"c{index}" for index in range(width)]
    middle, outer = list(kept), list(kept)
    for place, call in enumerate(calls):
        texts, finish = _call(call, (f"g{place}x", f"g{place}y"))
        middle += [f"{text} AS g{place}{side}" for text, side in zip(texts, "xy", strict=False)]
        outer.append(finish)
    listed = ", ".join(f"{text} AS c{index}" for index, text in enumerate(outer)) or f"true AS {NOTHING}"
    return f"SELECT {listed} FROM (SELECT {', '.join(middle) or f'true AS {NOTHING}'} FROM ({source}))"


def _call(call: WindowCall, names: tuple[str, str]) -> tuple[tuple[str, ...], str]:
    match call.function:
        case "row_number":
            return (
                f"CAST(row_number() OVER ({_window(call, (*call.order, *call.ties))}) AS BIGINT)",
            ), names[0]
        case "rank" | "dense_rank":
            if not call.order:
                return ("1L",), names[0]
            return (f"CAST({call.function}() OVER ({_window(call, call.order)}) AS BIGINT)",), names[0]
        case "lag" | "lead":
            return (_shifted(call),), names[0]
        case "first_value" | "last_value":
            return (f"{call.function}({scalar(call.arguments[0])}) OVER ({_end_window(call)})",), names[0]
        case _:
            return _aggregated(call, names)


def _window(call: WindowCall, order: tuple[SortKey, ...], *, also: tuple[SortKey, ...] = ()) -> str:
    parts = [*map(scalar, call.partition), *(scalar(key.expression) for key in also)]
    # Rows that nothing tells apart are equal, and then any order will do; Spark wants one all the same.
    keys = ", ".join(map(sort_text, order)) or "true"
    return (f"PARTITION BY {', '.join(parts)} " if parts else "") + f"ORDER BY {keys}"


def _shifted(call: WindowCall) -> str:
    subject, offset, default = call.arguments
    if not isinstance(offset, Literal) or offset.value is None:
        return literal(None, call.type)
    distance = max(-_FARTHEST, min(_FARTHEST, offset.value))
    over = _window(call, (*call.order, *call.ties))
    return f"{call.function}({scalar(subject)}, {distance}, {scalar(default)}) OVER ({over})"


def _bound(count: int | None, unbounded: str) -> str:
    if count is None:
        return f"UNBOUNDED {unbounded}"
    if count == 0:
        return "CURRENT ROW"
    return f"{min(abs(count), _FARTHEST)} {'PRECEDING' if count < 0 else 'FOLLOWING'}"


def _between(start: int | None, end: int | None, mode: str = "ROWS") -> str:
    return f"{mode} BETWEEN {_bound(start, 'PRECEDING')} AND {_bound(end, 'FOLLOWING')}"


def _frame(call: WindowCall) -> Frame:
    if call.frame is None:
        raise AssertionError(f"{call.function} has a frame")
    return call.frame


def _end_window(call: WindowCall) -> str:
    """The window in which first_value or last_value finds its row."""
    frame = _frame(call)
    everything = (*call.order, *call.ties)
    if frame.mode == "rows":
        return f"{_window(call, everything)} {_between(frame.start, frame.end)}"
    edge = frame.start if call.function == "first_value" else frame.end
    if edge is None:
        return f"{_window(call, everything)} {_between(None, None)}"
    return f"{_window(call, call.ties, also=call.order)} {_between(None, None)}"


def _aggregated(call: WindowCall, names: tuple[str, str]) -> tuple[tuple[str, ...], str]:
    if call.function not in AGGREGATES:
        raise AssertionError(call.function)
    frame = _frame(call)
    argument = call.arguments[0] if call.arguments else None
    kind = argument.type if argument is not None else None
    parts = aggregate_parts(call.function, kind, call.type, names)
    if frame.mode == "rows":
        over = f"{_window(call, (*call.order, *call.ties))} {_between(frame.start, frame.end)}"
    elif call.order:
        over = f"{_window(call, call.order)} {_between(frame.start, frame.end, 'RANGE')}"
    else:
        # Without an order all rows of a partition are peers.
        over = f"{_window(call, ())} {_between(None, None)}"
    value = scalar(argument) if argument is not None else ""
    return tuple(f"{text.format(value=value)} OVER ({over})" for text in parts.aggregates), parts.finish
