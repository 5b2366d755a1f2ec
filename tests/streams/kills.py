"""A pipeline on Spark in a child process that is killed: it takes in files one by one and says which are in.

The child prints `file n` before and `took n` after the commit of the file of that number, and is killed at a
moment, or kills itself where files of its state, or the record, are written. `check` then opens the
pipeline: what was acknowledged is in, once, at most one file more, its results are a recount, nothing is left
of what was under way, and the rest of the files brings it to the recount of all.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hub.kills import say, small_session
from tests.streams.tweets import recount, results, rng_of, titan, tweets

from everview import streams
from everview.hub.files import LocalFiles
from everview.streams.pipelines.spark import job
from everview.streams.pipelines.spark.record import RECORDS, _loaded

ROOT = Path(__file__).parent.parent.parent
COLUMNS = "id BIGINT, text STRING"
FILES = 12
EVENTS = 15


class History:
    """A folder of files of tweets, a pipeline over them, and what its children have said."""

    def __init__(self, folder, seed):
        self.folder, self.seed = Path(folder), seed
        self.files = []
        self.took = self.tried = 0
        rng = rng_of(seed)
        events = tweets(rng, FILES * EVENTS, vocabulary=60)
        (self.folder / "later").mkdir()
        (self.folder / "in").mkdir()
        size = -(-len(events) // FILES)
        for number in range(FILES):
            self.files.append(events[number * size : (number + 1) * size])
            lines = "".join(json.dumps(event) + "\n" for event in self.files[-1])
            (self.folder / "later" / f"{number:03d}.json").write_text(lines)

    def pipeline(self, spark):
        rng = random.Random(self.seed)
        made = titan(sets=rng.choice([1, 3]), maps=rng.choice([1, 2]), n=rng.choice([1, 5]))
        return streams.open_hub(self.folder / "p", made, spark=spark)

    def run(self, *, files=1, seconds=0.0, create=0, large=False):
        """Let a child take files in until it is killed: after some of them, or at a file that it writes."""
        command = [sys.executable, "-m", "tests.streams.kills", str(self.folder), str(self.seed)]
        command += [str(self.took), str(create), str(int(large))]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout.readline() == "opened\n"
                while not create and files > 0:
                    files -= self.hear(process.stdout.readline())
                if not create:
                    time.sleep(seconds)
                    process.kill()
                for line in process.stdout:
                    self.hear(line)
            finally:
                process.kill()
        assert process.returncode == -signal.SIGKILL

    def hear(self, line):
        """Take note of what a child says; whether files were acknowledged, or all are in."""
        word, number = line.split() if line else ("took", self.took - 1)
        if word == "took":
            self.took = int(number) + 1
        self.tried = max(self.tried, int(number) + 1)
        return word == "took"

    def check(self, spark):
        """Compare with a recount, take in what is left, and compare again."""
        with self.pipeline(spark) as hub:
            n = hub.pipeline.stage("top_words").n
            wanted = [self.wanted(count, n) for count in range(self.took, self.tried + 1)]
            assert len(wanted) <= 2
            assert results(hub) in wanted
            self.took += wanted.index(results(hub))
            bring(self.folder, FILES)
            assert hub.read_json_files("tweets", self.folder / "in", COLUMNS) == FILES - self.took
            assert results(hub) == self.wanted(FILES, n)
        # What tasks of the one that was killed may have gone on to write is removed by now.
        with self.pipeline(spark) as hub:
            self.check_files()
            assert results(hub) == self.wanted(FILES, n)

    def wanted(self, count, n):
        return recount([event for some in self.files[:count] for event in some], n)

    def check_files(self):
        """There is what records name, and nothing else."""
        place = self.folder / "p"
        named = set()
        for record in (place / RECORDS).iterdir():
            named |= _loaded(record.read_bytes()).named()
        there = {f"state/{path.name}" for path in (place / "state").glob("*")}
        assert there == named


def child(folder, seed, took, create, large):
    """Take in one file a commit until killed, or die when so many files of the store have been written."""
    if large:
        job.SMALL = 0
    history = History.__new__(History)
    history.folder, history.seed = Path(folder), seed
    with history.pipeline(small_session()) as hub:
        say("opened")
        if create:
            die_at(create)
        for number in range(took, FILES):
            say("file", number)
            bring(history.folder, number + 1)
            hub.read_json_files("tweets", history.folder / "in", COLUMNS)
            say("took", number)
    say("file", FILES - 1)
    time.sleep(600)


def bring(folder, count):
    """Have the first so many files come."""
    for path in sorted((folder / "later").iterdir()):
        if int(path.stem) < count:
            path.rename(folder / "in" / path.name)


def die_at(create):
    """Before or after the file of that number is in its place; half of the files before."""
    made, written = LocalFiles.create, iter(range(1, create))

    def create_or_die(self, path, *arguments):
        last = next(written, None) is None
        if last and create % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        done = made(self, path, *arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    LocalFiles.create = create_or_die


if __name__ == "__main__":
    child(sys.argv[1], *map(int, sys.argv[2:]))
