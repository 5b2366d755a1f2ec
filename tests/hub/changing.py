"""Random histories of a hub, and the oracle of its changes: the difference of the rows at two refreshes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from tests.hub.quick import quickly

from everview.engines.spark.types import arrow_rows
from everview.hub import Hub
from everview.hub.changes import changed_rows, difference
from everview.hub.shapes import read_shape, shape_of
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE plain (a BIGINT, b TEXT);
CREATE TABLE added (a BIGINT, x DOUBLE) WITH (semantics = 'add_wins');
CREATE TABLE keyed (k BIGINT PRIMARY KEY, v TEXT);
CREATE TABLE bag (a BIGINT, x DOUBLE) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW copies AS SELECT b FROM plain;
CREATE MATERIALIZED VIEW counted AS SELECT b, count(*) AS n FROM plain GROUP BY b;
CREATE MATERIALIZED VIEW met AS SELECT v, x FROM keyed JOIN bag ON k = a;
CREATE MATERIALIZED VIEW best AS SELECT a, x FROM bag ORDER BY x DESC, a LIMIT 3;
""")


@dataclass(frozen=True)
class Past:
    """A store, and the rows of each relation and view after every refresh, and after none.

    How many changes of rows were compared, and how often in runs that had been merged.
    """

    folder: Path
    states: dict
    seen: int
    merged: int


def history(hub, rng, steps):
    """Random writes, few rows that come and go; the records of the refreshes."""
    rows = {
        "plain": lambda: (rng.randrange(4), rng.choice(["a", "b", None])),
        "added": lambda: (rng.randrange(3), rng.choice([0.5, float("nan"), None])),
        "keyed": lambda: (rng.randrange(4), rng.choice(["a", "b", None])),
        "bag": lambda: (rng.randrange(4), rng.choice([0.5, float("nan"), -1.0])),
    }
    records = []
    for _ in range(steps):
        for name in rng.sample(sorted(rows), rng.randrange(1, 4)):
            hub.insert(name, [rows[name]() for _ in range(rng.randrange(1, 4))])
            hub.delete(name, [rows[name]() for _ in range(rng.randrange(1, 3))])
        hub.refresh()
        records.append(hub._store.record)
    return records


def counted(rows):
    return Counter(map(repr, rows))


def differs(before, after):
    """The weights of the rows that are not there as often."""
    weights = {row: after[row] - before[row] for row in {*before, *after}}
    return {row: weight for row, weight in weights.items() if weight}


def compare_changes(spark, folder, rng, steps):
    """Compare the changes between many pairs of refreshes."""
    with Hub.open(folder, PROGRAM, spark=spark) as hub:
        records = history(quickly(hub), rng, steps)
        store = hub._store
        told_states = {}
        seen = merged = 0
        for name in PROGRAM.names():
            shape = shape_of(store.catalog, name)
            assert read_shape(store.files, PROGRAM.hash, name) == shape
            told_states[name] = states = [counted(hub.rows(name, at=record.refresh)) for record in records]
            pairs = [(0, steps - 1), *((at, at + 1) for at in range(steps - 1))]
            pairs += [tuple(sorted(rng.sample(range(steps), 2))) for _ in range(8)]
            for one, other in pairs:
                wanted = differs(states[one], states[other])
                table = changed_rows(store.files, shape, records[one], records[other], 10_000)
                assert told(table, shape) == wanted, (name, one, other)
                seen += len(wanted)
                found = difference(shape, records[one], records[other])
                merged += found is not None and len(found.old) > 0
            assert told(changed_rows(store.files, shape, None, records[5], 10_000), shape) == dict(states[5])
        return Past(folder, {name: [Counter(), *each] for name, each in told_states.items()}, seen, merged)


def told(table, shape):
    """The weights of rows, of which each is there once."""
    assert table.column_names == [f"c{place}" for place in range(shape.width + 1)]
    *rows, weights = table.columns
    values = arrow_rows(pa.Table.from_arrays(rows, names=table.column_names[:-1]), shape.fields)
    found = dict(zip(map(repr, values), weights.to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found
