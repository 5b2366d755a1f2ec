"""A place of a located program as a process of its own: it serves, dials its peers, and turns its links.

It prints `try N` before the commit that turns one of its links for the Nth time, and `ack N` after it: so
whoever listens knows, when it is killed, which state must be there and which one may be. On standard input,
`settle` ends the writing, and `rows` asks for all facts of the place as one line of JSON.
"""

import json
import random
import sys
import threading
import time

import everview as ev
from everview.errors import EverviewError
from everview.located import LocatedProgram, open_counting, open_node
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.live import Live
from everview.server import Listener

TEXTS = {
    # In counting mode derivations must not go round in many circles; paths that visit no site twice do not.
    "provenance": """
        .decl link(@s: symbol, d: symbol)
        .decl reach(@s: symbol, d: symbol)
        .decl path(@s: symbol, d: symbol, vector: symbol, hops: number)
        reach(@s, d) :- link(@s, d).
        reach(@s, d) :- link(@s, z), reach(@z, d).
        path(@s, d, cat(s, " ", d), 1) :- link(@s, d).
        path(@s, d, cat(s, " ", v), n + 1) :-
            link(@s, z), path(@z, d, v, n), strpos(v, s) = 0, n < 4, strlen(v) < 1000.
    """,
    "counting": """
        .decl link(@s: symbol, d: symbol)
        .decl hop(@s: symbol, d: symbol)
        .decl path(@s: symbol, d: symbol, vector: symbol, hops: number)
        hop(@x, y) :- link(@x, z), link(@z, y).
        path(@s, d, cat(s, " ", d), 1) :- link(@s, d).
        path(@s, d, cat(s, " ", v), n + 1) :-
            link(@s, z), path(@z, d, v, n), strpos(v, s) = 0, n < 3, strlen(v) < 1000.
    """,
}


def turned(places, place, number):
    """The links of a place after so many turns: each turns one to the next place of the ring or its next."""
    rng, at, there = random.Random(f"turns of {place}"), places.index(place), set()
    for _ in range(number):
        there ^= {places[(at + rng.choice([1, 2])) % len(places)]}
    return there


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def write(site, places, start, pause, settled):
    """Turn links, from the state after `start` turns on, until told to settle."""
    rng, table = random.Random(), f"link@{site.name}"
    number = start
    while not settled.wait(rng.uniform(0, 2 * pause)):
        number += 1
        before, after = (turned(places, site.name, n) for n in (number - 1, number))
        say("try", number)
        while True:
            try:
                with site.transaction():
                    site.delete(table, [(site.name, other) for other in before - after])
                    site.insert(table, [(site.name, other) for other in after - before])
                break
            except EverviewError as error:  # another thread has been writing for long
                say("again", type(error).__name__)
                time.sleep(0.05)
        say("ack", number)


def main(mode, places, path, name, port, pause, *peers):
    located = LocatedProgram.parse(TEXTS[mode], places, mode=mode)
    site = ev.Site.open(path, located.program, name=name, hosts=located.hosts(name))
    node = (open_node if mode == "provenance" else open_counting)(site, located)
    start = int(sys.stdin.readline())
    there = {other for _, other in site.rows(f"link@{name}")}
    if there != turned(places, name, start):  # it was killed in a commit, which is there
        start += 1
        assert there == turned(places, name, start), (there, start)
        say("ack", start)
    with Listener(site.replica, port=int(port)):
        lives = [Live(site.replica, HttpTransport(peer, attempts=1), every=0.3) for peer in peers]
        for live in lives:
            live.start()
        settled = threading.Event()
        writer = threading.Thread(
            target=write, args=(site, places, start, float(pause), settled), daemon=True
        )
        writer.start()
        say("ready")
        for line in sys.stdin:
            match line.strip():
                case "settle":
                    settled.set()
                    writer.join()
                    say("settled")
                case "rows":
                    found = {relation: node.rows(relation) for relation in located.relations}
                    say("rows", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
