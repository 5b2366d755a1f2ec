"""Kill −9 in the middle of commits: what was acknowledged is there, and every view is its query.

A child commits a known sequence and acknowledges each commit; it is killed at a random moment, or kills
itself before a random SQL statement. Then the file is opened: it holds exactly the first so many commits,
at least the acknowledged ones and at most one more, and work goes on.
"""

import atexit
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE s (a BIGINT, b TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT, x DOUBLE);
CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
CREATE TABLE aw (a BIGINT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW joined AS SELECT s.b, k.n FROM s JOIN k ON s.a = k.id;
CREATE MATERIALIZED VIEW sums AS SELECT b, count(*) AS c, sum(n) AS n FROM joined GROUP BY b;
CREATE MATERIALIZED VIEW extremes AS SELECT min(x) AS low, max(x) AS high, sum(x) AS x FROM k;
CREATE MATERIALIZED VIEW sides AS SELECT bag.a, k.n FROM bag LEFT JOIN k ON bag.a = k.id;
CREATE MATERIALIZED VIEW top AS SELECT id, n FROM k ORDER BY n DESC, id LIMIT 3;
CREATE MATERIALIZED VIEW names AS SELECT DISTINCT b FROM s;
CREATE MATERIALIZED VIEW rest AS SELECT a FROM bag EXCEPT SELECT a FROM aw;
CREATE MATERIALIZED VIEW ranks AS SELECT id, rank() OVER (PARTITION BY n % 3 ORDER BY x) AS r FROM k;
"""
COMMITS = 40
MARK = -1
"""A key under which every commit writes its number."""


def commit(site, seed, number):
    """The commit of that number: the same whoever runs it."""
    rng = random.Random(seed * 1000 + number)
    with site.transaction():
        site.insert("k", [(MARK, number, None)])
        for _ in range(rng.randint(1, 4)):
            many = rng.choice([1, 1, 3, 30])
            keys = [rng.randrange(12) for _ in range(many)]
            match rng.randrange(6):
                case 0:
                    site.insert("s", [(a, rng.choice("xyz")) for a in keys])
                case 1:
                    site.insert("k", [(a, rng.randrange(9), rng.random()) for a in keys])
                case 2:
                    site.insert("bag", [(a,) for a in keys])
                case 3:
                    site.insert("aw", [(a,) for a in keys])
                case 4:
                    site.execute("UPDATE k SET n = n + 1 WHERE id = ?", [keys[0]])
                case _:
                    site.delete("s", [(a, "x") for a in keys])
                    site.delete("bag", [(a,) for a in keys[:3]])
                    site.delete("aw", [(keys[0],)])
                    site.execute("DELETE FROM k WHERE id = ?", [keys[0]])


def child(path, seed, statements):
    """Commit and acknowledge until killed; with `statements`, die before that many of them."""
    site = ev.Site.open(path, ev.Program.parse(PROGRAM))
    if statements:
        left = iter(range(statements))

        def count(_sql):
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        site._store.writer.connection.set_trace_callback(count)
    for number in range(COMMITS):
        commit(site, seed, number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def serve():
    """Fork a child for every line: path, seed, statements. Its acknowledgements go to the same pipe."""
    ev.Site.open(":memory:", ev.Program.parse(PROGRAM)).close()  # everything is imported before the forks
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                child(*json.loads(line))
            finally:
                os._exit(0)
        sys.stdout.write(f"pid {pid}\n")
        sys.stdout.flush()
        os.waitpid(pid, 0)
        sys.stdout.write("dead\n")
        sys.stdout.flush()


@functools.cache
def nursery():
    """A process that has imported everything and forks children; one import costs more than a kill."""
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", "from tests.long.kills import serve; serve()"]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end():
        process.stdin.close()
        process.wait(30)
        process.stdout.close()

    atexit.register(end)
    return process


def kill_somewhere(path, seed, rng):
    """Let a child commit and die; return how many commits it acknowledged."""
    process = nursery()
    by_statement = rng.random() < 0.5
    statements = rng.randrange(1, 900) if by_statement else 0
    enough = COMMITS + 1 if by_statement else rng.randrange(12)
    process.stdin.write(json.dumps([str(path), seed, statements]) + "\n")
    process.stdin.flush()
    pid, acknowledged = None, 0
    delay = rng.uniform(0, 0.01) if enough else rng.uniform(0, 0.15)
    killed = by_statement
    while (line := process.stdout.readline().strip()) != "dead":
        assert line, "the nursery is gone"
        if line.startswith("pid"):
            pid = int(line.split()[1])
        else:
            acknowledged = int(line) + 1
        if pid and acknowledged >= enough and not killed:
            time.sleep(delay)
            with suppress(ProcessLookupError):  # it may be done with all its commits by now
                os.kill(pid, signal.SIGKILL)
            killed = True
    return acknowledged


def case(seed):
    rng = random.Random(seed)
    program = ev.Program.parse(PROGRAM)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "site.db"
        acknowledged = kill_somewhere(path, seed, rng)
        with ev.Site.open(path, program) as site, ev.Site.open(":memory:", program) as model:
            found = site.status()["commits"]
            assert acknowledged <= found <= acknowledged + 1, (acknowledged, found)
            for number in range(found):
                commit(model, seed, number)
            for number in range(found, found + 3):
                for name in program.relations:
                    assert site.rows(name) == model.rows(name), name
                assert_fresh(site)
                commit(site, seed, number)
                commit(model, seed, number)
