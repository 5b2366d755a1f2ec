"""A hub in an object store, over HTTP, from the driver and from the executors."""

import subprocess
import sys
import time

import deltalake
import pytest
from tests.hub.kills import FEW_ROWS, PROGRAM, History, at_stage, check_views
from tests.hub.quick import quickly
from tests.hub.s3 import bucket
from tests.hub.test_kills import KilledError, end, go_on

from everview.errors import StoreError
from everview.hub import Hub, register
from everview.hub.files import open_files
from everview.hub.lease import Claim, hold
from everview.hub.lookup import _maps

FAULTS = ("slow down", "cut", "lose", "unsure")
HOLDER = """
import json, sys, time
from everview.hub.files import open_files
from everview.hub.lease import Claim
lease = Claim(open_files(sys.argv[1], json.loads(sys.argv[2])), limit=1)
print('held', flush=True)
time.sleep(60)
"""


@pytest.fixture
def s3(tmp_path):
    with bucket(tmp_path / "s3", page=3) as found:
        yield found


def opened(s3, spark, **more):
    return quickly(Hub.open(s3.uri(), PROGRAM, spark=spark, options=s3.options(**more)))


def test_refreshed_published_and_read_by_others_while_requests_fail(spark, s3):
    with opened(s3, spark) as hub:
        for kind in FAULTS:
            s3.fail(kind, times=10**6, chance=0.03)
        hub.insert("s", [(number, number % 4) for number in range(6)])
        hub.insert("r", [(0, "x"), (1, "y")])
        assert hub.refresh().rejected == ()
        # By the executors: what Spark writes, what it reads, and their own files.
        hub._store.driver_rows = FEW_ROWS
        hub.insert("s", spark.sql("SELECT id AS n, id % 4 AS a FROM range(6, 20)"))
        hub.delete("s", [(0, 0)])
        assert hub.refresh().changes["s"].appeared == 14
        check_views(hub)
        assert [tuple(row) for row in hub.table("names").orderBy("b").collect()] == [("x",), ("y",)]
        assert hub.rows("last", at=1) == [(4,), (5,)]
        versions = hub.publish().versions
        assert hub.publish().written == ()
        hub.vacuum()
        wanted = hub.rows("counts")
        told = s3.heal()
    assert min(told["met"].get(kind, 0) for kind in FAULTS) > 0
    options = {name: value for name, value in s3.options().items() if name.startswith("aws_")}
    table = deltalake.DeltaTable(f"{s3.uri()}/published/counts", storage_options=options)
    assert table.version() == versions["counts"]
    rows = table.to_pyarrow_table().to_pydict()
    assert sorted(zip(rows["b"], rows["c"], rows["t"], strict=True)) == wanted
    with opened(s3, spark) as again:
        assert again.rows("counts") == wanted
        check_views(again)


def test_executors_read_runs_by_a_cache_that_may_be_lost_and_overflow(spark, s3, tmp_path):
    with opened(s3, spark, cache_bytes="1") as hub:
        for number in range(3):
            hub.insert("s", [(number, 0)])
            hub.refresh()
        cache = tmp_path / "s3" / "cache"
        copies = [path for path in cache.iterdir() if len(path.name) == 64]
        assert len(copies) == 1
        copies[0].unlink()
        _maps.clear()
        assert hub.rows("s") == [(0, 0), (1, 0), (2, 0)]
        hub.insert("r", [(0, "x")])
        hub.refresh()
        check_views(hub)


@pytest.mark.parametrize("stage", ["written", "runs written", "before record", "after record"])
def test_ended_at_a_stage(spark, s3, stage, monkeypatch):
    """What is acknowledged is there, and nothing else is, as on files."""
    told = History(s3.path("hub"), 11, uri=s3.uri(), options=s3.options())
    go_on(told, spark)
    for kind in FAULTS:
        s3.fail(kind, times=10**6, chance=0.02)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        go_on(told, spark, lambda patch=patch: at_stage(stage, end, patch.setattr))
    told.check(spark)


class TestLeases:
    def test_of_two_processes_one_has_it_until_its_limit_has_run_out(self, s3):
        import json

        files = open_files(s3.uri(), s3.options())
        command = [sys.executable, "-c", HOLDER, s3.uri(), json.dumps(s3.options())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(StoreError, match=rf"s3/.* is open already, by process {other.pid} on "):
                hold(files)
            other.kill()
            other.wait()
        until = time.monotonic() + 10
        while True:
            try:
                lease = Claim(files, limit=1)
                break
            except StoreError:
                assert time.monotonic() < until
                time.sleep(0.02)
        lease.check()
        lease.give_up()
        hold(files).give_up()

    def test_is_kept_while_requests_fail(self, s3):
        files = open_files(s3.uri(), s3.options())
        lease = Claim(files, limit=0.6)
        for kind in FAULTS:
            s3.fail(kind, times=10**6, chance=0.1)
        for _ in range(6):
            assert lease._renew(30)
            lease.check()
        s3.heal()
        assert len(files.list("lease")) <= 3
        lease.give_up()

    def test_a_claim_that_failed_although_it_was_stored_is_not_another_hubs(self, s3):
        lease = Claim(open_files(s3.uri(), s3.options(retry_seconds="0")), limit=30)
        s3.fail("lose", method="PUT")
        with pytest.raises(StoreError):
            lease._renew(30)
        assert lease._renew(30)
        lease.check()
        lease.give_up()


def test_spark_jobs_read_and_write_it_too(spark, s3):
    register(spark)

    def named(given):
        return given.format("everview").options(**s3.options()).option("name", "r")

    with opened(s3, spark) as hub:
        hub.insert("r", [(1, "x"), (2, "y")])
        hub.refresh()
        found = named(spark.read).load(s3.uri()).select("a", "b").collect()
        assert sorted(map(tuple, found)) == hub.rows("r")
        named(spark.sql("SELECT 3L AS a, 'z' AS b").write).mode("append").save(s3.uri())
        hub.refresh()
        assert hub.rows("r") == [(1, "x"), (2, "y"), (3, "z")]


def test_what_spark_shows_has_no_secrets(spark, s3):
    options = s3.options()
    options["fs.custom.pass"] = "the-third-secret"  # Spark itself does not take that for one
    with quickly(Hub.open(s3.uri(), PROGRAM, spark=spark, options=options)) as hub:
        session = hub._store.spark
        session.conf.set("spark.sql.ui.explainMode", "formatted")  # as usual: it tells more
        assert session.conf.get("fs.s3a.secret.key") == "the-secret-key"
        assert spark.conf.get("fs.s3a.secret.key", "none") == "none"  # a session of others is left alone
        hub.insert("r", session.sql("SELECT 1L AS a, 'x' AS b"))
        hub.refresh()
        hub.publish()
        texts = [hub.explain("counts"), hub.table("r")._jdf.queryExecution().toString()]
        status = session._jsparkSession.sharedState().statusStore()
        for number in range(status.executionsList().size()):
            shown = status.executionsList().apply(number)
            texts += [
                shown.physicalPlanDescription(),
                shown.modifiedConfigs().toString(),
                shown.description(),
            ]
    texts += [path.read_text("latin-1") for path in s3.path("hub").rglob("*") if path.is_file()]
    assert len(texts) > 20
    assert not [text for text in texts if "secret-key" in text or "third-secret" in text]
