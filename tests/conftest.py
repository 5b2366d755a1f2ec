"""What all tests share: Hypothesis' profiles, and a Spark session that starts only when a test asks."""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase, MultiplexedDatabase, ReadOnlyDatabase

from everview.engines.spark.by_python import register_functions
from everview.engines.spark.session import start_session
from everview.testing.fuzz import Coverage

ROOT = Path(__file__).parent.parent
HUB = ROOT / "tests" / "hub"
OF_PROCESSES = {HUB / f"test_{name}.py" for name in ("devices", "kills", "trips")}
"""Tests of hubs that mostly wait for other processes: the session beside which they do is any."""
FIRST = tuple(str(ROOT / "tests" / name) for name in ("test_benchmarks.py", "test_long.py", "testing"))
"""Tests of many seconds each. Begun last, one of them would keep one worker busy and the others waiting."""

# Stores there are as real as elsewhere, and a commit does not wait for a disk: that was a third of the time.
MEMORY_DISK = Path("/dev/shm")
if os.access(MEMORY_DISK, os.W_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))

# Few rows: what Java compiles thoroughly is not run often enough to pay. What it compiles quickly is much in
# the end, and needs room: where there is none left, what comes later would be interpreted. Classes come
# by the thousands, and need not be looked through for garbage whenever there are twice as many.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -XX:+UseSerialGC"
# For every Spark that a test or a command under test starts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)

# Failures found here are kept locally. Committed ones are replayed as well, and a run never deletes them:
# one that passes today guards against tomorrow. `make keep-regressions` copies the former to the latter.
EXAMPLES = MultiplexedDatabase(
    DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    ReadOnlyDatabase(DirectoryBasedExampleDatabase(ROOT / "tests" / "regressions" / "hypothesis")),
)

# No deadlines: on a busy machine they fail tests that are right.
settings.register_profile("dev", database=EXAMPLES, deadline=None, max_examples=50)
# Hypothesis' own profile for CI repeats the same examples each time; ours looks at new ones, and prints
# what is needed to repeat a failure elsewhere.
settings.register_profile(
    "ci", database=EXAMPLES, deadline=None, max_examples=100, derandomize=False, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def _as_talkative_as_before():
    """Commands that tests run within their own process say less, or more, than others want to hear."""
    logger = logging.getLogger("everview")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(config, items):
    """Put the tests of Spark into two groups: `--dist loadgroup` gives each to one worker, with a session."""
    items.sort(key=lambda item: not str(item.path).startswith(FIRST))
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if config.pluginmanager.hasplugin("xdist") and item.get_closest_marker("spark"):
            of_hubs = HUB in item.path.parents and item.path not in OF_PROCESSES
            item.add_marker(pytest.mark.xdist_group("hub" if of_hubs else "spark"))


def pytest_collection_finish():
    """What is there now stays until the end: do not look through all of it again and again for garbage.

    Plans and rows are made by the ten thousands, and few of them go round in circles: look less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.fixture(scope="session")
def spark():
    """The Spark session of this test process."""
    settings = {
        # Half of it for what is young: a plan that was made is not needed again.
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Xms1g -XX:NewRatio=1",
        # Few look at what ran before, and nobody reads its plans, of which some are large.
        "spark.sql.ui.retainedExecutions": "30",
        "spark.sql.ui.explainMode": "simple",
        "spark.python.daemon.module": "tests.warm_daemon",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    session = start_session(master="local[2]", app_name="everview-tests", settings=settings)
    yield register_functions(session)
    session.stop()


def pytest_terminal_summary(terminalreporter):
    """Print what the fuzzer covered: each of its chunks reports its counts."""
    found = [
        Coverage.from_json(value)
        for report in terminalreporter.stats.get("passed", ())
        for name, value in report.user_properties
        if name == "fuzz coverage"
    ]
    if found:
        whole = sum(found, Coverage())
        terminalreporter.section(f"fuzzer: {whole.summary()}")
        terminalreporter.write_line(whole.table(columns=2))
