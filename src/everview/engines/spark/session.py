"""Start Spark inside this process, set up for views and silent.

    spark = start_session()

Everything comes with `pip install 'everview[hub]'`, Java included (see `java`). What is set, and why, is
listed by `defaults`.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from everview.engines.spark.java import find_java
from everview.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["Setting", "defaults", "start_session"]

_LOOPBACK = "127.0.0.1"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,[^\]]*)?\])?")

# Starting reads and briefly changes the process environment, which all threads share.
_starting = threading.Lock()


@dataclass(frozen=True, slots=True)
class Setting:
    """One Spark setting and the reason for its value."""

    name: str
    value: str
    reason: str


def start_session(
    *,
    master: str = "local[*]",
    app_name: str = "everview",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the Spark session of this process, and start one when there is none.

    A session that is already there, active in this thread or the process's default, is returned untouched:
    `master`, `app_name` and `settings` are then not looked at.

    `settings` win over `defaults`; Java options are added to ours instead, where the last one wins.

    The process environment is put back before this returns. Spark's own processes are started with

    - JAVA_HOME: the Java that `find_java` chose;
    - PYSPARK_DRIVER_PYTHON: this interpreter;
    - PYSPARK_PYTHON: the setting `spark.pyspark.python`, else what it was, else this interpreter;
    - SPARK_HOME: what it was, else the installed pyspark;
    - SPARK_LOCAL_IP, for a local master or with Spark's pages: what it was, else loopback, so that
      nobody else sees the pages (`spark.ui.enabled`).

    Java outlives a stopped session. One that is started after it in the same process keeps its Java, and
    what was set for the first and is not set again.
    """
    try:
        pyspark = importlib.import_module("pyspark")
        sessions: type[SparkSession] = importlib.import_module("pyspark.sql").SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            f"Spark cannot be started, because {error.name or 'pyspark'} is not installed: "
            "pip install 'everview[hub]'"
        ) from error
    with _starting:
        existing = _existing(sessions)
        if existing is not None:
            return existing
        given = {"spark.master": master, "spark.app.name": app_name, **(settings or {})}
        chosen = _combine(defaults(master=given["spark.master"]), given)
        variables = _variables(given, spark_home=pyspark.__path__[0])
        if chosen["spark.ui.enabled"] == "true" and not os.environ.get("SPARK_LOCAL_IP"):
            # Spark's pages listen there, and on all addresses when it is not set.
            variables["SPARK_LOCAL_IP"] = _LOOPBACK
            # Executors reach the driver where it is; without these they would look for it on loopback, too.
            address = _own_address(given["spark.master"])
            chosen = {"spark.driver.host": address, "spark.driver.bindAddress": address, **chosen}
        with _environment(variables):
            builder = sessions.builder
            for name, value in chosen.items():
                builder = builder.config(name, value)
            return builder.getOrCreate()


def defaults(*, master: str = "local[*]") -> tuple[Setting, ...]:
    """Return what `start_session` sets unless told otherwise, with the reason for each.

    A master other than `local` keeps its cluster's addresses, parallelism and warehouse.
    """
    everywhere = (
        Setting("spark.sql.session.timeZone", "UTC", "a TIMESTAMP is an instant in UTC on every engine"),
        Setting(
            "spark.sql.timestampType",
            "TIMESTAMP_LTZ",
            "an instant, as in Delta and in PostgreSQL's timestamptz; in Arrow it carries its zone, UTC",
        ),
        Setting(
            "spark.sql.parquet.outputTimestampType",
            "TIMESTAMP_MICROS",
            "what other readers of Parquet and Delta expect; Spark's own choice, INT96, is deprecated",
        ),
        Setting(
            "spark.sql.ansi.enabled",
            "true",
            "generated SQL guards what may fail; a forgotten guard must stop, not wrap around unseen",
        ),
        Setting(
            "spark.sql.decimalOperations.allowPrecisionLoss",
            "false",
            "a DECIMAL keeps the digits after its point; what no longer fits is NULL, never rounded",
        ),
        Setting("spark.sql.execution.arrow.pyspark.enabled", "true", "rows cross to Python in columns"),
        Setting(
            "spark.sql.execution.arrow.pyspark.fallback.enabled",
            "false",
            "a type that Arrow cannot carry is our error, not a reason to go on row by row",
        ),
        Setting(
            "spark.sql.catalogImplementation",
            "in-memory",
            "tables live in the hub's store; a Hive catalog would leave metastore_db where it is started",
        ),
        Setting("spark.ui.enabled", "false", "a library opens no web page that nobody asked for"),
        Setting("spark.ui.showConsoleProgress", "false", "standard error belongs to the program"),
        Setting(
            _JAVA_OPTIONS,
            # As a URI the path needs no quoting, whatever letters it has.
            f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
            "only here is it read before the first line is logged",
        ),
    )
    cores = _local_cores(master)
    if cores is None:
        return everywhere
    return (
        *everywhere,
        Setting(
            "spark.sql.shuffle.partitions",
            str(cores),
            "one task a core: on a small delta Spark's 200 are all overhead",
        ),
        Setting("spark.driver.host", _LOOPBACK, "nothing outside this machine takes part"),
        Setting("spark.driver.bindAddress", _LOOPBACK, "nothing outside this machine can connect"),
        Setting(
            "spark.sql.warehouse.dir",
            str(_warehouse()),
            "no folder spark-warehouse is left where the program is started",
        ),
    )


def _combine(ours: tuple[Setting, ...], given: Mapping[str, str]) -> dict[str, str]:
    """Return our settings overridden by the given ones; Java options are ours, then theirs."""
    chosen = {setting.name: setting.value for setting in ours}
    options = " ".join(part for part in (chosen[_JAVA_OPTIONS], given.get(_JAVA_OPTIONS)) if part)
    return {**chosen, **given, _JAVA_OPTIONS: options}


def _variables(given: Mapping[str, str], *, spark_home: str) -> dict[str, str]:
    """Return the environment variables that Spark is started with."""
    fallbacks = {
        "PYSPARK_PYTHON": sys.executable,
        # Spark's own search for its home starts one more Python, and fails on a path with a blank.
        "SPARK_HOME": spark_home,
    }
    if _local_cores(given["spark.master"]) is not None:
        # Without it Spark looks for the machine's address before it reads its settings, and warns of it.
        fallbacks["SPARK_LOCAL_IP"] = _LOOPBACK
    variables = {name: os.environ.get(name) or value for name, value in fallbacks.items()}
    if "spark.pyspark.python" in given:
        variables["PYSPARK_PYTHON"] = given["spark.pyspark.python"]
    # Whatever a shell of the user's has in PYSPARK_DRIVER_PYTHON, the driver is this interpreter.
    return {**variables, "JAVA_HOME": str(find_java().home), "PYSPARK_DRIVER_PYTHON": sys.executable}


def _local_cores(master: str) -> int | None:
    """Return how many tasks a local master runs at once, or None when the master is not local."""
    found = _LOCAL_MASTER.fullmatch(master)
    if found is None:
        return None
    match found[1]:
        case None:
            return 1
        case "*":
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        case count:
            return int(count)


def _own_address(master: str) -> str:
    """Return the address of this machine from which a cluster's master is reached; nothing is sent."""
    place = urlsplit(master.removeprefix("k8s://").partition(",")[0])
    if place.hostname is None:
        return socket.gethostbyname(socket.gethostname())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((place.hostname, place.port or 443))
        return str(asked.getsockname()[0])


@functools.cache
def _warehouse() -> Path:
    """Return a path that no one else has; Spark makes the folder if it ever needs it."""
    folder = Path(tempfile.gettempdir(), f"everview-warehouse-{uuid.uuid4().hex}")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _existing(sessions: type[SparkSession]) -> SparkSession | None:
    errors = importlib.import_module("pyspark.errors")
    try:
        return sessions.active()
    except errors.PySparkRuntimeError:
        return None


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have these variables in the process environment for a while, then put back what was there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
