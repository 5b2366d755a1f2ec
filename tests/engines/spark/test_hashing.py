"""The hash over Arrow columns is Spark's own, value by value."""

import datetime as dt
import random
from decimal import Decimal

import pytest

from everview.engines.spark.hashing import hash_columns, hash_text
from everview.engines.spark.types import arrow_table, from_arrow
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Field, Kind, Type
from everview.language.values import EXACT, NAN

KINDS = [
    BIGINT,
    DOUBLE,
    Type(Kind.DECIMAL, 10, 2),
    Type(Kind.DECIMAL, 18, 0),
    Type(Kind.DECIMAL, 38, 10),
    TEXT,
    BLOB,
    DATE,
    TIMESTAMP,
    BOOLEAN,
]
FIELDS = tuple(Field(f"x{i}", kind) for i, kind in enumerate(KINDS))


def value(chance, kind):
    if chance.random() < 0.2:
        return None
    match kind.kind:
        case Kind.BIGINT:
            return chance.choice([0, -1, chance.randint(-(2**63), 2**63 - 1)])
        case Kind.DOUBLE:
            return chance.choice([0.0, -1.5, NAN, float("inf"), 5e-324, chance.uniform(-1e9, 1e9)])
        case Kind.DECIMAL:
            most = 10 ** sum(kind.digits) - 1
            units = chance.choice([0, -1, 127, 128, -128, -129, chance.randint(-most, most)])
            return EXACT.scaleb(Decimal(units), -kind.digits[1])
        case Kind.TEXT:
            return "".join(chance.choice("aé\U0001f600\0 ") for _ in range(chance.randint(0, 40)))
        case Kind.BLOB:
            return chance.randbytes(chance.randint(0, 70))
        case Kind.DATE:
            return dt.date(1, 1, 1) + dt.timedelta(chance.randint(0, 3_600_000))
        case Kind.TIMESTAMP:
            return dt.datetime(1900, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
                microseconds=chance.randint(0, 2**52)
            )
        case _:
            return chance.random() < 0.5


@pytest.mark.spark
def test_every_type_alone_and_all_together(spark):
    chance = random.Random(0)
    rows = [tuple(value(chance, kind) for kind in KINDS) for _ in range(300)]
    table = arrow_table(FIELDS, rows)
    chosen = [[place] for place in range(len(KINDS))] + [list(range(len(KINDS))), []]
    texts = [hash_text([f"c{place}" for place in places]) for places in chosen]
    shown = [f"{text} AS h{number}" for number, text in enumerate(texts)]
    wanted = from_arrow(spark, FIELDS, table).selectExpr(*shown).collect()
    for number, places in enumerate(chosen):
        columns = [table.column(place) for place in places]
        got = hash_columns(columns, [FIELDS[place] for place in places], len(rows)).tolist()
        assert got == [row[number] for row in wanted], places
