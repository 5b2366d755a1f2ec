"""Rows between tasks: each arrives once, where its hash belongs, in whatever batches Spark is handed."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from everview.hub import large, routing
from everview.hub.files import LocalFiles
from everview.hub.gathering import gathered_batches
from everview.hub.inbox import Arrival
from everview.hub.large import LargeRefresh
from everview.hub.routing import HASH, PARCEL_SCHEMA, Parcel, batched, parcels, range_of, read_rows, scattered


@pytest.mark.parametrize("targets", [1, 3, 40])
def test_rows_come_to_the_range_of_their_hash(monkeypatch, targets):
    monkeypatch.setattr(routing, "_ROWS", 700)
    monkeypatch.setattr(routing, "_LARGE", 5_000)
    chance = np.random.default_rng(targets)
    hashes = chance.integers(-(2**63), 2**63 - 1, 10_000)
    rows = pa.table({"c0": np.arange(10_000)})
    came = {}
    for parcel in parcels(batched(scattered("s", rows, hashes, targets))):
        assert parcel.stream == "s"
        came.setdefault(parcel.target, []).append(parcel.payload)
    together = []
    for target, payloads in came.items():
        low, high = range_of(target, targets)
        arrived = read_rows(payloads)
        own = arrived.column(HASH).to_numpy()
        assert low <= own.min() <= own.max() <= high
        assert (hashes[arrived.column("c0").to_numpy()] == own).all()
        together += arrived.column("c0").to_pylist()
    assert sorted(together) == list(range(10_000))


def test_small_parcels_go_together_and_large_ones_alone():
    sizes = [0, 10, 2_000_000, 400_000, 700_000, 5]
    sent = [Parcel(number, str(number), bytes([number]) * size) for number, size in enumerate(sizes)]
    batches = list(batched(sent))
    assert [batch.num_rows for batch in batches] == [1, 4, 1]
    assert all(batch.schema == PARCEL_SCHEMA for batch in batches)
    found = {parcel.target: parcel for parcel in parcels(batches)}
    assert [bytes(found[n].payload) for n in range(len(sizes))] == [parcel.payload for parcel in sent]
    assert [found[n].stream for n in range(len(sizes))] == [parcel.stream for parcel in sent]
    assert list(batched([])) == []


def test_a_task_reads_many_batches_before_it_sends():
    given = [pa.RecordBatch.from_pydict({"c0": list(range(first, first + 10))}) for first in range(0, 60, 10)]
    given.insert(2, given[0].slice(0, 0))
    found = list(gathered_batches(iter(given), 25, 10_000))
    assert [table.num_rows for table in found] == [30, 30]
    assert pa.concat_tables(found).column("c0").to_pylist() == list(range(60))
    assert [table.num_rows for table in gathered_batches(iter(given[:2]), 25, 10_000)] == [20]
    by_size = list(gathered_batches(iter(given), 25, 150))  # a batch has 80
    assert [table.num_rows for table in by_size] == [20, 20, 20]


def test_wide_rows_are_divided_by_their_bytes(tmp_path):
    hub_files = LocalFiles(tmp_path)
    hub_files.create("inbox/1/part-0.parquet", bytes(1_000))
    arrival = Arrival(1, "things", True, 10, "inbox/1")
    refresh = LargeRefresh(None, hub_files, None, None, 2)
    nothing_read = SimpleNamespace(scanned=frozenset())

    def targets(rows, size):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(large, "TARGET_ROWS", rows)
            patched.setattr(large, "TARGET_BYTES", size)
            return refresh._targets([arrival], nothing_read)

    assert targets(100, 10_000) == 2
    assert targets(3, 10_000) == 4
    assert targets(100, 99) == 11
