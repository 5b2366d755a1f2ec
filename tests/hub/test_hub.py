"""What a hub promises beside its views: writes, reports, recovery, refusals."""

from __future__ import annotations

import datetime as dt
import decimal

import msgspec
import pytest
from tests.hub.quick import quickly

from everview.errors import DataError, StoreError
from everview.hub import Change, Hub
from everview.hub.contents import scan
from everview.hub.files import LocalFiles
from everview.hub.record import Record, commit, latest, require_epoch
from everview.hub.runs import Part, Run
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE t (k BIGINT NOT NULL, "Name" TEXT, f DOUBLE, d DECIMAL(10,2), at TIMESTAMP);
CREATE TABLE u (k BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT "Name", count(*) AS n FROM t GROUP BY "Name";
CREATE MATERIALIZED VIEW w AS SELECT k FROM t;
""")
AT = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
ROW = (1, "a", 0.5, decimal.Decimal("1.50"), AT)


@pytest.fixture
def hub(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        yield quickly(hub)


def test_a_write_is_seen_after_the_refresh_and_survives_reopening(hub, spark, tmp_path):
    assert hub.rows("v") == []
    assert hub.table("v").columns == ["Name", "n"]
    assert hub.insert("t", [ROW, {"k": 2, "f": -0.0}, ROW]) == 3
    assert hub.rows("t") == []
    hub.close()
    again = Hub.open(tmp_path, PROGRAM, spark=spark)
    report = again.refresh()
    assert report.changes["t"] == Change(2, 0)
    assert report.changes["v"] == Change(2, 0)
    assert again.rows("t") == [ROW, (2, None, 0.0, None, None)]
    assert str(again.rows("t")[1][2]) == "0.0"
    assert [tuple(row) for row in again.table("v").collect()] in (
        [("a", 1), (None, 1)],
        [(None, 1), ("a", 1)],
    )
    assert again.refresh().changes == {}
    assert again.refresh().refresh == 1


def test_the_last_write_of_a_row_counts_and_lengths_only_grow(hub):
    hub.insert("u", [(1,), (2,)])
    hub.delete("u", [(2,), (3,)])
    hub.refresh()
    assert hub.rows("u") == [(1,)]
    hub.delete("u", [(1,)])
    hub.insert("u", [(2,), (1,)])
    assert hub.refresh().changes == {"u": Change(1, 0)}
    assert lengths(hub) == [(1, 1), (2, 1)]
    hub.delete("u", [(1,)])
    hub.refresh()
    hub.insert("u", [(1,)])
    hub.refresh()
    assert lengths(hub) == [(1, 3), (2, 1)]


def lengths(hub):
    stored = scan(hub._store.spark, hub._store.files, hub._store.catalog, hub._store.record, "r:u")
    return sorted(map(tuple, stored.select("c0", "c1").collect()))


def test_a_dataframe_is_matched_by_name(hub, spark):
    frame = spark.sql("SELECT 'x' AS Name, CAST(7 AS INT) AS k, CAST(1.5 AS FLOAT) AS f")
    assert hub.insert("t", frame) == 1
    hub.refresh()
    assert hub.rows("t") == [(7, "x", 1.5, None, None)]
    with pytest.raises(DataError, match="has no column 'nope'"):
        hub.insert("t", spark.sql("SELECT 1L AS k, 2 AS nope"))
    with pytest.raises(DataError, match="cannot hold Spark's string: expected BIGINT"):
        hub.insert("t", spark.sql("SELECT '1' AS k"))
    with pytest.raises(DataError, match="k is NOT NULL"):
        hub.insert("t", spark.sql("SELECT 'y' AS Name"))
    assert hub.refresh().arrivals == 0


def test_a_crash_between_files_leaves_the_refresh_before(hub, spark, tmp_path, monkeypatch):
    hub.insert("u", [(1,)])
    hub.refresh()
    hub.insert("u", [(2,)])
    with monkeypatch.context() as patch:
        patch.setattr(
            "everview.hub.store.commit", lambda files, record: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            hub.refresh()
    hub.close()
    with Hub.open(tmp_path, PROGRAM, spark=spark) as again:
        assert again.rows("u") == [(1,)]
        assert again.refresh().changes["u"] == Change(1, 0)
        assert again.rows("u") == [(1,), (2,)]


def test_a_write_that_others_overtake_is_not_lost(hub, monkeypatch):
    """A slow write has a smaller number than a quick one that a refresh finds before it."""
    mark = hub._store.inbox._mark

    def overtaken(arrival, rows):
        monkeypatch.setattr(hub._store.inbox, "_mark", mark)
        hub.insert("u", [(2,)])
        assert hub.refresh().arrivals == 0
        mark(arrival, rows)

    monkeypatch.setattr(hub._store.inbox, "_mark", overtaken)
    hub.insert("u", [(1,)])
    assert hub.refresh().arrivals == 2
    assert hub.rows("u") == [(1,), (2,)]


def test_a_write_that_was_put_there_by_hand_does_not_hide_ours(hub, tmp_path):
    hub.insert("u", [(1,)])
    (folder,) = (tmp_path / "inbox").iterdir()
    mark = (folder / "_arrival.json").read_text()
    folder.rename(folder.with_name("000000000077-copied"))
    (folder.parent / "000000000077-copied" / "_arrival.json").write_text(
        mark.replace('"number":1', '"number":77')
    )
    assert hub.refresh().arrivals == 1
    hub.insert("u", [(2,)])
    assert hub.refresh().arrivals == 1
    assert hub.rows("u") == [(1,), (2,)]


def test_records(tmp_path):
    files = LocalFiles(tmp_path)
    assert latest(files, "p") == Record(number=0, refresh=0, program="p", ids=True, levels=True)
    part = Part("runs/x", 64, 1000, 7, -5, 5)
    record = Record(number=4, refresh=1, epoch=3, program="p", arrived=3, tables={"t": (Run(7, (part,)),)})
    commit(files, record)
    assert latest(files, "p") == record
    with pytest.raises(StoreError, match="another hub has taken this store over and made record 4"):
        commit(files, record)
    require_epoch(files, record)
    commit(files, msgspec.structs.replace(record, number=5))
    require_epoch(files, record)
    commit(files, msgspec.structs.replace(record, number=6, epoch=4))
    with pytest.raises(StoreError, match="open it again"):
        require_epoch(files, record)
    with pytest.raises(StoreError, match="another program"):
        latest(files, "q")
    files.create("refreshes/000000000007.json", b"{")
    with pytest.raises(StoreError, match="is damaged"):
        latest(files, "p")


def test_records_of_formats_before(tmp_path):
    files = LocalFiles(tmp_path)
    files.create("refreshes/000000000007.json", b'{"format": 2, "refresh": 7, "program": "p", "tables": {}}')
    assert latest(files, "p") == Record(number=7, refresh=7, program="p")
    files.create("refreshes/000000000009.json", b'{"format": 3, "number": 9, "refresh": 7, "program": "p"}')
    assert latest(files, "p") == Record(number=9, refresh=7, program="p", gate="")


def test_a_store_whose_rows_are_found_by_another_hash_stays_so(spark, tmp_path):
    """Before format 4 rows of relations were not found by their ids."""
    old = Record(number=1, refresh=0, program=PROGRAM.hash, format=3)
    LocalFiles(tmp_path).create("refreshes/000000000001.json", msgspec.json.encode(old))
    for rows in (1_000_000, 1):
        with quickly(Hub.open(tmp_path, PROGRAM, spark=spark)) as hub:
            hub._store.driver_rows = rows
            hub.insert("u", [(1,), (rows,)])
            hub.insert("t", [ROW])
            hub.refresh()
            hub.delete("u", [(rows,)])
            hub.insert("t", [ROW])
            assert hub.refresh().changes == {"u": Change(0, 1)}
            assert not hub._store.record.ids
            assert hub.rows("u") == ([(1,)] if rows > 1 else [])
            assert hub.rows("t") == [ROW]


def test_create_never_replaces(tmp_path):
    files = LocalFiles(tmp_path)
    assert files.create("a/b", b"1")
    assert not files.create("a/b", b"2")
    assert files.read("a/b") == b"1"
    assert files.list("a") == ["b"]


class TestRefusals:
    def test_names(self, hub):
        with pytest.raises(DataError, match="v is a view"):
            hub.insert("v", [(1, 2)])
        with pytest.raises(DataError, match="no relation x"):
            hub.insert("x", [(1,)])
        hub.close()
        with pytest.raises(StoreError, match="closed"):
            hub.refresh()


def test_explain_says_how(hub):
    text = hub.explain("v")
    assert "Aggregate: by delta" in text
    assert "\n      t" in text
