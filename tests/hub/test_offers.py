"""Writes of other processes: each batch is in once, wherever it or the hub is ended; what is unfit is told.

These write as the tasks and the driver of a Spark job do, without one; jobs are in test_source.
"""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql import types as st
from tests.hub.quick import quickly

from everview import Site
from everview.errors import DataError
from everview.hub import Hub, offering, vacuum
from everview.hub import store as store_module
from everview.hub.inbox import Inbox
from everview.hub.offers import FOLDER
from everview.hub.source import EverviewSource
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE bag (a BIGINT, x DOUBLE) WITH (semantics = 'bag');
CREATE TABLE plain (a BIGINT NOT NULL, b TEXT);
CREATE TABLE keyed (k BIGINT PRIMARY KEY, v TEXT);
CREATE TABLE owned (who TEXT, n BIGINT) WITH (owner = 'who');
CREATE TABLE theirs (k BIGINT PRIMARY KEY, who TEXT) WITH (owner = 'who');
CREATE MATERIALIZED VIEW summed AS SELECT a, count(*) AS n FROM bag GROUP BY a;
""")
LONG, TEXT, DOUBLE = st.LongType(), st.StringType(), st.DoubleType()


class KilledError(BaseException):
    pass


class Job:
    """Writes rows, given column by column as each task has them."""

    def __init__(self, folder, name, types, **options):
        schema = st.StructType([st.StructField(column, kind) for column, kind in types.items()])
        source = EverviewSource({"store": str(folder), "name": name, **options})
        self.columns = [*types]
        self.writer = source.writer(schema, False)

    def write(self, *tasks):
        """What the tasks tell the driver; each has its number from Spark, and here from its place."""
        told = []
        for place, rows in enumerate(tasks):
            columns = zip(*rows, strict=True)
            batch = pa.record_batch(dict(zip(self.columns, map(pa.array, columns), strict=True)))
            message = pickle.loads(pickle.dumps(self.writer)).write(iter([batch]))
            told.append(offering.Written(place, message.query, message.files))
        return told

    def run(self, *tasks):
        self.writer.commit(self.write(*tasks))


@pytest.fixture
def hub(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        yield quickly(hub)


def bag(folder, batch, **options):
    return Job(folder, "bag", {"a": LONG, "x": DOUBLE}, query="load", batch=str(batch), **options)


def left(folder):
    """What is left of writes that are in."""
    return [path for place in (FOLDER, "inbox") for path in (folder / place).rglob("*") if path.is_file()]


def test_a_batch_is_in_once_however_often_it_is_written(hub, tmp_path):
    bag(tmp_path, 0).run([(1, 0.5), (1, 0.5)], [(1, -0.0)])
    assert hub.rows("bag") == []
    bag(tmp_path, 0).run([(1, 0.5), (1, 0.5)], [(1, -0.0)])
    report = hub.refresh()
    assert report.arrivals == 1
    assert repr(hub.rows("bag")) == "[(1, 0.0), (1, 0.5), (1, 0.5)]"
    assert hub.rows("summed") == [(1, 3)]
    bag(tmp_path, 0).run([(1, 0.5)])
    assert hub.refresh().arrivals == 0
    # Not even if its mark comes back, as after a loss of power.
    bag(tmp_path, 1).run([(2, 1.0)])
    kept = {path: path.read_bytes() for path in left(tmp_path)}
    hub.refresh()
    for path, content in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert hub.refresh().arrivals == 0
    assert hub.rows("summed") == [(1, 3), (2, 1)]
    assert left(tmp_path) == []


def test_a_write_without_a_name_is_in_once_and_leaves_nothing_behind(hub, tmp_path):
    for _ in range(2):
        Job(tmp_path, "bag", {"a": LONG}).run([(7,)])
    hub.refresh()
    assert hub.rows("summed") == [(7, 2)]
    assert len(hub._store.record.writers) == 2
    hub.insert("plain", [(1, None)])
    hub.refresh()
    assert hub._store.record.writers == {}
    assert [*(tmp_path / FOLDER).iterdir()] == []


STAGES = {
    "adopted": (Inbox, "_adopt"),
    "before record": (store_module, "commit"),
    "after record": (store_module, "commit"),
    "forgotten": (Inbox, "forget"),
}


@pytest.mark.parametrize("gate", [False, True], ids=["alone", "with sites"])
def test_a_hub_ended_at_any_stage_has_a_batch_once(spark, tmp_path, monkeypatch, gate):
    """In this process: what it leaves is what a kill leaves."""
    wrote = 0
    if gate:
        with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
            quickly(hub)
            hub.insert("plain", [(1, None)])
            hub.refresh()
            Site.open(":memory:", PROGRAM, name="tablet").sync(hub)
    for stage, (owner, name) in STAGES.items():
        with monkeypatch.context() as patch, opened(tmp_path, spark) as hub:
            bag(tmp_path, wrote).run([(wrote, 1.0)], [(wrote, 1.0)])
            Job(tmp_path, "bag", {"a": LONG}).run([(wrote,)])
            hub.insert("bag", [(wrote, 2.0)])
            wrote += 1
            patch.setattr(owner, name, ending(getattr(owner, name), stage != "before record"))
            with pytest.raises(KilledError):
                hub.refresh()
        bag(tmp_path, wrote - 1).run([(wrote - 1, 1.0)])  # the job does not know, and repeats its batch
        with opened(tmp_path, spark) as hub:
            hub.refresh()
            assert hub.rows("summed") == [(number, 4) for number in range(wrote)], stage
            assert hub.refresh().arrivals == 0
    assert left(tmp_path) == []


def opened(folder, spark):
    return quickly(Hub.open(folder, PROGRAM, spark=spark))


def ending(function, after):
    def ended(*arguments, **named):
        if after:
            function(*arguments, **named)
        raise KilledError

    return ended


def test_a_job_that_is_ended_before_its_mark_has_written_nothing(hub, tmp_path, monkeypatch):
    job = bag(tmp_path, 0)
    told = job.write([(1, 1.0)])
    assert len(left(tmp_path)) == 1
    assert hub.refresh().arrivals == 0
    job.writer.abort([*told, None])
    assert left(tmp_path) == []
    bag(tmp_path, 0).write([(1, 1.0)])
    hub.vacuum()
    assert len(left(tmp_path)) == 1  # it may be under way
    monkeypatch.setattr(vacuum, "ABANDONED", 0.0)
    assert hub.vacuum().files == 1
    assert left(tmp_path) == []


def test_changes_are_made_refresh_by_refresh_what_goes_before_what_comes(hub, tmp_path):
    types = {"k": LONG, "v": TEXT, "_weight": LONG, "_commit": LONG}
    # Whichever task has which: the second refresh is after the first.
    Job(tmp_path, "keyed", types).run(
        [(1, "b", 1, 5), (1, "b", -1, 6), (2, "x", -1, 6), (3, "z", 1, 5)],
        [(1, "a", 1, 4), (1, "a", -1, 5), (2, "y", 1, 6), (2, "x", 1, 5), (3, "z", 0, 6)],
    )
    types = {"a": LONG, "_weight": LONG, "_commit": LONG}
    Job(tmp_path, "bag", types).run([(1, 3, 1), (1, -2, 2)], [(2, -1, 1), (2, 1, 2), (1, 1, 2)])
    assert hub.refresh().arrivals == 2
    assert hub.rows("keyed") == [(2, "y"), (3, "z")]
    assert hub.rows("summed") == [(1, 2), (2, 1)]
    for types, message in (
        ({"a": LONG, "_weight": LONG}, "_commit says in which order"),
        ({"a": LONG, "_weight": DOUBLE, "_commit": LONG}, "_weight is not BIGINT but double"),
    ):
        with pytest.raises(DataError, match=message):
            Job(tmp_path, "bag", types)
    with pytest.raises(DataError, match="leave out the option delete"):
        Job(tmp_path, "bag", {"a": LONG, "_weight": LONG, "_commit": LONG}, delete="true")
    with pytest.raises(DataError, match="has NULL for its _weight"):
        Job(tmp_path, "bag", {"a": LONG, "_weight": LONG, "_commit": LONG}).write([(1, None, 1)])


def test_of_a_key_that_several_tasks_write_one_row_is_left(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(offering, "_ROWS", 2)
    types = {"k": LONG, "v": TEXT}
    Job(tmp_path, "keyed", types).run([(1, "a"), (1, "b"), (2, "a")], [(1, "c")])
    hub.refresh()
    assert hub.rows("keyed") == [(1, "c"), (2, "a")]
    Job(tmp_path, "keyed", {"k": LONG}, delete="true").run([(1,), (1,)], [(1,), (3,)])
    hub.refresh()
    assert hub.rows("keyed") == [(2, "a")]


def test_what_does_not_fit_is_told_at_the_door(hub, tmp_path):
    def refused(message, name, types, rows=None, **options):
        with pytest.raises(DataError, match=message):
            Job(tmp_path, name, types, **options).write(rows)

    refused("plain has no column 'z'", "plain", {"z": LONG})
    refused("plain.a cannot hold Spark's string", "plain", {"a": TEXT})
    refused("plain.a is NOT NULL", "plain", {"b": TEXT}, [("x",)])
    refused("keyed.k is NOT NULL", "keyed", {"v": TEXT}, [("x",)], delete="true")
    refused("summed is a view", "summed", {"a": LONG})
    refused("there is no relation or view nothing", "nothing", {"a": LONG})
    refused("owned.who is 'tablet', and only that site", "owned", {"who": TEXT}, [("hub",), ("tablet",)])
    refused("owned.who is None, and only that site", "owned", {"n": LONG}, [(1,)])
    refused("give both the option query and the option batch", "plain", {"a": LONG}, query="q")
    refused("give a number from 0 on", "plain", {"a": LONG}, query="q", batch="-1")
    refused("give true or false", "plain", {"a": LONG}, delete="perhaps")
    source = EverviewSource({"store": str(tmp_path), "name": "plain"})
    with pytest.raises(DataError, match="cannot be overwritten"):
        source.writer(st.StructType([st.StructField("a", LONG)]), True)
    assert left(tmp_path) == []


def test_a_damaged_write_is_set_aside_with_its_files(hub, tmp_path):
    bag(tmp_path, 0).run([(1, 1.0)])
    bag(tmp_path, 1).run([(2, 1.0)])
    (broken,) = (tmp_path / FOLDER).glob("*/000000000000/*.parquet")
    broken.write_bytes(broken.read_bytes()[:-20])
    report = hub.refresh()
    assert ["is damaged" in each.reason for each in report.rejected] == [True]
    assert hub.rows("summed") == [(2, 1)]
    assert (tmp_path / "rejected" / report.rejected[0].name / broken.name).exists()
    assert hub.refresh().rejected == ()
    bag(tmp_path, 2).run([(3, 1.0)])
    (mark,) = (tmp_path / FOLDER).glob("*/000000000002/_offer.json")
    mark.write_bytes(b"{}")
    (rejected,) = hub.refresh().rejected
    assert "its mark is damaged" in rejected.reason
    assert len([*(tmp_path / "rejected" / rejected.name).glob("*.parquet")]) == 1
    assert hub.rows("summed") == [(2, 1)]


def test_a_write_that_would_replace_another_sites_row_is_set_aside_whole(spark, tmp_path):
    site = Site.open(":memory:", PROGRAM, name="tablet")
    site.insert("theirs", [(1, "tablet")])
    with opened(tmp_path, spark) as hub:
        site.sync(hub)
        hub.refresh()
        types = {"k": LONG, "who": TEXT, "_weight": LONG, "_commit": LONG}
        Job(tmp_path, "theirs", types).run([(2, "hub", 1, 1)], [(1, "hub", 1, 2)])
        (rejected,) = hub.refresh().rejected
        assert "tablet" in rejected.reason
        assert hub.rows("theirs") == [(1, "tablet")]
        assert len([*(tmp_path / "rejected" / rejected.name).glob("*.parquet")]) == 2


def test_many_rows_of_others_are_taken_in_by_the_executors(hub, tmp_path):
    hub._store.driver_rows = 30
    bag(tmp_path, 0).run([(number, 1.0) for number in range(40)], [(number, 1.0) for number in range(40)])
    Job(tmp_path, "keyed", {"k": LONG, "v": TEXT}).run([(1, "a"), (2, "a")], [(1, "b")])
    hub.refresh()
    assert hub.rows("summed") == [(number, 2) for number in range(40)]
    assert hub.rows("keyed") == [(1, "b"), (2, "a")]
