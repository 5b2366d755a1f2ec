"""The eight types of a cell.

A type is a kind, and for DECIMAL a precision (digits in all) and a scale (digits after the point).
Everything else that SQL texts call a type is a synonym of one of them (see `sql/typenames.py`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from everview.language.hashing import HashedOnce, hashed_once

__all__ = [
    "BIGINT",
    "BIGINT_MAX",
    "BIGINT_MIN",
    "BLOB",
    "BOOLEAN",
    "DATE",
    "DECIMAL_DIGITS",
    "DOUBLE",
    "TEXT",
    "TIMESTAMP",
    "UNKNOWN",
    "Field",
    "Kind",
    "Type",
    "common_type",
    "decimal_type",
    "is_implicit",
]

BIGINT_MIN = -(2**63)
BIGINT_MAX = 2**63 - 1

DECIMAL_DIGITS = 38
"""The most digits a DECIMAL may have: what Spark and Arrow hold in 128 bits."""


class Kind(enum.Enum):
    """The kind of a type. UNKNOWN is only met while text is bound, never in a finished plan."""

    BOOLEAN = "BOOLEAN"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    TEXT = "TEXT"
    BLOB = "BLOB"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    UNKNOWN = "UNKNOWN"

    __hash__ = object.__hash__  # each is there once, and an Enum's own hash takes ten times as long

    def __repr__(self) -> str:
        return self.name


@hashed_once
@dataclass(frozen=True, slots=True)
class Type(HashedOnce):
    """A kind; with precision and scale exactly when the kind is DECIMAL, 0 ≤ scale ≤ precision ≤ 38."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL:
            if (
                self.precision is None
                or self.scale is None
                or not 1 <= self.precision <= DECIMAL_DIGITS
                or not 0 <= self.scale <= self.precision
            ):
                raise ValueError(f"no such type: DECIMAL({self.precision},{self.scale})")
        elif self.precision is not None or self.scale is not None:
            raise ValueError(f"{self.kind.name} has neither precision nor scale")

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return self.kind.name

    def __repr__(self) -> str:
        return str(self)

    @property
    def digits(self) -> tuple[int, int]:
        """(digits before the point, digits after it) of a DECIMAL; a BIGINT counts as DECIMAL(19,0)."""
        if self.kind is Kind.BIGINT:
            return 19, 0
        if self.precision is None or self.scale is None:
            raise ValueError(f"{self} is no DECIMAL")
        return self.precision - self.scale, self.scale


BOOLEAN = Type(Kind.BOOLEAN)
BIGINT = Type(Kind.BIGINT)
DOUBLE = Type(Kind.DOUBLE)
TEXT = Type(Kind.TEXT)
BLOB = Type(Kind.BLOB)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
UNKNOWN = Type(Kind.UNKNOWN)
"""The type of a quoted literal, of NULL and of a parameter until its context gives it one."""


@hashed_once
@dataclass(frozen=True, slots=True)
class Field(HashedOnce):
    """A column of a relation or of a plan's result: its name, its type, and whether NULL may occur."""

    name: str
    type: Type
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


def decimal_type(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), with the precision cut to 38 digits and the scale kept.

    Intuitively: results stay exact; a value that no longer fits fails, it is never rounded in silence.
    """
    return Type(Kind.DECIMAL, min(max(precision, scale, 1), DECIMAL_DIGITS), scale)


_WIDER: dict[Kind, tuple[Kind, ...]] = {
    Kind.BIGINT: (Kind.DECIMAL, Kind.DOUBLE),
    Kind.DECIMAL: (Kind.DECIMAL, Kind.DOUBLE),
    Kind.DATE: (Kind.TIMESTAMP,),
}


def is_implicit(source: Type, target: Type) -> bool:
    """Whether a value of `source` becomes one of `target` without being asked to, as in PostgreSQL.

    BIGINT → DECIMAL → DOUBLE, DATE → TIMESTAMP, and the not yet typed to anything.
    """
    return source == target or source.kind is Kind.UNKNOWN or target.kind in _WIDER.get(source.kind, ())


def common_type(left: Type, right: Type) -> Type | None:
    """The type that both sides of a comparison, a CASE or a UNION become, or None if there is none.

    Of two DECIMALs: as many digits on each side of the point as either has.
    """
    if left == right or right.kind is Kind.UNKNOWN:
        return left
    if left.kind is Kind.UNKNOWN:
        return right
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.BIGINT, Kind.DECIMAL}:
        (left_whole, left_scale), (right_whole, right_scale) = left.digits, right.digits
        scale = max(left_scale, right_scale)
        return decimal_type(max(left_whole, right_whole) + scale, scale)
    if kinds <= {Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE}:
        return DOUBLE
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    return None
