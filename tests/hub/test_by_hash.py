"""The short way to join set relations gives what their plans give, or gives up."""

import random

import numpy as np
import pyarrow as pa
import pytest

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub.memory import Memory
from everview.hub.operating import put_found
from everview.hub.relations import lattice_table
from everview.hub.routing import with_hashes
from everview.hub.runs import HASH
from everview.hub.tables import catalog
from everview.language.program import Program
from everview.language.values import NAN

PROGRAM = Program.parse("CREATE TABLE r (a BIGINT, t TEXT, x DOUBLE PRECISION)")
TABLE = lattice_table(PROGRAM.relations["r"])
WIDTH = len(TABLE.relation.schema)
VERSION = 7


def by_plans(come, stored):
    memory = Memory()
    put_found(memory, TABLE.found, stored)
    memory.put(TABLE.arrived.name, TABLE.arrived.schema, come)
    for name, plan in TABLE.steps():
        memory.run(name, plan)
    memory.run("grown", TABLE.growth(VERSION))
    memory.run("change", TABLE.change())
    found = (
        rows_of(memory.table("grown"), TABLE.schema),
        rows_of(memory.table("change"), TABLE.change().schema),
    )
    memory.close()
    return found


def rows_of(table, schema):
    return sorted(map(repr, arrow_rows(table, schema)))


def history(chance):
    values = [(a, t, x) for a in (1, 2, None) for t in ("", "é", None) for x in (0.5, NAN, None)]
    stored = [
        (*row, chance.randint(1, 5), 3) for row in chance.sample(values, chance.randint(0, len(values)))
    ]
    come = [(*chance.choice(values), chance.randint(2, 40)) for _ in range(chance.randint(1, 40))]
    return arrow_table(TABLE.arrived.schema, come), arrow_table(TABLE.schema, stored)


def hashes_of(table, modulus):
    hashes = catalog(PROGRAM).hashed(TABLE.name).of(TABLE.schema, table)
    return hashes % modulus if modulus else hashes


@pytest.mark.parametrize("modulus", [0, 1_000, 40])
def test_it_gives_what_the_plans_give_or_gives_up(modulus):
    """With few hashes two rows have the same now and then, or nearly always."""
    given_up = 0
    for seed in range(150):
        come, stored = history(random.Random(seed))
        given = with_hashes(come, hashes_of(come, modulus))
        there = with_hashes(stored, hashes_of(stored, modulus))
        shuffled = there.take(pa.array(np.random.default_rng(seed).permutation(there.num_rows)))
        joined = TABLE.joined(given, shuffled if there.num_rows else None, VERSION)
        if joined is None:
            given_up += 1
            continue
        grown, change = joined
        ordered = grown.column(HASH).to_numpy()
        assert (ordered[:-1] < ordered[1:]).all()
        assert (ordered == hashes_of(grown.drop_columns([HASH]), modulus)).all()
        found = rows_of(grown.drop_columns([HASH]), TABLE.schema), rows_of(change, TABLE.change().schema)
        assert found == by_plans(come, stored), seed
    assert given_up == 0 if not modulus else 0 < given_up < 150
