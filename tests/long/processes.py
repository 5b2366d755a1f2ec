"""Five sites as processes that talk over HTTP, killed and stopped at random; then they heal and are equal.

What was acknowledged is there, once, whole and at every site; one commit more for each kill at most. Every
state that a site shows on the way has a balance of 0. A server that lives through it all does not grow.
"""

import os
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.site.process_site import AGE, KEYS, PROGRAM

import everview as ev

SITES = 5
PUBLISHED = ("balances",)
"""Views that a hub publishes: without one they are empty, with one somewhat behind."""
SECONDS = 20
HEALING_SECONDS = 120
PAUSE = 0.1
ROOT = Path(__file__).parent.parent.parent


class Child:
    """A site, over all the processes that it lives through."""

    def __init__(self, folder, number, port, peers, environment=None):
        self.number, self.port, self.peers = number, port, peers
        self.environment = {**os.environ, **(environment or {})}
        self.path = folder / f"{number}.db"
        self.tried, self.acknowledged, self.complaints = -1, set(), []
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "tests.site.process_site", str(self.path), f"s{self.number}"]
        command += [str(self.port), str(self.tried + 1), str(PAUSE), *self.peers]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.listen()

    def listen(self):
        self.said = queue.Queue()
        self.reader = threading.Thread(target=self.read, args=(self.process, self.said), daemon=True)
        self.reader.start()

    def read(self, process, said):
        for line in process.stdout:
            match line.split():
                case ["try", n]:
                    self.tried = int(n)
                case ["ack", n]:
                    self.acknowledged.add(int(n))
                case ["torn", *words]:
                    self.complaints.append(words)
                case words:
                    said.put(words)
        said.put(None)

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self, timeout=60):
        found = self.said.get(timeout=timeout)
        assert found is not None, f"site {self.number} died"
        return found

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.stdin.close()
        self.process.wait(30)
        self.reader.join(30)
        self.process.stdout.close()

    def resident(self):
        """Bytes in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def disturb(children, rng, until):
    """Kill and stop sites until the time is over; the first is stopped now and then, but never killed."""
    stopped = {}
    counts = {"kills": 0, "stops": 0}
    sizes = []
    while (now := time.monotonic()) < until:
        time.sleep(rng.uniform(0.1, 0.6))
        for child, when in list(stopped.items()):
            if now >= when:
                child.send(signal.SIGCONT)
                del stopped[child]
        child = rng.choice(children)
        if child in stopped:
            continue
        if rng.random() < 0.5:
            child.send(signal.SIGSTOP)
            stopped[child] = now + rng.uniform(0.2, 2)
            counts["stops"] += 1
        elif child.number:
            child.end()
            child.start()
            counts["kills"] += 1
        if children[0] not in stopped:
            sizes.append(children[0].resident())
    for child in stopped:
        child.send(signal.SIGCONT)
    return counts, sizes


def heal(children):
    """Let everybody settle, and wait until all show the same."""
    for child in children:
        child.ask("settle")
    for child in children:
        while child.hear() != ["settled"]:
            pass
    until = time.monotonic() + HEALING_SECONDS
    while True:
        for child in children:
            child.ask("digest")
        found = {child.hear()[1] for child in children}
        if len(found) == 1:
            return
        assert time.monotonic() < until, "the sites do not come to agree"
        time.sleep(0.2)


def check(children):
    """Every file holds the same, and that is what the commits make it; return it."""
    program = ev.Program.parse(PROGRAM)
    contents = []
    for child in children:
        assert not child.complaints, child.complaints
        with ev.Site.open(child.path, program) as site:
            contents.append({name: site.rows(name) for name in program.names() if name not in PUBLISHED})
    for other in contents[1:]:
        assert other == contents[0]
    found = contents[0]
    committed = {f"s{child.number}": set() for child in children}
    for site, n in found["bag"]:
        assert n not in committed[site], "a commit came twice"
        committed[site].add(n)
    for child in children:
        mine = committed[f"s{child.number}"]
        assert child.acknowledged <= mine, "an acknowledged commit is lost"
        assert mine <= set(range(child.tried + 1)), "a commit that nobody made"
    alive = sorted((s, n) for s, ns in committed.items() for n in ns if n + AGE not in ns)
    assert found["s"] == found["aw"] == alive
    assert found["total"] == [(0,)]
    assert len(found["transfer"]) == 2 * len(found["bag"])
    for key, site, n in found["k"]:
        assert n in committed[site]
        assert n % KEYS == key
    return found


def case(seed, seconds=SECONDS):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(SITES)
        # A ring with chords; every site dials two others, so every message has several ways.
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        dialled = [sorted({addresses[(n + 1) % SITES], addresses[(n + 2) % SITES]}) for n in range(SITES)]
        children = [Child(Path(folder), n, ports[n], dialled[n]) for n in range(SITES)]
        try:
            for child in children:
                child.start()
            for child in children:
                assert child.hear() == ["ready"]
            counts, sizes = disturb(children, rng, time.monotonic() + seconds)
            heal(children)
        finally:
            for child in children:
                if child.process is not None and child.process.poll() is None:
                    child.send(signal.SIGCONT)
                    child.end()
        check(children)
    third = len(sizes) // 3
    before, after = max(sizes[: 2 * third]), max(sizes[2 * third :])
    assert after < before * 1.15 + (8 << 20), f"the server grew from {before} to {after} bytes"
    commits = sum(len(child.acknowledged) for child in children)
    assert commits > 0
    return counts | {"commits": commits, "resident_mb": after >> 20}
