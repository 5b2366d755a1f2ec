"""Window functions: each call over each partition, sorted, frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everview.engines.reference.aggregates import aggregate
from everview.engines.reference.scalars import Row, Rows, Run
from everview.language.aggregates import AGGREGATES, Frame, SortKey, WindowCall
from everview.language.expressions import Expression
from everview.language.order import order_key

__all__ = ["sort_indices", "window_column"]

Value = Callable[[Expression, Row], Any]


class _Descending:
    """Turns an order around."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]  # only compared


def _key(value: Any, sort: SortKey) -> tuple[int, Any]:
    if value is None:
        return (0 if sort.nulls_first else 2, 0)
    return (1, _Descending(order_key(value)) if sort.descending else order_key(value))


def sort_indices(rows: Rows, keys: Sequence[SortKey], value: Value) -> list[int]:
    """The positions of the rows in sorted order; rows with equal keys stay as they are."""
    sort_keys = [[_key(value(key.expression, row), key) for key in keys] for row in rows]
    return sorted(range(len(rows)), key=sort_keys.__getitem__)


def window_column(call: WindowCall, rows: Rows, value: Value, run: Run) -> list[Any]:
    """The call's value for each row."""
    partitions: dict[Row, list[int]] = {}
    for index, row in enumerate(rows):
        partitions.setdefault(tuple(value(part, row) for part in call.partition), []).append(index)
    column: list[Any] = [None] * len(rows)
    for members in partitions.values():
        inside = [rows[index] for index in members]
        order = sort_indices(inside, (*call.order, *call.ties), value)
        results = _over_partition(call, [inside[place] for place in order], value, run)
        for place, result in zip(order, results, strict=True):
            column[members[place]] = result
    return column


def _over_partition(call: WindowCall, rows: Rows, value: Value, run: Run) -> list[Any]:
    """The call's value for each row of a sorted partition."""
    keys = [[_key(value(key.expression, row), key) for key in call.order] for row in rows]
    peers = [keys.index(key) for key in keys]  # where each row's peers begin
    match call.function:
        case "row_number":
            return list(range(1, len(rows) + 1))
        case "rank":
            return [first + 1 for first in peers]
        case "dense_rank":
            return [len(set(peers[: index + 1])) for index in range(len(rows))]
        case "lag" | "lead":
            return [_shifted(call, rows, index, value) for index in range(len(rows))]
        case _:
            return [
                _framed(call, [rows[i] for i in _frame(call.frame, index, peers)], value, run)
                for index in range(len(rows))
            ]


def _shifted(call: WindowCall, rows: Rows, index: int, value: Value) -> Any:
    subject, offset, default = call.arguments
    distance = value(offset, rows[index])
    if distance is None:
        return None
    other = index - distance if call.function == "lag" else index + distance
    return value(subject, rows[other]) if 0 <= other < len(rows) else value(default, rows[index])


def _frame(frame: Frame | None, index: int, peers: list[int]) -> range:
    if frame is None:
        raise AssertionError("this function has no frame")
    last = len(peers) - 1
    if frame.mode == "rows":
        start = 0 if frame.start is None else max(index + frame.start, 0)
        end = last if frame.end is None else min(index + frame.end, last)
        return range(start, end + 1)
    start = 0 if frame.start is None else peers[index]
    end = last if frame.end is None else max(i for i in range(len(peers)) if peers[i] == peers[index])
    return range(start, end + 1)


def _framed(call: WindowCall, rows: Rows, value: Value, run: Run) -> Any:
    if call.function in AGGREGATES:
        values: list[Any] = [value(call.arguments[0], row) for row in rows] if call.arguments else list(rows)
        try:
            return aggregate(call.function, [v for v in values if v is not None], call.type)
        except (ArithmeticError, ValueError) as error:
            return run.failed(error)
    if not rows:
        return None
    return value(call.arguments[0], rows[0 if call.function == "first_value" else -1])
