"""Ids over Arrow columns are those of the specification, row by row."""

import random
from decimal import Decimal

import pytest
from tests.engines.spark.samples import EDGES

from everview.engines.spark import identity
from everview.engines.spark.identity import tuple_ids
from everview.engines.spark.types import arrow_table
from everview.language.identity import tuple_id
from everview.language.program import Program
from everview.language.values import check_rows

TYPES = {
    "b": "BOOLEAN",
    "ä": "BIGINT",
    "d": "DOUBLE PRECISION",
    "n": "NUMERIC(38, 10)",
    "w": "NUMERIC(19, 0)",
    "t": "TEXT",
    "x": "BYTEA",
    "a": "DATE",
    "s": "TIMESTAMP",
}


def check(columns, rows):
    declared = ", ".join(f'"{name}" {TYPES[name]}' for name in columns)
    relation = Program.parse(f"CREATE TABLE things ({declared})").relations["things"]
    rows = check_rows("things", relation.schema, rows(relation))
    table = arrow_table(relation.schema, rows)
    found = [bytes(one) for one in tuple_ids(relation, table.columns, table.num_rows)]
    assert found == [tuple_id(relation, row) for row in rows]


def of_edges(chance, *, nulls):
    def rows(relation):
        def value(field):
            fitting = EDGES.get(field.type) or next(
                values for kind, values in EDGES.items() if kind.kind is field.type.kind
            )
            return None if chance.random() < nulls else chance.choice(fitting)

        return [tuple(value(field) for field in relation.schema) for _ in range(200)]

    return rows


@pytest.mark.parametrize("seed", range(20))
def test_ids_of_rows_full_of_edges(seed):
    chance = random.Random(seed)
    names = [name for name in TYPES if name not in "nw"]
    check(chance.sample(names, chance.randint(1, len(names))), of_edges(chance, nulls=0.3 * (seed % 2)))


def test_ids_of_decimals():
    texts = ["0", "-0.5", "12.50", "1000", "0.0000000001", "-123456789012345678.9"]
    rows = [(Decimal(text), Decimal(10 * number), text) for number, text in enumerate(texts)]
    check(["n", "w", "t"], lambda _: rows)


def test_whole_numbers_without_nulls_go_another_way():
    chance = random.Random(1)
    check(["ä", "d", "a", "s"], of_edges(chance, nulls=0))
    check(["ä", "d", "a", "s"], lambda _: [])


@pytest.mark.parametrize("nulls", [0, 0.3])
def test_ids_are_made_some_at_a_time(monkeypatch, nulls):
    monkeypatch.setattr(identity, "_AT_ONCE", 33)
    check(["ä", "d", "a", "s"], of_edges(random.Random(1), nulls=nulls))
