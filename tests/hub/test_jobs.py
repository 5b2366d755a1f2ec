"""What Spark says of a hub's jobs, and that nothing else of a session changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
import pytest
from tests.hub.cluster import bare_python
from tests.hub.quick import quickly

import everview
from everview.errors import DataError, MissingDependencyError, StoreError
from everview.hub import Hub, register, why
from everview.hub.tables import catalog
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE visit (id BIGINT, place TEXT, team BIGINT);
CREATE TABLE team (id BIGINT PRIMARY KEY, name TEXT);
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
CREATE MATERIALIZED VIEW who AS SELECT v.id, t.name FROM visit v JOIN team t ON v.team = t.id;
CREATE MATERIALIZED VIEW busiest AS SELECT name, count(*) AS n FROM who GROUP BY name ORDER BY n DESC LIMIT 3;
""")
ENOUGH = 1_000_000
DESCRIPTION, GROUP = "spark.job.description", "spark.jobGroup.id"


@pytest.fixture
def hub(spark, tmp_path):
    with Hub.open(tmp_path / "hub", PROGRAM, spark=spark, name="rescue") as hub:
        yield quickly(hub)


class Jobs:
    """The jobs that Spark was given since, as its status store has them: groups and descriptions."""

    def __init__(self, spark):
        self._context = spark.sparkContext._jsc.sc()
        self._first = self._all()[1]

    def _all(self):
        self._context.listenerBus().waitUntilEmpty()
        found = self._context.statusStore().jobsList(None)
        jobs = [found.apply(place) for place in range(found.size())]
        return jobs, max((job.jobId() for job in jobs), default=-1)

    def told(self):
        jobs = sorted((job.jobId(), job) for job in self._all()[0] if job.jobId() > self._first)
        return [(_option(job.jobGroup()), _option(job.description())) for _, job in jobs]


def _option(value):
    return value.get() if value.isDefined() else None


def test_a_lookup_names_its_refresh_and_what_it_looks_up(hub, spark):
    hub.insert("team", [(1, "a")])
    hub.insert("visit", [(1, "ridge", 1)])
    hub.refresh()
    jobs = Jobs(spark)
    hub.insert("visit", [(2, "ridge", 1)])
    hub.refresh()
    group = "rescue: refresh 2"
    first = "looks up visit, aggregate of per_place, inner join of who"
    assert jobs.told() == [
        (group, f"{group}, {first}"),
        (group, f"{group}, looks up aggregate of busiest"),
        (group, f"{group}, looks up top of busiest"),
    ]


@pytest.fixture
def asking_spark(monkeypatch):
    """No table is so small that the driver reads it to say why."""
    monkeypatch.setattr(why, "SMALL", -1)


def test_other_jobs_say_what_they_are_for(hub, spark, asking_spark):
    jobs = Jobs(spark)
    hub.insert("visit", spark.sql("SELECT 1L AS id, 'ridge' AS place, 1L AS team"))
    hub.delete("team", spark.sql("SELECT 1L AS id"))
    assert {told for told in jobs.told() if told[0]} == {
        ("rescue: insert into visit", "rescue: insert into visit, write 1"),
        ("rescue: delete from team", "rescue: delete from team, write 2"),
    }
    hub._store.driver_rows = 0
    hub.refresh()
    jobs = Jobs(spark)
    hub.rows("visit")
    hub.publish()
    hub._store.driver_rows = ENOUGH
    hub.why("per_place", ("ridge", 1))
    told = {told for told in jobs.told() if told[0]}
    assert ("rescue: read refresh 1", "rescue: read refresh 1, visit") in told
    assert ("rescue: publish refresh 1", "rescue: publish refresh 1, per_place") in told
    asked = "rescue: why a row of per_place is there"
    assert (asked, f"{asked}, asks visit") in told


def test_the_plan_of_a_table_says_which_refresh_it_reads(hub):
    hub.insert("visit", [(1, "ridge", 1)])
    hub.refresh()
    plan = hub.table("per_place")._jdf.queryExecution().toString()
    assert "reads per_place of refresh 1" in plan


def test_a_callers_group_and_description_are_as_before_and_its_group_holds_the_jobs(hub, spark):
    context = spark.sparkContext
    context.setJobGroup("mine", "my words")
    try:
        jobs = Jobs(spark)
        hub.insert("visit", [(1, "ridge", 1)])
        hub.refresh()
        hub.insert("visit", [(2, "ridge", 1)])
        hub.refresh()
        assert {group for group, _ in jobs.told()} == {"mine"}
        assert all(said.startswith("rescue: refresh 2, ") for _, said in jobs.told())
        assert context.getLocalProperty(GROUP) == "mine"
        assert context.getLocalProperty(DESCRIPTION) == "my words"
    finally:
        context.setLocalProperty(GROUP, None)
        context.setLocalProperty(DESCRIPTION, None)


def test_operators_are_called_by_the_views_that_they_are_for():
    words = catalog(PROGRAM).words
    assert sorted(words.operators.values()) == [
        "aggregate of busiest",
        "aggregate of per_place",
        "busiest",
        "inner join of who",
        "per_place",
        "top of busiest",
        "who",
    ]
    assert {"visit", "team", "who", "inner join of who"} <= set(words.tables.values())


# The session.


def snapshot(spark):
    """What a session and its application have that a hub might change."""
    session, context = spark._jsparkSession, spark.sparkContext
    # By kind: each session that has streams, the hub's too, has one of Spark's own here.
    listening = context._jsc.sc().listenerBus().listeners()
    return {
        "conf": dict(spark.conf.getAll),
        "functions": {name for (name,) in spark.sql("SHOW ALL FUNCTIONS").collect()},
        "tables": spark.catalog.listTables(),
        "source": session.sessionState().dataSourceManager().dataSourceExists("everview_inbox"),
        "listeners": (
            len(session.listenerManager().listListeners()),
            len(session.streams().listListeners()),
            sorted({listener.getClass().getName() for listener in listening}),
        ),
        "streams": [query.name for query in spark.streams.active],
        "application": sorted(context.getConf().getAll()),
        "checkpoints": context.getCheckpointDir(),
        "files": list(context.listFiles),
        "log": context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString(),
        "names": [context.getLocalProperty(name) for name in (GROUP, DESCRIPTION)],
        "active": type(spark).active() is spark or type(spark).active()._jsparkSession.equals(session),
        "path": list(sys.path),
        "environment": dict(os.environ),
    }


def test_the_given_session_is_left_as_it_was(spark, tmp_path, asking_spark):
    given = spark.newSession()
    given.conf.set("spark.sql.ansi.enabled", "false")
    given.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    given._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(given._jsparkSession)
    given.streams.active  # noqa: B018  (it makes Spark's listener of streams)
    before = snapshot(given)
    with Hub.open(tmp_path, PROGRAM, spark=given) as hub:
        quickly(hub)
        hub.insert("team", [(1, "a")])
        hub.insert("visit", given.sql("SELECT 1L AS id, 'ridge' AS place, 1L AS team"))
        hub.refresh()
        hub._store.driver_rows = 0
        hub.insert("visit", [(2, "ridge", 1)])
        with hub.run("100 milliseconds") as run:
            while hub.rows("per_place") != [("ridge", 2)]:
                assert not run.wait(0.05)
        hub.publish()
        hub._store.driver_rows = ENOUGH
        hub.why("per_place", ("ridge", 2))
        hub.table("who").collect()
        assert snapshot(given) == before
    assert snapshot(given) == before


def connect(kind):
    """A stand-in: Spark Connect's own modules cannot be imported without gRPC, which is not installed."""
    return type(kind, (), {"__module__": f"pyspark.sql.connect.{kind.lower()}"})()


@pytest.mark.parametrize(("module", "kind"), [("session", "SparkSession"), ("dataframe", "DataFrame")])
def test_spark_connect_has_its_classes_where_they_are_looked_for(module, kind):
    text = Path(pyspark.__path__[0], "sql", "connect", f"{module}.py").read_text()
    assert f"\nclass {kind}" in text


def test_spark_connect_is_refused_in_one_sentence(hub, tmp_path):
    with pytest.raises(StoreError, match=r"a hub cannot work through Spark Connect") as told:
        Hub.open(tmp_path / "other", PROGRAM, spark=connect("Session"))
    assert "\n" not in str(told.value)
    assert not any((tmp_path / "other" / "refreshes").glob("*"))
    with pytest.raises(DataError, match=r"visit cannot take a DataFrame of Spark Connect"):
        hub.insert("visit", connect("DataFrame"))
    with pytest.raises(StoreError, match=r"cannot be registered through Spark Connect"):
        register(connect("Session"))


@pytest.mark.parametrize("missing", ["xxhash", "pyarrow"])
def test_a_module_that_executors_lack_is_named(hub, spark, tmp_path, monkeypatch, missing):
    python = bare_python(tmp_path / "python", {"numpy", "pyarrow", "xxhash"} - {missing})
    (packages,) = (tmp_path / "python").glob("lib/python*/site-packages")
    (packages / "everview.pth").write_text(str(Path(everview.__file__).parents[1]))
    hub.insert("visit", [(1, "ridge", 1)])
    hub.refresh()
    hub.insert("visit", [(2, "ridge", 1)])
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    with pytest.raises(MissingDependencyError, match=f"the executors' Python has no {missing}: "):
        hub.refresh()
    monkeypatch.undo()
    assert hub.refresh().changes["per_place"].appeared == 1  # nothing was lost by it
