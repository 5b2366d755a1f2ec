"""The change between any two refreshes is the difference of their rows, whatever was merged in between."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.hub.changing import PROGRAM, told
from tests.hub.quick import quickly

from everview.errors import DataError, StoreError
from everview.hub import Hub
from everview.hub.changes import WEIGHT, Difference, changed_rows, difference
from everview.hub.files import LocalFiles
from everview.hub.lookup import open_part, ranges
from everview.hub.record import read
from everview.hub.runs import Layout, Part, sealed
from everview.hub.shapes import read_shape, shape_of
from everview.language.types import BIGINT, Field


def test_a_change_is_the_difference_of_the_rows_whatever_was_merged(past):
    """Compared as it was made (see `changing`)."""
    assert past.seen > 100
    assert past.merged > 20


def test_ranges_of_hashes_have_the_change_together_and_large_ones_are_left_to_tasks(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        quickly(hub)
        hub.insert("keyed", [(k, "old") for k in range(50)])
        hub.refresh()
        hub.insert("keyed", [(k, "new") for k in range(0, 100, 2)])
        hub.refresh()
        store = hub._store
        shape = shape_of(store.catalog, "keyed")
        before, after = read(store.files, store.record.number - 1), store.record
        assert changed_rows(store.files, shape, before, after, 49) is None
        whole = told(changed_rows(store.files, shape, before, after, 50), shape)
        assert sorted(Counter(whole.values()).items()) == [(-1, 25), (1, 50)]
        found = difference(shape, before, after)
        pieces = Counter()
        for low, high in ranges(7):
            part = told(found.within(low, high).read(low, high, open_part(store.files)), shape)
            assert not {*part} & {*pieces}
            pieces.update(part)
        assert dict(pieces) == whole
        assert difference(shape, after, after) is None
        assert changed_rows(store.files, shape, after, after, 0).num_rows == 0


def test_rows_that_share_a_hash_are_told_apart():
    """No two rows with one hash are known, so these are made up."""
    layout = Layout(1, latest=True)
    shape = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.int64())])

    def run(rows):
        table = pa.Table.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=shape)
        return sealed(table, np.full(len(rows), 7), layout)

    runs = {
        "common": run([(1, 1, 1), (2, 1, 1)]),
        "old": run([(3, 1, 2)]),
        "new": run([(3, 1, 2), (2, 2, 3), (4, 1, 3)]),
    }
    parts = {path: (Part(path, 0, 0, table.num_rows, 7, 7),) for path, table in runs.items()}
    found = Difference((Field("a", BIGINT),), layout, True, parts["old"], parts["new"], parts["common"], 4)
    table = found.read(*ranges(1)[0], lambda part: runs[part.path])
    assert sorted(zip(*(column.to_pylist() for column in table.columns), strict=True)) == [(2, -1), (4, 1)]
    assert WEIGHT.name == "_weight"


def test_a_store_that_does_not_say_what_its_tables_are_is_told_so(tmp_path):
    with pytest.raises(StoreError, match="open it once with"):
        read_shape(LocalFiles(tmp_path), "0" * 64, "t")


def test_a_name_that_is_none_is_told_with_those_that_are(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub, pytest.raises(DataError, match="added, bag, best"):
        read_shape(hub._store.files, PROGRAM.hash, "nothing")
