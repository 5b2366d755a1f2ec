"""A site as a process of its own: it serves, stays in sync with its peers, and writes until told to settle.

It prints `try N` before commit N and `ack N` after it; so whoever listens knows, when it is killed, which
commits must be there and which one may be. On standard input, `settle` ends the writing, `digest` asks for
a hash of all relations, and `offline` and `online` say whether it reaches its peers.
"""

import hashlib
import json
import os
import random
import sys
import threading
import time

import everview as ev
from everview.errors import StoreError
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.live import Live
from everview.server import Listener

PROGRAM = """
CREATE TABLE s (site TEXT, n BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, site TEXT, n BIGINT);
CREATE TABLE bag (site TEXT, n BIGINT) WITH (semantics = 'bag');
CREATE TABLE aw (site TEXT, n BIGINT) WITH (semantics = 'add_wins');
CREATE TABLE transfer (site TEXT, n BIGINT, account BIGINT, amount BIGINT);
CREATE MATERIALIZED VIEW total AS SELECT sum(amount) AS t FROM transfer;
CREATE MATERIALIZED VIEW per_site AS SELECT site, count(*) AS c FROM bag GROUP BY site;
CREATE MATERIALIZED VIEW balances WITH (authority = 'hub') AS
    SELECT account, count(*) AS c, sum(amount) AS t FROM transfer GROUP BY account;
"""
KEYS = 7
AGE = 5
"""A commit deletes what the site itself wrote so many commits ago."""


def commit(site, n):
    """Commit N of a site: rows of its own, a key that all fight for, and a transfer that sums to 0."""
    rng = random.Random(f"{site.name} {n}")
    amount = rng.randrange(1, 1000)
    with site.transaction():
        for relation in ("s", "bag", "aw"):
            site.insert(relation, [(site.name, n)])
        site.insert("k", [(n % KEYS, site.name, n)])
        site.insert("transfer", [(site.name, n, 0, amount), (site.name, n, 1 + n % 3, -amount)])
        site.delete("s", [(site.name, n - AGE)])
        site.delete("aw", [(site.name, n - AGE)])


def digest(site):
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(site.program.relations):
        found.update(repr(site.rows(name)).encode())
    return found.hexdigest()


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def write(site, start, pause, settled):
    rng = random.Random()
    n = start
    while not settled.wait(rng.uniform(0, 2 * pause)):
        say("try", n)
        while True:
            try:
                commit(site, n)
                break
            except StoreError:  # another thread has been writing for long: the commit was not made
                time.sleep(0.05)
        say("ack", n)
        ((total,),) = site.rows("total")
        if total != 0:
            say("torn", n, total)
        n += 1


def met(site, peers):
    """Stay in sync with peers."""
    token, ca = os.environ.get("EVERVIEW_TOKEN"), os.environ.get("EVERVIEW_CA")
    ways = [HttpTransport(peer, token=token, ca=ca, attempts=1) for peer in peers]
    lives = [Live(site.replica, way, every=0.5) for way in ways]
    for live in lives:
        live.start()
    return lives


def main(path, name, port, start, pause, *peers):
    site = ev.Site.open(path, ev.Program.parse(PROGRAM), name=name)
    with Listener(site.replica, port=int(port)):
        lives = met(site, peers)
        settled = threading.Event()
        writer = threading.Thread(target=write, args=(site, int(start), float(pause), settled), daemon=True)
        writer.start()
        say("ready")
        for line in sys.stdin:
            match line.strip():
                case "settle":
                    settled.set()
                    writer.join()
                    say("settled")
                case "offline":
                    for live in lives:
                        live.stop()
                    lives = []
                case "online":
                    lives = lives or met(site, peers)
                case "digest":
                    say("digest", digest(site), json.dumps(site.status()["replication"]["head"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
