"""Five places of a located program as processes over HTTP, killed at random; then they heal and are right.

Every place turns its own links. What was acknowledged is there, and in the end all places together show what
one site would that had all their links. Every third case runs by counting.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.located.process_place import TEXTS, turned
from tests.long.processes import ROOT, Child, free_ports

from everview.testing.located.oracle import centralised

PLACES = "abcde"
SECONDS = 10
HEALING_SECONDS = 120
PAUSE = 0.3


class Place(Child):
    """A place, over all the processes that it lives through; `acknowledged` counts its turns."""

    def __init__(self, folder, mode, places, name, port, peers):
        super().__init__(folder, name, port, peers)
        self.mode, self.places, self.tried, self.kills = mode, places, 0, 0
        self.acknowledged = {0}

    def start(self):
        command = [sys.executable, "-m", "tests.located.process_place", self.mode, self.places]
        command += [str(self.path), self.number, str(self.port), str(PAUSE), *self.peers]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.listen()
        self.ask(str(max(self.acknowledged)))
        self.ready = False

    def await_ready(self):
        if not self.ready:
            self.await_word("ready")
        self.ready = True

    def await_word(self, word):
        while (said := self.hear())[0] != word:
            pass
        return said


def disturb(places, rng, until):
    """Kill places until the time is over, also while they are still starting."""
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.1, 0.9))
        place = rng.choice(places)
        place.end()
        place.kills += 1
        place.start()


def heal(places, text):
    """Let all settle, and wait until they show what the text says of all their links."""
    for place in places:
        place.await_ready()
        place.ask("settle")
    for place in places:
        place.await_word("settled")
    names = "".join(place.number for place in places)
    turns = {place.number: max(place.acknowledged) for place in places}
    base = {
        ("link", (name, other)) for name, number in turns.items() for other in turned(names, name, number)
    }
    wanted = centralised(text, frozenset(base))
    until = time.monotonic() + HEALING_SECONDS
    while True:
        found = set()
        for place in places:
            place.ask("rows")
        for place in places:
            told = json.loads(" ".join(place.await_word("rows")[1:]))
            found |= {(relation, tuple(row)) for relation, rows in told.items() for row in rows}
        if found == wanted:
            return len(wanted)
        assert time.monotonic() < until, f"{sorted(found ^ wanted)[:5]} are not as the text says"
        time.sleep(0.2)


def case(seed, seconds=SECONDS, names=PLACES):
    rng = random.Random(seed)
    mode = "counting" if seed % 3 == 2 else "provenance"
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(len(names))
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        places = [
            Place(Path(folder), mode, names, name, ports[at], [addresses[(at + 1) % len(names)]])
            for at, name in enumerate(names)
        ]
        try:
            for place in places:
                place.start()
            for place in places:
                place.await_ready()
            disturb(places, rng, time.monotonic() + seconds)
            facts = heal(places, TEXTS[mode])
        finally:
            for place in places:
                if place.process is not None and place.process.poll() is None:
                    place.end()
    return {
        "kills": sum(place.kills for place in places),
        "turns": sum(max(place.acknowledged) for place in places),
        "facts": facts,
    }
