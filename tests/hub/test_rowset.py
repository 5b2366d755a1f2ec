"""Sets of rows in memory against Python's, also where hashes collide."""

import random

import numpy as np
import pytest

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub import rowset
from everview.hub.rowset import RowSet
from everview.language.types import BIGINT, DOUBLE, TEXT, Field
from everview.language.values import NAN

SCHEMA = (Field("a", BIGINT), Field("t", TEXT), Field("x", DOUBLE))


def drawn(rng, count):
    values = (None, 0, 1, 2), (None, "", "a", "b"), (None, 0.0, 1.5, NAN)
    return [tuple(map(rng.choice, values)) for _ in range(count)]


def key(row):
    return tuple("nan" if value is NAN or value != value else value for value in row)


@pytest.mark.parametrize("hashes", [2**64, 3, 1])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_told_by_their_values(seed, hashes, monkeypatch):
    real = rowset.hash_columns
    monkeypatch.setattr(
        rowset,
        "hash_columns",
        lambda *given: (real(*given).view(np.uint64) % np.uint64(hashes % 2**64 or 2**63)).view(np.int64),
    )
    rng, rows, model = random.Random(seed), RowSet(SCHEMA, len(SCHEMA)), {}
    for _ in range(25):
        given = drawn(rng, rng.choice((0, 1, 3, 20)))
        asked = drawn(rng, 5)
        lacking = arrow_rows(rows.lacks(arrow_table(SCHEMA, asked)), SCHEMA)
        assert [key(row) for row in lacking] == [key(row) for row in asked if key(row) not in model]
        new = [key(row) for row in arrow_rows(rows.add(arrow_table(SCHEMA, given)), SCHEMA)]
        wanted = {key(row): None for row in given if key(row) not in model}
        assert len(new) == len(wanted)
        assert set(new) == set(wanted)
        model |= wanted
    assert {key(row) for row in arrow_rows(rows.table, SCHEMA)} == set(model)
    assert rows.table.num_rows == len(model)
