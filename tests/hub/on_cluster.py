"""What the tests of a cluster have its driver do: a process of its own, since a process has one Spark."""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from tests.engines.spark.listening import listening
from tests.hub.cluster import QUICK, executors_of
from tests.hub.quick import quickly
from tests.hub.test_fuzz import HubStore
from tests.streams.tweets import recount, results, rng_of, titan, tweets

from everview import streams
from everview.engines.spark.session import start_session
from everview.errors import MissingDependencyError
from everview.hub import Hub, register
from everview.language.program import Program
from everview.streams.pipelines.spark import job as pipeline_job
from everview.testing.fuzz.case import generate_case
from everview.testing.fuzz.check import check_case

PROGRAM = Program.parse("""
CREATE TABLE visit (id BIGINT, place TEXT);
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS places FROM per_place GROUP BY n;
""")
PLACES = 1_000


@functools.cache
def session(url, python):
    settings = {
        "spark.pyspark.python": python,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executor.memory": "512m",
    }
    return start_session(master=url, app_name="everview-tests", settings=settings)


def opened(spark, folder):
    return quickly(Hub.open(folder, PROGRAM, spark=spark))


def on_executors(hub, yes=True):
    """Whether the hub's refreshes are the executors'."""
    hub._store.driver_rows = 0 if yes else 1_000_000


def pages(url, python):
    """Where Spark's pages can be connected to."""
    return listening(int(session(url, python).sparkContext.uiWebUrl.rpartition(":")[2]))


def named(url, python, folder):
    """What Spark's pages say of the jobs of two refreshes, the second by the executors."""
    spark = session(url, python)
    with opened(spark, folder) as hub:
        for size in (2, 3):
            hub.insert("visit", [(number, "ridge") for number in range(size)])
            on_executors(hub, size == 3)
            hub.refresh()
        context = spark.sparkContext
        with urllib.request.urlopen(
            f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"
        ) as told:
            return [(job.get("jobGroup"), job.get("description")) for job in json.load(told)]


def refreshed(url, python, folder):
    """A refresh with a lookup, one by the executors, and one by a hub that runs; what was sent, and shown."""
    spark = session(url, python)
    with opened(spark, folder) as hub:
        hub.insert("visit", [(1, "ridge"), (2, "ford")])
        hub.refresh()
        hub.insert("visit", [(3, "ford")])
        looked_up = hub.refresh().jobs
        on_executors(hub)
        hub.insert("visit", [(4, "ford")])
        hub.refresh()
        on_executors(hub, False)
        with hub.run("100 milliseconds") as run:
            hub.insert("visit", [(5, "mill")])
            awaited(lambda: ("mill", 1) in hub.rows("per_place") or not run.is_active)
        with opened(spark, folder.with_name("another")):
            sent = list(spark.sparkContext.listFiles)
        return looked_up, sent, hub.rows("per_place")


def exchanged(url, python, planning, folder):
    """A relation read by tasks, followed through a view, and written, by jobs that know only the folder.

    `planning` is the Python in which Spark asks a source for its plan.
    """
    spark = session(url, python)
    context, store = spark.sparkContext, str(folder / "hub")
    context.pythonExec = planning
    try:
        register(spark)
        with opened(spark, store) as hub:
            hub.insert("visit", [(number, f"place {number % 3}") for number in range(9)])
            hub.refresh()
            read = spark.read.format("everview").option("name", "visit").load(store)
            found = sorted(tuple(row) for row in read.select("id", "place").collect())
            changes = spark.readStream.format("everview").option("name", "per_place").load(store)
            sink = changes.selectExpr("100 + n AS id", "place", "_weight", "_commit").writeStream
            sink = sink.format("everview").option("name", "visit")
            for _ in range(2):
                sink.option("checkpointLocation", str(folder / "at")).trigger(availableNow=True).start(
                    store
                ).awaitTermination()
            hub.refresh()
            return found, hub.rows("visit")
    finally:
        context.pythonExec = python


def piped(url, python, fuller, folder):
    """Titan's computations in tasks, by a Python that lacks a module, then by a fuller one."""
    spark = session(url, python)
    events = tweets(rng_of(1), 60)
    rows = spark.createDataFrame([(e["id"], e["text"]) for e in events[:30]], "id BIGINT, text STRING")
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text("\n".join(map(json.dumps, events)))
    context, small = spark.sparkContext, pipeline_job.SMALL
    with streams.open_hub(folder / "p", titan(sets=2, maps=2), spark=spark) as hub:
        try:
            hub.push("tweets", rows)
            said = None
        except MissingDependencyError as error:
            said = str(error)
        context.pythonExec, pipeline_job.SMALL = fuller, 0  # what the driver would merge, tasks do
        try:
            hub.push("tweets", rows)
            first = results(hub) == recount(events[:30])
            hub.read_json_files("tweets", folder / "in", "id BIGINT, text STRING")
            return said, first, results(hub) == recount(events)
        finally:
            context.pythonExec, pipeline_job.SMALL = python, small


def fuzzed(url, python, folder, seeds, statements):
    """Random programs and histories, compared after every refresh; how many were the executors'."""
    executed = 0
    for seed in seeds:

        def store(program, seed=seed):
            nonlocal made
            made = HubStore(folder / str(seed), session(url, python), program, by_turns=True)
            return made

        made = None
        check_case(generate_case(seed, statements=statements), store)
        executed += made.executed
    return executed


MOST_TRIES = 5


def worker_lost(url, python, folder, worker, rows):
    """A refresh during which a Worker is killed, with its executor, once some of its stages are done."""
    spark = session(url, python)
    with opened(spark, folder) as hub, ThreadPoolExecutor(1) as pool:
        hub._store.spark.conf.set("spark.sql.shuffle.partitions", "2")
        on_executors(hub)
        awaited(lambda: executor_count(spark) == 2)
        for times in range(1, MOST_TRIES + 1):  # the moment may pass unseen where others are busy, too
            start = rows * (times - 1)
            hub.insert("visit", [(start + number, f"place {number % PLACES}") for number in range(rows)])
            refreshing = pool.submit(hub.refresh)
            awaited(lambda done=refreshing.done: is_between_stages(spark) or done())
            if not refreshing.done():
                break
        was_under_way = not refreshing.done()
        os.killpg(worker, signal.SIGKILL)
        appeared = refreshing.result().changes["per_place"].appeared
        return was_under_way, executor_count(spark), appeared, hub.rows("sizes"), times * rows


def executor_lost(url, python, folder, worker):
    """Refreshes with lookups before and after the only executor was killed; who had what mapped."""
    spark = session(url, python)
    with opened(spark, folder) as hub:
        hub.insert("visit", [(number, "ridge") for number in range(100)])
        hub.refresh()
        awaited(lambda: executor_count(spark) == 1)
        hub.insert("visit", [(1000, "ford")])
        hub.refresh()
        before = mapped(spark)
        (killed,) = executors_of(worker)
        os.kill(killed, signal.SIGKILL)
        hub.insert("visit", [(1001, "ford")])
        hub.refresh()
        after = mapped(spark)
        (replaced,) = executors_of(worker)
        return killed, replaced, before, after, hub.rows("per_place")


def lacking(url, python, folder):
    """What is said when the executors' Python lacks a module."""
    spark = session(url, python)
    with opened(spark, folder) as hub:
        hub.insert("visit", [(1, "ridge")])
        hub.refresh()
        hub.insert("visit", [(2, "ridge")])
        try:
            hub.refresh()
        except Exception as error:  # noqa: BLE001  (the test looks at it)
            return type(error).__name__, str(error)
        return None


def ended(url, python):
    session(url, python).stop()


def awaited(condition):
    """Until it is so; Spark tells nobody of these."""
    pause = threading.Event()
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        pause.wait(0.005)


def executor_count(spark):
    """The executors that can be given tasks now: the driver is counted too."""
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1


def is_between_stages(spark):
    """Whether tasks of a stage run whose inputs other tasks have written."""
    tracker = spark.sparkContext.statusTracker()
    for job in tracker.getActiveJobsIds():
        known = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
        stages = [info for info in known if info is not None]
        done = any(info.numTasks == info.numCompletedTasks for info in stages)
        if done and any(info.numActiveTasks for info in stages):
            return True
    return False


def mapped(spark):
    """Python processes of executors, and how many files of runs each has mapped into its memory."""

    def look(batches):
        for _ in batches:
            with open("/proc/self/maps") as maps:  # noqa: PTH123  (executors have no more than Python)
                files = {line.split()[-1] for line in maps if "/runs/" in line}
            found = [pa.array([os.getpid()], pa.int64()), pa.array([len(files)], pa.int64())]
            yield pa.RecordBatch.from_arrays(found, names=["pid", "files"])

    rows = spark.range(0, 2, 1, 2).mapInArrow(look, "pid BIGINT, files BIGINT").collect()
    return {row.pid: row.files for row in rows}
