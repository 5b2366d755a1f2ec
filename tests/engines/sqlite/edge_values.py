"""Values of every type at which engines differ, and seeded ones between them."""

import datetime as dt
import math
import random
from decimal import Decimal

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
    Kind,
    decimal_type,
)
from everview.language.values import EXACT, check_value

DECIMAL_TYPES = [
    decimal_type(1, 0),
    decimal_type(5, 2),
    decimal_type(8, 6),
    decimal_type(9, 9),
    decimal_type(17, 3),
    decimal_type(18, 0),
    decimal_type(18, 18),
    decimal_type(19, 0),
    decimal_type(20, 4),
    decimal_type(38, 0),
    decimal_type(38, 10),
    decimal_type(38, 38),
]
TYPES = [BOOLEAN, BIGINT, DOUBLE, TEXT, BLOB, DATE, TIMESTAMP, *DECIMAL_TYPES]

UTC = dt.UTC
_EDGES = {
    Kind.BOOLEAN: [True, False],
    Kind.BIGINT: [
        *(0, 1, -1, 2, 3, -3, 7, 10, -10, 100, 2**31, -(2**31), 2**32, 2**53 + 1, 10**18, -(10**18)),
        *(BIGINT_MAX, BIGINT_MIN, BIGINT_MIN + 1, BIGINT_MAX // 2, 3037000500),
    ],
    Kind.DOUBLE: [
        *(0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1 / 3, -7.25, 1e15, 1e16, 123456789.125),
        *(
            2.0**52,
            2.0**52 - 0.5,
            -(2.0**52) + 0.5,
            2.0**53,
            2.0**63,
            -(2.0**63),
            9.3e18,
            1e-5,
            1e300,
            -1e300,
        ),
        *(5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
        *(math.inf, -math.inf, math.nan, 0.1 + 0.2, 4503599627370495.5, 1e22, 1.1e23, 9007199254740993.0),
    ],
    Kind.TEXT: [
        *(
            "",
            " ",
            "a",
            "A",
            "abc",
            "ABC",
            "aXbX",
            "  pad ",
            "%",
            "_",
            "a%",
            "%b%",
            "a_c",
            "\\",
            "a\\%",
            "*",
            "?",
        ),
        *("[a]", "]", "é", "É", "ß", "日本語", "😀x😀", "it's", "0", "1", "-5", "+7", " 42 ", "1e3", "1.5"),
        *(
            "-0.004",
            "NaN",
            "inf",
            "-Infinity",
            "9223372036854775807",
            "9223372036854775808",
            "99999999999999999",
        ),
        *("t", "yes", "off", "o", "2024-02-29", "2023-02-29", "0001-01-01", "2024-1-5", "0000-01-01"),
        *(
            "2024-02-29 12:30:00.5+02:00",
            "1969-12-31T23:59:59.999999Z",
            "\\x00ff",
            "\\x0",
            "\n",
            "a\nb",
            "1" * 39,
        ),
        *("٣", "-9223372036854775808", "9" * 18, "00000000000000000012", "1e-400", "1e400", "-"),
    ],
    Kind.BLOB: [b"", b"\0", b"\0a\0", b"abc", b"\xff\xfe", b"ABC", b"abcd"],
    Kind.DATE: [
        *(dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        *(
            dt.date(2000, 2, 29),
            dt.date(1900, 3, 1),
            dt.date(2024, 12, 30),
            dt.date(2023, 5, 17),
            dt.date(1, 12, 31),
        ),
    ],
    Kind.TIMESTAMP: [
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(2024, 2, 29, 12, 34, 56, 120000, tzinfo=UTC),
        dt.datetime(1582, 10, 10, 0, 0, 0, 1, tzinfo=UTC),
        dt.datetime(2023, 8, 20, 23, 0, 0, tzinfo=UTC),
        dt.datetime(2023, 11, 30, 6, 7, 8, 90, tzinfo=UTC),
    ],
}


def decimals(target):
    """The ends, ones around zero and around halves, of a DECIMAL type."""
    whole, scale = target.digits
    digits = whole + scale
    most = 10**digits - 1
    scaled = {
        0,
        1,
        -1,
        5,
        -5,
        15,
        25,
        -25,
        12345,
        -99995,
        most,
        -most,
        most // 2,
        10 ** (digits - 1),
        4 * most // 9,
    }
    scaled |= {2**53 + 1, -(2**53) - 1, 10**scale, -(10**scale), 25 * 10**scale // 10, -15 * 10**scale // 10}
    return [check_value(EXACT.scaleb(Decimal(n), -scale), target) for n in sorted(scaled) if abs(n) <= most]


def edges(target):
    """Edge values of a type, NULL first."""
    values = decimals(target) if target.kind is Kind.DECIMAL else _EDGES[target.kind]
    return [None, *(check_value(value, target) for value in values)]


def draw(rng: random.Random, target):
    """An edge value, or something between."""
    if rng.random() < 0.6:
        return rng.choice(edges(target))
    match target.kind:
        case Kind.BOOLEAN:
            value = rng.random() < 0.5
        case Kind.BIGINT:
            value = rng.randrange(-(2 ** rng.randrange(1, 64)), 2 ** rng.randrange(1, 64))
        case Kind.DOUBLE:
            value = rng.choice((1, -1)) * rng.random() * 10.0 ** rng.randrange(-20, 20)
        case Kind.DECIMAL:
            most = 10 ** rng.randrange(1, sum(target.digits) + 1)
            value = EXACT.scaleb(Decimal(rng.randrange(-most + 1, most)), -target.digits[1])
        case Kind.TEXT:
            value = "".join(rng.choice("abAB%_\\ 0159.-é日") for _ in range(rng.randrange(6)))
        case Kind.BLOB:
            value = rng.randbytes(rng.randrange(5))
        case Kind.DATE:
            value = dt.date.fromordinal(rng.randrange(1, dt.date.max.toordinal() + 1))
        case _:
            seconds = rng.randrange(-62135596800, 253402300800)
            value = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(
                seconds=seconds, microseconds=rng.randrange(10**6)
            )
    return check_value(value, target)
