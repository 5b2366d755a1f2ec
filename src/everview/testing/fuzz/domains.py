"""The values that random programs and histories are made of.

Values come from small domains, so that keys meet, groups fill and empty, and rows repeat; now and then one
comes from the ends of its type: the greatest and least BIGINT, infinities, NaN, −0.0, denormals, empty and
non-ASCII texts, the ends of the calendar, DECIMALs of 38 digits.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from dataclasses import dataclass
from typing import Any

from everview.language.casts import to_text
from everview.language.types import BIGINT_MAX, BIGINT_MIN, Kind, Type
from everview.language.values import UnfitError, check_value

__all__ = ["COMMON", "EDGES", "KINDS", "TYPES", "Domain", "literal", "type_name"]

KINDS: tuple[Kind, ...] = tuple(kind for kind in Kind if kind is not Kind.UNKNOWN)
"""The eight kinds of types, in one fixed order."""

TYPES: dict[Kind, tuple[Type, ...]] = {kind: (Type(kind),) for kind in KINDS if kind is not Kind.DECIMAL} | {
    Kind.DECIMAL: (
        Type(Kind.DECIMAL, 10, 2),
        Type(Kind.DECIMAL, 10, 2),
        Type(Kind.DECIMAL, 4, 1),
        Type(Kind.DECIMAL, 18, 6),
        Type(Kind.DECIMAL, 19, 0),
        Type(Kind.DECIMAL, 38, 10),
        Type(Kind.DECIMAL, 38, 0),
    )
}
"""The types that columns are declared with."""

COMMON: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: (True, False),
    Kind.BIGINT: (0, 1, 2, 3, -1, 7, 10),
    Kind.DECIMAL: tuple(decimal.Decimal(text) for text in ("0", "1", "2", "1.5", "-2", "0.1", "3")),
    Kind.DOUBLE: (0.0, 1.0, 2.0, 1.5, -2.25, 0.1, 0.2, 3.0),
    Kind.TEXT: ("", "a", "b", "ab", "1", "A", " a", "Zé", "true"),
    Kind.BLOB: (b"", b"\0", b"a", b"\xff\0"),
    Kind.DATE: (dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2023, 12, 31), dt.date(1970, 1, 1)),
    Kind.TIMESTAMP: tuple(
        dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        for text in ("2024-02-29", "2024-03-01 12:30:15.500", "1970-01-01", "2023-12-31 23:59")
    ),
}
"""Values that meet often."""

EDGES: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: (True, False),
    Kind.BIGINT: (BIGINT_MAX, BIGINT_MIN, BIGINT_MAX - 1, BIGINT_MIN + 1, 2**53 + 1, -(2**31), 1_000_000),
    Kind.DECIMAL: tuple(
        decimal.Decimal(text)
        for text in (
            "99999999999999999999999999999999999999",
            "-99999999999999999999999999999999999999",
            "9999999999999999999999999999.9999999999",
            "9223372036854775808",
            "0.0000000001",
            "0.000001",
            "99999999.99",
            "-99999999.99",
            "999.9",
            "0.05",
        )
    ),
    Kind.DOUBLE: (
        math.inf,
        -math.inf,
        math.nan,
        -0.0,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        2.0**53 + 2,
        9.223372036854775807e18,
        1e300,
        0.30000000000000004,
        1e-5,
        123456789012345680.0,
    ),
    Kind.TEXT: (
        "it's",
        "%",
        "a%",
        "_",
        "\\",
        "a\\",
        "Ünïcödé",
        "𝄞",
        "日本",
        " \t",
        "2024-02-29",
        "1.5",
        "NaN",
        "-0",
        "1e400",
        "\\x00ff",
        "99999999999999999999",
        "x" * 40,
    ),
    Kind.BLOB: (b"\0" * 3, "日".encode(), bytes(range(0, 256, 17))),
    Kind.DATE: (dt.date.min, dt.date.max, dt.date(1900, 2, 28), dt.date(2000, 2, 29), dt.date(9999, 1, 1)),
    Kind.TIMESTAMP: tuple(
        dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        for text in (
            "0001-01-01",
            "9999-12-31 23:59:59.999999",
            "1969-12-31 23:59:59.999999",
            "2024-12-30 00:00:00.000001",
            "0001-01-03 05:00",
        )
    ),
}
"""Values at the ends of their types, and such as break naive code."""


def _fits(value: Any, target: Type) -> bool:
    try:
        check_value(value, target)
    except UnfitError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Domain:
    """The few values of each kind that one case uses; `edge` is how often one from the ends comes instead."""

    values: dict[Kind, tuple[Any, ...]]
    edge: float
    null: float

    @classmethod
    def draw(cls, rng: random.Random) -> Domain:
        """Choose for one case: a handful of values of each kind, some cases with more edges than others."""
        few: dict[Kind, tuple[Any, ...]] = {
            kind: tuple(rng.sample(COMMON[kind], min(len(COMMON[kind]), 4))) for kind in KINDS
        }
        return cls(few, rng.choice((0.0, 0.03, 0.03, 0.15)), rng.choice((0.05, 0.15, 0.3)))

    def value(self, rng: random.Random, target: Type, *, nullable: bool = True) -> Any:
        """One value of the type, in its one form, or None."""
        if nullable and rng.random() < self.null:
            return None
        pool = EDGES if rng.random() < self.edge else self.values
        fitting = [value for value in pool[target.kind] if _fits(value, target)]
        return check_value(rng.choice(fitting or [COMMON[target.kind][0]]), target)


def type_name(target: Type) -> str:
    """The type as programs write it."""
    return {Kind.DOUBLE: "DOUBLE PRECISION", Kind.BLOB: "BYTEA"}.get(target.kind, str(target))


def literal(value: Any, kind: Kind) -> str:
    """The value as an SQL literal of that kind."""
    if value is None:
        return "NULL"
    text = to_text(value)
    quoted = "'" + text.replace("'", "''") + "'"
    match kind:
        case Kind.BOOLEAN:
            return text.upper()
        case Kind.BIGINT:
            return f"({text})" if value < 0 else text
        case Kind.DECIMAL:
            number = text if "." in text else f"{text}.0"
            return f"({number})" if value < 0 else number
        case Kind.TEXT:
            return quoted
        case Kind.DATE | Kind.TIMESTAMP:
            return f"{kind.name} {quoted}"
        case _:
            return f"CAST({quoted} AS {type_name(Type(kind))})"
