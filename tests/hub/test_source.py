"""Spark jobs that read, follow and write relations and views with format("everview")."""

from __future__ import annotations

import datetime as dt
import decimal

import pytest
from examples import spark_streaming
from pyspark.errors import PySparkException
from tests.hub.quick import quickly

from everview.hub import Hub, register
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE visit (id BIGINT NOT NULL, "Place" TEXT, at TIMESTAMP, cost DECIMAL(10,2), far DOUBLE);
CREATE TABLE copies ("Place" TEXT, n BIGINT) WITH (semantics = 'bag');
CREATE TABLE place (name TEXT PRIMARY KEY, height BIGINT);
CREATE MATERIALIZED VIEW counted AS SELECT "Place", count(*) AS n FROM visit GROUP BY "Place";
CREATE MATERIALIZED VIEW places AS SELECT "Place" FROM visit;
""")
AT = dt.datetime(2026, 3, 1, 12, 30, 0, 1, tzinfo=dt.UTC)


@pytest.fixture
def job(spark):
    """A session that never opened a hub."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    register(session)
    register(session)
    return session


@pytest.fixture
def hub(spark, tmp_path):
    with Hub.open(tmp_path / "store", PROGRAM, spark=spark) as hub:
        yield quickly(hub)


def read(job, tmp_path, name, **options):
    return job.read.format("everview").option("name", name).options(**options).load(str(tmp_path / "store"))


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def test_a_dataframe_shows_one_refresh_for_ever(hub, job, tmp_path):
    hub.insert("visit", [(1, "ridge", AT, decimal.Decimal("1.50"), 0.5), (2, "ford", None, None, None)])
    hub.insert("visit", [(3, "ford", None, None, float("nan"))])
    hub.refresh()
    counted = read(job, tmp_path, "counted", refresh=1)
    latest = read(job, tmp_path, "counted")
    assert counted.columns == ["Place", "n", "_weight", "_commit"]
    assert rows(counted) == [("ford", 2, 1, 1), ("ridge", 1, 1, 1)]
    whole = read(job, tmp_path, "visit", columns="id,Place,at,cost,far").orderBy("id").toArrow()
    assert whole.schema == hub.table("visit").toArrow().schema
    assert repr(whole.to_pylist()) == repr(hub.table("visit").orderBy("id").toArrow().to_pylist())
    hub.delete("visit", [(1, "ridge", AT, decimal.Decimal("1.50"), 0.5)])
    hub.refresh()
    assert rows(latest.join(counted, "Place")) == [("ford", 2, 1, 1, 2, 1, 1), ("ridge", 1, 1, 1, 1, 1, 1)]
    assert read(job, tmp_path, "places").where("_commit = 2").count() == 2
    with pytest.raises(PySparkException, match=r"refresh 9 .*is not there: 1 to 2 are"):
        read(job, tmp_path, "counted", refresh=9)


def test_a_dataframe_is_written_and_deleted(hub, job, tmp_path):
    store = str(tmp_path / "store")

    def write(sql, mode="append", **options):
        writer = job.sql(sql).write.format("everview").mode(mode).option("name", "visit")
        writer.options(**options).save(store)

    write("SELECT CAST(id AS INT) AS id, concat('p', id % 3) AS Place FROM range(10)")
    write("SELECT 1 AS id, 'p1' AS Place", delete="true")
    hub.refresh()
    assert hub.rows("counted") == [("p0", 4), ("p1", 2), ("p2", 3)]
    with pytest.raises(PySparkException, match=r"visit.id is NOT NULL, but a row has no value there"):
        write("SELECT 'x' AS Place")
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        write("SELECT 1 AS id", mode="overwrite")


@pytest.mark.spark
def test_the_example_follows_a_view_through_two_streams(spark, capsys):
    assert spark_streaming.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "day 1",
        "  hourly [('ford', 9, 31.0, 1), ('ridge', 9, 19.0, 2)]",
        "  alarm  [('ford', 9, 87.80000000000001)]",
        "day 2",
        "  hourly [('ford', 9, 31.0, 1), ('ford', 10, 30.5, 1), ('ridge', 9, 33.5, 3)]",
        "  alarm  [('ford', 9, 87.80000000000001), ('ford', 10, 86.9), ('ridge', 9, 92.30000000000001)]",
        "corrected",
        "  alarm  [('ford', 10, 86.9), ('ridge', 9, 92.30000000000001)]",
    ]


def test_a_key_that_is_asked_for_is_looked_up(hub, spark, tmp_path):
    hub.insert("place", [(f"p{number}", number) for number in range(100)])
    hub.insert("visit", [(number, f"p{number % 7}", None, None, None) for number in range(100)])
    hub.refresh()
    job = spark.newSession()
    job.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    register(job)
    found = read(job, tmp_path, "place").where("name IN ('p7', 'p8', 'none') AND height > 7")
    assert rows(found) == [("p8", 8, 1, 1)]
    assert rows(read(job, tmp_path, "place").where("name = 'p3'")) == [("p3", 3, 1, 1)]
    assert read(job, tmp_path, "places").where("Place = 'p0'").count() == 15
    assert read(job, tmp_path, "place").where("height < 5 OR name = 'p9'").count() == 6
