"""What Spark's own functions do not give to the last digit: computed in Python, a column of Arrow at a time.

These are the calls of the device's engine and of the reference, with C's mathematics in place of Java's. They
never fail: NULL stands for a call that does, as in every view. A Python process takes some microseconds for a
value, where Spark's own functions take some nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from everview.algebra.sketch_text import distinct, percentile
from everview.engines.reference import aggregates as reference
from everview.engines.reference.functions import call_function
from everview.language.aggregates import CARRIED
from everview.language.casts import to_text
from everview.language.expressions import Call, Cast, Column, Expression
from everview.language.types import DOUBLE, TEXT, Kind
from everview.language.values import EXACT

__all__ = ["PREFIX", "is_by_python", "python_call", "register_functions"]

PREFIX = "everview_py_"
"""What the names of these functions begin with. No text with it stands in a lambda: Spark refuses that."""

_POWER = Call("power", (Column(0, DOUBLE), Column(1, DOUBLE)), DOUBLE)


def _by_value(compute: Callable[..., Any], kind: pa.DataType, *columns: pa.Array) -> pa.Array:
    def one(*values: Any) -> Any:
        if any(value is None for value in values):
            return None
        try:
            return compute(*values)
        except (ArithmeticError, ValueError):
            return None

    return pa.array(map(one, *(column.to_pylist() for column in columns)), kind)


def _power(base: pa.Array, exponent: pa.Array) -> pa.Array:
    return _by_value(lambda a, b: call_function(_POWER, (a, b)), pa.float64(), base, exponent)


def _text(value: pa.Array) -> pa.Array:
    return _by_value(to_text, pa.string(), value)


def _digits(value: pa.Array) -> pa.Array:
    """The 15 significant digits that a DOUBLE becomes a DECIMAL through."""
    return _by_value(lambda v: format(v, ".15g") if math.isfinite(v) else None, pa.string(), value)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """Of DECIMALs of any digits, as text: whoever casts it knows how many are wanted."""

    def exact(a: str, b: str) -> str:
        return f"{EXACT.remainder(Decimal(a), Decimal(b)):f}"

    return _by_value(exact, pa.string(), left, right)


def _distinct(sketch: pa.Array) -> pa.Array:
    return _by_value(distinct, pa.int64(), sketch)


def _percentile(sketch: pa.Array, part: pa.Array) -> pa.Array:
    return _by_value(percentile, pa.float64(), sketch, part)


def _sketch(aggregate: str) -> Callable[[pa.Array], pa.Array]:
    """What the reference makes of a group's values, which come as a list."""

    def made(values: pa.Array) -> pa.Array:
        return _by_value(lambda found: reference.aggregate(aggregate, found, TEXT), pa.string(), values)

    return made


FUNCTIONS: dict[str, tuple[Callable[..., pa.Array], str]] = {
    "power": (_power, "double"),
    "text": (_text, "string"),
    "digits": (_digits, "string"),
    "remainder": (_remainder, "string"),
    "sketch_distinct": (_distinct, "bigint"),
    "sketch_percentile": (_percentile, "double"),
    **{name: (_sketch(name), "string") for name in CARRIED if name.startswith("sketch_")},
}
"""Each function over columns, and Spark's type of what it yields."""


def register_functions(session: SparkSession) -> SparkSession:
    """Make them known to a session, by their names; sessions beside it do not know them."""
    for name, (function, kind) in FUNCTIONS.items():
        made = arrow_udf(function, kind)  # type: ignore[call-overload]  # hints are read, not known to stubs
        session.udf.register(PREFIX + name, made)
    return session


def python_call(name: str, *arguments: str) -> str:
    """The text of a call."""
    if name not in FUNCTIONS:
        raise ValueError(f"no function {name}")
    return f"{PREFIX}{name}({', '.join(arguments)})"


def is_by_python(expression: Expression) -> bool:
    """Whether an expression itself, not a part of it, is computed here."""
    match expression:
        case Call("power" | "sketch_distinct" | "sketch_percentile"):
            return True
        case Call("%", (left, right), kind):
            return kind.kind is Kind.DECIMAL and left.type.digits[0] + right.type.digits[1] > 38
        case Cast(operand, target):
            return operand.type.kind is Kind.DOUBLE and target.kind in (Kind.TEXT, Kind.DECIMAL)
        case _:
            return False
