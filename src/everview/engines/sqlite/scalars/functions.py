"""The Python functions that generated SQL calls, put on a connection by `register`.

A function that fails returns NULL and tells `on_failure`; its `_strict` twin raises DataError. `sqlite3`
hides what a function raised behind an OperationalError of its own: the DataError is kept aside, and
`Failures.surfaced` raises it in place of that.

Functions that may fail are not declared deterministic, although they are: SQLite computes a deterministic
call over constants once for all rows, and a failure is to be counted where it happens.
"""

from __future__ import annotations

import functools
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from everview.engines.reference.functions import call_function
from everview.engines.sqlite.scalars import sketches, sums
from everview.engines.sqlite.scalars.storage import (
    SHORT_DIGITS,
    decode_long,
    encode_long,
    from_stored,
    to_stored,
)
from everview.engines.sqlite.scalars.whole import evaluator
from everview.errors import DataError
from everview.language.casts import cast_value
from everview.language.expressions import Call, Column
from everview.language.types import DOUBLE, Kind, Type

__all__ = ["Failures", "register"]

_FAILURES = (ArithmeticError, ValueError)


class Failures:
    """What became of failing calls on one connection."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self.count = on_failure
        self._pending: DataError | None = None

    def hold(self, message: str) -> DataError:
        """The error to raise inside a function, kept until `surfaced` can raise it to the caller."""
        self._pending = DataError(message)
        return self._pending

    @contextmanager
    def surfaced(self) -> Iterator[None]:
        """Raises the DataError of a failing call instead of SQLite's "user-defined function raised".

        Rows are computed while they are fetched, so fetching belongs inside too.
        """
        self._take()
        try:
            yield
        except sqlite3.OperationalError as error:
            pending = self._take()
            if pending is None:
                raise
            raise pending from error

    def _take(self) -> DataError | None:
        pending, self._pending = self._pending, None
        return pending


def register(connection: sqlite3.Connection, on_failure: Callable[[str], None]) -> Failures:
    """Put every function that generated SQL calls on a connection; `on_failure` is told what failed."""
    failures = Failures(on_failure)

    def fail(what: str) -> None:
        failures.count(what)

    def refuse(what: str) -> None:
        raise failures.hold(what)

    connection.create_function("ev_fail", 1, fail)
    connection.create_function("ev_raise", 1, refuse)
    connection.create_function("ev_sqrt", 1, math.sqrt, deterministic=True)
    connection.create_function("ev_evaluate", -1, evaluator(fail))
    connection.create_function("ev_evaluate_strict", -1, evaluator(refuse))
    connection.create_function("ev_chain", -1, _handled(_chain, fail, nulls=True))
    connection.create_function("ev_chain_strict", -1, _handled(_chain, refuse, nulls=True))
    for name, arity, function in _FALLIBLE:
        connection.create_function(f"ev_{name}", arity, _handled(function, fail))
        connection.create_function(f"ev_{name}_strict", arity, _handled(function, refuse))
    sums.register(connection, fail, refuse)
    sketches.register(connection)
    return failures


def _handled(
    function: Callable[..., Any], failed: Callable[[str], None], *, nulls: bool = False
) -> Callable[..., Any]:
    """The function with its failures handed over and, unless it takes `nulls`, NULL for NULL arguments."""

    def handled(*arguments: Any) -> Any:
        if None in arguments and not nulls:
            return None
        try:
            return function(*arguments)
        except _FAILURES as error:
            return failed(str(error) or type(error).__name__)

    return handled


_TYPE = re.compile(r"([A-Z]+)(?:\((\d+),(\d+)\))?")


def _types(text: str) -> list[Type]:
    return [
        Type(Kind(found[1]), *(int(part) for part in found.groups()[1:] if part is not None))
        for found in _TYPE.finditer(text)
    ]


def _identity(value: Any) -> Any:
    return value


def _loader(source: Type) -> Callable[[Any], Any]:
    return from_stored(source) or _identity


def _storer(target: Type) -> Callable[[Any], Any]:
    store = to_stored(target) or _identity
    return lambda value: None if value is None else store(value)


@functools.lru_cache(maxsize=1024)
def _signature(
    text: str,
) -> tuple[Call, list[Callable[[Any], Any]], Callable[[Any], Any]]:
    name, result, arguments = text.rsplit("|", 2)
    types = _types(arguments)
    columns = tuple(Column(index, kind) for index, kind in enumerate(types))
    (target,) = _types(result)
    return Call(name, columns, target), [_loader(kind) for kind in types], _storer(target)


def _call(signature: str, *stored: Any) -> Any:
    call, loaders, store = _signature(signature)
    return store(call_function(call, [load(one) for load, one in zip(loaders, stored, strict=True)]))


_LINKS = {sign: Call(sign, (Column(0, DOUBLE), Column(1, DOUBLE)), DOUBLE) for sign in "+-*/"}
_load_double, _store_double = _loader(DOUBLE), _storer(DOUBLE)


def _chain(operators: str, first: Any, *rest: Any) -> Any:
    """DOUBLEs from left to right; NULL from the first NULL on, if nothing failed before it."""
    value = None if first is None else _load_double(first)
    for operator, term in zip(operators, rest, strict=True):
        if value is None or term is None:
            return None
        value = call_function(_LINKS[operator], [value, _load_double(term)])
    return _store_double(value)


@functools.lru_cache(maxsize=1024)
def _cast_signature(text: str) -> tuple[Type, Type, Callable[[Any], Any], Callable[[Any], Any]]:
    source, target = _types(text)
    return source, target, _loader(source), _storer(target)


def _cast(signature: str, stored: Any) -> Any:
    source, target, load, store = _cast_signature(signature)
    return store(cast_value(load(stored), source, target))


def _scaled(stored: int | str) -> int:
    return stored if isinstance(stored, int) else decode_long(stored)


def _fitted(scaled: int, digits: int, scale: int) -> int | str:
    if abs(scaled) >= 10**digits:
        raise OverflowError(f"the result does not fit DECIMAL({digits},{scale})")
    return scaled if digits <= SHORT_DIGITS else encode_long(scaled, digits)


def _sum(left: Any, right: Any, left_scale: int, right_scale: int, digits: int, scale: int) -> int | str:
    total = _scaled(left) * 10 ** (scale - left_scale) + _scaled(right) * 10 ** (scale - right_scale)
    return _fitted(total, digits, scale)


def _difference(left: Any, right: Any, left_scale: int, right_scale: int, digits: int, scale: int) -> Any:
    rest = _scaled(left) * 10 ** (scale - left_scale) - _scaled(right) * 10 ** (scale - right_scale)
    return _fitted(rest, digits, scale)


def _product(left: Any, right: Any, left_scale: int, right_scale: int, digits: int, scale: int) -> Any:
    shift = scale - left_scale - right_scale  # positive where an operand is a whole number cast to DECIMAL
    return _fitted(_scaled(left) * _scaled(right) * 10**shift, digits, scale)


def _quotient(left: Any, right: Any, left_scale: int, right_scale: int, digits: int, scale: int) -> Any:
    """Rounded half away from zero, once."""
    top, bottom = _scaled(left), _scaled(right)
    if bottom == 0:
        raise ZeroDivisionError("division by zero")
    shift = scale - left_scale + right_scale  # negative where the result's scale was cut to 37
    dividend, divisor = abs(top) * 10 ** max(shift, 0), abs(bottom) * 10 ** max(-shift, 0)
    whole, rest = divmod(dividend, divisor)
    rounded = whole + (2 * rest >= divisor)
    return _fitted(rounded if (top < 0) == (bottom < 0) else -rounded, digits, scale)


_FALLIBLE: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("call", -1, _call),
    ("cast", 2, _cast),
    ("decimal_sum", 6, _sum),
    ("decimal_difference", 6, _difference),
    ("decimal_product", 6, _product),
    ("decimal_quotient", 6, _quotient),
)
