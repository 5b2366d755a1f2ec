"""Six devices and a hub in the middle, all of them processes that talk over HTTP; then all have the same.

Devices write all the time. They are offline for a while, killed and stopped; so is the hub, which is
`everview hub`. They dial nobody but the hub. In the end every file has every acknowledged commit, once, and
the hub's tables and views are what the reference makes of the union of these.

One more device hosts nothing but an aggregate that the hub publishes. It has it without any base row,
and what it shows is at every time what the hub had after some refresh.

All of it goes over TLS, and the hub knows everybody by a token.
"""

import functools
import random
import signal
import sqlite3
import ssl
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.hub.quick import quickly
from tests.hub.served import PATIENCE, HubProcess, Secrets
from tests.long.processes import PUBLISHED, Child, check, free_ports, heal
from tests.site.process_site import PROGRAM

import everview as ev
from everview.engines.reference import evaluate_views
from everview.engines.spark.session import start_session
from everview.errors import SyncError
from everview.hub import Hub
from everview.language.order import sorted_rows

DEVICES = 6
SECONDS = 120
OFFLINE_SECONDS = 4.0
HUB_KILLS_EVERY = 30.0

TALLY = Counter()


def tally(found):
    TALLY.update(found)


def summary():
    return ", ".join(f"{count:,} {what}" for what, count in sorted(TALLY.items()))


_session = functools.cache(functools.partial(start_session, master="local[2]"))


class Watcher:
    """A device that hosts what the hub publishes, and nothing else."""

    def __init__(self, folder, hub, secrets):
        self.hub = hub
        self.shown = {"token": secrets.tokens["watcher"], "ca": secrets.ca}
        self.site = ev.Site.open(
            folder / "watcher.db", ev.Program.parse(PROGRAM), name="watcher", hosts=set(PUBLISHED)
        )
        assert "published by hub" in self.site.explain("balances")
        self.states = set()

    def look(self):
        """A transfer is in a refresh whole or not at all: in all that is ever shown, the balances add up."""
        self.site.sync(self.hub.address, **self.shown)
        shown = self.site.rows("balances")
        assert sum(balance for _, _, balance in shown) == 0, shown
        self.states.add(tuple(shown))
        return shown

    def see(self, path):
        """Wait for what the file of a device says; the hub publishes a moment after it has refreshed."""
        with closing(sqlite3.connect(path)) as connection:
            told = connection.execute("SELECT account, count(*), sum(amount) FROM transfer GROUP BY account")
            wanted = sorted(told.fetchall())
        until = time.monotonic() + PATIENCE
        while self.look() != wanted:
            assert time.monotonic() < until, wanted
            time.sleep(0.05)
        return wanted


def balances(found):
    """What the reference makes of the published view."""
    program = ev.Program.parse(PROGRAM)
    base = {name: found[name] for name in program.relations}
    return sorted_rows(evaluate_views(program, base)["balances"].rows)


def disturb(hub, devices, watcher, rng, seconds):
    """Take devices off and on, kill and stop them, and the hub once in a while, until the time is over."""
    began = time.monotonic()
    back = {}  # device, or hub → when, and how it comes back
    counts = {"offline": 0, "kills": 0, "stops": 0, "hub_kills": 0, "hub_stops": 0}
    killed = began
    while (now := time.monotonic()) < began + seconds:
        time.sleep(rng.uniform(0.1, 0.5))
        for one, (when, come) in list(back.items()):
            if now >= when:
                come()
                del back[one]
        drawn = rng.random()
        if drawn < 0.06 and hub not in back:
            hub.process.send_signal(signal.SIGSTOP)
            back[hub] = (
                now + rng.uniform(0.2, 1.5),
                functools.partial(hub.process.send_signal, signal.SIGCONT),
            )
            counts["hub_stops"] += 1
        if now - killed > HUB_KILLS_EVERY and hub not in back:
            hub.end(signal.SIGKILL)
            hub.start()
            killed = time.monotonic()
            counts["hub_kills"] += 1
        if drawn > 0.8 and hub not in back:
            with suppress(SyncError):
                watcher.look()
        device = rng.choice(devices)
        if device in back:
            continue
        if drawn < 0.5:
            device.ask("offline")
            back[device] = now + rng.uniform(0.5, OFFLINE_SECONDS), functools.partial(device.ask, "online")
            counts["offline"] += 1
        elif drawn < 0.7:
            device.send(signal.SIGSTOP)
            back[device] = now + rng.uniform(0.2, 2), functools.partial(device.send, signal.SIGCONT)
            counts["stops"] += 1
        elif drawn < 0.8:
            device.end()
            device.start()
            counts["kills"] += 1
    for _, come in back.values():
        come()
    return counts


def check_hub(store, found, session):
    """The hub shows what the devices have, and of its views the reference thinks likewise."""
    program = ev.Program.parse(PROGRAM)
    with quickly(Hub.open(store, program, spark=session)) as hub:
        shown = {name: hub.rows(name) for name in program.names()}
    assert {name: rows for name, rows in shown.items() if name not in PUBLISHED} == found
    base = {name: shown[name] for name in program.relations}
    for view, wanted in evaluate_views(program, base).items():
        assert shown[view] == sorted_rows(wanted.rows), view


def _secrets(folder):
    devices = {f"s{n}": "read = '*'\nwrite = '*'" for n in range(DEVICES)}
    watching = f"read = {sorted(PUBLISHED)}\nwrite = []\nmetrics = true"
    return Secrets(folder, **devices, watcher=watching)


def _watching(secrets):
    headers = {"Authorization": f"Bearer {secrets.tokens['watcher']}"}
    return {"headers": headers, "verify": ssl.create_default_context(cafile=secrets.ca)}


def _knock(site, hub, secrets):
    """Who shows nothing, or what is another's, is not let in."""
    for shown in ({}, {"token": "something-else-altogether"}, {"token": secrets.tokens["s0"]}):
        with pytest.raises(SyncError, match="token"):
            site.sync(hub.address, ca=secrets.ca, **shown)


def case(seed, seconds=SECONDS, session=None):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secrets = _secrets(folder)
        words = [*secrets.words, "--trigger", "500 milliseconds"]
        hub = HubProcess(folder, PROGRAM, *words, watched=_watching(secrets)).start()
        ports = free_ports(DEVICES)
        devices = [Child(folder, n, ports[n], [hub.address], secrets.of(f"s{n}")) for n in range(DEVICES)]
        watcher = Watcher(folder, hub, secrets)
        try:
            _knock(watcher.site, hub, secrets)
            for device in devices:
                device.start()
            for device in devices:
                assert device.hear() == ["ready"]
            hub.refreshed()
            counts = disturb(hub, devices, watcher, rng, seconds)
            heal(devices)
            refreshed = hub.settled()["refresh"]
            last = watcher.see(devices[0].path)
        finally:
            watcher.site.close()
            for device in devices:
                if device.process is not None and device.process.poll() is None:
                    device.send(signal.SIGCONT)
                    device.end()
            hub.process.send_signal(signal.SIGCONT)
            status = hub.end(rng.choice((signal.SIGTERM, signal.SIGINT)))
        assert status == 0, hub.log
        assert len(hub.events("refresh")) > 0  # and that every line of its log is one of ours
        found = check(devices)
        assert last == balances(found)
        check_hub(hub.store, found, session or _session())
    commits = sum(len(device.acknowledged) for device in devices)
    assert commits > 0
    return counts | {"commits": commits, "refreshes": refreshed, "states watched": len(watcher.states)}
