"""A hub behind a server: pulls without Spark, floods that wait, and what it says when it does not run."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import pytest
from tests.hub.quick import quickly
from tests.server.test_metrics import parsed

from everview.errors import StoreError, SyncError
from everview.hub import Hub
from everview.hub import hub as hub_module
from everview.hub.opening import begin_epoch
from everview.hub.status import Waiting
from everview.language.program import Program
from everview.replication.transports.http import HttpTransport
from everview.server import Listener, hubs, pipeline
from everview.server.hubs import HubService
from everview.site import Site

PROGRAM = Program.parse("""
CREATE TABLE visit (id BIGINT, place TEXT);
CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT);
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
""")


@contextmanager
def served(folder, spark, trigger="100 milliseconds", **options):
    """A hub, its service that runs, and its address."""
    with quickly(Hub.open(folder, PROGRAM, spark=spark)) as hub:
        service = HubService(hub, trigger, lambda: None, **options)
        service.start()
        try:
            with Listener(hub.replica, service=service) as listener:
                yield hub, service, listener.address
        finally:
            service.stop()


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def next_job(spark):
    return spark.sparkContext._jsc.sc().dagScheduler().nextJobId()


def test_pulls_and_pushes_run_no_spark_job(spark, tmp_path):
    with quickly(Hub.open(tmp_path / "hub", PROGRAM, spark=spark)) as hub:
        hub.insert("visit", spark.range(30_000).selectExpr("id", "CAST(id % 7 AS STRING) AS place"))
        hub.refresh()
        with Listener(hub.replica) as listener, Site.open(":memory:", PROGRAM, name="a") as site:
            before = next_job(spark)
            assert site.sync(listener.address).received_rows == 30_000
            site.insert("visit", [(-1, "x")])
            assert site.sync(listener.address).sent_rows == 1
            assert site.sync(listener.address).sent_rows == 0
            assert hub.status().waiting.rows == 1
            assert next_job(spark) == before
            hub.refresh()
            hub.insert("visit", spark.range(-9, -5).selectExpr("id", "'x' AS place"))
            assert next_job(spark) > before  # it is indeed what counts jobs
            assert hub.status().waiting.writes == 1
            hub.refresh()
            assert hub.status().waiting == Waiting()
            assert site.sync(listener.address).received_rows == 4


def test_a_flood_waits_and_all_of_it_arrives(spark, tmp_path, monkeypatch):
    """Six devices push far more than may wait. They are slowed, and nothing is lost or counted twice."""
    monkeypatch.setattr(hubs, "LOOK_SECONDS", 0.02)
    rows, batches, devices = 300, 8, 6
    with served(tmp_path / "hub", spark, backlog_rows=1000) as (hub, _, address):
        most = []

        def push(number):
            with (
                Site.open(tmp_path / f"{number}.db", PROGRAM, name=f"d{number}") as site,
                closing(HttpTransport(address)) as way,
            ):
                for batch in range(batches):
                    first = (number * batches + batch) * rows
                    site.insert("visit", [(first + n, f"p{number}") for n in range(rows)])
                    while True:
                        try:
                            site.sync(way)
                            break
                        except SyncError as error:
                            if not error.retry:
                                raise
                    most.append(hub.status().waiting.rows)

        with ThreadPoolExecutor(devices) as pool:
            for done in [pool.submit(push, number) for number in range(devices)]:
                done.result()
        until(lambda: len(hub.rows("visit")) == devices * batches * rows)
        assert hub.rows("per_place") == [(f"p{n}", batches * rows) for n in range(devices)]
        found = parsed(httpx.get(address + "/v1/metrics", timeout=60).text)
        assert found['everview_refusals_total{code="backlog"}'] > 0
        # What was on its way when the limit was passed, and what came before it was looked again.
        assert max(most) < devices * batches * rows / 2
        until(lambda: httpx.get(address + "/v1/health").json()["waiting_rows"] == 0)
        assert found["everview_pipeline_failures_total"] == 0
        assert found["everview_inbox_writes"] == 0
        assert found['everview_refresh_stage_seconds_count{stage="export"}'] >= 2
        assert found['everview_rows_grown_total{table="visit"}'] > 0
        lags = [value for name, value in found.items() if name.startswith("everview_device_lag_commits")]
        assert len(lags) == devices


def test_a_pipeline_that_ends_is_not_well_and_is_started_again(spark, tmp_path, monkeypatch, caplog):
    """Devices go on meanwhile, and what they push is in once it runs again."""
    monkeypatch.setattr("everview.hub.running._WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(pipeline, "FIRST_PAUSE", 0.2)
    broken = threading.Event()
    take_in = hub_module.Store.take_in

    def breaking(self, **options):
        if broken.is_set():
            raise StoreError("the disk\nis full")
        return take_in(self, **options)

    monkeypatch.setattr(hub_module.Store, "take_in", breaking)
    with (
        served(tmp_path / "hub", spark) as (hub, service, address),
        Site.open(":memory:", PROGRAM, name="a") as site,
    ):
        until(lambda: hub.refreshed)
        found = httpx.get(address + "/v1/health")
        assert (found.status_code, found.json()["status"], found.json()["running"]) == (200, "ok", True)
        broken.set()
        site.insert("visit", [(1, "x")])
        site.sync(address)
        until(lambda: service.pipeline.error is not None)
        found = httpx.get(address + "/v1/health")
        assert found.status_code == 503
        assert (found.json()["status"], found.json()["error"]) == ("failing", "the disk is full")
        site.insert("visit", [(2, "x")])
        assert site.sync(address).sent_rows == 1
        broken.clear()
        until(lambda: hub.rows("per_place") == [("x", 2)])
        until(lambda: httpx.get(address + "/v1/health").status_code == 200)
        assert parsed(httpx.get(address + "/v1/metrics").text)["everview_pipeline_failures_total"] >= 1
    assert "the pipeline has ended and is started again" in caplog.text


def test_a_hub_whose_store_was_taken_over_says_so(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("everview.hub.running._WAITS", (0.01, 0.01, 0.01))
    lost = threading.Event()
    with quickly(Hub.open(tmp_path / "hub", PROGRAM, spark=spark)) as hub:
        service = HubService(hub, "100 milliseconds", lost.set)
        service.start()
        try:
            until(lambda: hub.refreshed)
            way = hub.transport()
            begin_epoch(hub._store.files, PROGRAM.hash)  # as another does that opens the store
            with Site.open(":memory:", PROGRAM, name="a") as site:
                site.insert("visit", [(1, "x")])
                site.sync(way)
            assert lost.wait(60)
            assert service.pipeline.is_lost
            assert not service.health()[0]
        finally:
            service.stop()


def test_the_parts_of_a_refresh_are_told(spark, tmp_path):
    with quickly(Hub.open(tmp_path / "hub", PROGRAM, spark=spark, freshness=0)) as hub:
        hub.replica.head  # noqa: B018 - makes the gate
        hub.insert("visit", [(1, "x")])
        report = hub.refresh()
        assert list(report.stages) == ["screen", "export", "compute", "commit", "tidy", "publish"]
        assert sum(report.stages.values()) >= report.seconds
        assert hub.timing.began is None
        status = hub.status()
        assert (status.refresh, status.waiting.rows, status.files > 0) == (1, 0, True)
        assert status.bytes > 0


@pytest.mark.parametrize("limit", [1, 10])
def test_rows_that_wait_are_counted_up_to_a_limit(spark, tmp_path, limit):
    with (
        quickly(Hub.open(tmp_path / "hub", PROGRAM, spark=spark)) as hub,
        Site.open(":memory:", PROGRAM, name="a") as site,
    ):
        site.insert("visit", [(n, "x") for n in range(4)])
        site.insert("person", [(n, "x") for n in range(3)])
        site.sync(hub)
        assert hub.status(most=limit).waiting.rows == min(limit, 7)
        assert hub.status().waiting.commits > 0
