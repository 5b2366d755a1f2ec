"""Published tables hold what the hub holds, for three readers; and a hub can be read as it was."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib.resources
import math
import time

import deltalake
import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.hub.quick import quickly

from everview.errors import DataError
from everview.hub import Hub, compact, publications
from everview.hub.publish import folder_of
from everview.language.order import sorted_rows
from everview.language.program import Program
from everview.language.values import NAN

PROGRAM = Program.parse("""
CREATE TABLE t (k BIGINT NOT NULL, "Name" TEXT, f DOUBLE, d DECIMAL(10,2), wide DECIMAL(38,10),
    at TIMESTAMP, born DATE, ok BOOLEAN, pic BLOB);
CREATE TABLE u (k BIGINT);
CREATE TABLE never (k BIGINT, at TIMESTAMP);
CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM u;
CREATE MATERIALIZED VIEW "A b/ü%" AS SELECT k % 2 AS "odd, or not", 'x' AS "a.b`c" FROM u;
""")
ODD = "A b/ü%"


def at(*moment):
    return dt.datetime(*moment, tzinfo=dt.UTC)


ROWS = [
    (
        1,
        "ä🌍'",
        0.1,
        decimal.Decimal("-99999999.99"),
        decimal.Decimal("1234567890123456789012345678.0123456789"),
        at(1969, 12, 31, 23, 59, 59, 999999),
        dt.date(1969, 12, 31),
        True,
        b"\0\xff",
    ),
    (
        2,
        "",
        NAN,
        decimal.Decimal("0.01"),
        decimal.Decimal("-1E-10"),
        at(1, 1, 1),
        dt.date(1, 1, 1),
        False,
        b"",
    ),
    (-(2**63), None, -math.inf, None, None, at(9999, 12, 31, 23, 59, 59, 999999), None, None, None),
    (2**63 - 1, None, 1e308, None, None, at(1582, 10, 10), dt.date(1582, 10, 10), None, None),
    (0, None, None, None, None, None, None, None, None),
]


@pytest.fixture
def open_hub(spark, tmp_path):
    def open_(**options):
        return quickly(Hub.open(tmp_path, PROGRAM, spark=spark, **options))

    return open_


@pytest.fixture
def hub(open_hub):
    with open_hub() as hub:
        yield hub


def place(folder, name):
    return str(folder / folder_of(name))


def by_deltalake(path):
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return [tuple(row.values()) for row in table.to_pylist()]


def by_polars(path):
    return pl.read_delta(path).rows()


def by_duckdb(path):
    folder = importlib.resources.files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
        return connection.execute("SELECT * FROM delta_scan(?)", [path]).fetchall()


def plain(rows):
    """Rows in their one form: each reader has its own UTC, and NaN differs from itself."""

    def cell(value):
        if isinstance(value, dt.datetime):
            return value.astimezone(dt.UTC)
        return NAN if value != value else value

    return sorted_rows([tuple(map(cell, row)) for row in rows])


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    """A folder in which a few rows are published."""
    folder = tmp_path_factory.mktemp("store")
    with Hub.open(folder, PROGRAM, spark=spark) as hub:
        quickly(hub)
        hub.insert("t", ROWS)
        hub.insert("u", [(1,), (3,), (4,)])
        hub.refresh()
        hub.publish()
    return folder


@pytest.mark.parametrize("read", [by_deltalake, by_polars, by_duckdb])
class TestReaders:
    def test_every_type(self, read, store):
        assert repr(plain(read(place(store, "t")))) == repr(sorted_rows(ROWS))

    def test_multiplicities_and_names(self, read, store):
        assert plain(read(place(store, ODD))) == [(0, "x"), (1, "x"), (1, "x")]
        assert plain(read(place(store, "n"))) == [(3,)]

    def test_an_empty_table(self, read, store):
        assert read(place(store, "never")) == []


class TestTypes:
    def test_columns_are_declared_as_the_program_has_them(self, hub, tmp_path):
        hub.publish()
        fields = deltalake.DeltaTable(place(tmp_path, "t")).schema().fields
        assert [
            (field.name, field.type.type if hasattr(field.type, "type") else None) for field in fields
        ] == [
            ("k", "long"),
            ("Name", "string"),
            ("f", "double"),
            ("d", "decimal(10,2)"),
            ("wide", "decimal(38,10)"),
            ("at", "timestamp"),
            ("born", "date"),
            ("ok", "boolean"),
            ("pic", "binary"),
        ]
        names = [field.name for field in deltalake.DeltaTable(place(tmp_path, ODD)).schema().fields]
        assert names == ["odd, or not", "a.b`c"]

    def test_timestamps_are_instants_in_microseconds_and_counts_are_the_footers(self, hub, tmp_path):
        hub.insert("t", ROWS)
        hub.refresh()
        hub.publish()
        table = deltalake.DeltaTable(place(tmp_path, "t"))
        (path,) = table.file_uris()
        kind = pq.ParquetFile(path).schema.column(5).logical_type.to_json()
        assert '"isAdjustedToUTC":true,"timeUnit":"microseconds"' in kind
        (added,) = table.get_add_actions(flatten=True).to_struct_array().to_pylist()
        assert added["num_records"] == len(ROWS)
        assert added["null_count.d"] == 3
        assert added["null_count.k"] == 0
        assert added.get("min.k") is None


class TestPublishing:
    def test_before_the_first_refresh_all_is_empty(self, hub, tmp_path):
        assert hub.publish().refresh == 0
        assert by_deltalake(place(tmp_path, "n")) == []

    def test_twice_is_once(self, hub, tmp_path):
        hub.insert("u", [(1,)])
        hub.refresh()
        first = hub.publish()
        assert set(first.written) == {"t", "u", "never", "n", ODD}
        files = sorted(tmp_path.rglob("*"))
        second = hub.publish()
        assert second.written == ()
        assert second.versions == first.versions == dict.fromkeys(first.written, 0)
        assert sorted(tmp_path.rglob("*")) == files

    def test_merged_runs_are_no_change(self, hub, monkeypatch):
        monkeypatch.setattr(compact, "DRIVER_ROWS", 0)
        for number in range(compact.FANOUT):
            hub.insert("u", [(number,)])
            hub.refresh()
        hub.publish()
        runs = hub._store.record.runs("r:u")
        hub._store.compactor.wait()
        hub.insert("t", ROWS[:1])
        hub.refresh()
        assert len(hub._store.record.runs("r:u")) < len(runs)
        assert hub.publish().written == ("t",)

    def test_only_what_changed_is_written(self, hub, tmp_path, open_hub):
        hub.insert("u", [(1,)])
        hub.insert("t", ROWS[:1])
        hub.refresh()
        hub.publish()
        hub.insert("u", [(3,)])
        hub.refresh()
        hub.close()
        again = open_hub()
        report = again.publish()
        assert set(report.written) == {"u", "n", ODD}
        assert report.versions == {"t": 0, "u": 1, "never": 0, "n": 1, ODD: 1}
        table = deltalake.DeltaTable(place(tmp_path, "u"))
        assert table.transaction_version("u") == 2
        assert by_deltalake(place(tmp_path, "n")) == [(2,)]
        assert plain(by_duckdb(place(tmp_path, "u"))) == [(1,), (3,)]
        before = deltalake.DeltaTable(place(tmp_path, "u"), version=0)
        assert before.to_pyarrow_table().to_pylist() == [{"k": 1}]

    def test_many_rows_are_several_files(self, hub, spark, tmp_path):
        hub.insert("u", spark.range(25_000).selectExpr("if(id < 5, NULL, id) AS k"))
        hub.refresh()
        hub.publish()
        assert len(deltalake.DeltaTable(place(tmp_path, "u")).file_uris()) > 1
        for read in (by_deltalake, by_polars, by_duckdb):
            assert sorted(read(place(tmp_path, "u")), key=str) == sorted(hub.rows("u"), key=str)
        assert len(hub.rows("u")) == 24_996
        frame = pl.scan_delta(place(tmp_path, "u"))
        assert frame.filter(pl.col("k") == 17).collect().rows() == [(17,)]
        assert frame.filter(pl.col("k").is_null()).collect().rows() == [(None,)]

    def test_a_table_is_emptied(self, hub, tmp_path):
        hub.insert("u", [(1,)])
        hub.refresh()
        hub.publish()
        hub.delete("u", [(1,)])
        hub.refresh()
        hub.publish()
        assert by_deltalake(place(tmp_path, "u")) == by_duckdb(place(tmp_path, "u")) == []
        assert by_polars(place(tmp_path, "n")) == [(0,)]

    def test_a_crash_before_the_commit_leaves_the_version_before(self, hub, tmp_path, monkeypatch, open_hub):
        hub.insert("u", [(1,)])
        hub.refresh()
        hub.publish()
        hub.insert("u", [(2,)])
        hub.refresh()
        with monkeypatch.context() as patch:
            patch.setattr("everview.hub.publish.commit", crash)
            with pytest.raises(KeyboardInterrupt):
                hub.publish()
        assert len(list((tmp_path / folder_of("u")).glob("*/*.parquet"))) == 2
        assert by_deltalake(place(tmp_path, "u")) == by_duckdb(place(tmp_path, "u")) == [(1,)]
        hub.close()
        again = open_hub()
        assert again.publish().versions["u"] == 1
        assert plain(by_polars(place(tmp_path, "u"))) == [(1,), (2,)]

    def test_a_crash_after_the_commits_writes_nothing_again(self, hub, tmp_path, monkeypatch, open_hub):
        hub.insert("u", [(1,)])
        hub.refresh()
        with monkeypatch.context() as patch:
            patch.setattr("everview.hub.publications.record", crash)
            with pytest.raises(KeyboardInterrupt):
                hub.publish()
        hub.close()
        again = open_hub()  # and its vacuum leaves what the log names
        again.insert("t", ROWS[:1])
        again.refresh()
        assert again.publish().written == ("t",)
        assert by_polars(place(tmp_path, "u")) == [(1,)]

    def test_a_refresh_made_again_is_published_again(self, hub, tmp_path, open_hub):
        hub.insert("u", [(1,)])
        hub.refresh()
        hub.publish()
        (tmp_path / "refreshes" / "000000000002.json").unlink()  # as the message of a damaged one advises
        hub.close()
        again = open_hub()
        again.insert("u", [(7,)])
        assert again.refresh().refresh == 1
        again.publish()
        assert by_deltalake(place(tmp_path, "u")) == [(7,)]


def crash(*arguments, **options):
    raise KeyboardInterrupt


class TestFreshness:
    def test_none_publishes_nothing(self, hub):
        hub.insert("u", [(1,)])
        hub.refresh()
        assert publications.last(hub._store.files) is None

    def test_what_is_published_is_no_older(self, open_hub, tmp_path, monkeypatch):
        with open_hub(freshness=60) as hub:
            now = movable_clock(monkeypatch)
            hub.insert("u", [(1,)])
            hub.refresh()
            assert publications.last(hub._store.files).refresh == 1
            hub.insert("u", [(2,)])
            hub.refresh()
            assert publications.last(hub._store.files).refresh == 1
            now[0] += 61_000_000
            hub.refresh()  # nothing has come, but what is published has grown old
            assert publications.last(hub._store.files).refresh == 2
            assert plain(by_polars(place(tmp_path, "u"))) == [(1,), (2,)]


def movable_clock(monkeypatch):
    """The time that publishing sees, to be moved by hand."""
    now = [time.time_ns() // 1000]
    monkeypatch.setattr("everview.hub.publish.now_us", lambda: now[0])
    return now


class TestTimeTravel:
    def test_each_retained_refresh_reads_as_it_did(self, hub, open_hub):
        seen = {}
        for step in range(4):
            hub.insert("u", [(step,), (step + 10,)])
            hub.delete("u", [(step - 1,)])
            hub.insert("t", ROWS[step : step + 1])
            hub.refresh()
            seen[step + 1] = {name: hub.rows(name) for name in PROGRAM.names()}
        assert len({repr(rows) for rows in seen.values()}) == 4
        hub.close()
        with open_hub() as again:
            for number, tables in seen.items():
                for name, rows in tables.items():
                    assert repr(again.rows(name, at=number)) == repr(rows)
            assert sorted(map(tuple, again.table("u", at=2).collect())) == seen[2]["u"]
            assert again.table("u", at=2).columns == ["k"]

    def test_others_are_refused_by_name(self, open_hub):
        with open_hub(retain_refreshes=2) as hub:
            with pytest.raises(DataError, match="refresh 1 is not retained: none has been made yet"):
                hub.rows("u", at=1)
            for number in range(3):
                hub.insert("u", [(number,)])
                hub.refresh()
            assert hub.rows("u", at=2) == [(0,), (1,)]
            for number in (1, 4, -1):
                with pytest.raises(DataError, match=f"refresh {number} is not retained: 2 to 3 are"):
                    hub.table("u", at=number)

    def test_an_old_refresh_is_not_retained_but_the_latest_is(self, open_hub):
        with open_hub() as hub:
            for number in range(2):
                hub.insert("u", [(number,)])
                hub.refresh()
            assert hub.rows("u", at=1) == [(0,)]
        with open_hub(retain_days=0) as strict:
            with pytest.raises(DataError, match="2 to 2 are"):
                strict.rows("u", at=1)
            assert strict.rows("u", at=2) == [(0,), (1,)]

    def test_retention_is_checked(self, open_hub):
        with pytest.raises(DataError, match="retain_refreshes is 0"):
            open_hub(retain_refreshes=0)
        with pytest.raises(DataError, match="retain_days is -1"):
            open_hub(retain_days=-1)
