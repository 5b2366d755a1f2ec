"""Runs: whatever was written in whatever order, what is found is what a dictionary would say."""

import datetime as dt
import functools
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from everview.engines.spark.hashing import hash_columns
from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub.compact import FANOUT, due
from everview.hub.files import LocalFiles
from everview.hub.lookup import open_part
from everview.hub.ranks import Rank, ranks
from everview.hub.runs import Layout, Run, merged, packed, sealed
from everview.hub.searching import Request, TooManyError, search
from everview.language.order import row_order_key
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Field, Kind, Type
from everview.language.values import NAN

ALL = -(2**63), 2**63 - 1
VALUES = {
    BIGINT: [0, 1, -1, 2**63 - 1, -(2**63), 256, -256],
    DOUBLE: [0.0, -1.5, 1e308, -1e308, 5e-324, NAN, float("inf"), -float("inf"), 2.0],
    TEXT: ["", "a", "ab", "a\0", "a\0b", "é", "z", "\U0001f600"],
    BLOB: [b"", b"\0", b"\0\0", b"\xff", b"a", b"\0\x01"],
    BOOLEAN: [True, False],
    DATE: [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    TIMESTAMP: [dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    Type(Kind.DECIMAL, 10, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("12345678.99"), Decimal("2.00")],
    Type(Kind.DECIMAL, 38, 10): [Decimal("-9999999999999999999999999999.0000000001"), Decimal(7), Decimal(0)],
}


def table(kinds, rows):
    return arrow_table(tuple(Field(f"c{i}", kind) for i, kind in enumerate(kinds)), rows)


def columns(found):
    return [column.combine_chunks() for column in found.columns]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_ranks_order_as_values_do(kind, descending, nulls_first):
    values = [*VALUES[kind], None, *VALUES[kind][:2]]
    found = ranks(
        columns(table([kind], [(v,) for v in values])), [Rank(0, descending, nulls_first)], nulls=True
    )
    by_rank = [values[at] for at in sorted(range(len(values)), key=lambda at: found[at].as_py())]
    assert repr(by_rank) == repr(in_order(values, descending=descending, nulls_first=nulls_first))
    if None not in values[:-3]:
        known = [value for value in values if value is not None]
        plain = ranks(
            columns(table([kind], [(v,) for v in known])), [Rank(0, descending, nulls_first)], nulls=False
        )
        assert repr(
            [known[at] for at in sorted(range(len(known)), key=lambda at: plain[at].as_py())]
        ) == repr(in_order(known, descending=descending, nulls_first=nulls_first))


def in_order(values, *, descending, nulls_first):
    known = sorted(
        (v for v in values if v is not None), key=lambda v: row_order_key((v,)), reverse=descending
    )
    if descending:  # equal ones stay as they were, and are equal
        known = sorted(known, key=lambda v: row_order_key((v,)), reverse=True)
    missing = [v for v in values if v is None]
    return missing + known if nulls_first else known + missing


def test_ranks_of_several_columns():
    chance = random.Random(1)
    order = [Rank(0, True, False), Rank(1, False, True), Rank(2, True, True)]
    kinds = [TEXT, BIGINT, BLOB]
    rows = [tuple(chance.choice([None, *VALUES[kind]]) for kind in kinds) for _ in range(200)]
    found = ranks(columns(table(kinds, rows)), order, nulls=True)
    by_rank = sorted(range(len(rows)), key=lambda at: found[at].as_py())

    def compare(one, other):
        for key in order:
            a, b = one[key.column], other[key.column]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == key.nulls_first else 1
            elif a != b:
                a, b = (x.encode() if isinstance(x, str) else x for x in (a, b))
                return (-1 if a < b else 1) * (-1 if key.descending else 1)
        return 0

    assert [rows[at] for at in by_rank] == sorted(rows, key=functools.cmp_to_key(compare))


class Written:
    """Runs in one file on disk, and what they say together."""

    def __init__(self, folder, layout, keys, *, collide=False):
        self.folder, self.layout, self.keys, self.collide = folder, layout, keys, collide
        self.runs, self.sums = [], Counter()

    def hashes(self, found):
        fields = [Field(f"c{key}", BIGINT) for key in self.keys]
        made = hash_columns([found.column(key) for key in self.keys], fields, found.num_rows)
        return made % 3 if self.collide else made

    def write(self, weights):
        found = table([BIGINT] * (len(next(iter(weights))) + 1), [(*row, w) for row, w in weights.items()])
        content, parts = packed(f"{len(self.runs)}.arrow", [sealed(found, self.hashes(found), self.layout)])
        (self.folder / f"{len(self.runs)}.arrow").write_bytes(content)
        self.runs.append(Run(found.num_rows, tuple(parts)))
        self.sums.update(weights)
        for row in [row for row, weight in self.sums.items() if not weight]:
            del self.sums[row]

    def search(self, request):
        found = search(request, *ALL, open_part(LocalFiles(self.folder)), None)
        if found is None:
            return {}
        rows = found.select([name for name in found.column_names if name.startswith("c")])
        return {row[:-1]: row[-1] for row in zip(*(c.to_pylist() for c in rows.columns), strict=True)}

    @property
    def parts(self):
        return tuple(part for run in self.runs for part in run.parts)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("collide", [False, True])
def test_searches_find_what_the_runs_add_up_to(tmp_path, seed, collide):
    chance = random.Random(seed)
    written = Written(tmp_path, Layout(2), [0], collide=collide)
    for _ in range(chance.randint(1, 6)):
        changed = {(chance.randint(0, 9), chance.randint(0, 3)): 0 for _ in range(8)}
        written.write({row: chance.choice([1, 2, -1 if written.sums[row] else 1]) for row in changed})
    assert written.search(Request(written.parts, written.layout, None)) == dict(written.sums)
    asked = table([BIGINT], [(key,) for key in range(3, 12)])
    hashes = np.unique(written.hashes(asked))
    found = written.search(Request(written.parts, written.layout, hashes))
    wanted = {row: weight for row, weight in written.sums.items() if row[0] >= 3}
    assert wanted.items() <= found.items()
    if not collide:
        assert found == wanted


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("collide", [False, True])
def test_ranked_searches_find_the_first_and_the_last(tmp_path, seed, collide):
    chance = random.Random(seed)
    written = Written(
        tmp_path, Layout(2, (Rank(1, False, False),), nulls=False, key=(0,)), [0], collide=collide
    )
    for _ in range(chance.randint(1, 7)):
        rows = {(chance.randint(0, 2), chance.randint(0, 60)) for _ in range(40)}
        written.write({row: -written.sums[row] if written.sums[row] else 1 for row in rows})
    hashes, counts = np.unique(written.hashes(table([BIGINT], [(0,), (1,), (1,), (2,)])), return_counts=True)
    first, last = chance.choice([(True, False), (False, True), (True, True)])
    needed = counts + chance.randint(1, 4)
    found = written.search(Request(written.parts, written.layout, hashes, needed, first, last))
    assert found.items() <= written.sums.items()
    for key in range(3):
        rows = sorted(row for row in written.sums if row[0] == key)
        count = int(min(needed))
        assert not first or set(rows[:count]) <= found.keys()
        assert not last or set(rows[-count:]) <= found.keys()


def test_more_rows_than_can_be_taken_are_refused(tmp_path):
    written = Written(tmp_path, Layout(1), [0])
    written.write({(number,): 1 for number in range(50)})
    with pytest.raises(TooManyError):
        search(Request(written.parts, written.layout, None), *ALL, open_part(LocalFiles(tmp_path)), 49)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("collide", [False, True])
def test_the_latest_version_of_a_row_counts(seed, collide):
    chance = random.Random(seed)
    kinds = (BIGINT, DOUBLE, TEXT, BIGINT, BIGINT)
    layout, latest, pieces = Layout(3, latest=True), {}, []
    for version in range(6):
        rows = {
            (chance.choice([None, 1, 2]), chance.choice([None, NAN, 0.5]), chance.choice([None, "a"])): None
            for _ in range(5)
        }
        stored = [(*row, chance.randint(0, 9), version) for row in rows]
        latest.update({repr(row[:3]): row for row in stored})
        found = table(kinds, stored)
        fields = [Field(f"c{i}", kind) for i, kind in enumerate(kinds[:3])]
        hashes = hash_columns(found.columns[:3], fields, found.num_rows)
        pieces.append(sealed(found, hashes % 2 if collide else hashes, layout))
    chance.shuffle(pieces)
    once = merged(pieces, layout)
    schema = tuple(Field(f"c{i}", kind) for i, kind in enumerate(kinds))
    got = arrow_rows(once.drop_columns(["h"]), schema)
    assert sorted(map(repr, got)) == sorted(map(repr, latest.values()))


def test_runs_stay_few_and_rows_are_written_again_a_few_times():
    runs, again = [], 0
    for _ in range(2000):
        runs.append(Run(1000, ()))
        while old := due(runs):
            again += sum(run.rows for run in old)
            runs = [run for run in runs if not any(run is other for other in old)]
            runs.append(Run(sum(run.rows for run in old), ()))
        assert len(runs) < 5 * FANOUT
    assert sum(run.rows for run in runs) == 2_000_000
    assert again <= 5 * 2_000_000


def test_several_runs_in_one_file(tmp_path):
    tables = [sealed(table([BIGINT, BIGINT], [(n, 1)]), np.array([n]), Layout(1)) for n in range(5)]
    content, parts = packed("x.arrow", tables)
    (tmp_path / "x.arrow").write_bytes(content)
    opened = open_part(LocalFiles(tmp_path))
    assert [opened(part).column("c0").to_pylist() for part in parts] == [[n] for n in range(5)]
    assert all(part.offset % 64 == 0 for part in parts)
