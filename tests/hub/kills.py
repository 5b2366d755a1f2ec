"""A hub in a child process that is killed: it writes a known history and says what was acknowledged.

The child prints `write n` before and `wrote n` after the write of that number, `refresh n` before and
`refreshed n` after a refresh that has all writes up to that number, and kills itself at a given stage, or is
killed at any moment. `check` then opens the store: everything acknowledged is there, once, at most one write
more, every view is its query, and nothing is left of what was under way.
"""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hub.quick import quickly

from everview.engines.reference import evaluate_views
from everview.engines.spark.session import start_session
from everview.errors import StoreError
from everview.hub import Hub
from everview.hub import hub as hub_module
from everview.hub import store as store_module
from everview.hub.inbox import Inbox
from everview.hub.large import LargeRefresh
from everview.hub.lease import Claim
from everview.hub.record import latest, read, refreshes
from everview.hub.refresh import Refreshing
from everview.hub.small import SmallRefresh
from everview.language.order import sorted_rows
from everview.language.program import Program

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Program.parse("""
CREATE TABLE s (n BIGINT, a BIGINT);
CREATE TABLE r (a BIGINT, b TEXT);
CREATE MATERIALIZED VIEW joined AS SELECT n, b FROM s JOIN r ON s.a = r.a;
CREATE MATERIALIZED VIEW counts AS SELECT b, count(*) AS c, sum(n) AS t FROM joined GROUP BY b;
CREATE MATERIALIZED VIEW names AS SELECT DISTINCT b FROM r;
CREATE MATERIALIZED VIEW last AS SELECT n FROM s ORDER BY n DESC LIMIT 2;
""")
KEYS = 4
FEW_ROWS = 4
"""As many rows on the driver as make it leave every refresh to the executors."""

STAGES = {
    "written": (Inbox, "_mark", "before"),
    "arrived": (Refreshing, "_outcome", "before"),
    "looked up": ((SmallRefresh, LargeRefresh), ("_relations", "_begun"), "after"),
    "computed": ((SmallRefresh, LargeRefresh), ("_keep", "_sent"), "before"),
    "runs written": (Refreshing, "_outcome", "after"),
    "before record": (store_module, "commit", "before"),
    "after record": (store_module, "commit", "after"),
    "inbox forgotten": (Inbox, "forget", "after"),
}
"""Where each stage of a write and a refresh is passed."""


def history(seed, number):
    """The write of that number: its relation, whether it inserts, its rows. No two states are the same."""
    rng = random.Random(seed * 1000 + number)
    if rng.random() < 0.6:
        return "s", True, [(number, rng.randrange(KEYS)), (-1, rng.randrange(KEYS))]
    if rng.random() < 0.6:
        return "r", True, [(rng.randrange(KEYS), rng.choice("xyz")), (number, "n")]
    return "s", False, [(-1, key) for key in range(KEYS)] + [(rng.randrange(number + 1), 0), (number, -1)]


def model(seed, count):
    """The relations after the first so many writes."""
    base = {name: set() for name in PROGRAM.relations}
    for number in range(count):
        relation, present, rows = history(seed, number)
        base[relation] = base[relation] | set(rows) if present else base[relation] - set(rows)
    return base


def at_stage(stage, action, patch=setattr):
    """Have an action done wherever a stage is passed."""
    owners, names, when = STAGES[stage]
    pairs = zip(owners, names, strict=True) if isinstance(owners, tuple) else [(owners, names)]
    for owner, name in pairs:
        function = getattr(owner, name)

        @functools.wraps(function)
        def passed(*arguments, _function=function):
            if when == "before":
                action()
            result = _function(*arguments)
            if when == "after":
                action()
            return result

        patch(owner, name, passed)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def small_session():
    settings = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.daemon.module": "tests.warm_daemon",
    }
    return start_session(master="local[1]", settings=settings)


def child(place, seed, start, stage, passes, executors):
    """Write and refresh from a number on until killed, or die when a stage is passed for that many times."""
    hub = quickly(open_place(place, small_session()))
    if executors:
        hub._store.driver_rows = FEW_ROWS
    say("opened")
    if stage:
        left = iter(range(passes))

        def die():
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        at_stage(stage, die)
    rng = random.Random(seed + start)
    for number in range(start, start + 1000):
        relation, present, rows = history(seed, number)
        say("write", number)
        (hub.insert if present else hub.delete)(relation, rows)
        say("wrote", number)
        if rng.random() < 0.5:
            say("refresh", number)
            hub.refresh()
            say("refreshed", number)


def open_place(place, spark):
    """The hub in a folder, or at a URI with options; where it has a lease that runs out, once it has."""
    uri, options, limit = place
    if limit:
        hub_module.hold = functools.partial(Claim, limit=limit)
    until = time.monotonic() + 10 * limit
    while True:
        try:
            return Hub.open(uri, PROGRAM, spark=spark, options=options)
        except StoreError as error:
            if "is open already" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.02)


def stopped(folder):
    """A driver with a short lease that has written a row, and tries to refresh when it is told to."""
    from tests.hub.test_lease import PROGRAM as COUNTED

    hub_module.hold = functools.partial(Claim, limit=0.6)
    with Hub.open(folder, COUNTED, spark=small_session()) as hub:
        hub.insert("t", [(1,)])
        say("written")
        sys.stdin.readline()
        try:
            hub.refresh()
        except StoreError as error:
            say(error)


class History:
    """A store, and what its children have said of it.

    Its files lie in a folder, but may have to be asked for elsewhere, with options and a lease that runs out.
    """

    def __init__(self, folder, seed, *, uri=None, options=None, limit=0.0):
        self.folder, self.seed = folder, seed
        self.place = str(uri or folder), options, limit
        self.wrote = self.refreshed = 0
        self.tried_refresh = 0
        self.kills = 0

    def run(self, *, stage="", passes=0, refreshes=0, seconds=0.0, executors=False):
        """Let a child go on with the history until it is killed: at a stage, or so long after a refresh."""
        command = [sys.executable, "-m", "tests.hub.kills", "child", json.dumps(self.place), str(self.seed)]
        command += [str(self.wrote), stage, str(passes), str(int(executors))]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout.readline() == "opened\n"
                while stage == "" and refreshes:
                    refreshes -= self.hear(*process.stdout.readline().split())
                if stage == "":
                    time.sleep(seconds)
                    process.kill()
                for line in process.stdout:
                    self.hear(*line.split())
            finally:
                process.kill()
        assert process.returncode == -signal.SIGKILL
        self.kills += 1

    def hear(self, word, number):
        """Take note of what a child says, as counts of writes; whether a refresh was acknowledged."""
        match word:
            case "wrote":
                self.wrote = int(number) + 1
            case "refresh":
                self.tried_refresh = int(number) + 1
            case "refreshed":
                self.refreshed = int(number) + 1
        return word == "refreshed"

    def check(self, spark):
        """Open the store and compare; the write that was under way is then either there or not."""
        with open_place(self.place, spark) as hub:
            quickly(hub)
            check_files(hub, self.folder)
            before = {self.refreshed, max(self.refreshed, self.tried_refresh)}
            assert relations(hub) in [model(self.seed, count) for count in before]
            check_views(hub)
            hub.refresh()
            after = [model(self.seed, count) for count in (self.wrote, self.wrote + 1)]
            assert relations(hub) in after
            check_views(hub)
            check_files(hub, self.folder)
            assert hub.refresh().changes == {}
            self.wrote += after.index(relations(hub))
            # Write it again, as one does who has heard nothing: it changes nothing.
            if self.wrote:
                relation, present, rows = history(self.seed, self.wrote - 1)
                (hub.insert if present else hub.delete)(relation, rows)
                assert hub.refresh().changes == {}
        self.refreshed = self.wrote


def relations(hub):
    found = {name: hub.rows(name) for name in PROGRAM.relations}
    assert all(len(rows) == len(set(rows)) for rows in found.values())
    return {name: set(rows) for name, rows in found.items()}


def check_views(hub):
    for view, wanted in evaluate_views(PROGRAM, relations(hub)).items():
        assert hub.rows(view) == sorted_rows(wanted.rows), view


def check_files(hub, folder):
    """There is what records name, what has arrived since, and nothing else."""
    record = latest(hub._store.files, PROGRAM.hash)
    assert record == hub._store.record
    named = {
        path for number in refreshes(hub._store.files) for path in read(hub._store.files, number).paths()
    }
    assert {f"runs/{path.name}" for path in (folder / "runs").glob("*")} == named
    inbox = list((folder / "inbox").glob("*"))
    assert all(int(path.name.split("-")[0]) > record.arrived for path in inbox)
    assert all((path / "_arrival.json").exists() for path in inbox)
    assert {path.name for path in folder.iterdir()} <= {"inbox", "lease", "refreshes", "runs", "shapes"}
    assert not [path for path in folder.rglob(".*") if "inbox" not in path.parts]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stopped", folder]:
            stopped(Path(folder))
        case ["child", place, seed, start, stage, passes, executors]:
            child(json.loads(place), int(seed), int(start), stage, int(passes), executors == "1")
