"""A history of writes whose doubles show, for hubs that run; and a child process that writes it until killed.

Write n puts one row into a bag, and inserts or deletes rows of a set: were a write lost or taken in twice,
the bag would tell. The child prints `wrote n` once a write is acknowledged.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.hub.kills import ROOT, say, small_session
from tests.hub.quick import quickly

from everview.engines.reference import evaluate_views
from everview.hub import Hub
from everview.hub.marks import whole_writes
from everview.language.order import sorted_rows
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE b (n BIGINT, a BIGINT) WITH (semantics = 'bag');
CREATE TABLE s (n BIGINT, a BIGINT);
CREATE MATERIALIZED VIEW per_a AS SELECT a, count(*) AS c, sum(n) AS t FROM b GROUP BY a;
CREATE MATERIALIZED VIEW joined AS SELECT b.n AS x, s.n AS y FROM b JOIN s ON b.a = s.a;
""")
KEYS = 4
PATIENCE = 120
"""Seconds after which what was to happen will not; many, for the machine may be busy."""


def write(hub, number):
    """The write of that number, an arrival of each relation."""
    hub.insert("b", [(number, number % KEYS)])
    rng = random.Random(number)
    rows = [(rng.randrange(8), rng.randrange(KEYS)) for _ in range(2)]
    (hub.delete if number % 3 == 2 else hub.insert)("s", rows)


def model(numbers):
    """The relations after these writes, in their order."""
    bag, rows = [], set()
    for number in numbers:
        bag.append((number, number % KEYS))
        rng = random.Random(number)
        touched = {(rng.randrange(8), rng.randrange(KEYS)) for _ in range(2)}
        rows = rows - touched if number % 3 == 2 else rows | touched
    return {"b": bag, "s": rows}


def until(condition, run=None):
    """Wait for something; a run that has failed meanwhile raises its error."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        if run is not None:
            assert not run.wait(0)
        time.sleep(0.01)


def check(hub, numbers):
    """The hub has these writes, each once, and every view is its query."""
    base = model(numbers)
    for name, rows in base.items():
        assert hub.rows(name) == sorted_rows(rows), name
    for view, wanted in evaluate_views(PROGRAM, base).items():
        assert hub.rows(view) == sorted_rows(wanted.rows), view


def is_in(hub):
    """Whether nothing that has arrived is left; the number of a write that failed is in no refresh."""
    arrived = hub._store.record.arrived
    return all(number <= arrived for number, _ in whole_writes(hub._store.files))


def opened(folder, spark):
    return quickly(Hub.open(folder, PROGRAM, spark=spark))


def child(folder, start):
    """Run the hub and write from a number on until killed."""
    hub = opened(folder, small_session())
    run = hub.run("0 seconds")
    until(lambda: run.last_report)
    say("runs", 0)
    for number in range(start, start + 10_000):
        write(hub, number)
        say("wrote", number)
        say("refresh", hub._store.record.refresh)
        time.sleep(0.02)


def killed(folder, start, refreshes, seconds):
    """Let a child write until so long after so many refreshes; the count of acknowledged writes then."""
    command = [sys.executable, "-m", "tests.hub.streams", str(folder), str(start)]
    said = Counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            first = None
            for line in process.stdout:
                word, number = line.split()
                said[word] = int(number)
                first = said["refresh"] if first is None and said["refresh"] else first
                if first is not None and said["refresh"] >= first + refreshes:
                    break
            time.sleep(seconds)
            process.kill()
            for line in process.stdout:
                word, number = line.split()
                said[word] = int(number)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return said["wrote"] + 1


if __name__ == "__main__":
    child(Path(sys.argv[1]), int(sys.argv[2]))
