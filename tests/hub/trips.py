"""A round trip whose doubles and losses show: a Spark job, killed at random, copies a view into a bag.

The job is a process of its own, with its own Spark. It follows the view `scores` of a store, transforms the
changes, and writes them into the bag `copies` of the same store, whose hub goes on meanwhile in this process.
Once all is quiet the bag is the view, transformed: were a batch lost or written twice, it would not be.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hub.kills import ROOT, small_session
from tests.hub.quick import quickly

from everview.hub import Hub, register
from everview.hub.offers import offered
from everview.language.order import sorted_rows
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE play (id BIGINT, who BIGINT, points BIGINT);
CREATE TABLE copies (who BIGINT, twice BIGINT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW scores AS SELECT who, sum(points) AS total FROM play GROUP BY who;
CREATE MATERIALIZED VIEW counted AS SELECT who, count(*) AS n FROM copies GROUP BY who;
""")
PLAYERS = 8
PATIENCE = 300
"""Seconds after which what was to happen will not; many, for the machine may be busy."""


def job(store, checkpoint):
    """Copy until killed."""
    spark = small_session()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    register(spark)
    source = spark.readStream.format("everview").option("name", "scores").option("maxRefreshesPerTrigger", 9)
    # A shuffle, so that several tasks write, and none has the rows as they were read.
    twice = source.load(store).selectExpr("who", "total * 2 AS twice", "_weight", "_commit").repartition(2)
    sink = twice.writeStream.format("everview").option("name", "copies")
    sink.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start(store)
    spark.streams.awaitAnyTermination()


class Trip:
    """A store with its hub, and the job."""

    def __init__(self, folder, spark, seed):
        self.folder = Path(folder)
        self.random = random.Random(seed)
        self.hub = quickly(Hub.open(self.folder / "store", PROGRAM, spark=spark))
        self.plays = {}
        self.number = 0
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.kill()
        self.hub.close()

    def play(self):
        """One more write, and a refresh, which takes in what the job has written too."""
        if self.plays and self.random.random() < 0.3:
            self.hub.delete("play", [self.plays.pop(self.random.choice([*self.plays]))])
        for _ in range(self.random.randrange(1, 3)):
            row = (self.number, self.random.randrange(PLAYERS), self.random.randrange(1, 5))
            self.hub.insert("play", [row])
            self.plays[self.number] = row
            self.number += 1
        self.refresh()

    def refresh(self):
        assert self.hub.refresh().rejected == ()

    def start(self):
        command = [sys.executable, "-m", "tests.hub.trips", str(self.folder / "store")]
        command.append(str(self.folder / "checkpoint"))
        # With its Java and its workers it is a group of processes, to be killed as one.
        self.process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)

    def kill(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def batches(self):
        """How many batches of the job are in a refresh."""
        return max(self.hub._store.record.writers.values(), default=-1) + 1

    def run_and_kill(self):
        """Start the job, play, and kill it some time after its first new batch."""
        self.refresh()  # what the last one has left is none
        before = self.batches()
        self.start()
        self.until(lambda: self.batches() > before)
        end = time.monotonic() + self.random.uniform(0, 2)
        while time.monotonic() < end:
            self.play()
        self.kill()

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            assert self.process.poll() is None
            self.play()
            time.sleep(0.2)  # leaves the processor to the job, which takes long to start

    def settle(self):
        """Let the job copy what there is, with nothing new to come."""
        self.start()
        end = time.monotonic() + PATIENCE
        while self.hub.rows("copies") != self.wanted():
            assert time.monotonic() < end, (self.hub.rows("copies"), self.wanted())
            assert self.process.poll() is None
            self.refresh()
            time.sleep(0.05)
        # Nor does what it still does change it.
        refreshed = self.hub._store.record.refresh
        while self.hub._store.record.refresh < refreshed + 3:
            self.hub.insert("play", [(-1, -1, 0)])
            self.hub.delete("play", [(-1, -1, 0)])
            self.refresh()
        self.kill()
        self.refresh()
        assert self.hub.rows("copies") == self.wanted()
        assert offered(self.hub._store.files) == []

    def wanted(self):
        totals = {}
        for _, who, points in self.plays.values():
            totals[who] = totals.get(who, 0) + points
        assert self.hub.rows("scores") == sorted_rows(totals.items())
        return sorted_rows((who, total * 2) for who, total in totals.items())


if __name__ == "__main__":
    job(*sys.argv[1:])
