"""A hub on a standalone cluster, whose executors have a Python without everview."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
from concurrent.futures import ProcessPoolExecutor

import pytest
from tests.hub import on_cluster
from tests.hub.cluster import Cluster, bare_python, environment, submit

from everview.hub.files import LocalFiles
from everview.hub.jobs import NEEDED
from everview.hub.opening import begin_epoch, recover
from everview.hub.packaging import write_entry, write_package

pytestmark = pytest.mark.xdist_group("cluster")

SEEDS = (0, 2, 4)
STATEMENTS = 3
ROWS = 60_000
MANY = 130_000
"""More than a driver reads by itself."""

LARGE = (
    "hub: refresh 2, stage 1 merges visit; "
    "stage 2 aggregate of per_place, writes aggregate of per_place; "
    "stage 3 aggregate of sizes, writes per_place, aggregate of sizes; "
    "stage 4 writes sizes"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return bare_python(tmp_path_factory.mktemp("bare") / "python")


@pytest.fixture(scope="module")
def driver(cluster, python):
    """Runs functions of `on_cluster` in one process, whose Spark lives as long as this module's tests."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:

        def run(function, *arguments):
            return pool.submit(function, cluster.url, python, *arguments).result(timeout=240)

        yield run
        run(on_cluster.ended)


def test_spark_submit_refreshes_a_hub_with_the_package_from_an_archive(cluster, python, tmp_path):
    """It is the first test: an application has all cores of the cluster as long as it lives."""
    write_package(tmp_path / "everview.zip")
    write_entry(tmp_path / "everview-hub.py")
    (tmp_path / "program.sql").write_text(on_cluster.PROGRAM.text)
    files = LocalFiles(tmp_path / "hub")
    inbox = recover(files, begin_epoch(files, on_cluster.PROGRAM.hash), "hub")
    rows = [(number, f"place {number % on_cluster.PLACES}") for number in range(MANY)]
    inbox.put_rows(on_cluster.PROGRAM.relations["visit"], rows, present=True)
    arguments = "--store", tmp_path / "hub", "--program", tmp_path / "program.sql", "--once"
    archive, entry = tmp_path / "everview.zip", tmp_path / "everview-hub.py"
    with submit(cluster.url, python, archive, entry, *arguments) as submitted:
        told, log = submitted.communicate(timeout=240)
    assert submitted.returncode == 0, log
    report = json.loads(told)
    assert report["refresh"] == report["arrivals"] == 1
    assert {name: change["appeared"] for name, change in report["changes"].items()} == {
        "visit": MANY,
        "per_place": on_cluster.PLACES,
        "sizes": 1,
    }


def test_executors_without_the_package_get_it_from_the_driver(driver, python, tmp_path):
    command = [python, "-c", "import numpy, pyarrow, xxhash; import everview"]
    tried = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert tried.stderr.strip().endswith("No module named 'everview'")
    jobs, sent, rows = driver(on_cluster.refreshed, tmp_path / "hub")
    assert jobs
    assert [name.rpartition("/")[2].partition("-")[0] for name in sent] == ["everview"]  # once for both hubs
    assert rows == [("ford", 3), ("mill", 1), ("ridge", 1)]


def test_jobs_read_follow_and_write_on_a_cluster(driver, tmp_path):
    """The Python in which Spark plans reads the record of the store; the package comes from the driver."""
    planning = bare_python(tmp_path / "python", (*NEEDED, "msgspec"))
    found, written = driver(on_cluster.exchanged, planning, tmp_path)
    visits = [(number, f"place {number % 3}") for number in range(9)]
    assert found == visits
    assert written == [*visits, *((103, f"place {number}") for number in range(3))]


def test_a_pipelines_tasks_run_on_a_cluster_and_say_what_they_lack(driver, tmp_path):
    fuller = bare_python(tmp_path / "python", (*NEEDED, "msgspec"))
    said, first, second = driver(on_cluster.piped, fuller, tmp_path)
    assert said.startswith("the executors' Python has no msgspec: the tasks need numpy, pyarrow, xxhash")
    assert (first, second) == (True, True)


def test_spark_shows_its_pages_to_this_machine_alone(driver):
    assert driver(on_cluster.pages) == ["127.0.0.1"]


def test_sparks_pages_read_like_the_program(driver, tmp_path):
    jobs = driver(on_cluster.named, tmp_path)
    assert ("hub: refresh 2", LARGE) in jobs


def test_random_programs_and_histories_on_a_cluster(driver, tmp_path):
    assert driver(on_cluster.fuzzed, tmp_path, SEEDS, STATEMENTS) >= len(SEEDS)


def test_a_refresh_survives_the_loss_of_a_worker(driver, cluster, tmp_path):
    worker = cluster.workers.pop()
    lost = driver(on_cluster.worker_lost, tmp_path, worker.pid, ROWS)
    worker.kill()
    was_under_way, executors, appeared, sizes, rows = lost
    assert was_under_way
    assert executors == 1
    assert appeared == on_cluster.PLACES
    assert sizes == [(rows // on_cluster.PLACES, on_cluster.PLACES)]


def test_an_executor_that_is_lost_is_replaced_and_maps_the_runs_again(driver, cluster, tmp_path):
    """On the Worker that is left."""
    killed, replaced, before, after, rows = driver(on_cluster.executor_lost, tmp_path, cluster.workers[0].pid)
    assert killed != replaced
    assert any(before.values())
    assert any(after.values())
    assert not before.keys() & after.keys()
    assert rows == [("ford", 2), ("ridge", 100)]
