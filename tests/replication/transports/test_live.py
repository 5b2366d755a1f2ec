"""Staying in sync: after every commit of either side, over breaks, until stopped."""

import time

import pytest
from tests.fake_replica import FakeReplica

import everview as ev
from everview.replication.rights.rights import ALL
from everview.replication.transports import live
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.live import Live
from everview.replication.transports.memory import MemoryTransport
from everview.server import Listener


def eventually(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


@pytest.fixture
def run():
    lives = []

    def start(*arguments, **options):
        lives.append(Live(*arguments, **options))
        lives[-1].start()
        return lives[-1]

    yield start
    for one in lives:
        one.stop()


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_commits_of_both_sides_travel_at_once(run, kind):
    here, there = FakeReplica("here"), FakeReplica("there")
    with Listener(there) as listener:
        way = MemoryTransport(there, "there", ALL) if kind == "memory" else HttpTransport(listener.address)
        reports = []
        run(here, way, every=3600, on_report=reports.append)
        for turn in range(3):
            here.insert([f"h{turn}"])
            eventually(lambda turn=turn: f"h{turn}" in there.rows)
            there.insert([f"t{turn}"])
            eventually(lambda turn=turn: f"t{turn}" in here.rows)
        time.sleep(0.5)
        settled = len(reports)
        time.sleep(0.7)
        assert len(reports) == settled  # nothing happens, so nothing is said


def test_two_sites_that_live_on_one_folder_come_to_rest(run, tmp_path):
    program = ev.Program.parse("CREATE TABLE r (a TEXT);")
    here, there = (ev.Site.open(":memory:", program, name=name) for name in ("here", "there"))
    reports = []
    for site in (here, there):
        run(site.replica, FolderTransport(tmp_path / "d"), every=3600, on_report=reports.append)
    here.insert("r", [("h",)])
    eventually(lambda: ("h",) in there.rows("r"))
    there.insert("r", [("t",)])
    eventually(lambda: ("t",) in here.rows("r"))
    time.sleep(2)
    settled = len(reports)
    time.sleep(1.5)
    assert len(reports) == settled


def test_a_peer_that_goes_and_comes_back(run, monkeypatch):
    monkeypatch.setattr(live, "FIRST_DELAY", 0.05)
    here, there = FakeReplica("here"), FakeReplica("there")
    errors = []
    with Listener(there) as listener:
        port = int(listener.address.rpartition(":")[2])
        way = HttpTransport(listener.address, attempts=1)
        run(here, way, every=0.2, on_error=errors.append)
        here.insert(["1"])
        eventually(lambda: "1" in there.rows)
    here.insert(["2"])
    eventually(lambda: errors)
    assert errors[0].retry
    with Listener(there, port=port):
        eventually(lambda: "2" in there.rows)


def test_stopping_is_quick():
    here, there = FakeReplica("here"), FakeReplica("there")
    with Listener(there) as listener:
        one = Live(here, HttpTransport(listener.address), every=3600)
        one.start()
        here.insert(["1"])
        eventually(lambda: "1" in there.rows)
        started = time.monotonic()
        one.stop()
        assert time.monotonic() - started < 3
