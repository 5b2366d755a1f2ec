"""One live driver per store, and a paused one that does no harm."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.hub.quick import quickly

from everview.errors import StoreError
from everview.hub import Hub
from everview.hub.files import LocalFiles
from everview.hub.lease import Claim, Lock, hold
from everview.hub.refresh import Refreshing
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE t (k BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
""")
HOLDER = """
import sys, time
from everview.hub.files import LocalFiles
from everview.hub.lease import hold
lease = hold(LocalFiles(__import__('pathlib').Path(sys.argv[1])))
print('held', flush=True)
time.sleep(60)
"""


def open_quickly(folder, spark):
    return quickly(Hub.open(folder, PROGRAM, spark=spark))


class TestLocks:
    def test_one_at_a_time_in_one_process(self, tmp_path):
        lease = hold(LocalFiles(tmp_path))
        assert isinstance(lease, Lock)
        with pytest.raises(StoreError, match=rf"by process {os.getpid()} \(this one\) on \S+ since 20\d\d-"):
            hold(LocalFiles(tmp_path))
        lease.give_up()
        hold(LocalFiles(tmp_path)).give_up()

    def test_one_at_a_time_among_processes_and_free_after_a_kill(self, tmp_path):
        command = [sys.executable, "-c", HOLDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(StoreError, match=rf"by process {other.pid} on "):
                hold(LocalFiles(tmp_path))
            other.kill()
            other.wait()
            hold(LocalFiles(tmp_path)).give_up()

    def test_a_forgotten_one_is_free(self, tmp_path):
        lease = hold(LocalFiles(tmp_path))
        del lease
        hold(LocalFiles(tmp_path)).give_up()

    def test_files_without_locks_have_claims(self, tmp_path, monkeypatch):
        monkeypatch.setattr(LocalFiles, "lock", lambda self, path, owner: None)
        lease = hold(LocalFiles(tmp_path))
        assert isinstance(lease, Claim)
        lease.give_up()


class TestClaims:
    def test_one_at_a_time(self, tmp_path):
        files = LocalFiles(tmp_path)
        lease = Claim(files)
        with pytest.raises(StoreError, match=r"\(this one\).* or wait until its lease of 30 s has run out"):
            Claim(files)
        lease.give_up()
        Claim(files).give_up()

    def test_renewed_as_long_as_it_is_held(self, tmp_path):
        files = LocalFiles(tmp_path)
        lease = Claim(files, limit=0.6)
        for _ in range(8):
            time.sleep(0.2)
            with pytest.raises(StoreError, match="open already"):
                Claim(files, limit=0.6)
        lease.check()
        lease.give_up()
        assert len(files.list("lease")) == 2

    def test_taken_over_when_it_has_run_out_and_the_loser_learns_of_it(self, tmp_path):
        files = LocalFiles(tmp_path)
        lost = Claim(files, limit=0.2)
        lost.stop()
        with pytest.raises(StoreError, match="open already"):
            Claim(files, limit=0.2)
        time.sleep(0.25)
        taken = Claim(files)
        lost._ended.clear()
        with pytest.raises(StoreError, match=r"was taken over by process .* open it again"):
            lost.check()
        lost.give_up()
        taken.check()
        taken.give_up()

    def test_lost_long_ago(self, tmp_path):
        """The claims that followed its own are no longer there; those that followed them are."""
        files = LocalFiles(tmp_path)
        lost = Claim(files, limit=0.2)
        lost.stop()
        time.sleep(0.25)
        taken = Claim(files)
        for _ in range(5):
            assert taken._renew(30)
        assert not files.exists("lease/000000000002.claim")
        lost._ended.clear()
        with pytest.raises(StoreError, match="was taken over by process"):
            lost.check()
        lost.give_up()
        assert files.list("lease") == ["000000000006.claim", "000000000007.claim"]
        assert taken._renew(30)
        taken.give_up()

    def test_one_that_has_run_out_unnoticed_goes_on(self, tmp_path):
        lease = Claim(LocalFiles(tmp_path), limit=0.2)
        lease.stop()
        lease._ended.clear()
        time.sleep(0.25)
        lease.check()
        lease.give_up()


def test_a_second_hub_is_refused_before_spark_is_asked(spark, tmp_path):
    with open_quickly(tmp_path, spark) as hub:
        with pytest.raises(StoreError, match="is open already, by process"):
            Hub.open(tmp_path, PROGRAM, spark=object())
        hub.insert("t", [(1,)])
        hub.refresh()
    hub.close()
    with open_quickly(tmp_path, spark) as again:
        assert again.rows("v") == [(1,)]


def test_a_hub_that_cannot_be_opened_gives_the_lease_back(spark, tmp_path):
    open_quickly(tmp_path, spark).close()
    with pytest.raises(StoreError, match="another program"):
        Hub.open(tmp_path, Program.parse("CREATE TABLE t (k TEXT)"), spark=spark)
    open_quickly(tmp_path, spark).close()


@pytest.fixture
def claims(monkeypatch):
    """Hubs whose leases run out."""
    limit = 0.3
    monkeypatch.setattr("everview.hub.hub.hold", functools.partial(Claim, limit=limit))

    def pause(hub):
        hub._store.lease.stop()
        time.sleep(limit + 0.05)

    return pause


def wake(hub):
    """Its thread was stopped with it: that it renews nothing is of the past."""
    hub._store.lease._ended.clear()


class TestPausedDrivers:
    def test_writes_and_refreshes_nothing(self, spark, tmp_path, claims):
        paused = open_quickly(tmp_path, spark)
        paused.insert("t", [(1,)])
        claims(paused)
        with open_quickly(tmp_path, spark) as hub:
            hub.refresh()
            wake(paused)
            for attempt in (paused.refresh, lambda: paused.insert("t", [(2,)])):
                with pytest.raises(StoreError, match=r"taken over .* open it again"):
                    attempt()
            hub.insert("t", [(3,)])
            hub.refresh()
            assert hub.rows("t") == [(1,), (3,)]
            assert paused.rows("t") == []
        paused.close()

    def test_the_epoch_alone_stops_a_refresh_and_a_write(self, spark, tmp_path, claims, monkeypatch):
        """Even a driver that never looks at its lease again."""
        paused = open_quickly(tmp_path, spark)
        paused.insert("t", [(1,)])
        claims(paused)
        with open_quickly(tmp_path, spark) as hub:
            hub.refresh()
            monkeypatch.setattr(paused._store.lease, "check", lambda: None)
            for attempt in (paused.refresh, lambda: paused.insert("t", [(2,)])):
                with pytest.raises(StoreError, match="another hub has taken this store over"):
                    attempt()
            assert hub.refresh().arrivals == 0
        paused.close()

    def test_paused_within_a_refresh(self, spark, tmp_path, claims, monkeypatch):
        """Its runs are written when another takes the store over: its record has no number left."""
        paused = open_quickly(tmp_path, spark)
        paused.insert("t", [(1,)])
        others = []
        run = Refreshing.run

        def interrupted(self, arrivals):
            report = run(self, arrivals)
            monkeypatch.setattr(Refreshing, "run", run)
            claims(paused)
            others.append(open_quickly(tmp_path, spark))
            others[0].insert("t", [(2,)])
            return report

        monkeypatch.setattr(Refreshing, "run", interrupted)
        with pytest.raises(StoreError, match="another hub has taken this store over and made record 2"):
            paused.refresh()
        (hub,) = others
        hub.refresh()
        assert hub.rows("t") == [(1,), (2,)]
        assert hub.rows("v") == [(2,)]
        assert hub._store.record.epoch == 2
        hub.close()
        paused.close()

    def test_paused_within_a_write(self, spark, tmp_path, claims, monkeypatch):
        """The write is refused when its number may be in a refresh already."""
        paused = open_quickly(tmp_path, spark)
        others = []
        mark = paused._store.inbox._mark

        def interrupted(arrival, rows):
            claims(paused)
            others.append(open_quickly(tmp_path, spark))
            others[0].insert("t", [(2,)])
            others[0].refresh()
            mark(arrival, rows)

        monkeypatch.setattr(paused._store.inbox, "_mark", interrupted)
        with pytest.raises(StoreError, match="another hub has taken this store over"):
            paused.insert("t", [(1,)])
        (hub,) = others
        hub.insert("t", [(3,)])
        hub.refresh()
        assert hub.rows("t") == [(2,), (3,)]
        hub.close()
        paused.close()


def test_a_stopped_process_that_wakes_up(spark, tmp_path, claims):
    """SIGSTOP, a takeover, SIGCONT: what it then tries fails, and the store is unharmed."""
    command = [sys.executable, "-m", "tests.hub.kills", "stopped", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "written\n"
        other.send_signal(signal.SIGSTOP)
        time.sleep(1)
        with open_quickly(tmp_path, spark) as hub:
            hub.refresh()
            assert hub.rows("t") == [(1,)]
            other.send_signal(signal.SIGCONT)
            other.stdin.write("refresh\n")
            other.stdin.flush()
            assert "taken over" in other.stdout.readline()
            hub.insert("t", [(2,)])
            hub.refresh()
            assert hub.rows("v") == [(2,)]
