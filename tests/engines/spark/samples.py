"""Rows full of edges, and random typed expressions over them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random

from everview.language.casts import can_cast
from everview.language.expressions import (
    And,
    Call,
    Case,
    Cast,
    Column,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
)
from everview.language.functions import FUNCTIONS, NoSignatureError
from everview.language.types import (
    BIGINT,
    BIGINT_MAX,
    BIGINT_MIN,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Field,
    Kind,
    decimal_type,
)
from everview.language.values import check_value

D = decimal.Decimal
MONEY, BARE, WHOLE, TINY = (
    decimal_type(10, 2),
    decimal_type(38, 10),
    decimal_type(19, 0),
    decimal_type(38, 30),
)


def _at(*parts):
    return dt.datetime(*parts, tzinfo=dt.UTC)


EDGES = {
    BOOLEAN: [True, False],
    BIGINT: [0, 1, -1, 2, 3, -5, 7, 10, 1000, 2**31, -(2**31) - 1, 2**53 + 1, BIGINT_MAX, BIGINT_MIN, BIGINT_MIN + 1],
    DOUBLE: [
        0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e15, 123456789.987654321, 1e308, -1.7e308, 5e-324,
        2.0**53 + 2, 2.0**63, -(2.0**63), 4503599627370497.5, math.inf, -math.inf, math.nan,
    ],
    MONEY: [D(0), D("1.00"), D("-1.00"), D("0.05"), D("-0.05"), D("2.50"), D("3.33"), D("99999999.99"), D("-99999999.99"), D("0.01")],
    BARE: [
        D(0), D(1), D("-1"), D("0.0000000001"), D("3"), D("7.5"), D("-2.5"), D("1234567.1234567891"),
        D("9999999999999999999999999999.9999999999"), D("-9999999999999999999999999999.9999999999"),
        D("1234567890123456789012345678.0123456789"), D("6000000000000000000000000000.0000000001"),
    ],
    WHOLE: [D(0), D(1), D(-1), D(3), D(7), D("9999999999999999999"), D("-9223372036854775808"), D("9223372036854775808")],
    TINY: [D(0), D(1), D("1e-30"), D("-3e-30"), D("99999999.999999999999999999999999999999"), D("0.5")],
    TEXT: [
        "", "a", "A", "abc", "aBcD", "  x  ", "ä", "Ä", "aä😀b", "%", "_", "a%b", "a_b", "\\", "a\\", "a\\%", "$x", "it's",
        "line\nbreak", "12", " -7 ", "+3", "1e3", "1.005", "-.5", ".", "0x10", "NaN", "-inf", "Infinity", "1e400", "1e-400",
        "0e999", "9223372036854775808", "true", "F", "off", "o", " yes ", "2026-01-31", "2026-2-3 4:05", "2026-02-30",
        "0001-01-01", "0000-01-01", "9999-12-31 24:00", "2026-01-31T12:30:00.5+02:00", "2026-01-31 12:30:60",
        "2026-01-31 25:00", "1969-12-31 23:59:59.999999Z", "2026-01-31 12:30-0530", "\\x00ff", "\\xZZ", "\\x", "1d", "1e5f",
        "123456789012345678901234567890", "1e-999999999", " 2026-01-31", "2026", "٣",
    ],
    BLOB: [b"", b"\x00", b"\xff", b"a", b"ab\x80"],
    DATE: [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1582, 10, 10), dt.date(2026, 11, 15)],
    TIMESTAMP: [
        _at(1, 1, 1), _at(9999, 12, 31, 23, 59, 59, 999999), _at(1970, 1, 1), _at(1969, 12, 31, 23, 59, 59, 999999),
        _at(2026, 11, 15, 12, 30, 15, 500000), _at(1500, 3, 1, 1, 2, 3, 4), _at(2024, 2, 29, 23, 0, 1),
    ],
}  # fmt: skip
EDGES = {kind: [check_value(value, kind) for value in values] for kind, values in EDGES.items()}
COLUMNS = [
    *[(f"b{i}", BOOLEAN) for i in range(2)],
    *[(f"i{i}", BIGINT) for i in range(3)],
    *[(f"f{i}", DOUBLE) for i in range(3)],
    *[(f"m{i}", MONEY) for i in range(2)],
    *[(f"d{i}", BARE) for i in range(2)],
    *[(f"w{i}", WHOLE) for i in range(2)],
    ("y", TINY),
    *[(f"t{i}", TEXT) for i in range(3)],
    *[(f"x{i}", BLOB) for i in range(2)],
    *[(f"day{i}", DATE) for i in range(2)],
    *[(f"at{i}", TIMESTAMP) for i in range(2)],
]
SCHEMA = tuple(Field(name, kind) for name, kind in COLUMNS)


def edge_rows(count, *, seed=0):
    """Random combinations of edges; the first columns of a type run through all of its edges."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        row = []
        for name, kind in COLUMNS:
            edges = EDGES[kind]
            if name[-1:] in ("0", "y") and number < len(edges):
                row.append(edges[number])
            else:
                row.append(None if chance.random() < 0.07 else chance.choice(edges))
        rows.append(tuple(row))
    return rows


def columns_of_kind(kind):
    return [Column(i, field.type, field.name) for i, field in enumerate(SCHEMA) if field.type.kind is kind]


def typed_call(name, arguments):
    """The call with the type that the language gives it, or None when it has none."""
    function = FUNCTIONS[name]
    types = tuple(argument.type for argument in arguments)
    if function.unified is not None:
        return Call(name, arguments, function.unified(types))
    for signature in function.signatures:
        if signature.parameters == tuple(kind.kind for kind in types):
            try:
                return Call(name, arguments, signature.returns(types))
            except NoSignatureError:
                return None
    return None


class Expressions:
    """Random expressions of a wanted type."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def of(self, kind, depth):
        chance = self.chance
        columns = [c for c in columns_of_kind(kind.kind) if c.type == kind]
        if depth == 0 or chance.random() < 0.15:
            if columns and chance.random() < 0.8:
                return chance.choice(columns)
            edges = EDGES.get(kind, [])
            value = chance.choice(edges) if edges and chance.random() < 0.9 else None
            return Literal(value, kind)
        for _ in range(30):
            made = self._made(kind, depth)
            if made is not None and made.type == kind:
                return made
        return self.of(kind, 0)

    def _made(self, kind, depth):
        chance = self.chance
        roll = chance.random()
        if roll < 0.6:
            name = chance.choice(list(FUNCTIONS))
            function = FUNCTIONS[name]
            if function.unified is not None:
                low, high = function.arity
                common = kind if name in ("coalesce", "nullif", "greatest", "least") else self.any_type()
                if name == "concat":
                    common = TEXT
                count = chance.randint(low, high or 3)
                return typed_call(name, tuple(self.of(common, depth - 1) for _ in range(count)))
            signature = chance.choice(function.signatures)
            arguments = tuple(self.of(self.type_of(k), depth - 1) for k in signature.parameters)
            if name == "round" and len(arguments) == 2:
                arguments = (arguments[0], Literal(chance.randint(-3, 5), BIGINT))
            return typed_call(name, arguments)
        if roll < 0.75:
            source = self.any_type()
            return Cast(self.of(source, depth - 1), kind) if can_cast(source, kind) else None
        if roll < 0.85:
            branches = tuple(
                (self.of(BOOLEAN, depth - 1), self.of(kind, depth - 1)) for _ in range(chance.randint(1, 2))
            )
            return Case(branches, self.of(kind, depth - 1))
        other = self.any_type()
        return chance.choice(
            [
                lambda: And(tuple(self.of(BOOLEAN, depth - 1) for _ in range(2))),
                lambda: Or(tuple(self.of(BOOLEAN, depth - 1) for _ in range(2))),
                lambda: Not(self.of(BOOLEAN, depth - 1)),
                lambda: IsNull(self.of(other, depth - 1)),
                lambda: IsDistinct(self.of(other, depth - 1), self.of(other, depth - 1)),
                lambda: InList(self.of(other, depth - 1), tuple(self.of(other, depth - 1) for _ in range(2))),
            ]
        )()

    def any_type(self):
        return self.chance.choice(list(EDGES))

    def type_of(self, kind):
        return self.chance.choice([t for t in EDGES if t.kind is kind])


def kinds():
    return [kind for kind in Kind if kind is not Kind.UNKNOWN]
